"""The REST side of a simulated node, a module for each kind of endpoint; imported by testing alone."""
