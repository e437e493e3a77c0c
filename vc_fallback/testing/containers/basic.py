"""SSZ and the Beacon API's JSON, strict both ways: numbers, flags, bytes and bit fields.

It shares nothing with the client's reading of the same values, so a mistake on one side is seen by the other. The `ssz`
library, which the client has for small containers, takes wrong offsets and cannot hash blocks.
"""

from abc import ABC, abstractmethod
from binascii import unhexlify
from typing import Any

from vc_fallback.testing.containers.merkle import CHUNK, chunk_count, chunks_of, merkle_root, with_length

Value = Any
"""Numbers, flags, bytes (bit fields too, as they are serialised), tuples, and dicts by name."""


class Kind(ABC):
    """A type of values."""

    size: int | None
    """Bytes of its serialisation, `None` where they differ from value to value."""

    @abstractmethod
    def encode(self, value: Value) -> bytes:
        """Return its serialisation."""

    @abstractmethod
    def decode(self, data: bytes) -> Value:
        """Read all of a serialisation.

        :raises ValueError: where it is none.
        """

    @abstractmethod
    def root(self, value: Value) -> bytes:
        """Return its hash tree root."""

    @abstractmethod
    def to_json(self, value: Value) -> object:
        """Return it as the Beacon API writes it."""

    @abstractmethod
    def from_json(self, written: object) -> Value:
        """Read what the Beacon API writes.

        :raises ValueError: where it is anything else.
        """

    @abstractmethod
    def default(self) -> Value:
        """Return the value of zeros, or of nothing."""


class Number(Kind):
    """An unsigned number of so many bits."""

    def __init__(self, bits: int) -> None:
        self.size: int = bits // 8
        self._end = 2**bits

    def encode(self, value: Value) -> bytes:
        return int(value).to_bytes(self.size, "little")

    def decode(self, data: bytes) -> int:
        expect(len(data) == self.size, "length of a number")
        return int.from_bytes(data, "little")

    def root(self, value: Value) -> bytes:
        return int(value).to_bytes(CHUNK, "little")

    def to_json(self, value: Value) -> str:
        return str(value)

    def from_json(self, written: object) -> int:
        expect(isinstance(written, str) and written.isascii() and written.isdecimal(), "a number is decimal digits")
        text = str(written)
        expect(text == "0" or text[0] != "0", "a number has no leading zeros")
        expect(len(text) < 80 and int(text) < self._end, "a number is out of range")
        return int(text)

    def default(self) -> int:
        return 0


class Flag(Kind):
    """True or false."""

    size = 1

    def encode(self, value: Value) -> bytes:
        return b"\x01" if value else b"\x00"

    def decode(self, data: bytes) -> bool:
        expect(data in (b"\x00", b"\x01"), "a flag is 0 or 1")
        return data == b"\x01"

    def root(self, value: Value) -> bytes:
        return self.encode(value).ljust(CHUNK, b"\0")

    def to_json(self, value: Value) -> bool:
        return bool(value)

    def from_json(self, written: object) -> bool:
        expect(isinstance(written, bool), "a flag is true or false")
        return bool(written)

    def default(self) -> bool:
        return False


class _Hexadecimal(Kind):
    """What is bytes in memory, its own serialisation on the wire, and hexadecimal digits in JSON."""

    def encode(self, value: Value) -> bytes:
        return bytes(value)

    def decode(self, data: bytes) -> bytes:
        self._check(data)
        return data

    def to_json(self, value: Value) -> str:
        return "0x" + bytes(value).hex()

    def from_json(self, written: object) -> bytes:
        expect(isinstance(written, str) and written.startswith("0x"), "bytes are 0x and hexadecimal digits")
        data = unhexlify(str(written)[2:])
        self._check(data)
        return data

    @abstractmethod
    def _check(self, data: bytes) -> None: ...


class Bytes(_Hexadecimal):
    """So many bytes."""

    def __init__(self, size: int) -> None:
        self.size: int = size

    def root(self, value: Value) -> bytes:
        return merkle_root(chunks_of(value), chunk_count(self.size))

    def default(self) -> bytes:
        return bytes(self.size)

    def _check(self, data: bytes) -> None:
        expect(len(data) == self.size, "length of bytes")


class ByteList(_Hexadecimal):
    """At most so many bytes."""

    size = None

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def root(self, value: Value) -> bytes:
        return with_length(merkle_root(chunks_of(value), chunk_count(self.limit)), len(value))

    def default(self) -> bytes:
        return b""

    def _check(self, data: bytes) -> None:
        expect(len(data) <= self.limit, "too many bytes")


class Bits(_Hexadecimal):
    """So many bits, the first in the lowest bit of the first byte."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.size: int = (count + 7) // 8

    def root(self, value: Value) -> bytes:
        return merkle_root(chunks_of(value), chunk_count(self.size))

    def default(self) -> bytes:
        return bytes(self.size)

    def _check(self, data: bytes) -> None:
        expect(len(data) == self.size, "number of bits")
        expect(int.from_bytes(data, "little") < 2**self.count, "bits beyond the last")


class BitList(_Hexadecimal):
    """At most so many bits, as they are serialised: the highest bit that is set only marks the end."""

    size = None

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def root(self, value: Value) -> bytes:
        number = int.from_bytes(value, "little")
        length = number.bit_length() - 1
        bits = (number ^ (1 << length)).to_bytes((length + 7) // 8, "little")
        return with_length(merkle_root(chunks_of(bits), chunk_count((self.limit + 7) // 8)), length)

    def default(self) -> bytes:
        return b"\x01"

    def _check(self, data: bytes) -> None:
        expect(bool(data) and data[-1] != 0, "a list of bits without its end")
        expect(int.from_bytes(data, "little").bit_length() - 1 <= self.limit, "too many bits")


def expect(holds: bool, problem: str) -> None:
    """:raises ValueError: where something does not hold."""
    if not holds:
        raise ValueError(problem)


UINT8 = Number(8)
UINT64 = Number(64)
UINT256 = Number(256)
FLAG = Flag()
BYTES4 = Bytes(4)
BYTES20 = Bytes(20)
BYTES32 = Bytes(32)
BYTES48 = Bytes(48)
BYTES96 = Bytes(96)
