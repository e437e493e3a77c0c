"""Topics that are not about the head, kept on primaries while those are up; imported by fallback."""
