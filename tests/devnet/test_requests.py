"""Requests over real nodes: what a validator client asks in each slot is answered while nodes fail and come back."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from anyio import to_thread

from scripts.benchmarks.validator import ByAll, ByOne, Call, Pretended, Way
from scripts.lodestar.devnet import Devnet
from tests.devnet.following import LIMIT, node_id
from vc_fallback import (
    BeaconCommitteeSubscription,
    BeaconNode,
    BeaconNodeFallback,
    Epoch,
    FallbackConfig,
    LivenessUnknown,
    NodeError,
    NodeId,
    ProposerPreparation,
    RequestFailed,
    Slot,
    SlotClock,
    UnsupportedEndpoint,
)

pytestmark = pytest.mark.anyio

VALIDATORS = range(8)
"""All validators of the devnet."""

PATIENT: dict[str, Any] = {
    "streams": {"verify_timeout": 1.5},
    "health": {"check_timeout": 1.5, "slow": 1.0},
}
"""As for the monitor: on a busy machine with slots of 1 s an answer may take longer than the default."""

ALL = "all"
"""The way of asking that is under test, beside those of asking each node alone."""

MOST_LATE = 1
"""Answers of a row that may come late though a node had one in time: a busy machine is away for longer than that."""

SIGNATURE = b"\xc0" + bytes(95)
"""The point at infinity: well-formed, and no signature of anybody."""

RECIPIENT = bytes(range(0xA0, 0xB4))

KEPT = 200
"""Slots ahead for which nodes are told of duties, so that nothing of it is over when a node is back."""

Fault = Callable[[Devnet, int], None]

FAULTS: list[tuple[str, str, Fault, Fault]] = [
    ("asyncio", "frozen", Devnet.freeze, Devnet.thaw),
    ("trio", "cut off", Devnet.isolate, Devnet.rejoin),
    ("asyncio", "optimistic", lambda net, n: net.execution(n, "syncing"), lambda net, n: net.execution(n, "ok")),
]
"""How to break a node, and how to mend it."""


@dataclass(frozen=True)
class Asking:
    """The facade over all nodes, and what came of its calls and of those to each node alone."""

    devnet: Devnet
    nodes: BeaconNodeFallback
    pretended: Pretended

    @property
    def slots(self) -> SlotClock:
        slots = self.nodes.slots
        assert slots is not None
        return slots

    @property
    def slot(self) -> Slot:
        """The slot of this moment."""
        return self.slots.slot_at(self.nodes.clock.now())

    @property
    def epoch(self) -> Epoch:
        return self.slots.epoch_at(self.nodes.clock.now())

    @property
    def active(self) -> int:
        """The number of the node that has the duties."""
        ids = [node_id(self.devnet.url(number)) for number in self.devnet.numbers]
        return 1 + ids.index(str(self.nodes.status().duties))

    def id(self, number: int) -> NodeId:
        return NodeId(node_id(self.devnet.url(number)))

    async def do(self, fault: Fault, number: int) -> None:
        """Break or mend a node, while everything else goes on."""
        await to_thread.run_sync(fault, self.devnet, number)

    async def pass_slots(self, count: int) -> None:
        """Wait for the ends of so many whole slots."""
        await anyio.sleep(self.slots.start_of(Slot(self.slot + 1 + count)) - self.nodes.clock.now())

    def calls(self, way: str = ALL) -> dict[tuple[str, Slot], Call]:
        return {(call.what, call.slot): call for call in self.pretended.calls[way]}

    def assert_answered(self, failing: int, slots: range) -> None:
        """No call is missed, answered late or with an older block where a node without faults did better.

        :param failing: the number of the node that had a fault, and would have cost a client that has it alone.
        :param slots: those in which it had it.
        """
        well = [self.id(number) for number in self.devnet.numbers if number != failing]
        others = [self.calls(node) for node in well]
        duration = self.slots.duration

        def better(call: Call, worse: Callable[[Call], bool]) -> bool:
            same = [calls[call.what, call.slot] for calls in others if (call.what, call.slot) in calls]
            return any(not worse(one) for one in same)

        ours = self.calls().values()
        missed = [call for call in ours if call.missed and better(call, lambda one: one.missed)]
        assert missed == []
        old = [call for call in ours if call.old and better(call, lambda one: one.missed or one.old)]
        assert old == []
        late = [call for call in ours if call.late(duration)]
        ours_alone = [call for call in late if better(call, lambda one: one.missed or one.late(duration))]
        assert len(ours_alone) <= MOST_LATE, ours_alone
        # The node has failed. From the third slot on, when what it still knew is old, nothing to be signed is its own.
        lost = [call for call in self.calls(self.id(failing)).values() if call.slot in slots]
        assert sum(call.missed or call.old for call in lost) >= 3
        signing = ("attestation data", "head root")
        signed = {call.node for call in ours if call.what in signing and call.slot in slots[2:]}
        assert signed
        assert signed <= {*well, None}


@asynccontextmanager
async def asking(devnet: Devnet) -> AsyncIterator[Asking]:
    """Ask everything in each slot: of all nodes as one, and of each alone, by clients that know nothing of others."""
    await to_thread.run_sync(devnet.heal)
    pretended = Pretended(VALIDATORS)
    async with (
        BeaconNodeFallback(FallbackConfig.from_urls(devnet.urls, **PATIENT), observers=[pretended]) as nodes,
        AsyncExitStack() as stack,
        anyio.create_task_group() as tasks,
    ):
        await nodes.wait_ready(min_synced=3, timeout=LIMIT)
        alone = [await stack.enter_async_context(BeaconNode.at(url)) for url in devnet.urls]
        ways: dict[str, Way] = {ALL: ByAll(nodes), **{node.node_id: ByOne(node) for node in alone}}
        tasks.start_soon(pretended.run, nodes, ways)
        yield Asking(devnet, nodes, pretended)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(("anyio_backend", "name", "start", "end"), FAULTS, ids=[name for _, name, _, _ in FAULTS])
async def test_calls_are_answered_while_the_node_that_has_the_duties_fails(
    devnet: Devnet, name: str, start: Fault, end: Fault
) -> None:
    """Q2–Q4, Q8, N9: in each slot attestation data, the head's root and duties, before and after, and all the while."""
    async with asking(devnet) as asked:
        await asked.pass_slots(2)
        failing = asked.active
        broken = asked.slot
        await asked.do(start, failing)
        await asked.pass_slots(6)
        mended = asked.slot
        await asked.do(end, failing)
        await asked.pass_slots(2)
    asked.assert_answered(failing, range(broken + 1, mended))


