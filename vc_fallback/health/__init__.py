"""Which node to ask: checks of all nodes, and the book in which everything about their health comes together."""
