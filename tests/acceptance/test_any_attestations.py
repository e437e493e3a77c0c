"""For any schedule of delays, failures and answers at three nodes: nothing that can be signed is lost, nothing else is
given, no task survives (Q2, Q4, Q6, Q8)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.acceptance.duties_world import DATA, Held, held, on
from vc_fallback.base.types import Slot
from vc_fallback.node.failures import NotFound
from vc_fallback.routing.outcomes import QuorumNotReached, RequestFailed
from vc_fallback.testing import Delay, Hang, SimulatedNode, simulated_devnet
from vc_fallback.testing.virtual_time import Backend, run_in_virtual_time

EXAMPLES = 12
CALLS = 5
"""Calls in each example, each in a slot of its own."""

AGAIN, NEXT = 0.05, 0.5

FRESH, OLD, LOW, TARGET, ABSENT, BROKEN, SYNCING, SILENT = (
    "fresh", "old", "low source", "wrong target", "404", "500", "503", "silent",
)  # fmt: skip
ANSWERS = (FRESH, OLD, LOW, TARGET)
NOT_YET = (LOW, TARGET, SYNCING)


@pytest.fixture(params=["asyncio", "trio"], scope="module")
def backend(request: pytest.FixtureRequest) -> Backend:
    name: Backend = request.param
    return name


@dataclass(frozen=True)
class Does:
    """What a node does: gives this, so many seconds after it was asked; errors come at once."""

    gives: str
    after: float

    def at(self, node: SimulatedNode, world: Held, slot: int) -> None:
        node.heal()
        if self.gives == SILENT:
            node.inject(DATA, Hang())
        elif self.gives in ANSWERS:
            fields: dict[str, Any] = {}
            if self.gives == OLD:
                fields = dict(on(world.block(slot - 1)))
            elif self.gives == LOW:
                fields = {"source": {"epoch": "1", "root": "0x" + "ab" * 32}}
            elif self.gives == TARGET:
                fields = {"target": {"epoch": "3", "root": "0x" + "ab" * 32}}
            node.override(DATA, **fields)
            node.inject(DATA, Delay(self.after))
        else:
            node.answer(DATA, int(self.gives), '{"message":"x"}')


KINDS = (FRESH, FRESH, OLD, OLD, LOW, TARGET, ABSENT, BROKEN, SYNCING, SILENT, SILENT)
does = st.builds(Does, st.sampled_from(KINDS), st.sampled_from([0.0, 0.02, 0.1, 0.3, 0.6, 1.1, 2.5, 4.0, 9.0]))
schedules = st.lists(st.tuples(does, does, does), min_size=CALLS, max_size=CALLS)


@dataclass(frozen=True)
class Asked:
    """A request for data that came to a node."""

    node: str
    when: float
    does: Does

    @property
    def answered(self) -> float:
        return self.when + self.does.after


def asked_since(world: Held, began: float, schedule: Sequence[Does]) -> list[Asked]:
    return [
        Asked(node.name, request.received, what)
        for node, what in zip(world.nodes.values(), schedule, strict=True)
        for request in node.requests
        if request.path == DATA and request.received >= began
    ]


async def ready(world: Held) -> None:
    """Let data of source epoch 3 be given, and each node be known to have the route: a 404 is no word of that then."""
    await world.settled()
    slot = await world.due(130)
    for node in world.nodes.values():
        await world.client(node).attestation_data(slot)
    await world.calls.attestation_data(slot)


async def one_call(world: Held, schedule: Sequence[Does], leaves: float | None) -> None:
    slot = await world.due(int(world.now) + 1)
    for node, what in zip(world.nodes.values(), schedule, strict=True):
        what.at(node, world, slot)
    began, end = anyio.current_time(), world.slots.start_of(Slot(slot + 1))
    found, error = None, None
    with anyio.CancelScope(deadline=end + 1 if leaves is None else began + leaves):
        try:
            found = await world.calls.attestation_data(slot)
        except (RequestFailed, NotFound) as failed:
            error = failed
    over = anyio.current_time()
    asked = asked_since(world, began, schedule)
    if found is None and error is None:
        assert leaves is not None
        assert over == pytest.approx(began + leaves)
        return
    assert over <= end + 1e-3
    fresh = [one.answered for one in asked if one.does.gives == FRESH and one.answered < end - 0.01]
    old = [one.answered for one in asked if one.does.gives == OLD and one.answered < end - 0.01]
    # Nobody is asked more often than once, and once more where its answer is old; but who cannot give it yet is asked
    # again while nobody can.
    for name, what in zip(world.nodes, schedule, strict=True):
        count = len([one for one in asked if one.node == name])
        rounds = 1 + (over - began) / NEXT if what.gives in NOT_YET else 0
        assert count <= (2 if what.gives == OLD else 1) + rounds
    if found is not None and not found.stale:
        assert found.value.beacon_block_root == world.root(slot)
        assert found.value.source.epoch == 3
        assert fresh
        assert over == pytest.approx(min(fresh), abs=1e-3)
    elif found is not None:
        # Old data: marked, not before there was time for better, and not after that.
        assert found.value.beacon_block_root == world.root(slot - 1)
        assert found.value.source.epoch == 3
        assert not [when for when in fresh if when < over - 1e-3]
        assert over <= min(old) + AGAIN + NEXT + 1e-3
        assert len({one.node for one in asked}) == 3 or over == pytest.approx(min(old) + AGAIN + NEXT, abs=1e-3)
    else:
        assert not fresh
        assert not old
        assert len({one.node for one in asked}) == 3, (asked, error)


@settings(max_examples=EXAMPLES)
@given(schedules=schedules, leaves=st.lists(st.none() | st.floats(0.0, 9.0), min_size=CALLS, max_size=CALLS))
def test_nothing_that_can_be_signed_is_lost_and_nothing_else_is_given(
    backend: Backend, schedules: list[tuple[Does, Does, Does]], leaves: list[float | None]
) -> None:
    """Q2, Q4, Q8: the first fresh answer wins at its moment; an old one is taken in time; what is unsafe never is."""

    async def main() -> None:
        async with simulated_devnet(3) as net, held(net) as world:
            await ready(world)
            for schedule, leave in zip(schedules, leaves, strict=True):
                await one_call(world, schedule, leave)
            for node in net:
                node.heal()

    run_in_virtual_time(main, backend=backend)


@settings(max_examples=EXAMPLES)
@given(schedules=schedules, threshold=st.integers(1, 3))
def test_a_quorum_is_what_so_many_nodes_gave(
    backend: Backend, schedules: list[tuple[Does, Does, Does]], threshold: int
) -> None:
    """Q6, rule 9: its voters gave that very value; where so many nodes give one in time it is reached."""

    async def one(world: Held, schedule: Sequence[Does]) -> None:
        slot = await world.due(int(world.now) + 1)
        for node, what in zip(world.nodes.values(), schedule, strict=True):
            what.at(node, world, slot)
        began, end = anyio.current_time(), world.slots.start_of(Slot(slot + 1))
        told = {
            name: what for name, what in zip(world.nodes, schedule, strict=True)
            if what.gives in (FRESH, OLD) and what.after + NEXT + what.after < end - began
        }  # fmt: skip
        votes = {kind: [name for name, what in told.items() if what.gives == kind] for kind in (FRESH, OLD)}
        try:
            agreed = await world.calls.attestation_data_by_quorum(slot, threshold=threshold)
        except QuorumNotReached:
            assert all(len(voters) < threshold for voters in votes.values())
            assert anyio.current_time() >= end - 1e-3
            return
        assert len(agreed.voters) >= threshold
        kinds = {what.gives for name, what in zip(world.nodes, schedule, strict=True) if name in agreed.voters}
        root = agreed.answer.value.beacon_block_root
        assert kinds == {FRESH if root == world.root(slot) else OLD}
        if kinds == {OLD}:
            assert anyio.current_time() - began >= NEXT

    async def main() -> None:
        async with simulated_devnet(3) as net, held(net) as world:
            await ready(world)
            for schedule in schedules:
                await one(world, schedule)
            for node in net:
                node.heal()

    run_in_virtual_time(main, backend=backend)