async def proposed(node: BeaconNodeFallback | BeaconNode, asked: Asking) -> bytes:
    """Have a block made at the start of a slot, and return who gets its fees.

    On a busy machine a node may not make one in time, least of all in the first slot of an epoch.
    """
    while True:
        await asked.pass_slots(0)
        with suppress(RequestFailed, NodeError):
            block = (await node.produce_block(asked.slot, SIGNATURE)).value
            return bytes.fromhex(json.loads(block.body)["body"]["execution_payload"]["fee_recipient"][2:])


async def follows(node: BeaconNode) -> bool:
    """Whether a node follows subnets of attestations, for validators that it has been told of since its start."""
    with suppress(NodeError):
        identity = (await node.network_identity()).value
        return int(identity.metadata["attnets"], 16) > 0
    return False


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_killed_node_costs_no_call_and_no_quorum_and_is_told_again_when_it_is_back(devnet: Devnet) -> None:
    """Q6, Q14, as above: two of three agree, blocks pay the right one, a node that had forgotten all knows it again."""
    async with asking(devnet) as asked:
        nodes, everyone = asked.nodes, {asked.id(number) for number in devnet.numbers}
        failing = asked.active
        itself, others = nodes.scoped(asked.id(failing)), everyone - {asked.id(failing)}
        slot = Slot(asked.slot + KEPT)
        for told in (
            await nodes.prepare_beacon_proposer([ProposerPreparation(index, RECIPIENT) for index in VALIDATORS]),
            await nodes.subscribe_beacon_committees(
                [BeaconCommitteeSubscription(index, 0, 1, slot, is_aggregator=False) for index in VALIDATORS]
            ),
        ):
            await told.settled()
            assert set(told.accepted) == everyone
        assert await follows(itself)
        with anyio.fail_after(LIMIT):
            assert await proposed(itself, asked) == RECIPIENT

        broken = asked.slot
        await asked.do(Devnet.kill, failing)
        for _ in range(4):
            await asked.pass_slots(0)
            slot = asked.slot
            await nodes.heads.wait_for_slot(slot, asked.slots.attestation_due(slot), min_nodes=2)
            agreed = await nodes.attestation_data_by_quorum(slot)
            assert set(agreed.voters) == others
            assert agreed.answer.value.slot == slot
        with anyio.fail_after(LIMIT):
            assert await proposed(nodes, asked) == RECIPIENT
        with pytest.raises(LivenessUnknown) as unknown:
            await nodes.liveness(asked.epoch, VALIDATORS)
        mended = asked.slot

        await asked.do(Devnet.restart, failing)
        with anyio.fail_after(LIMIT):
            while not await follows(itself):
                await asked.pass_slots(0)
    asked.assert_answered(failing, range(broken + 1, mended))
    # This version cannot tell who was seen; nobody is taken for dead because of that (Q14a).
    assert UnsupportedEndpoint in {type(error) for error in unknown.value.errors.values()}
    assert unknown.value.live == ()
