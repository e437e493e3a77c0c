"""A simulated chain: blocks on a slot clock, on one branch or several, the same for the same seed."""

import hashlib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from vc_fallback.base.clock import Clock
from vc_fallback.base.types import FAR_FUTURE_EPOCH, ZERO_ROOT, Epoch, Root, Slot
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.testing.bodies import Body, Content, body, body_root
from vc_fallback.testing.containers.operations import HEADER
from vc_fallback.testing.containers.presets import preset
from vc_fallback.testing.registry import Registry
from vc_fallback.testing.schedule import scheduled_forks
from vc_fallback.testing.shuffling import Shuffling
from vc_fallback.testing.virtual_time import virtual_clock

GENESIS_TIME = 1_700_000_000
"""Unix time of genesis where the clock is the chain's own."""

MAIN = "main"
"""The branch every chain has."""

HISTORY = 2048
"""Blocks of a branch that are kept at least; twice as many at most."""


@dataclass(frozen=True, slots=True)
class SimulatedBlock:
    """A block by its header and its root; the chain knows its body (:meth:`SimulatedChain.content`)."""

    slot: Slot
    proposer_index: int
    parent_root: Root
    state_root: Root
    body_root: Root
    root: Root
    branch: str

    def __repr__(self) -> str:
        return f"<block {self.slot} {self.root.hex()[:8]} on {self.branch}>"


@dataclass(frozen=True, slots=True)
class DutyRoots:
    """The dependent roots a head event carries, by the names of `head_v2`."""

    current_epoch: Root
    next_epoch: Root


@dataclass(slots=True)
class _Branch:
    name: str
    parent: "_Branch | None"
    above: int
    """The branch has blocks of its own only above this slot."""
    reached: int
    blocks: list[SimulatedBlock] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    missed: set[int] = field(default_factory=set)
    delays: dict[int, float] = field(default_factory=dict)
    withheld: set[int] = field(default_factory=set)


