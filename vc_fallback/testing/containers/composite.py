"""SSZ and the Beacon API's JSON of lists and containers."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from vc_fallback.testing.containers.basic import Flag, Kind, Number, Value, expect
from vc_fallback.testing.containers.merkle import chunk_count, chunks_of, merkle_root, with_length

_OFFSET = 4


class List(Kind):
    """At most so many values of a kind, or exactly so many (`exact`)."""

    def __init__(self, item: Kind, limit: int, *, exact: bool = False) -> None:
        self.item = item
        self.limit = limit
        self.exact = exact
        self.size = item.size * limit if exact and item.size is not None else None

    def encode(self, value: Value) -> bytes:
        parts = [self.item.encode(item) for item in value]
        return b"".join(parts) if self.item.size is not None else _with_offsets(parts)

    def decode(self, data: bytes) -> tuple[Value, ...]:
        if self.item.size is not None:
            expect(len(data) % self.item.size == 0, "length of a list")
            bounds = [*range(0, len(data) + 1, self.item.size)]
        elif data:
            first = _offset(data, 0)
            expect(first % _OFFSET == 0 and 0 < first <= len(data), "first offset of a list")
            bounds = [_offset(data, place) for place in range(0, first, _OFFSET)] + [len(data)]
        else:
            bounds = [0]
        self._count(len(bounds) - 1)
        return tuple([self.item.decode(piece) for piece in _pieces(data, bounds)])

    def root(self, value: Value) -> bytes:
        if isinstance(self.item, Number | Flag):
            chunks, limit = chunks_of(self.encode(value)), chunk_count(self.limit * (self.item.size or 1))
        else:
            chunks, limit = [self.item.root(item) for item in value], self.limit
        root = merkle_root(chunks, limit)
        return root if self.exact else with_length(root, len(value))

    def to_json(self, value: Value) -> list[object]:
        return [self.item.to_json(item) for item in value]

    def from_json(self, written: object) -> tuple[Value, ...]:
        expect(isinstance(written, list), "not a list")
        items = tuple([self.item.from_json(item) for item in written])  # type: ignore[attr-defined]
        self._count(len(items))
        return items

    def default(self) -> tuple[Value, ...]:
        return (self.item.default(),) * self.limit if self.exact else ()

    def _count(self, count: int) -> None:
        expect(count == self.limit if self.exact else count <= self.limit, "number of items")


class Container(Kind):
    """Named values, in this order."""

    def __init__(self, **fields: Kind) -> None:
        self.fields = fields
        sizes = [kind.size for kind in fields.values()]
        self._head = sum(_OFFSET if size is None else size for size in sizes)
        self.size = None if None in sizes else self._head

    def with_fields(self, **fields: Kind) -> "Container":
        """Return a container with these fields changed or added at the end."""
        return Container(**{**self.fields, **fields})

    def without(self, *names: str) -> "Container":
        """Return a container that has not got these fields."""
        return Container(**{name: kind for name, kind in self.fields.items() if name not in names})

    def encode(self, value: Value) -> bytes:
        head, tail, place = [], [], self._head
        for name, kind in self.fields.items():
            data = kind.encode(value[name])
            if kind.size is not None:
                head.append(data)
            else:
                head.append(place.to_bytes(_OFFSET, "little"))
                tail.append(data)
                place += len(data)
        return b"".join(head + tail)

    def decode(self, data: bytes) -> dict[str, Value]:
        expect(len(data) == self.size if self.size is not None else len(data) >= self._head, "length of a container")
        found: dict[str, Value] = {}
        later, bounds, place = [], [], 0
        for name, kind in self.fields.items():
            found[name] = None
            if kind.size is not None:
                found[name] = kind.decode(data[place : place + kind.size])
                place += kind.size
            else:
                later.append((name, kind))
                bounds.append(_offset(data, place))
                place += _OFFSET
        if later:
            expect(bounds[0] == self._head, "first offset of a container")
            pieces = _pieces(data, [*bounds, len(data)])
            found.update({name: kind.decode(piece) for (name, kind), piece in zip(later, pieces, strict=True)})
        return found

    def root(self, value: Value, known: Mapping[str, bytes] | None = None) -> bytes:
        """Return the root.

        :param known: roots of fields that were computed before.
        """
        known = known or {}
        roots = [known.get(name) or kind.root(value[name]) for name, kind in self.fields.items()]
        return merkle_root(roots, len(roots))

    def to_json(self, value: Value) -> dict[str, object]:
        return {name: kind.to_json(value[name]) for name, kind in self.fields.items()}

    def from_json(self, written: object) -> dict[str, Value]:
        expect(isinstance(written, dict), "not an object")
        found = {}
        for name, kind in self.fields.items():
            expect(name in written, f"{name} is missing")  # type: ignore[operator]
            try:
                found[name] = kind.from_json(written[name])  # type: ignore[index]
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return found

    def default(self) -> dict[str, Value]:
        return {name: kind.default() for name, kind in self.fields.items()}


def _with_offsets(parts: Sequence[bytes]) -> bytes:
    place, offsets = _OFFSET * len(parts), []
    for part in parts:
        offsets.append(place.to_bytes(_OFFSET, "little"))
        place += len(part)
    return b"".join([*offsets, *parts])


def _offset(data: bytes, place: int) -> int:
    return int.from_bytes(data[place : place + _OFFSET], "little")


def _pieces(data: bytes, bounds: Sequence[int]) -> list[bytes]:
    pairs = list(pairwise(bounds))
    expect(all(start <= end for start, end in pairs) and (not bounds or bounds[-1] <= len(data)), "offsets")
    return [data[start:end] for start, end in pairs]
