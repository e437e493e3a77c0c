"""For any schedule of delays, failures and answers at three nodes: duties of a synced node are not lost, nor replaced
by such of one that knows less; no task survives (Q2, Q3, Q14b)."""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.acceptance.duties_world import Held, held
from vc_fallback.base.types import Epoch
from vc_fallback.node.failures import NotFound
from vc_fallback.routing.outcomes import RequestFailed
from vc_fallback.testing import Delay, Hang, SimulatedNode, simulated_devnet
from vc_fallback.testing.virtual_time import Backend, run_in_virtual_time

EXAMPLES = 12
CALLS = 5
NEXT, END = 1.5, 6.0
"""1/8 of a slot, and 1/2."""

EPOCH = Epoch(4)
DUTIES = f"/eth/v1/validator/duties/attester/{EPOCH}"
OTHER = "0x" + "77" * 32

SOUND, SAME, OPTIMISTIC, OTHER_ROOT, BROKEN, SYNCING, SILENT = (
    "sound", "optimistic, of the same root", "optimistic, of another root", "another root", "500", "503", "silent",
)  # fmt: skip
FIELDS: dict[str, dict[str, object]] = {
    SOUND: {},
    SAME: {"execution_optimistic": True},
    OPTIMISTIC: {"execution_optimistic": True, "dependent_root": OTHER},
    OTHER_ROOT: {"dependent_root": OTHER},
}
USABLE = (SAME, OTHER_ROOT)
KINDS = (SOUND, SOUND, SAME, OPTIMISTIC, OPTIMISTIC, OTHER_ROOT, BROKEN, SYNCING, SILENT)


@pytest.fixture(params=["asyncio", "trio"], scope="module")
def backend(request: pytest.FixtureRequest) -> Backend:
    name: Backend = request.param
    return name


@dataclass(frozen=True)
class Does:
    """What a node does: gives this, so many seconds after it was asked; errors come at once."""

    gives: str
    after: float

    def at(self, node: SimulatedNode) -> None:
        node.heal()
        if self.gives == SILENT:
            node.inject(DUTIES, Hang())
        elif self.gives in FIELDS:
            node.override(DUTIES, **FIELDS[self.gives])
            node.inject(DUTIES, Delay(self.after))
        else:
            node.answer(DUTIES, int(self.gives), '{"message":"x"}')


does = st.builds(Does, st.sampled_from(KINDS), st.sampled_from([0.0, 0.1, 0.6, 1.4, 1.6, 2.5, 4.0, 7.0]))
schedules = st.lists(st.tuples(does, does, does), min_size=CALLS, max_size=CALLS)


async def one_call(world: Held, schedule: Sequence[Does], leaves: float | None) -> None:
    await world.until(int(world.now) + 1.4)
    for node, what in zip(world.nodes.values(), schedule, strict=True):
        what.at(node)
    began = anyio.current_time()
    found, failed = None, False
    with anyio.CancelScope(deadline=began + (END + 1 if leaves is None else leaves)):
        try:
            found = await world.calls.attester_duties(EPOCH, range(64))
        except (RequestFailed, NotFound):
            failed = True
    over = anyio.current_time()
    asked = {
        node.name: request.received
        for node in world.nodes.values()
        for request in node.requests
        if request.path == DUTIES and request.received >= began
    }
    if found is None and not failed:
        assert leaves is not None
        assert over == pytest.approx(began + leaves)
        return
    assert over <= began + END + 0.01
    told = {name: what for name, what in zip(world.nodes, schedule, strict=True) if name in asked}
    came = {name: asked[name] + what.after for name, what in told.items() if what.gives in FIELDS}
    in_time = {name: when for name, when in came.items() if when < began + END - 0.01}
    sound = [when for name, when in in_time.items() if told[name].gives == SOUND]
    usable = [when for name, when in in_time.items() if told[name].gives in USABLE]
    if failed:
        assert not sound
        assert not usable
        assert len(asked) == 3
        return
    assert found is not None
    kind = told[str(found.node_id)].gives
    if kind == SOUND:
        assert over == pytest.approx(min(sound), abs=1e-3)
        return
    # An optimistic node's are taken where the same root fixes them as was given before; and no better ones came.
    assert kind in USABLE
    assert not [when for when in sound if when < over - 1e-3]
    assert over <= min(usable) + NEXT + 1e-3
    held_by_then = [told[name].gives for name, when in in_time.items() if when < over - 1e-3]
    assert kind == OTHER_ROOT or OTHER_ROOT not in held_by_then


@settings(max_examples=EXAMPLES)
@given(schedules=schedules, leaves=st.lists(st.none() | st.floats(0.0, 6.5), min_size=CALLS, max_size=CALLS))
def test_duties_of_a_synced_node_are_not_lost_and_not_replaced(
    backend: Backend, schedules: list[tuple[Does, Does, Does]], leaves: list[float | None]
) -> None:
    """Q14b: the first sound answer wins at its moment; a usable one is taken in time, and no other ever."""

    async def main() -> None:
        async with simulated_devnet(3) as net, held(net) as world:
            await world.settled()
            await world.calls.attester_duties(EPOCH, range(64))
            for schedule, leave in zip(schedules, leaves, strict=True):
                await one_call(world, schedule, leave)
                # What was of another root may have been given meanwhile; the sound ones hold again.
                for node in net:
                    node.heal()
                await world.calls.attester_duties(EPOCH, range(64))

    run_in_virtual_time(main, backend=backend)
