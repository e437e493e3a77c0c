"""Every call of a validator client with its strategy, role and times; parts of the facade, imported by it alone."""