class SimulatedChain:
    """One chain on a slot clock of any speed, with branches; create it inside a running event loop.

    Blocks come into being as slots are asked for, one for every slot that was not declared missed, and their roots
    depend on the seed, the branch and the slots alone. History begins three epochs before `start_slot`.

    :param slot_duration: seconds, 0.05 to 12.
    :param slots_per_epoch: 32 in the mainnet preset, 8 in the minimal one.
    :param seed: chains of different seeds are different networks.
    :param start_slot: the slot it is now; negative before genesis; by default the first slot of epoch 4.
    :param into: seconds into that slot.
    :param clock: pairs loop time and Unix time. By default a fixed pair that makes it `into` seconds after the start of
        `start_slot` (what virtual time needs; give :attr:`clock` to the code under test). With another clock, the
        system's for one, genesis is set to the whole second that fits best.
    :param block_delay: seconds into the slot at which a block reaches the nodes; by default a twelfth of a slot.
    :param gloas_epoch: from which epoch blocks have their payload apart (`None`: never).
    :param forks: epochs of forks by name, `{"deneb": 0, "electra": 5}`. Forks before the first one named hold from the
        start, those between two come with the later one, those after the last are not scheduled. By default all hold
        from the start but Gloas, which `gloas_epoch` alone schedules.
    :param validators: how many there are.
    :param blobs: how many blobs come with each block from Deneb on.
    :param payload_delay: seconds into the slot at which a Gloas payload reaches the nodes; by default half a slot.
    """

    def __init__(
        self,
        *,
        slot_duration: float = 12.0,
        slots_per_epoch: int = 32,
        seed: int = 0,
        start_slot: int | None = None,
        into: float = 0.0,
        clock: Clock | None = None,
        block_delay: float | None = None,
        gloas_epoch: int | None = None,
        payload_delay: float | None = None,
        forks: Mapping[str, int] | None = None,
        validators: int = 64,
        blobs: int = 0,
    ) -> None:
        self.seed = seed
        self.blobs = blobs
        start = 4 * slots_per_epoch if start_slot is None else start_slot
        genesis_time = GENESIS_TIME
        if clock is not None:
            genesis_time = round(clock.unix() - into - start * slot_duration)
        schedule = scheduled_forks(forks, gloas_epoch)
        self.gloas_epoch = next((fork.epoch for fork in schedule if fork.name == "gloas"), FAR_FUTURE_EPOCH)
        self.identity = ChainIdentity(
            genesis_time=float(genesis_time),
            genesis_validators_root=self._root("validators"),
            slot_duration=float(slot_duration),
            slots_per_epoch=slots_per_epoch,
            preset="mainnet" if slots_per_epoch == 32 else "minimal",
            forks=schedule,
        )
        self.preset = preset(self.identity.preset)
        self.registry = Registry(seed, validators)
        self.shuffling = Shuffling(seed, self.registry, self.preset, slots_per_epoch)
        self.clock = virtual_clock(self.identity, slot=start, into=into) if clock is None else clock
        self.block_delay = slot_duration / 12 if block_delay is None else block_delay
        self.payload_delay = slot_duration / 2 if payload_delay is None else payload_delay
        first = Slot(max(0, (start // slots_per_epoch - 3) * slots_per_epoch))
        parent = ZERO_ROOT if first == 0 else self._root("before", first)
        self._branches = {MAIN: _Branch(MAIN, None, first - 1, first)}
        self._by_root: dict[Root, SimulatedBlock] = {}
        self._by_state: dict[Root, SimulatedBlock] = {}
        self.first_block = self._append(self._branches[MAIN], first, parent)

    @property
    def kept(self) -> int:
        """How many blocks are kept."""
        return len(self._by_root)

    @property
    def slots(self) -> SlotClock:
        """The chain's slots in loop time, as of the clock's last anchor."""
        return SlotClock(self.identity, self.clock.offset)

    def branch(self, name: str, *, above: int, parent: str = MAIN) -> str:
        """Make a branch that shares the blocks of its parent up to the slot `above`; return its name.

        :raises ValueError: where the name is taken or history does not reach back that far.
        """
        if name in self._branches:
            raise ValueError(f"there is a branch {name} already")
        if above < self.first_block.slot:
            raise ValueError("history does not reach back that far")
        self._branches[name] = _Branch(name, self._branches[parent], above, above)
        return name

    def miss(self, *slots: int, branch: str = MAIN) -> None:
        """Have no block at these slots of a branch.

        :raises ValueError: for a slot whose block was seen already.
        """
        where = self._branches[branch]
        if any(slot <= where.reached for slot in slots):
            raise ValueError("that block was seen already")
        where.missed.update(slots)

    def delay(self, slot: int, seconds: float, *, branch: str = MAIN) -> None:
        """Let the block of a slot reach the nodes so many seconds into its slot; more than a slot is possible."""
        self._branches[branch].delays[slot] = seconds

    def withhold_payload(self, *slots: int, branch: str = MAIN) -> None:
        """Let the payload of these Gloas blocks never come: they stay empty."""
        self._branches[branch].withheld.update(slots)

    def block_arrival(self, slot: int, branch: str = MAIN) -> float:
        """Return the moment in loop time at which the block of a slot reaches the nodes."""
        return self.slots.start_of(Slot(slot)) + self._own(branch, slot).delays.get(slot, self.block_delay)

    def payload_arrival(self, slot: int, branch: str = MAIN) -> float | None:
        """Return the moment in loop time at which the payload of a Gloas block comes; `None` where it never does."""
        if slot in self._own(branch, slot).withheld or not self.is_gloas(slot):
            return None
        return max(self.block_arrival(slot, branch), self.slots.start_of(Slot(slot)) + self.payload_delay)

    def is_gloas(self, slot: int) -> bool:
        """Whether blocks of a slot have their payload apart."""
        return self.identity.epoch_of(Slot(slot)) >= self.gloas_epoch

    def head_at(self, slot: int, branch: str = MAIN) -> SimulatedBlock:
        """Return the newest block of a branch at or below a slot (the oldest kept, where history does not reach)."""
        where = self._branches[branch]
        while where.parent is not None and slot <= where.above:
            where = where.parent
        for number in range(where.reached + 1, slot + 1):
            where.reached = number
            if number not in where.missed:
                below = self.head_at(where.above, where.parent.name) if where.parent is not None else self.first_block
                self._append(where, Slot(number), (where.blocks[-1] if where.blocks else below).root)
        index = bisect_right(where.slots, slot)
        if index:
            return where.blocks[index - 1]
        return where.blocks[0] if where.parent is None else self.head_at(where.above, where.parent.name)

    def block_at(self, slot: int, branch: str = MAIN) -> SimulatedBlock | None:
        """Return the block of exactly this slot, or `None` where it was missed."""
        block = self.head_at(slot, branch)
        return block if block.slot == slot else None

    def block(self, root: bytes) -> SimulatedBlock | None:
        """Return the block of a root, if it has come into being."""
        return self._by_root.get(Root(root))

    def block_of_state(self, root: bytes) -> SimulatedBlock | None:
        """Return the block after which a state has this root."""
        return self._by_state.get(Root(root))

    def children(self, root: bytes) -> list[SimulatedBlock]:
        """Return the blocks on top of a block, on whichever branch."""
        return [block for block in self._by_root.values() if block.parent_root == root]

    def made_up(self, *what: object, size: int = 32) -> bytes:
        """Return bytes that depend on the seed and on what they are for, and on nothing else."""
        return hashlib.shake_256(repr((self.seed, *what)).encode()).digest(size)

    def body(self, block: SimulatedBlock) -> Body:
        """Return the body of a block."""
        return body(self.preset, self.fork_name(block.slot), self.content(block.slot, block.parent_root, block.branch))

    def content(self, slot: int, parent_root: Root, branch: str) -> Content:
        """Return what makes the block of a slot differ from others."""
        return Content(
            slot=slot,
            parent_root=parent_root,
            timestamp=int(self.identity.genesis_time + slot * self.identity.slot_duration),
            salt=self._root("body", branch, slot),
            blobs=self.blobs,
        )

    def fork_name(self, slot: int) -> str:
        """Return the name of the fork of a slot."""
        fork = self.identity.fork_at(self.identity.epoch_of(Slot(max(0, slot))))
        return self.identity.forks[0].name if fork is None else fork.name

    def dependent_root(self, epoch: int, branch: str = MAIN, *, lookahead: int = 1) -> Root:
        """Return the root that fixes the duties of an epoch: at the last slot before `lookahead` epochs before it.

        It is the first block's where history does not reach back that far.
        """
        return self.head_at(max(0, epoch - lookahead) * self.identity.slots_per_epoch - 1, branch).root

    def proposer(self, slot: int, branch: str = MAIN) -> int:
        """Return who proposes at a slot of a branch."""
        return self.shuffling.proposer(slot, self.dependent_root(self.identity.epoch_of(Slot(slot)), branch))

    def duty_roots(self, block: SimulatedBlock) -> DutyRoots:
        """Return the dependent roots of a head, by the definition of `head_v2`.

        They are the roots at the last slot before the previous and before the own epoch of the block's slot, and the
        first block's where history does not reach back that far.
        """
        epoch = self.identity.epoch_of(block.slot)
        return DutyRoots(self.dependent_root(epoch, block.branch), self.dependent_root(epoch + 1, block.branch))

    def checkpoint(self, epoch: int, branch: str = MAIN) -> tuple[Epoch, Root]:
        """Return an epoch's checkpoint: its number and the root at its first slot; zero for epoch 0 and below."""
        if epoch <= 0:
            return Epoch(0), ZERO_ROOT
        return Epoch(epoch), self.head_at(epoch * self.identity.slots_per_epoch, branch).root

    def depth(self, old: SimulatedBlock, new: SimulatedBlock) -> int:
        """Return how many slots a change from one head to another goes back: old slot − slot of the common block."""
        ancestors = set()
        walk: SimulatedBlock | None = new
        while walk is not None:
            ancestors.add(walk.root)
            walk = self.block(walk.parent_root)
        walk = old
        while walk is not None and walk.root not in ancestors:
            walk = self.block(walk.parent_root)
        return old.slot - (walk.slot if walk is not None else self.first_block.slot)

    def _own(self, branch: str, slot: int) -> _Branch:
        where = self._branches[branch]
        while where.parent is not None and slot <= where.above:
            where = where.parent
        return where

    def _append(self, branch: _Branch, slot: Slot, parent: Root) -> SimulatedBlock:
        fork, state = self.fork_name(slot), self._root("state", branch.name, slot)
        inside = body_root(self.preset, fork, body(self.preset, fork, self.content(slot, parent, branch.name)))
        proposer = self.proposer(slot, branch.name) if self._by_root else 0
        header = {
            "slot": slot,
            "proposer_index": proposer,
            "parent_root": parent,
            "state_root": state,
            "body_root": inside,
        }
        block = SimulatedBlock(slot, proposer, parent, state, Root(inside), Root(HEADER.root(header)), branch.name)
        branch.blocks.append(block)
        branch.slots.append(slot)
        self._by_root[block.root] = self._by_state[state] = block
        if len(branch.blocks) > 2 * HISTORY:
            for old in branch.blocks[:HISTORY]:
                del self._by_root[old.root], self._by_state[old.state_root]
            del branch.blocks[:HISTORY], branch.slots[:HISTORY]
        return block

    def _root(self, *what: object) -> Root:
        return Root(hashlib.sha256(repr((self.seed, *what)).encode()).digest())
