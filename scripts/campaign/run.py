"""One campaign: a devnet, a validator client, faults on the nodes, and what the chain holds in the end."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.campaign.chain import SLOTS_PER_EPOCH, Block, EpochDuties
from scripts.campaign.clients import Client, Name
from scripts.campaign.plan import BREAK, FIRST_SLOT, MEND, NODES, Fault
from scripts.campaign.witness import Probe, Witness, finalized, read_chain, version
from scripts.lodestar.devnet import Devnet
from scripts.lodestar.errors import DevnetError
from scripts.lodestar.tether import tethered

AFTER = SLOTS_PER_EPOCH + 1
"""Slots after the last one that counts, in which its votes can still be included, and one for the block to come."""
LEAD = 20
"""Seconds before genesis at which the nodes are started: four start in ten on two idle cores; after an epoch without a
block they give up."""
LATE_UP = 2
"""Slots after genesis at which a client can still be started in time."""
LATE_START = 1.0
"""Slots by which a fault may begin too late."""


@dataclass(frozen=True)
class Held:
    """A fault as it was, in slots since genesis: the node broken, to be mended, and with all blocks and links again.

    :ivar recovered: `None` where the node did not come back; no fault comes after it.
    """

    fault: Fault
    broken: float
    mended: float
    recovered: float | None


@dataclass(frozen=True)
class Recording:
    """Everything that figures are made of.

    :ivar faults: empty for a run without.
    :ivar shown: by root of a block, how many seconds into its slot the network had it as its head.
    :ivar finalized: the finalized epoch at the beginning and at the end.
    :ivar version: of the beacon nodes.
    :ivar began: Unix time in seconds.
    :ivar load: the machine's load average at the beginning and at the end.
    :ivar status: exit status of the client; `None` for one that was killed.
    :ivar lines: the JSON lines that the client printed.
    :ivar guard: what its slashing protection holds in the end.
    """

    client: Name
    slot_duration: int
    first: int
    last: int
    faults: list[Held]
    blocks: list[Block]
    duties: list[EpochDuties]
    shown: dict[str, float]
    probes: list[Probe]
    finalized: tuple[int, int]
    version: str
    began: float
    load: tuple[float, float]
    status: int | None
    lines: list[dict[str, Any]] = field(default_factory=list)
    guard: dict[str, tuple[int, int, int]] = field(default_factory=dict)


def campaign(
    client: Name,
    faults: Sequence[Fault],
    slots: int,
    directory: Path,
    *,
    first: int = FIRST_SLOT,
    after: int = AFTER,
    slot_duration: int = 2,
    genesis_time: int | None = None,
    lead: int = LEAD,
    say: Callable[[str], None] = lambda _: None,
) -> Recording:
    """Run it, for so many slots from the first that counts. The chain begins at `genesis_time` (Unix seconds), or soon.

    It goes on for longer where a node takes long to come back. What is not in a block `after` slots later is missed.

    :raises DevnetError: the nodes did not start, or the client ended by itself, or the chain cannot be read.
    """
    began, load = time.time(), os.getloadavg()[0]
    genesis_time = genesis_time or int(began) + lead
    time.sleep(max(0.0, genesis_time - lead - began))
    with tethered(Devnet(directory, nodes=NODES, slot_duration=slot_duration)) as devnet:
        devnet.up(validators=False, genesis_time=genesis_time)
        if time.time() > genesis_time + LATE_UP * slot_duration:
            say("the nodes were up too late for their chain: once more, with more time")
            devnet.down()
            devnet.up(validators=False, genesis_time=int(time.time()) + 3 * lead)
        validators = Client(client, devnet)
        validators.start()
        say(f"up, genesis in {devnet.genesis_time - time.time():.1f} s")
        with Witness(devnet) as witness:
            clock = _Clock(devnet, validators)
            clock.sleep_until(first)
            if devnet.head(0).slot < first - SLOTS_PER_EPOCH / 2:
                raise DevnetError(f"the chain has not begun by slot {first}: the machine was too busy")
            finalized_before = finalized(devnet)
            held = list(_hold_all(devnet, clock, faults, say))
            last = max([first + slots - 1, *(int(one.recovered) + 1 for one in held if one.recovered)])
            clock.sleep_until(last + 1 + after)
            finalized_after = finalized(devnet)
        status = validators.stop()
        return Recording(
            client=client,
            slot_duration=slot_duration,
            first=first,
            last=last,
            faults=held,
            blocks=read_chain(devnet, last + min(after, SLOTS_PER_EPOCH)),
            duties=witness.duties,
            shown=witness.shown,
            probes=witness.probes,
            finalized=(finalized_before, finalized_after),
            version=version(devnet),
            began=began,
            load=(load, os.getloadavg()[0]),
            status=status,
            lines=validators.lines,
            guard=validators.guard,
        )


class _Clock:
    def __init__(self, devnet: Devnet, client: Client) -> None:
        self._genesis, self._duration = devnet.genesis_time, devnet.slot_duration
        self._client = client

    @property
    def now(self) -> float:
        """Slots since genesis."""
        return (time.time() - self._genesis) / self._duration

    def sleep_until(self, slot: float) -> None:
        """Wait; see meanwhile that the client has not ended.

        :raises DevnetError: it has.
        """
        while (left := (slot - self.now) * self._duration) > 0:
            self._client.check()
            time.sleep(min(left, 1.0))


def _hold_all(devnet: Devnet, clock: _Clock, faults: Iterable[Fault], say: Callable[[str], None]) -> Iterator[Held]:
    for fault in faults:
        held = _hold(devnet, clock, fault, say)
        yield held
        if held.recovered is None:
            break


def _hold(devnet: Devnet, clock: _Clock, fault: Fault, say: Callable[[str], None]) -> Held:
    clock.sleep_until(fault.start)
    if clock.now > fault.start + LATE_START:
        say(f"the fault of slot {fault.start:.1f} begins late: the node before it took long to come back")
    broken = clock.now
    BREAK[fault.kind](devnet, fault.node)
    say(f"slot {broken:.2f}: node {fault.node} {fault.kind}")
    clock.sleep_until(broken + fault.held)
    mended = clock.now
    try:
        MEND[fault.kind](devnet, fault.node)
    except DevnetError as error:
        say(f"node {fault.node} does not come back, and no other fault begins: {error}")
        return Held(fault, broken, mended, None)
    recovered = clock.now
    say(f"slot {recovered:.2f}: node {fault.node} follows the chain again, mended in slot {mended:.2f}")
    return Held(fault, broken, mended, recovered)
