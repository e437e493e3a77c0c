"""Simulated beacon nodes and virtual time, for the tests of validator clients; imports only base and chain."""
