"""What names validators in requests: their indices, their public keys, their statuses."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from vc_fallback.node.scalars import uint64

T = TypeVar("T")

ValidatorId = int | bytes
"""An index in the validator registry, or a public key of 48 bytes."""


def write_validator_id(value: ValidatorId) -> str:
    """Write what names one validator.

    :raises ValueError: for a number that is no index, and bytes that are no public key.
    """
    if isinstance(value, bytes):
        if len(value) != 48:
            raise ValueError("a public key has 48 bytes")
        return "0x" + value.hex()
    return str(uint64(value))


def write_validator_ids(values: Iterable[ValidatorId]) -> list[str]:
    """Write what names several, each once, in their order.

    :raises ValueError: as for one; also for one key in the place of several.
    """
    return _each_once(values, write_validator_id)


def write_indices(values: Iterable[int]) -> list[str]:
    """Write indices, each once, in their order.

    :raises ValueError: for anything that is no index.
    """
    return _each_once(values, lambda value: str(uint64(value)))


def write_statuses(values: Iterable[str]) -> list[str]:
    """Write statuses, each once, in their order; those that are not known here too.

    :raises ValueError: for one text in the place of several.
    """
    return _each_once(values, str)


def _each_once(values: Iterable[T], write: Callable[[T], str]) -> list[str]:
    # Their elements are numbers and texts too: 48 validators for one key.
    if isinstance(values, bytes | str):
        raise ValueError("one key or text in the place of several")
    return list(dict.fromkeys(map(write, values)))
