"""How long a node asks to be left alone."""

from email.utils import parsedate_to_datetime

LONGEST_RETRY_AFTER = 3600.0
"""A node that asks for a longer pause than this many seconds is asked again after it all the same (rule 6)."""


def parse_retry_after(value: str | None, unix: float) -> float | None:
    """Read a `Retry-After` header, seconds or an HTTP date (case 24); `None` where it is absent or unreadable.

    :param unix: Unix time now, for dates.
    """
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), LONGEST_RETRY_AFTER)
    try:
        moment = parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return min(max(0.0, moment - unix), LONGEST_RETRY_AFTER)
