"""Numbers and roots as the Beacon API writes them (Q17)."""

import re

from vc_fallback.base.types import Root, parse_root

_DECIMAL = re.compile(r"(?:0|[1-9][0-9]{0,19})\Z", re.ASCII)
_LIMIT = 2**64


def uint64(value: object) -> int:
    """Read a uint64 given as a decimal string or a JSON integer, exact to 2^64−1.

    :raises ValueError: for floats, booleans, signs, blanks, underscores, leading zeros, and what is out of range.
    """
    if isinstance(value, str) and _DECIMAL.match(value):
        value = int(value)
    # type() rather than isinstance(): a boolean is an int.
    if type(value) is not int or not 0 <= value < _LIMIT:
        raise ValueError("not a uint64")
    return value


def root(value: object) -> Root:
    """Read a root.

    :raises ValueError: for anything but `0x` and 64 hexadecimal digits.
    """
    if not isinstance(value, str):
        raise ValueError("not a root")
    return parse_root(value)


def flag(value: object) -> bool | None:
    """Read an optional boolean; missing is unknown.

    :raises ValueError: for anything but `true`, `false`, `null`.
    """
    if value is None or isinstance(value, bool):
        return value
    raise ValueError("not a boolean")
