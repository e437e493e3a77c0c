"""Head streams, their supervisor, the monitor and its subscribers: thin shells that do I/O; imported by cli and observe."""
