"""Words of the field as types: slots, roots, node ids, tiers, roles, and the provenance that rides on every value."""

from binascii import unhexlify
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, NewType, Self, TypeVar

Slot = NewType("Slot", int)
"""A slot number, 0 at genesis."""

Epoch = NewType("Epoch", int)
"""An epoch number, 0 at genesis."""

Root = NewType("Root", bytes)
"""A 32-byte SSZ root; `0x…` in lower case at the edges (:func:`root_hex`)."""

NodeId = NewType("NodeId", str)
"""Stable name of a candidate (I3): given, or derived from its URL; never an index, never a host name alone."""

FAR_FUTURE_EPOCH = Epoch(2**64 - 1)
"""The consensus specification's value for "never scheduled"."""

ZERO_ROOT = Root(bytes(32))

T = TypeVar("T")


class Tier(StrEnum):
    """Which tier a candidate is in: fallbacks serve events only while no primary does."""

    PRIMARY = "primary"
    FALLBACK = "fallback"


class Role(StrEnum):
    """What a candidate may be used for."""

    EVENTS = "events"
    DUTIES = "duties"
    ATTESTATION = "attestation"
    PROPOSAL = "proposal"
    SUBMISSION = "submission"

    @classmethod
    def of(cls, role: str) -> Self:
        """Return a role by its name.

        :raises ValueError: for another name; it says which there are.
        """
        try:
            return cls(role)
        except ValueError:
            raise ValueError(f"there is no role {role!r}; roles are {', '.join(cls)}") from None


class PayloadStatus(StrEnum):
    """Whether the execution payload of a Gloas block is there; without `head_v2` it stays unknown (`None`)."""

    EMPTY = "empty"
    FULL = "full"


class HeadSource(StrEnum):
    """How a head came to be known: announced on the head stream, or asked for."""

    STREAM = "stream"
    POLL = "poll"


class BlockRef(NamedTuple):
    """A block by its slot and its root."""

    slot: Slot
    root: Root


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a value came from (rule 1).

    `received` is in the event loop's time, `latency` the seconds from asking to having it (`None` where nobody asked),
    `attempts` how many requests were written for it: more than one where a kept connection had ended, a form of the
    request or a route was not taken, or a part had to be asked for by itself (Q10).
    """

    node_id: NodeId
    generation: int
    received: float
    latency: float | None = None
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Sourced(Generic[T]):
    """A value from a beacon node with its provenance."""

    value: T
    provenance: Provenance

    @property
    def node_id(self) -> NodeId:
        """The node that gave the value."""
        return self.provenance.node_id

    @property
    def generation(self) -> int:
        """The generation of the candidate list when it came."""
        return self.provenance.generation

    @property
    def latency(self) -> float | None:
        """Seconds from asking to having it."""
        return self.provenance.latency


def root_hex(root: bytes) -> str:
    """Write a root as `0x…` in lower case."""
    return "0x" + root.hex()


def parse_root(text: object) -> Root:
    """Read a root of `0x` and 64 hexadecimal digits of either case.

    :raises ValueError: for anything else; the text is not repeated.
    """
    if type(text) is str and len(text) == 66 and text[:2] == "0x":
        try:
            return unhexlify(text[2:])  # type: ignore[return-value]  # a call of `Root` is a tenth of the time
        except ValueError:
            pass
    raise ValueError("a root is 0x and 64 hexadecimal digits")
