"""Blocks to be signed: the best that primaries make in time, else the first (Q2, Q7)."""

from collections.abc import Collection
from functools import partial
from typing import Literal

from vc_fallback.base.types import NodeId, Role, Root, Slot, Sourced
from vc_fallback.node import routes
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.failures import Closed
from vc_fallback.node.forks import up_to
from vc_fallback.node.values.opaque import Opaque, ProducedBlock
from vc_fallback.routing.best import best
from vc_fallback.routing.first_success import first_success
from vc_fallback.routing.joining import Joining
from vc_fallback.routing.outcomes import Accept, AllNodesFailed, check
from vc_fallback.routing.turns import Turns


class ProposingCalls(Turns):
    """`deadline` is a moment in loop time; the earlier of half a slot from the call and the slot's end without one."""

    async def produce_block(
        self,
        slot: Slot,
        randao_reveal: bytes,
        *,
        graffiti: bytes | None = None,
        builder_boost_factor: int | None = None,
        include_payload: bool = True,
        choice: Literal["best", "first"] | None = None,
        accept: Accept[ProducedBlock] | None = None,
        deadline: float | None = None,
    ) -> Sourced[ProducedBlock]:
        """Have nodes make a block for a slot, and return the one to be signed.

        `best` asks all usable primaries with role `proposal`, collects for 1/8 of a slot, and takes the block with the
        highest value, consensus and execution together; one whose value is not known loses to all that are. Fallbacks
        are asked where all of these fail, and as well where none has answered by then. Nodes whose head is another one
        than the delivered head come after those, as fallbacks do, and last those that are inconsistent (N3): their
        blocks would be for an old head, or for another branch, and may be worth more for just that. After them, as late
        again, come usable nodes without the role, and those that are not usable, whatever they say that it is worth:
        values are compared within a tier only, a node declares them itself. From Gloas on no node says what the payload
        is worth: of those that are asked the first by rank is taken, as soon as it is there.
        `first` asks one node after the other, in the same order.

        The signed block goes to :meth:`publish_block`, or with `producer=answer.node_id` to `publish_blinded_block`.

        :param include_payload: from Gloas on, whether the payload comes with the block. Without it the envelope is to
            be had from, and published through, the node that made the block alone (case 61).
        :param choice: `block_choice` of the configuration where it is not given.
        :param accept: looks at a block, which nothing here decodes (rule 12), and says what is wrong with it: that it
            is for another slot, or pays another fee recipient. Such a block does not win, and no other loses by it.
        :raises AllNodesFailed, DeadlineExceeded, NoCandidates: see `vc_fallback.routing.outcomes`.
        """
        desk = self._open()
        settings = desk.settings
        end = self._end(settings.block_end, slot, deadline)

        async def ask(node: BeaconNode, timeout: float) -> Sourced[ProducedBlock]:
            return await node.produce_block(
                slot,
                randao_reveal,
                graffiti=graffiti,
                builder_boost_factor=builder_boost_factor,
                include_payload=include_payload,
                timeout=timeout,
            )

        slots = desk.chain.slots
        fork = None if slots is None else slots.chain.fork_at(slots.chain.epoch_of(slot))
        gloas = fork is not None and not up_to(fork.name, "fulu")
        route = routes.PRODUCE_BLOCK_V4 if gloas else routes.PRODUCE_BLOCK
        wait = desk.part(settings.block_soft)
        soft = desk.clock.now() + wait
        first = (choice or settings.block_choice) == "first"
        what = route.what
        op = partial(self._ask, ask, what, end)
        done: set[NodeId] = set()
        joining = Joining(desk, None)
        await self._plan(what, None, end)
        while True:
            tiers = self._tiers(what, Role.PROPOSAL, besides=done)
            moved = partial(self._has_moved, frozenset(n for tier in tiers for n in tier if self._elsewhere(n)))
            try:
                if first:
                    nodes = [node_id for tier in tiers for node_id in tier]
                    return await first_success(
                        op, nodes, end=end, delay=lambda _: wait, runner=desk.runner, accept=accept, what=what
                    )
                return await best(
                    op,
                    tiers,
                    soft=min(end, soft),
                    end=end,
                    score=None if gloas else _value,
                    runner=desk.runner,
                    min_improvement=settings.block_min_improvement,
                    accept=accept,
                    lowered=moved,
                    what=what,
                )
            except AllNodesFailed as error:
                # Who has joined the list meanwhile, or is reached in another way now, may still make one.
                done |= {attempt.node_id for attempt in error.attempts if not isinstance(attempt.error, Closed)}
                if await joining.others(done, end) is None:
                    raise

    async def execution_payload_envelope(
        self, slot: Slot, beacon_block_root: Root, *, producer: NodeId, deadline: float | None = None
    ) -> Sourced[Opaque]:
        """Return the envelope of the payload that goes with a block, from the node that made it: no other has it (Q9).

        :raises NodeError: as that node's failure; `Closed` when it is not in the list.
        :raises DeadlineExceeded: when the time is over already.
        """
        desk = self._open()
        what = routes.PAYLOAD_ENVELOPE.what
        end = self._end(desk.settings.block_end, slot, deadline)
        check(what, [producer], end, desk.clock.now())

        async def ask(node: BeaconNode, timeout: float) -> Sourced[Opaque]:
            return await node.execution_payload_envelope(slot, beacon_block_root, timeout=timeout)

        return await self._ask(ask, what, end, producer)

    async def execution_payload_bid(
        self, slot: Slot, builder_index: int, *, deadline: float | None = None
    ) -> Sourced[Opaque]:
        """Return the bid of a builder for the present or the next slot."""
        desk = self._open()
        return await self._first(
            routes.PAYLOAD_BID,
            Role.PROPOSAL,
            lambda node, t: node.execution_payload_bid(slot, builder_index, timeout=t),
            end=self._end(desk.settings.duties_end, None, deadline),
        )

    def _has_moved(self, elsewhere: Collection[NodeId], node_id: NodeId) -> bool:
        """Whether a node that was on the delivered head when it was asked, not among those elsewhere, is so no more."""
        return node_id not in elsewhere and self._elsewhere(node_id)


def _value(answer: Sourced[ProducedBlock]) -> float | None:
    block = answer.value
    if block.consensus_value is None or block.execution_value is None:
        return None
    return block.consensus_value + block.execution_value
