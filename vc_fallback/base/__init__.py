"""What every other part stands on: types, URLs, errors, clock, watch, backoff, redaction, signals; imports none of them."""
