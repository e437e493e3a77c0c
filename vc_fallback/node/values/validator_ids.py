"""What names validators in requests: their indices, their public keys, their statuses."""

from collections.abc import Iterable
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
    return list(dict.fromkeys(map(write_validator_id, _several(values))))


def write_indices(values: Iterable[int]) -> list[str]:
    """Write indices, each once, in their order: a thousand at each request of duties.

    :raises ValueError: for anything that is no index.
    """
    found = _several(values)
    if found and (set(map(type, found)) != {int} or min(found) < 0 or max(found) >= 2**64):
        raise ValueError("an index is a number from 0 to 2^64−1")
    return list(dict.fromkeys(map(str, found)))


def write_statuses(values: Iterable[str]) -> list[str]:
    """Write statuses, each once, in their order; those that are not known here too.

    :raises ValueError: for one text in the place of several.
    """
    return list(dict.fromkeys(map(str, _several(values))))


def _several(values: Iterable[T]) -> list[T]:
    # The elements of one key or text are numbers and texts too: 48 validators for one.
    if isinstance(values, bytes | str):
        raise ValueError("one key or text in the place of several")
    return list(values)
