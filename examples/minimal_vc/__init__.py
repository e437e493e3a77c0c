"""A validator client small enough to read in ten minutes; nothing imports it."""
