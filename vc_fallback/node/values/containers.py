"""Fixed-size SSZ containers: read with their exact length, written, and hashed, through the `ssz` library."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_type_hints

from vc_fallback.base.types import Root
from vc_fallback.node.values.adapters import adapter, read_json
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.fields import Flag, Hex, UInt

if TYPE_CHECKING:
    from ssz.sedes.container import Container as Layout


class Container:
    """A value that is an SSZ container of fixed size, whose fields are in the container's order."""

    ssz_length: ClassVar[int]
    """Bytes of its serialisation."""

    @classmethod
    def from_ssz(cls, data: bytes) -> Self:
        """Read it from exactly `ssz_length` bytes.

        :raises ValueError: for any other length, or a boolean that is neither 0 nor 1.
        """
        if len(data) != cls.ssz_length:
            raise ValueError(f"{cls.__name__} has {cls.ssz_length} bytes")
        kind: Any = cls
        return _build(kind, _layout(kind).deserialize(bytes(data)))  # type: ignore[no-any-return]

    def to_ssz(self) -> bytes:
        """Return its serialisation."""
        kind: Any = type(self)
        return _layout(kind).serialize(_parts(self))

    def hash_tree_root(self) -> Root:
        """Return its root, by which values are compared (Q6) and signed."""
        kind: Any = type(self)
        return Root(_layout(kind).get_hash_tree_root(_parts(self)))

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
def _layout(kind: Any) -> "Layout":  # noqa: ANN401 - a class
    # The library takes a fifth of a second to import: whoever needs none of it does not wait for it.
    from ssz.sedes.boolean import boolean
    from ssz.sedes.byte_vector import ByteVector
    from ssz.sedes.container import Container as SSZContainer
    from ssz.sedes.uint import uint8, uint64, uint256

    def one(hint: Any) -> Any:  # noqa: ANN401 - an annotation
        if isinstance(hint, type) and issubclass(hint, Container):
            nested: Any = hint
            return _layout(nested)
        if hint == Flag:
            return boolean
        marker = hint.__metadata__[0]
        if isinstance(marker, UInt):
            return {8: uint8, 64: uint64, 256: uint256}[marker.bits]
        assert isinstance(marker, Hex) and marker.length is not None  # noqa: S101, PT018 - no others are fields here
        return ByteVector(marker.length)

    return SSZContainer([one(hint) for hint in _hints(kind).values()])


@cache
def _plan(kind: Any) -> tuple[tuple[str, Any], ...]:  # noqa: ANN401 - a class
    return tuple(
        (name, hint if isinstance(hint, type) and issubclass(hint, Container) else None)
        for name, hint in _hints(kind).items()
    )


def _parts(value: Container) -> tuple[Any, ...]:
    kind: Any = type(value)
    plan = _plan(kind)
    return tuple([getattr(value, name) if nested is None else _parts(getattr(value, name)) for name, nested in plan])


def _build(kind: Any, parts: Sequence[Any]) -> Any:  # noqa: ANN401 - a class and its value
    plan = _plan(kind)
    return kind(
        *[part if nested is None else _build(nested, part) for part, (_, nested) in zip(parts, plan, strict=True)]
    )
