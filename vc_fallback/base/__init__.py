"""What every part stands on: types, URLs, errors, clock, watch, backoff, redaction, signals."""
