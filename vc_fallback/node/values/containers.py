"""Fixed-size SSZ containers: read with their exact length, written, and hashed, through the `ssz` library."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_type_hints

from vc_fallback.base.types import Root
from vc_fallback.node.values.adapters import Unreadable, adapter, read_json
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.fields import Flag, Hex, UInt

if TYPE_CHECKING:
    from ssz.sedes.container import Container as Layout


class Container:
    """A value that is an SSZ container of fixed size, whose fields are in the container's order.

    One field at most, nested ones counted, may be a bit vector whose length is the preset's (`Hex` without a length).
    """

    ssz_length: ClassVar[int]
    """Bytes of its serialisation; in the mainnet preset, where it is not the same in all."""
    preset_bits: ClassVar[Sequence[int]] = (0,)
    """Bytes that its bit vector has by preset, mainnet's first."""

    @classmethod
    def from_ssz(cls, data: bytes) -> Self:
        """Read it from exactly the bytes of its serialisation.

        :raises ValueError: for any other length, or a boolean that is neither 0 nor 1.
        """
        from ssz.exceptions import SSZException

        kind: Any = cls
        bits = cls.preset_bits[0] + len(data) - cls.ssz_length
        if bits not in cls.preset_bits:
            raise Unreadable(f"{cls.__name__} of another length")
        try:
            leaves = _flat(kind, bits).deserialize(bytes(data))
        except SSZException:
            raise Unreadable(f"{cls.__name__} with a field that is out of range") from None
        return _build(kind, iter(leaves))  # type: ignore[no-any-return]

    def to_ssz(self) -> bytes:
        """Return its serialisation."""
        kind: Any = type(self)
        leaves = [*_leaves(self)]
        return _flat(kind, _bits(kind, leaves)).serialize(leaves)

    def hash_tree_root(self) -> Root:
        """Return its root, by which values are compared (Q6) and signed."""
        kind: Any = type(self)
        return Root(_layout(kind, _bits(kind, [*_leaves(self)])).get_hash_tree_root(_parts(self)))

    def to_json(self) -> bytes:
        """Return it as the Beacon API writes it."""
        kind: Any = type(self)
        return adapter(kind).dump_json(self)

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Read it as the Beacon API writes it.

        :raises ValueError: when it is anything else.
        """
        return read_json(cls, data)  # type: ignore[no-any-return]

    def encodings(self) -> Encodings:
        """Return both forms, ready to be published (Q2a)."""
        return Encodings(ssz=self.to_ssz(), json=self.to_json())


@cache
def _hints(kind: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a class
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


@cache
def _layout(kind: Any, bits: int) -> "Layout":  # noqa: ANN401 - a class
    """Return the layout with its nested containers, as hashing needs it."""
    # The library takes a fifth of a second to import: whoever needs none of it does not wait for it.
    from ssz.sedes.container import Container as SSZContainer

    return SSZContainer(
        [_leaf(_hints(kind)[name], bits) if nested is None else _layout(nested, bits) for name, nested in _plan(kind)]
    )


@cache
def _flat(kind: Any, bits: int) -> "Layout":  # noqa: ANN401 - a class
    """Return the layout with nested containers resolved: the bytes are the same, in a third of the time."""
    from ssz.sedes.container import Container as SSZContainer

    return SSZContainer([_leaf(hint, bits) for hint in _leaf_hints(kind)])


def _leaf(hint: Any, bits: int) -> Any:  # noqa: ANN401 - an annotation
    from ssz.sedes.boolean import boolean
    from ssz.sedes.byte_vector import ByteVector
    from ssz.sedes.uint import uint8, uint64, uint256

    if hint == Flag:
        return boolean
    marker = hint.__metadata__[0]
    if isinstance(marker, UInt):
        return {8: uint8, 64: uint64, 256: uint256}[marker.bits]
    # A bit vector of whole bytes has the bytes and the root of a byte vector.
    return ByteVector(bits if marker.length is None else marker.length)


@cache
def _plan(kind: Any) -> tuple[tuple[str, Any], ...]:  # noqa: ANN401 - a class
    """Return the names of the fields, each with the class of a nested container or `None`."""
    return tuple(
        (name, hint if isinstance(hint, type) and issubclass(hint, Container) else None)
        for name, hint in _hints(kind).items()
    )


@cache
def _leaf_hints(kind: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a class
    hints: list[Any] = []
    for name, nested in _plan(kind):
        hints += [_hints(kind)[name]] if nested is None else _leaf_hints(nested)
    return tuple(hints)


@cache
def _preset_leaf(kind: Any) -> int | None:  # noqa: ANN401 - a class
    for number, hint in enumerate(_leaf_hints(kind)):
        if hint != Flag and isinstance(hint.__metadata__[0], Hex) and hint.__metadata__[0].length is None:
            return number
    return None


def _bits(kind: Any, leaves: Sequence[Any]) -> int:  # noqa: ANN401 - a class
    number = _preset_leaf(kind)
    return 0 if number is None else len(leaves[number])


def _leaves(value: Container) -> Iterator[Any]:
    kind: Any = type(value)
    for name, nested in _plan(kind):
        if nested is None:
            yield getattr(value, name)
        else:
            yield from _leaves(getattr(value, name))


def _parts(value: Container) -> tuple[Any, ...]:
    kind: Any = type(value)
    return tuple(
        [getattr(value, name) if nested is None else _parts(getattr(value, name)) for name, nested in _plan(kind)]
    )


def _build(kind: Any, leaves: Iterator[Any]) -> Any:  # noqa: ANN401 - a class and its value
    # What the library has read is of its type and length: to check it again would take as long as the reading.
    value = object.__new__(kind)
    for name, nested in _plan(kind):
        object.__setattr__(value, name, next(leaves) if nested is None else _build(nested, leaves))
    return value
