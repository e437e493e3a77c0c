"""Values that come by the thousand: read by msgspec, in two fifths of the time that pydantic takes for them.

Only the plainest form is read so: numbers below 2^63, nothing in the answer that may be a fraction, an exponent or a
sign, no members but those that are known (what msgspec passes over it does not check: its UTF-8, its depth). Whatever
else comes is left to pydantic, which says whether it is right, and what is wrong where it is not. What msgspec takes of
an answer in the plainest form, pydantic takes as well, and as the same value.
"""

from binascii import unhexlify
from collections.abc import Callable
from functools import cache
from operator import truth
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, get_type_hints

import msgspec
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from vc_fallback.base.types import Slot
from vc_fallback.node.values.fields import Hex, UInt

T = TypeVar("T")

_BELOW_2_63 = msgspec.Meta(ge=0, le=2**63 - 1)

Number = Annotated[int, UInt(64), _BELOW_2_63]
"""Of rows: 0 to 2^64−1."""
SlotOfRow = Annotated[Slot, UInt(64), _BELOW_2_63]


if TYPE_CHECKING:
    Key = bytes
    _Root = bytes
else:

    class _StandIn(type):
        """The type of classes in whose place msgspec takes the bytes that :func:`_convert` makes."""

        # A method written in Python would be a tenth of the time of a row.
        __instancecheck__ = truth

    class Key(metaclass=_StandIn):
        """Of rows: a public key, 48 bytes."""

        length = 48

        @classmethod
        def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
            return Hex(cls.length).__get_pydantic_core_schema__(source, handler)

    class _Root(metaclass=_StandIn):
        length = 32


class Row(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A value of which an answer holds thousands. Its fields are numbers, keys, and lists of numbers, all required."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        hints = get_type_hints(cls, include_extras=True)
        members = core_schema.typed_dict_schema(
            {name: core_schema.typed_dict_field(handler.generate_schema(hints[name])) for name in cls.__struct_fields__}
        )
        return core_schema.no_info_after_validator_function(
            lambda found: cls(**found),
            members,
            serialization=core_schema.plain_serializer_function_ser_schema(
                msgspec.structs.asdict, return_schema=members
            ),
        )


class Answer(msgspec.Struct, Generic[T], frozen=True, forbid_unknown_fields=True):
    """What is read of an answer: rows, and what any route of them has around them."""

    data: T
    dependent_root: _Root | None = None
    execution_optimistic: Any = None
    finalized: Any = None


def read_plain(kind: Any, body: bytes) -> Any:  # noqa: ANN401 - a type made of rows; an `Answer` with it
    """Read a JSON answer whose `data` is of a type, if it is in the plainest form; else return `None`."""
    if not is_plain(body):
        return None
    try:
        found = _reader(kind)(body)
    except (ValueError, RecursionError):
        return None
    # As booleans, msgspec would take them from texts and numbers too.
    return found if _is_flag(found.execution_optimistic) and _is_flag(found.finalized) else None


@cache
def _reader(kind: Any) -> Callable[[bytes], Any]:  # noqa: ANN401 - a type
    # Not strict, it takes numbers in strings. Of what else that allows, bounds and `is_plain` leave nothing.
    return msgspec.json.Decoder(Answer[kind], strict=False, dec_hook=_convert).decode


def _is_flag(value: object) -> bool:
    return value is None or value is True or value is False


def _convert(kind: Any, value: Any) -> bytes:  # noqa: ANN401 - a stand-in and a value of JSON
    if type(value) is str and value[:2] == "0x" and len(value) == 2 + 2 * kind.length:
        return unhexlify(value[2:])
    raise ValueError


_MARKS = bytes.maketrans(b"E:,[]{}", b'e""""""')
_DROPPED = bytes(set(range(128)) - set(b'"E:,[]{}eghijklmnopqrstuvwxyz'))


def is_plain(body: bytes) -> bool:
    """Whether no number in an answer, bare or in a string, can have a fraction, an exponent or a sign.

    Without all that a number may be made of, an exponent is an `e` that stands alone between two marks of JSON. Hex has
    its `x` still, and names and words the letters behind `f`.
    """
    if b"." in body or b"-" in body or b"\\" in body:
        return False
    return b'"e"' not in body.translate(_MARKS, _DROPPED)
