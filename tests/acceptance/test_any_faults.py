"""Whatever befalls three nodes, in whatever order: the fourth's heads are delivered at once, and all come back."""

from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.acceptance.harness import announce, monitor
from vc_fallback.testing import FramingName, SimulatedChain, SimulatedNode, run_in_virtual_time

EVENTS = "/eth/v1/events"
FRAMINGS: tuple[FramingName, ...] = ("lighthouse", "lodestar", "nimbus", "teku")
FIRST, LAST = 130, 140


async def _kill(node: SimulatedNode) -> None:
    await node.kill()


async def _cut(node: SimulatedNode) -> None:
    await node.cut_connections(reset=True)


def _at_once(act: Callable[[SimulatedNode], object]) -> Callable[[SimulatedNode], Awaitable[None]]:
    async def run(node: SimulatedNode) -> None:
        act(node)

    return run


def _optimistic(node: SimulatedNode) -> None:
    node.state.optimistic = not node.state.optimistic


def _switch(node: SimulatedNode) -> None:
    node.switch("other" if node.state.branch == "main" else "main")


def _old(node: SimulatedNode) -> None:
    for behind in (60, 40, 3, 2):
        announce(node, node.chain.head_at(max(100, node.head.slot - behind)))


def _malformed(node: SimulatedNode) -> None:
    node.publish("head", "{}")
    node.publish("head_v2", "{}")


FAULTS: dict[str, Callable[[SimulatedNode], Awaitable[None]]] = {
    "kill": _kill,
    "cut": _cut,
    "restart": _at_once(lambda node: node.restart()),
    "freeze": _at_once(lambda node: node.freeze()),
    "thaw": _at_once(lambda node: node.thaw()),
    "vanish": _at_once(lambda node: node.vanish()),
    "silence": _at_once(lambda node: node.silence()),
    "hold": _at_once(lambda node: node.hold()),
    "resume": _at_once(lambda node: node.resume()),
    "end": _at_once(lambda node: node.end_streams()),
    "hang": _at_once(lambda node: node.hang(times=4)),
    "hang after headers": _at_once(lambda node: node.hang(EVENTS, after_headers=True, times=1)),
    "503": _at_once(lambda node: node.answer(EVENTS, 503, times=2)),
    "429": _at_once(lambda node: node.answer(EVENTS, 429, headers={"Retry-After": "20"}, times=1)),
    "400": _at_once(lambda node: node.answer(EVENTS, 400, times=2)),
    "500": _at_once(lambda node: node.answer("/eth/v1/[bcn]*", 500, times=3)),
    "optimistic": _at_once(_optimistic),
    "other branch": _at_once(_switch),
    "cut off": _at_once(lambda node: node.cut_off()),
    "rejoin": _at_once(lambda node: node.rejoin()),
    "malformed": _at_once(_malformed),
    "the same head": _at_once(lambda node: announce(node, node.head)),
    "old heads": _at_once(_old),
    "dropped": _at_once(lambda node: node.comment("error - dropped 3 messages")),
    "duplicates": _at_once(lambda node: setattr(node.broadcast, "duplicates", 3)),
    "end after each": _at_once(lambda node: setattr(node.broadcast, "end_after_event", True)),
    "heal": _at_once(lambda node: node.heal()),
}

Plan = list[tuple[float, int, str]]

plans = st.lists(
    st.tuples(
        st.integers(0, 8 * (LAST - FIRST) - 1).map(lambda eighth: FIRST + eighth / 8 + 0.03),
        st.integers(0, 2),
        st.sampled_from(sorted(FAULTS)),
    ),
    max_size=14,
).map(sorted)


async def play(plan: Plan, framing: FramingName) -> None:
    """Follow four nodes, of which three suffer the plan."""
    chain = SimulatedChain(start_slot=128)
    chain.branch("other", above=129)
    nodes = [SimulatedNode(chain, name=f"bn{number}", framing=framing) for number in (1, 2, 3, 4)]
    good = nodes[3]
    good.state.head_delay = 0.1
    async with nodes[0], nodes[1], nodes[2], nodes[3], monitor(nodes) as followed:
        for position, number, name in plan:
            await followed.until(position)
            await FAULTS[name](nodes[number])
        await followed.until(LAST + 0.5)
        for slot in range(FIRST, LAST + 1):
            due = chain.block_arrival(slot) + 0.1 + 1e-6
            assert any(head.slot == slot and head.at <= due for head in followed.deliveries()), f"slot {slot} is late"
        assert [record.closed for record in good.opens] == [None]
        # Ten slots with a stall each second slot, or waits of 1, 2, 4 … s; three more where topics are refused.
        assert max(len(node.opens) for node in nodes) <= 40
        for node in nodes[:3]:
            node.heal()
            if node.state.branch != "main":
                node.switch("main")
        # The longest wait is 16 s + 20 %, and `Retry-After` 20 s; then a head is to come.
        await followed.until(LAST + 5.5)
        assert [followed.healthy(node) for node in nodes] == [True] * 4
        latest = followed.monitor.latest.value
        assert latest is not None
        assert (latest.head.slot, latest.head.root) == (LAST + 5, followed.block(LAST + 5).root)
        assert len(latest.seen_by) == 4


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(plan=plans, framing=st.sampled_from(FRAMINGS))
@settings(max_examples=10, deadline=None, derandomize=True, database=None)
def test_any_faults_of_three_nodes_cost_the_fourth_nothing_and_heal(
    backend: str, plan: Plan, framing: FramingName
) -> None:
    """Rules 4 and 6, H1, H4–H8, H13: heads at once, attempts bounded, all fresh at the end."""
    run_in_virtual_time(play, plan, framing, backend="asyncio" if backend == "asyncio" else "trio")
