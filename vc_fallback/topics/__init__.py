"""Topics other than the head's: what is subscribed on which node, and what subscribers get; imported by the facade."""
