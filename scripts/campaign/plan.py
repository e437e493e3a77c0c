"""Which node fails when and how: the same at each run, in slots from genesis, so that runs can be compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from scripts.lodestar.devnet import Devnet, Execution

Kind = Literal["killed", "frozen", "cut off", "execution layer syncing", "execution layer unreachable"]
KINDS: tuple[Kind, ...] = (
    "killed",
    "frozen",
    "cut off",
    "execution layer syncing",
    "execution layer unreachable",
)
NODES = 3
FIRST_SLOT = 16
"""The first slot that counts; two epochs are for the nodes and the validator client to find each other."""
CYCLE = 20
"""Slots from one fault to the next."""
HELD = 6
"""Slots for which a fault lasts: 12 s in slots of 2 s. A Lodestar that is more than 8 slots behind leaves the gossip of
blocks, which it does not do on a network where more than one block a minute is missing."""
MEND_LIMIT = 120.0
"""Seconds in which a node is back, which takes five to ten on a machine with nothing else to do."""
GOLDEN = 0.618
"""From fault to fault the moment within the slot goes on by this part of a slot, so that each part has its turn."""


@dataclass(frozen=True)
class Fault:
    """One fault to come: from `start` until `start + held`, both in slots since genesis and with fractions."""

    kind: Kind
    node: int
    start: float
    held: float = HELD


def plan(
    count: int, *, kinds: Sequence[Kind] = KINDS, cycle: int = CYCLE, held: float = HELD, first: int = FIRST_SLOT
) -> list[Fault]:
    """Each kind in turn, each node in turn; after as many faults as there are pairs of them each pair was there.

    That takes a number of kinds that is no multiple of the number of nodes; one that is one has the nodes go on by two
    after each round.
    """
    faults = []
    for number in range(count):
        node = 1 + (number + (number // len(kinds) if len(kinds) % NODES == 0 else 0)) % NODES
        moment = (0.1 + GOLDEN * number) % 1
        faults.append(Fault(kinds[number % len(kinds)], node, first + cycle * number + moment, held))
    return faults


def _rejoin(devnet: Devnet, number: int) -> None:
    devnet.rejoin(number)
    devnet.await_common_head([0, number], timeout=MEND_LIMIT)


def _engine(mode: Execution, devnet: Devnet, number: int) -> None:
    devnet.execution(number, mode, timeout=MEND_LIMIT)


BREAK: dict[Kind, Callable[[Devnet, int], None]] = {
    "killed": Devnet.kill,
    "frozen": Devnet.freeze,
    "cut off": Devnet.isolate,
    "execution layer syncing": partial(_engine, "syncing"),
    "execution layer unreachable": partial(_engine, "error"),
}
MEND: dict[Kind, Callable[[Devnet, int], None]] = {
    "killed": partial(Devnet.restart, timeout=MEND_LIMIT),
    "frozen": partial(Devnet.thaw, timeout=MEND_LIMIT),
    "cut off": _rejoin,
    "execution layer syncing": partial(_engine, "ok"),
    "execution layer unreachable": partial(_engine, "ok"),
}
"""How to mend a node; returns when it follows the chain again, with all its links."""
