"""What a validator client asks in each slot, of all real nodes as one and of each alone, and what came of it."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import anyio

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
)

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

    def id(self, number: int) -> NodeId:
        return NodeId(node_id(self.devnet.url(number)))

    async def pass_slots(self, count: int) -> None:
        """Wait for the ends of so many whole slots."""
        await anyio.sleep(self.slots.start_of(Slot(self.slot + 1 + count)) - self.nodes.clock.now())

    async def until_slot_is_over(self, slot: int) -> None:
        """Wait for the end of a slot."""
        await anyio.sleep(max(0.0, self.slots.start_of(Slot(slot + 1)) - self.nodes.clock.now()))

    async def until_active(self, number: int) -> None:
        """Wait until a node has the duties."""
        with anyio.fail_after(LIMIT):
            while self.nodes.status().duties != self.id(number):
                await self.pass_slots(0)

    def calls(self, way: str = ALL) -> dict[tuple[str, Slot], Call]:
        return {(call.what, call.slot): call for call in self.pretended.calls[way]}

    def assert_answered(self, failing: Mapping[int, range]) -> None:
        """No call is missed, answered late or with an older block where a node without faults did better.

        :param failing: the slots in which nodes, by their numbers, had a fault, which would have cost a client that
            has no other node. One of them may be mended before the end; how well it does from then on counts for
            nothing.
        """
        others = {number: self.calls(self.id(number)) for number in self.devnet.numbers if number not in failing} | {
            # Before its fault it was one of those without faults.
            number: {key: call for key, call in self.calls(self.id(number)).items() if call.slot < slots.start - 1}
            for number, slots in failing.items()
        }
        duration = self.slots.duration

        def better(call: Call, worse: Callable[[Call], bool]) -> bool:
            same = [calls[call.what, call.slot] for calls in others.values() if (call.what, call.slot) in calls]
            return any(not worse(one) for one in same)

        ours = self.calls().values()
        missed = [call for call in ours if call.missed and better(call, lambda one: one.missed)]
        assert missed == []
        old = [call for call in ours if call.old and better(call, lambda one: one.missed or one.old)]
        assert old == []
        late = [call for call in ours if call.late(duration)]
        ours_alone = [call for call in late if better(call, lambda one: one.missed or one.late(duration))]
        assert len(ours_alone) <= MOST_LATE, ours_alone
        for number, slots in failing.items():
            # The node has failed. From the third slot on, when what it still knew is old, nothing to be signed is its.
            lost = [call for call in self.calls(self.id(number)).values() if call.slot in slots]
            assert sum(call.missed or call.old for call in lost) >= 3
            signing = ("attestation data", "head root")
            signed = {call.node for call in ours if call.what in signing and call.slot in slots[2:]}
            assert signed
            assert self.id(number) not in signed


@asynccontextmanager
async def asking(devnet: Devnet, numbers: Sequence[int]) -> AsyncIterator[Asking]:
    """Ask everything in each slot: of all nodes as one, and of each alone, by clients that know nothing of others.

    :param numbers: all nodes, in the order of the list.
    """
    urls = [devnet.url(number) for number in numbers]
    pretended = Pretended(VALIDATORS)
    async with (
        BeaconNodeFallback(FallbackConfig.from_urls(urls, **PATIENT), observers=[pretended]) as nodes,
        AsyncExitStack() as stack,
        anyio.create_task_group() as tasks,
    ):
        await nodes.wait_ready(min_synced=len(urls), timeout=LIMIT)
        alone = [await stack.enter_async_context(BeaconNode.at(url)) for url in urls]
        ways: dict[str, Way] = {ALL: ByAll(nodes), **{node.node_id: ByOne(node) for node in alone}}
        tasks.start_soon(pretended.run, nodes, ways)
        yield Asking(devnet, nodes, pretended)
        tasks.cancel_scope.cancel()


@dataclass(frozen=True)
class Keeping:
    """What nodes are told of validators, and what needs two of them, while one that was told is killed."""

    asked: Asking
    failing: int

    @property
    def itself(self) -> BeaconNode:
        return self.asked.nodes.scoped(self.asked.id(self.failing))

    async def tell(self) -> None:
        """Tell all nodes whom to pay and which subnets to follow; see that the one that is to fail does."""
        asked, nodes = self.asked, self.asked.nodes
        slot = Slot(asked.slot + KEPT)
        for told in (
            await nodes.prepare_beacon_proposer([ProposerPreparation(index, RECIPIENT) for index in VALIDATORS]),
            await nodes.subscribe_beacon_committees(
                [BeaconCommitteeSubscription(index, 0, 1, slot, is_aggregator=False) for index in VALIDATORS]
            ),
        ):
            await told.settled()
            assert set(told.accepted) == {asked.id(number) for number in asked.devnet.numbers}
        assert await follows(self.itself)
        with anyio.fail_after(LIMIT):
            assert await proposed(self.itself, asked) == RECIPIENT

    async def go_on(self) -> LivenessUnknown:
        """While it is dead: see that the other two agree, and that blocks pay the right one; return who is alive."""
        asked, nodes = self.asked, self.asked.nodes
        others = {asked.id(number) for number in asked.devnet.numbers if number != self.failing}
        for _ in range(4):
            await asked.pass_slots(0)
            slot = asked.slot
            await nodes.heads.wait_for_slot(slot, asked.slots.attestation_due(slot), min_nodes=2)
            agreed = await nodes.attestation_data_by_quorum(slot)
            assert set(agreed.voters) == others
            assert agreed.answer.value.slot == slot
        with anyio.fail_after(LIMIT):
            assert await proposed(nodes, asked) == RECIPIENT
        try:
            raise AssertionError(await nodes.liveness(asked.epoch, VALIDATORS))
        except LivenessUnknown as unknown:
            return unknown

    async def see_it_told_again(self) -> None:
        """A node that had forgotten all knows it again."""
        with anyio.fail_after(LIMIT):
            while not await follows(self.itself):
                await self.asked.pass_slots(0)


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
