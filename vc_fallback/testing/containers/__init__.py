"""Consensus containers of every fork with an SSZ of their own, for simulated nodes; imported by testing alone."""
