"""The types of fields: exact numbers and bytes, strict in both directions (Q17)."""

from binascii import unhexlify
from typing import Annotated, Any

from pydantic import ConfigDict, GetCoreSchemaHandler, StrictBool
from pydantic_core import CoreSchema, core_schema

from vc_fallback.base.types import Epoch, Root, Slot

VALUE = ConfigDict(extra="ignore", hide_input_in_errors=True, defer_build=True)
"""Of every value: members that are not known are ignored, and no error repeats what a node sent (rule 11)."""


class UInt:
    """An unsigned number of `bits` bits: a decimal string or a JSON integer, exact; a decimal string when written.

    Floats, booleans, signs, blanks, underscores, leading zeros and what is out of range are refused.
    """

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        digits = len(str(2**self.bits)) - 1
        text = core_schema.chain_schema(
            [
                core_schema.str_schema(strict=True, pattern=rf"^(0|[1-9][0-9]{{0,{digits}}})$"),
                core_schema.int_schema(lt=2**self.bits),
            ]
        )
        number = core_schema.int_schema(strict=True, ge=0, lt=2**self.bits)
        return core_schema.union_schema(
            [text, number], mode="left_to_right", serialization=core_schema.to_string_ser_schema(when_used="json")
        )


class Hex:
    """Bytes, as `0x` and hexadecimal digits of either case in JSON, in lower case when written.

    :param length: in bytes, exactly.
    :param most: in bytes, where the length may differ.
    """

    def __init__(self, length: int | None = None, *, most: int = 0) -> None:
        self.length = length
        self.most = most

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        length, most = self.length, self.most

        # One function for both kinds of input: a chain of schemas costs twice the time with 1,000 duties.
        def read(value: Any) -> bytes:  # noqa: ANN401 - it is to be checked
            if type(value) is str:
                if value[:2] != "0x":
                    raise ValueError("hexadecimal digits begin with 0x")
                value = unhexlify(value[2:])
            elif type(value) is not bytes:
                raise ValueError("neither bytes nor hexadecimal digits")
            if len(value) != length and (length is not None or len(value) > most):
                raise ValueError("bytes of another length")
            return value  # type: ignore[no-any-return]

        return core_schema.no_info_plain_validator_function(
            read, serialization=core_schema.plain_serializer_function_ser_schema(write_hex, when_used="json")
        )


def made(kind: Any, *values: Any) -> Any:  # noqa: ANN401 - a class and its value
    """Make a frozen value of what has been checked: its fields in their order."""
    value = object.__new__(kind)
    for name, field in zip(kind.__slots__, values, strict=True):
        object.__setattr__(value, name, field)
    return value


def write_hex(data: bytes) -> str:
    """Write bytes as `0x` and digits in lower case."""
    return "0x" + data.hex()


Uint64 = Annotated[int, UInt(64)]
"""0 to 2^64−1."""
Uint256 = Annotated[int, UInt(256)]
"""0 to 2^256−1; amounts in wei."""
SlotNumber = Annotated[Slot, UInt(64)]
EpochNumber = Annotated[Epoch, UInt(64)]
ValidatorIndex = Annotated[int, UInt(64)]
Gwei = Annotated[int, UInt(64)]
RootBytes = Annotated[Root, Hex(32)]
Bytes4 = Annotated[bytes, Hex(4)]
Bytes20 = Annotated[bytes, Hex(20)]
"""An address of the execution layer."""
Bytes32 = Annotated[bytes, Hex(32)]
PublicKey = Annotated[bytes, Hex(48)]
Signature = Annotated[bytes, Hex(96)]
Flag = StrictBool
"""`true` or `false`, nothing else."""
