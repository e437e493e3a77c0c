"""How many bytes an object and all that it holds take."""

import sys
from collections import deque
from collections.abc import Mapping
from enum import Enum


def deep_size(thing: object, seen: set[int] | None = None) -> int:
    """Return the bytes; what is shared by all objects of its kind (classes, members of enumerations) is left out."""
    seen = set() if seen is None else seen
    if id(thing) in seen or isinstance(thing, type | Enum):
        return 0
    seen.add(id(thing))
    parts: list[object] = []
    if isinstance(thing, Mapping):
        parts = [*thing.keys(), *thing.values()]
    elif isinstance(thing, deque | tuple | list | set):
        parts = list(thing)
    elif not isinstance(thing, str | bytes | float | int):
        slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
        parts = [getattr(thing, name) for name in slots if hasattr(thing, name)]
        parts += [getattr(thing, "__dict__", None)]
    return sys.getsizeof(thing) + sum(deep_size(part, seen) for part in parts)
