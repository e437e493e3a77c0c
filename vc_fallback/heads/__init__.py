"""Head streams, their supervisor, the monitor, subscribers: thin shells that do I/O; imported by cli."""
