"""The command `vc-fallback`; a leaf that nobody imports."""
