"""Looks at the nodes while a campaign goes on, and reads the chain when it is over.

Node 0, which no validator client is told of and no fault touches, stands for the rest of the network: what it takes for
the head is what the network sees, and its chain is the chain.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from scripts.campaign.chain import (
    SLOTS_PER_EPOCH,
    Block,
    EpochDuties,
    parse_block,
    parse_committees,
    parse_proposers,
)
from scripts.campaign.plan import NODES
from scripts.lodestar import rest
from scripts.lodestar.devnet import Devnet
from scripts.lodestar.errors import DevnetError
from scripts.lodestar.launch import VALIDATORS
from scripts.lodestar.recorder import Recorder
from scripts.lodestar.rest import NotFoundError, RestError

PROBED = 1 / 3
"""Part of a slot within which a node that works says what its head is, asked at the slot's start."""
ASKED = 0.8
"""Part of a slot after which the duties of its epoch are asked for: its own are done by then."""


@dataclass(frozen=True)
class Probe:
    """What a node said at the start of a slot, in time; `head_slot` is -1 where it said nothing.

    :ivar took: seconds until it said so.
    """

    slot: int
    node: int
    took: float
    head_slot: int = -1
    root: str = ""
    optimistic: bool = False


class Witness:
    """Takes notes from entering the block to leaving it, in threads of its own."""

    def __init__(self, devnet: Devnet) -> None:
        self._port = int(devnet.url(0).rpartition(":")[2])
        self._ports = {number: int(devnet.url(number).rpartition(":")[2]) for number in range(1, NODES + 1)}
        self._genesis, self._duration = devnet.genesis_time, devnet.slot_duration
        self._network = Recorder(devnet.url(0))
        self._stopped = threading.Event()
        self._probes: list[Probe] = []
        self._duties: dict[int, EpochDuties] = {}
        works: list[Callable[[], None]] = [lambda number=number: self._probe(number) for number in self._ports]  # type: ignore[misc]
        self._threads = [threading.Thread(target=work, daemon=True) for work in (*works, self._learn)]

    def __enter__(self) -> Self:
        self._network.__enter__()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        self._network.__exit__(kind, error, trace)

    @property
    def probes(self) -> list[Probe]:
        """What the nodes said."""
        return list(self._probes)

    @property
    def duties(self) -> list[EpochDuties]:
        """Who was to do what, epoch by epoch."""
        return list(self._duties.values())

    @property
    def shown(self) -> dict[str, float]:
        """By root of a block: how many seconds into its slot the network had it as its head first."""
        return {
            head.root.lower(): head.time - self._genesis - head.slot * self._duration
            for head in reversed(self._network.heads)
        }

    def _sleep_until(self, slot: float) -> bool:
        """Wait for a moment in slots since genesis; says whether to go on."""
        left = self._genesis + slot * self._duration - time.time()
        return not self._stopped.wait(max(left, 0.0))

    def _next_slot(self) -> int:
        return max(0, int((time.time() - self._genesis) // self._duration) + 1)

    def _probe(self, number: int) -> None:
        while self._sleep_until(slot := self._next_slot()):
            begun = time.monotonic()
            limit = PROBED * self._duration
            try:
                head = rest.head(self._ports[number], limit)
            except (RestError, LookupError, ValueError):
                head = None
            took = time.monotonic() - begun
            if head is None or took > limit:
                self._probes.append(Probe(slot, number, took))
            else:
                self._probes.append(Probe(slot, number, took, head.slot, head.root, head.optimistic))

    def _learn(self) -> None:
        """Ask for the duties of each epoch in it, slot by slot: a node tells those of no earlier one."""
        everyone = [str(validator) for validator in range(VALIDATORS)]
        while self._sleep_until((slot := self._next_slot()) + ASKED):
            epoch = slot // SLOTS_PER_EPOCH
            # An epoch that cannot be had in any of its slots is missing at the end, and said to be.
            with contextlib.suppress(RestError, LookupError, ValueError):
                self._duties[epoch] = EpochDuties(
                    epoch,
                    parse_proposers(self._ask(f"/eth/v1/validator/duties/proposer/{epoch}")),
                    parse_committees(self._ask(f"/eth/v1/validator/duties/attester/{epoch}", everyone)),
                )

    def _ask(self, path: str, body: object = None) -> dict[str, object]:
        method = "GET" if body is None else "POST"
        return rest.call(self._port, path, method=method, body=body, timeout=self._duration)


def read_chain(devnet: Devnet, last: int) -> list[Block]:
    """Read the blocks of all slots from genesis to `last` from node 0.

    :raises DevnetError: it cannot be read.
    """
    port = int(devnet.url(0).rpartition(":")[2])
    blocks = []
    for slot in range(1, last + 1):
        try:
            answer = rest.call(port, f"/eth/v2/beacon/blocks/{slot}", timeout=10)
            root = rest.call(port, f"/eth/v1/beacon/blocks/{slot}/root", timeout=10)["data"]["root"]
        except NotFoundError:
            continue
        except RestError as error:
            raise DevnetError(f"the chain cannot be read: {error}") from error
        blocks.append(parse_block(answer, root))
    return blocks


def finalized(devnet: Devnet) -> int:
    """The epoch that node 0 takes for finalized.

    :raises DevnetError: it does not say.
    """
    checkpoints = _told(devnet, "/eth/v1/beacon/states/head/finality_checkpoints")
    return int(checkpoints["finalized"]["epoch"])


def version(devnet: Devnet) -> str:
    """What the beacon nodes are, by their own word.

    :raises DevnetError: node 0 does not say.
    """
    return str(_told(devnet, "/eth/v1/node/version")["version"])


def _told(devnet: Devnet, path: str) -> dict[str, Any]:
    port = int(devnet.url(0).rpartition(":")[2])
    try:
        told: dict[str, Any] = rest.call(port, path, timeout=10)["data"]
    except RestError as error:
        raise DevnetError(f"node 0 does not answer: {error}") from error
    return told
