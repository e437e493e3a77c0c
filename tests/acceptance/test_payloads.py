"""Waiting for the payload of a slot's block, beside `wait_for_slot` (Gloas; H11, T1, C10).

Gloas begins with epoch 4, slot 128. Blocks come a twelfth into their slot, payloads in its middle.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.acceptance.facade import Held, holding
from vc_fallback.base.types import Slot, root_hex
from vc_fallback.base.watch import WatchClosed
from vc_fallback.payloads import SlotPayload
from vc_fallback.testing import SimulatedChain, SimulatedNode
from vc_fallback.testing.events import TOPICS

pytestmark = pytest.mark.anyio

AVAILABLE = "execution_payload_available"
SLOT = Slot(130)
NO_HEAD_V2 = [topic for topic in TOPICS if topic != "head_v2"]
NO_EVENT = [topic for topic in TOPICS if topic != AVAILABLE]


@asynccontextmanager
async def gloas(count: int = 2, *, topics: Collection[str] = TOPICS) -> AsyncIterator[tuple[Held, list[SimulatedNode]]]:
    """Hold some nodes from the middle of slot 129 on."""
    chain = SimulatedChain(start_slot=127, gloas_epoch=4)
    chain.branch("other", above=129)
    nodes = [SimulatedNode(chain, name=f"bn{number + 1}", topics=topics) for number in range(count)]
    async with contexts(nodes), holding(nodes) as held:
        await held.until(129.6)
        yield held, nodes


@asynccontextmanager
async def contexts(nodes: list[SimulatedNode]) -> AsyncIterator[None]:
    async with nodes[0]:
        if nodes[1:]:
            async with contexts(nodes[1:]):
                yield
        else:
            yield


def wanting(node: SimulatedNode) -> bool:
    """Whether a node is subscribed to the topic."""
    return any(AVAILABLE in stream.topics for stream in node.streams)


@pytest.mark.parametrize("topics", [TOPICS, NO_HEAD_V2, NO_EVENT], ids=["both", "event", "head"])
async def test_the_payload_by_whatever_says_it_first(topics: Collection[str]) -> None:
    """H11, T1: the head's own status or the event, wherever nodes have only one of them."""
    async with gloas(topics=topics) as (held, _):
        seen = await held.calls.wait_for_payload(SLOT)
        assert seen is not None
        assert held.now == pytest.approx(130.5, abs=0.01)
        assert (seen.slot, seen.root) == (130, held.block(130).root)
        assert seen.node_id in ("bn1", "bn2")
        assert held.position(seen.provenance.received) == pytest.approx(130.5, abs=0.01)
        if topics is not TOPICS:
            assert seen.source == ("event" if topics is NO_HEAD_V2 else "head")
        # It stays there, and is told at once.
        await held.until(131.3)
        again = await held.calls.wait_for_payload(SLOT)
        assert again == seen or topics is TOPICS
        assert held.now == pytest.approx(131.3, abs=0.001)


async def test_none_when_the_committee_is_to_speak() -> None:
    """The default deadline is the due time of the payload timeliness committee, 3/4 of the slot; a given one counts."""
    async with gloas() as (held, nodes):
        held.chain.withhold_payload(130)
        assert await held.calls.wait_for_payload(SLOT) is None
        assert held.now == pytest.approx(130.75, abs=0.001)
        held.chain.miss(131)
        assert await held.calls.wait_for_payload(Slot(131), held.slots.start_of(Slot(132))) is None
        assert held.now == pytest.approx(132, abs=0.001)
        assert await held.calls.wait_for_payload(Slot(131), 0.0) is None
        await held.until(132.3)
        assert not [node.name for node in nodes if wanting(node)]


async def test_a_payload_of_another_block_answers_only_once_that_is_the_head() -> None:
    """The delivered head's block counts: the event of one beside it is no answer before a reorg leads there."""
    async with gloas(1, topics=NO_HEAD_V2) as (held, nodes):
        held.chain.withhold_payload(130)
        answers: list[SlotPayload | None] = []

        async def wait() -> None:
            answers.append(await held.calls.wait_for_payload(SLOT, held.slots.start_of(Slot(131))))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await held.until(130.3)
            other = held.block(130, "other")
            nodes[0].publish(AVAILABLE, {"slot": "130", "block_root": root_hex(other.root)})
            nodes[0].publish(AVAILABLE, {"slot": "129", "block_root": root_hex(held.block(130).root)})
            await held.until(130.4)
            assert answers == []
            nodes[0].switch("other")
            await held.until(130.41)
            (seen,) = answers
            assert seen is not None
            assert (seen.root, seen.source) == (other.root, "event")


async def test_nodes_are_subscribed_only_while_someone_waits_or_expects() -> None:
    """T5: the topic goes when the last one has it; who expects payloads knows what came before they ask."""
    async with gloas(topics=NO_HEAD_V2) as (held, nodes):
        assert not any(map(wanting, nodes))
        async with held.calls.expect_payloads():
            await held.until(130.6)
            assert all(map(wanting, nodes))
            seen = await held.calls.wait_for_payload(SLOT)
            assert seen is not None
            assert seen.source == "event"
            assert held.now == pytest.approx(130.6, abs=0.001)
        await held.until(131.3)
        assert not any(map(wanting, nodes))
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(held.calls.wait_for_payload, Slot(131))
            await held.until(131.4)
            assert [len(node.streams) for node in nodes] == [2, 2]
            tasks.cancel_scope.cancel()
        await held.until(131.6)
        assert not any(map(wanting, nodes))
        await held.assert_idle()


async def test_before_gloas_and_without_a_chain() -> None:
    """A slot before Gloas has its payload in its block: a mistake of the caller's, said at once."""
    async with gloas() as (held, _):
        with pytest.raises(ValueError, match="slot 127 is before Gloas"):
            await held.calls.wait_for_payload(Slot(127))
        nodes = held.calls
    for call in (nodes.wait_for_payload(SLOT), nodes.expect_payloads().__aenter__()):
        with pytest.raises(RuntimeError):
            await call


async def test_who_waits_when_the_context_is_left_is_told() -> None:
    """As `wait_for_slot`: :exc:`WatchClosed`, not a hang and not an ExceptionGroup."""
    ends: list[str] = []
    async with anyio.create_task_group() as tasks, gloas() as (held, _):

        async def wait() -> None:
            try:
                await held.calls.wait_for_payload(SLOT, held.slots.start_of(Slot(140)))
            except WatchClosed:
                ends.append("closed")

        held.chain.withhold_payload(130)
        tasks.start_soon(wait)
        await held.until(130.8)
    assert ends == ["closed"]


async def test_who_tells_of_a_hundred_payloads_crowds_out_nobody_s() -> None:
    """Rule 4: what one node invents costs none of the others' events."""
    async with gloas(topics=NO_HEAD_V2) as (held, (_, inventive)), held.calls.expect_payloads():
        await held.until(130.52)
        for number, slot in enumerate((*[SLOT] * 100, *range(SLOT + 2, SLOT + 100))):
            inventive.publish(AVAILABLE, {"slot": str(slot), "block_root": f"0x{number:064x}"})
        await held.until(130.6)
        seen = await held.calls.wait_for_payload(SLOT)
        assert seen is not None
        assert seen.root == held.block(130).root
