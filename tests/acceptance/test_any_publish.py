"""For any schedule of delays and failures at three nodes a publish reaches each node once and tells the truth.

Through the facade, on real sockets and in virtual time (rule 8; Q5, Q10, Q12).
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import anyio
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.acceptance.held import SIGNATURE, held, node_id, to_next_slot
from vc_fallback import (
    AttestationData,
    BroadcastResult,
    Checkpoint,
    DeadlineExceeded,
    Encodings,
    NotPublished,
    Outcome,
    SingleAttestation,
)
from vc_fallback.base.types import Epoch, Root, Slot
from vc_fallback.testing import Cut, Refusal, SimulatedNode, simulated_devnet
from vc_fallback.testing.virtual_time import Backend, run_in_virtual_time

PATH = "/eth/v2/beacon/pool/attestations"
ITEMS = 3
TICK = 2.0**-6
Fault = Literal["none", "some", "refuses", "fails", "not ready", "hangs", "down", "no ssz", "cut", "knows"]


@dataclass(frozen=True)
class Plan:
    """What a node does when it is sent something: after so many seconds of each request it answers in this way."""

    fault: Fault
    after: float
    items: frozenset[int]


@st.composite
def plans(draw: st.DrawFn, number: int) -> Plan:
    faults: tuple[Fault, ...] = Fault.__args__  # type: ignore[attr-defined]
    return Plan(
        draw(st.sampled_from(["none", *faults])),
        draw(st.integers(0, 24)) / 8 + TICK * number,  # no two at one moment
        draw(st.frozensets(st.integers(0, ITEMS - 1), min_size=1)),
    )


three = st.tuples(plans(1), plans(2), plans(3))
eighths = st.integers(1, 40).map(lambda count: count / 8 + TICK / 2)


@pytest.fixture(params=["asyncio", "trio"], scope="module")
def backend(request: pytest.FixtureRequest) -> Backend:
    name: Backend = request.param
    return name


def votes(slot: Slot, epoch: Epoch) -> list[Encodings]:
    target = Checkpoint(epoch, Root(bytes(32)))
    data = AttestationData(slot, 0, Root(bytes(32)), Checkpoint(Epoch(epoch - 1), Root(bytes(32))), target)
    return [SingleAttestation(0, index, data, SIGNATURE).encodings() for index in range(ITEMS)]


async def prepare(node: SimulatedNode, plan: Plan) -> None:
    node.latency = plan.after
    if plan.fault == "some":
        node.inject(PATH, Refusal("no", items=plan.items))
    elif plan.fault == "refuses":
        node.inject(PATH, Refusal("no"))
    elif plan.fault == "fails":
        node.answer(PATH, 500, b"{}")
    elif plan.fault == "not ready":
        node.answer(PATH, 503, b"{}")
    elif plan.fault == "hangs":
        node.hang(PATH)
    elif plan.fault == "down":
        await node.kill()
    elif plan.fault == "no ssz":
        node.manners.ssz = False
    elif plan.fault == "cut":
        node.inject(PATH, Cut(after=0), times=1)


def requests(node: SimulatedNode) -> list[Any]:
    return [request for request in node.requests if request.path == PATH]


def most_requests(plan: Plan) -> int:
    """A form that the node does not take, and a kept connection that died, are followed by one more request (Q10)."""
    return {"down": 0, "no ssz": 2, "cut": 2}.get(plan.fault, 1)


def taken(node: SimulatedNode, plan: Plan, bound: float) -> set[int]:
    """Return the items that a node took and said so, before a moment."""
    found: set[int] = set()
    for number, submission in enumerate(node.published, 1):
        answered = submission.at + plan.after < bound
        lost = plan.fault == "cut" and number == 1
        if answered and not lost and (submission.status == 200 or submission.failures):
            found |= {*range(ITEMS)} - {*submission.failures}
    return found


@settings(max_examples=30, phases=[Phase.explicit, Phase.generate])
@given(made=three, deadline=eighths, cancelled=st.none() | eighths)
def test_a_publish_reaches_each_node_once_and_loses_nothing(
    backend: Backend, made: tuple[Plan, ...], deadline: float, cancelled: float | None
) -> None:
    """Whatever a node took before the end of the slot is in the result; repeats are those of Q10, and are reported."""

    async def main() -> None:
        async with simulated_devnet(3) as net, held(net) as nodes:
            slot = await to_next_slot(nodes, into=0.0)
            assert nodes.slots is not None
            values = votes(slot, nodes.slots.chain.epoch_of(slot))
            for node in net:  # each has a kept connection, which may die
                await nodes.scoped(node_id(node)).version()
            for node, plan in zip(net, made, strict=True):
                node.manners.checks = "form"
                node.manners.duplicates = "failures"
                if plan.fault == "knows":
                    await nodes.scoped(node_id(node)).publish_attestations(values[:1], "fulu")
                await prepare(node, plan)
            before = [len(requests(node)) for node in net]
            for node in net:
                node.state.pool.published.clear()
            began = anyio.current_time()
            result: BroadcastResult | None = None
            ended = math.nan
            with anyio.CancelScope(deadline=math.inf if cancelled is None else began + cancelled) as scope:
                try:
                    result = await nodes.publish_attestations(values, "fulu", deadline=began + deadline)
                except NotPublished as error:
                    result = error.result
                except DeadlineExceeded:
                    raise AssertionError from None
                ended = anyio.current_time() - began
            bound = nodes.slots.start_of(Slot(slot + 1))
            if result is not None:
                assert ended <= deadline + 0.01
                await result.settled()
            await anyio.sleep_until(bound + 0.1)
            assert nodes._runner.stragglers.total() == 0
            counts = [len(requests(node)) - count for node, count in zip(net, before, strict=True)]
            for plan, count in zip(made, counts, strict=True):
                assert count <= most_requests(plan)
            if result is None:
                assert scope.cancelled_caught
                return
            took = [taken(node, plan, bound) for node, plan in zip(net, made, strict=True)]
            for node, plan, count, items in zip(net, made, counts, took, strict=True):
                delivery = result.deliveries[node_id(node)]
                if plan.fault != "down":
                    assert delivery.attempts == count
                for index in items:
                    assert delivery.item(index) == "taken"
            accepted = {index for index, outcome in enumerate(result.by_item) if outcome is Outcome.ACCEPTED}
            assert set[int]().union(*took) <= accepted
            # What nobody took is accepted only where a node has it, and some node took something of the same publish.
            known = {0} if any(plan.fault in ("knows", "cut") for plan in made) else set()
            extra = {*range(ITEMS)} if any(plan.fault == "cut" for plan in made) else known
            assert accepted <= set[int]().union(*took, extra)
            assert not accepted or any(took)
            whole = [p.after for p in made if p.fault == "none" and p.after < deadline]
            if whole:
                assert ended <= min(whole) + 0.01

    run_in_virtual_time(main, backend=backend)
