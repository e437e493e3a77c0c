"""Numbers and roots as the Beacon API writes them (Q17)."""

_LIMIT = 2**64


def uint64(value: object) -> int:
    """Read a uint64 given as a decimal string or a JSON integer, exact to 2^64−1.

    :raises ValueError: for floats, booleans, signs, blanks, underscores, leading zeros, and what is out of range.
    """
    if (
        type(value) is str
        and len(value) <= 20
        and value.isdecimal()
        and value.isascii()
        and (value[0] != "0" or value == "0")
    ):
        value = int(value)
    # type() rather than isinstance(): a boolean is an int.
    if type(value) is not int or not 0 <= value < _LIMIT:
        raise ValueError("not a uint64")
    return value


def flag(value: object) -> bool | None:
    """Read an optional boolean; missing is unknown.

    :raises ValueError: for anything but `true`, `false`, `null`.
    """
    if value is None or value is True or value is False:
        return value
    raise ValueError("not a boolean")
