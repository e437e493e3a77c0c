"""What one simulated node has been sent: on record, and in its pools, from which it makes aggregates."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

K = TypeVar("K")
V = TypeVar("V")

RECORDS = 10_000
"""How many of the newest records are kept."""

RECORDED = 256 * 1024 * 1024
"""Bytes of bodies that are kept with them."""

_KEPT = 65_536
"""Entries of each pool; the oldest leave first."""


@dataclass(frozen=True, slots=True)
class Submission:
    """Something that a validator client sent: published, or to prepare the node.

    :param operation: as the API definition names it, `submitPoolAttestationsV2`.
    :param route: the template, `/eth/v2/beacon/pool/attestations`.
    :param version: the header `Eth-Consensus-Version`, `None` where there was none.
    :param media_type: `application/json` or `application/octet-stream`.
    :param body: byte for byte.
    :param items: how many there were in the list; 1 for what is no list; 0 where it could not be read.
    :param at: when it came, in loop time.
    :param status: of the answer.
    :param failures: items by index that were not taken, with the words for each.
    :param headers: of the request, names in lower case.
    :param query: of the request.
    """

    operation: str
    route: str
    version: str | None
    media_type: str
    body: bytes
    items: int
    at: float
    status: int
    failures: Mapping[int, str]
    headers: Mapping[str, str]
    query: tuple[tuple[str, str], ...]

    @property
    def taken(self) -> bool:
        """Whether the node took at least something of it."""
        return self.status < 300 or len(self.failures) < self.items


class WithBody(Protocol):
    """What came with a body."""

    @property
    def body(self) -> bytes:
        """Byte for byte."""


R = TypeVar("R", bound=WithBody)


class Records(deque[R], Generic[R]):
    """The newest records, as many as there may be and as their bodies leave room for."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes = 0

    def append(self, record: R, /) -> None:
        """Keep one more."""
        super().append(record)
        self._bytes += len(record.body)
        while len(self) > RECORDS or (self._bytes > RECORDED and len(self) > 1):
            self._bytes -= len(self.popleft().body)


class Bounded(dict[K, V], Generic[K, V]):
    """A dict that forgets its oldest entries."""

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > _KEPT:
            del self[next(iter(self))]


@dataclass(slots=True)
class Pool:
    """The pools of a node.

    :param votes: who attested, as bits by place in the committee, by data root and committee index; with the data and
        the committee's length.
    :param sync_votes: who signed a block root, as bits by place in the subcommittee, by slot, root and subcommittee.
    :param known: what was published here, by what makes it the same; what it is told by `learn` too.
    :param produced: blocks that were produced here, by root: the payload envelopes that belong to them.
    :param fee_recipients: by validator index.
    :param seen: validators by the epoch in which they were seen: what liveness tells.
    """

    votes: Bounded[tuple[bytes, int], "Votes"] = field(default_factory=Bounded)
    sync_votes: Bounded[tuple[int, bytes, int], int] = field(default_factory=Bounded)
    known: Bounded[object, bool] = field(default_factory=Bounded)
    produced: Bounded[bytes, dict[str, Any]] = field(default_factory=Bounded)
    fee_recipients: Bounded[int, bytes] = field(default_factory=Bounded)
    seen: Bounded[int, set[int]] = field(default_factory=Bounded)
    published: Records[Submission] = field(default_factory=Records)
    prepared: Records[Submission] = field(default_factory=Records)

    def saw(self, epoch: int, validator: int) -> None:
        """Take note that a validator did something in an epoch."""
        if epoch not in self.seen:
            self.seen[epoch] = set()
        self.seen[epoch].add(validator)


@dataclass(slots=True)
class Votes:
    """Attestations to one data by one committee."""

    data: dict[str, Any]
    length: int
    bits: int = 0
