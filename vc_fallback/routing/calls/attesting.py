"""What attesters and members of committees sign (Q4, Q6, Q8)."""

# Functions are made here at every call: their annotations are not to be evaluated each time.
from __future__ import annotations

import anyio

from vc_fallback.base.types import Epoch, NodeId, Role, Root, Slot, Sourced, Tier
from vc_fallback.candidates import CandidateList
from vc_fallback.decide.ledger import NodeHead
from vc_fallback.node import routes
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.failures import Closed, NotFound
from vc_fallback.node.values.answers import OnChain
from vc_fallback.node.values.attestation import AttestationData
from vc_fallback.node.values.payload_attestation import PayloadAttestationData
from vc_fallback.routing.calls.aggregating import AggregatingCalls
from vc_fallback.routing.calls.measuring import Announced, Head, HeadAware, Measuring
from vc_fallback.routing.outcomes import Doubt, QuorumNotReached
from vc_fallback.routing.patience import Patience
from vc_fallback.routing.quorum import Agreement, majority, quorum

_BACK = 32
"""Slots that are looked back for the head of a slot, in a node whose head is of a later one."""


class AttestingCalls(AggregatingCalls, Measuring):
    """`deadline` is a moment in loop time; the end of the slot without one, as that is the window of these duties.

    :raises NotFound: when all nodes say so.
    :raises AllNodesFailed, DeadlineExceeded, NoCandidates: see `vc_fallback.routing.outcomes`.
    """

    _highest_source: Epoch

    async def attestation_data(
        self,
        slot: Slot,
        committee_index: int = 0,
        *,
        head: Head | None = None,
        deadline: float | None = None,
    ) -> HeadAware[AttestationData]:
        """Return what attesters of a slot are to sign, from the node that announced the head (Q8).

        Where its answer is older than that head it is asked once more after 50 ms, then the next node is; where nobody
        has newer data within 1/24 of a slot more it is taken, with `stale` saying so. Never taken are: data of an
        optimistic node; of another target epoch than that of the slot; and with a lower source epoch than data that was
        given before, as signing it might be a surround vote, and slashing protection would refuse it.

        :param committee_index: 0 from Electra on.
        :param head: a head of the head monitor's, as a subscription or :meth:`HeadMonitor.wait_for_slot` gives it; the
            latest delivered one where it is not given, or is older.
        """
        while True:
            found = await self._attestation_data(slot, committee_index, head, self._end(None, slot, deadline))
            # What was kept for a while may not be what it was.
            if not (self._unsignable(slot, found) if found.stale else self._outdated(found)):
                self._gave(found)
                return found

    async def _attestation_data(
        self, slot: Slot, committee_index: int, head: Head | None, end: float
    ) -> HeadAware[AttestationData]:
        patience: Patience[AttestationData] = self._patience(lambda data: data.beacon_block_root)

        def older(answer: Sourced[AttestationData]) -> str:
            # Measured against the head of that moment: the block may come while nodes are asked.
            return self._older_now(answer.value.beacon_block_root, slot, head)

        def accept(answer: Sourced[AttestationData]) -> Doubt | None:
            flaw = self._unsignable(slot, answer)
            return Doubt(flaw) if flaw else patience.judge(answer, older(answer))

        async def ask(node: BeaconNode, timeout: float) -> Sourced[AttestationData]:
            return await node.attestation_data(slot, committee_index, timeout=timeout)

        ask_twice = self._once_more(ask, older, patience, lambda answer: not self._unsignable(slot, answer))
        found = await patience.run(
            lambda: self._hedge(
                routes.ATTESTATION_DATA,
                Role.ATTESTATION,
                ask_twice,
                end=end,
                kind="attestation data",
                prefer=self._asked_first(self._announced(slot, head)),
                accept=accept,
            )
        )
        return HeadAware(found.answer.value, found.answer.provenance, found.words)

    async def attestation_data_by_quorum(
        self,
        slot: Slot,
        committee_index: int = 0,
        *,
        threshold: int | None = None,
        head: Head | None = None,
        deadline: float | None = None,
    ) -> Agreement[AttestationData]:
        """Return what attesters of a slot are to sign once so many nodes say the same (Q6).

        Nodes in the minority are asked again on their next head, or after 1/24 of a slot, until the deadline. All
        primaries have a vote; fallbacks have one too where these cannot be enough, or do not agree within 1/24 of a
        slot. The threshold is never lowered (rule 9). Not counted are data that :meth:`attestation_data` would never
        take; and for 1/24 of a slot those that are older than the head: nodes that have not got the block yet agree.

        :param threshold: the majority of the primaries with role `attestation` where it is not given; of all nodes with
            that role where none of them is a primary.
        :param head: as of :meth:`attestation_data`.
        :raises QuorumNotReached: with the votes.
        :raises ValueError: for a threshold below 1.
        """
        desk = self._open()
        what = routes.ATTESTATION_DATA.what
        end = self._end(None, slot, deadline)
        again = desk.part(desk.settings.quorum_again)
        until = desk.clock.now() + again

        async def op(node_id: NodeId) -> Sourced[AttestationData]:
            async def ask(node: BeaconNode, timeout: float) -> Sourced[AttestationData]:
                return await node.attestation_data(slot, committee_index, timeout=timeout)

            try:
                return await self._ask(ask, what, end, node_id)
            except Closed:
                if node_id not in desk.candidates.current:
                    raise
            # It is reached in another way now.
            return await self._ask(ask, what, end, node_id)

        def accept(answer: Sourced[AttestationData]) -> Doubt | None:
            flaw = self._unsignable(slot, answer)
            if not flaw and desk.clock.now() < until:
                flaw = self._older_now(answer.value.beacon_block_root, slot, head)
            return Doubt(flaw) if flaw else None

        while True:
            listed = desk.candidates.current
            plan = await self._plan(what, Role.ATTESTATION, end)
            primaries = plan.of(Tier.PRIMARY)
            wanted = threshold
            if wanted is None:
                own = listed.of(Role.ATTESTATION, Tier.PRIMARY) or listed.of(Role.ATTESTATION)
                wanted = majority(len(own) or 1)
            enough = len(plan.usable(primaries)) >= wanted
            try:
                agreed = await quorum(
                    op,
                    primaries if enough else plan.nodes,
                    reserve=plan.of(Tier.FALLBACK) if enough else (),
                    threshold=wanted,
                    key=lambda answer: answer.value.to_ssz(),
                    end=end,
                    again=again,
                    runner=desk.runner,
                    watch=desk.chain.head_news,
                    accept=accept,
                    what=what,
                )
            except QuorumNotReached:
                # Who has joined meanwhile has a vote, too.
                if not await self._others_join(listed, end):
                    raise
                continue
            if not self._outdated(agreed.answer):
                self._gave(agreed.answer)
                return agreed

    async def sync_message_root(
        self, slot: Slot, *, head: Head | None = None, deadline: float | None = None
    ) -> HeadAware[Root]:
        """Return the block root that members of the sync committee sign at a slot: that of the head at this slot.

        The node that announced the head is asked first, and what is older is asked for again, as of
        :meth:`attestation_data`. A head that is optimistic, or that its node does not know to be verified, never wins.
        Where a node's head is of a later slot already, the last block up to the slot is taken.

        :param head: as of :meth:`attestation_data`.
        """
        patience: Patience[OnChain[Root]] = self._patience(lambda root: root.data)

        def older(answer: Sourced[OnChain[Root]]) -> str:
            return self._older_now(answer.value.data, slot, head)

        def accept(answer: Sourced[OnChain[Root]]) -> Doubt | None:
            flaw = self._not_of_slot(answer.value.data, slot) or self._optimistic(answer.node_id, answer.value.data)
            if answer.value.execution_optimistic or flaw:
                return Doubt(flaw or "optimistic")
            return patience.judge(answer, older(answer))

        async def ask(node: BeaconNode, timeout: float) -> Sourced[OnChain[Root]]:
            began = self._open().clock.now()
            answer = await node.block_root("head", timeout=timeout)
            if self._not_of_slot(answer.value.data, slot):
                left = timeout - (self._open().clock.now() - began)
                return await self._root_up_to(node, slot, self._announced(slot, head), left)
            return answer

        found = await patience.run(
            lambda: self._hedge(
                routes.BLOCK_ROOT,
                Role.ATTESTATION,
                self._once_more(ask, older, patience, lambda answer: not answer.value.execution_optimistic),
                end=self._end(None, slot, deadline),
                kind="head root",
                prefer=self._asked_first(self._announced(slot, head)),
                accept=accept,
            )
        )
        return HeadAware(found.answer.value.data, found.answer.provenance, found.words)

    async def payload_attestation_data(
        self, slot: Slot, *, deadline: float | None = None
    ) -> Sourced[PayloadAttestationData | None]:
        """Return what the payload timeliness committee of a slot is to sign; `None` where no node has seen a block.

        That a node has seen none never wins and never ends the race (Q4).
        """

        def accept(answer: Sourced[PayloadAttestationData | None]) -> Doubt | None:
            return Doubt("no block was seen", usable=True) if answer.value is None else None

        return await self._hedge(
            routes.PAYLOAD_ATTESTATION_DATA,
            Role.ATTESTATION,
            lambda node, t: node.payload_attestation_data(slot, timeout=t),
            end=self._end(None, slot, deadline),
            kind="payload attestation data",
            accept=accept,
        )

    # --- how it is done

    async def _others_join(self, listed: CandidateList, end: float) -> bool:
        """Whether there are, or come until the end, nodes that were not asked: the list is another one than it was, or
        nodes of it had still to say which chain they are on (G6)."""
        desk = self._open()
        if desk.candidates.current is not listed:
            return desk.clock.now() < end
        if desk.expects_nodes and not desk.left:
            news = desk.news.watcher()
            with anyio.CancelScope(deadline=end):
                await news.wait()
                return not desk.left
        return False

    async def _root_up_to(
        self, node: BeaconNode, slot: Slot, announced: Announced | None, timeout: float
    ) -> Sourced[OnChain[Root]]:
        """Ask a node whose head is of a later slot for the last block up to a slot: slots may have been missed."""
        clock = self._open().clock
        began = clock.now()
        last = max(0, slot - _BACK) if announced is None else announced.slot
        for number in range(slot, last - 1, -1):
            try:
                return await node.block_root(Slot(number), timeout=max(0.0, timeout - (clock.now() - began)))
            except NotFound:
                if number == last:
                    raise
        raise ValueError("a head is not announced for a slot that it is above")

    def _not_of_slot(self, root: Root, slot: Slot) -> str:
        """Say that a block is of a later slot than what is signed; empty where it is not, as far as is known."""
        known = self._open().chain.slot_of(root)
        return f"its head is of slot {known}" if known is not None and known > slot else ""

    def _unsignable(self, slot: Slot, answer: Sourced[AttestationData]) -> str:
        """Say why data is never to be taken; empty where nothing speaks against it (Q8)."""
        slots, data = self._open().chain.slots, answer.value
        if slots is not None and data.target.epoch != slots.chain.epoch_of(slot):
            return f"its target epoch is {data.target.epoch}, not that of slot {slot}"
        if data.source.epoch > data.target.epoch or data.source.epoch == data.target.epoch > 0:
            return f"its source epoch {data.source.epoch} is not before its target epoch"
        if data.source.epoch < self._highest_source:
            return f"its source epoch {data.source.epoch} is below {self._highest_source}, which was given before"
        return self._not_of_slot(data.beacon_block_root, slot) or self._optimistic(
            answer.node_id, data.beacon_block_root
        )

    def _optimistic(self, node_id: NodeId, root: Root) -> str:
        """Say that a node gave an optimistic head; empty where it did not, as far as is known (Q4, Q8).

        What its stream, a poll or its last check said of its head counts, the last of these: no event says that one
        became valid. Unless others know that very block to be verified.
        """
        desk = self._open()
        own = desk.chain.head_of(node_id)
        place = desk.book.ranking.places.get(node_id)
        optimistic = None if place is None else place.facts.optimistic
        if own is not None and own.root == root:
            optimistic = self._last_said(own, optimistic)
        elif optimistic:
            latest = desk.chain.latest_head()
            if latest is not None and latest.root == root and not latest.head.optimistic:
                optimistic = False
        return "its head is optimistic" if optimistic else ""

    def _last_said(self, own: NodeHead, optimistic: bool | None) -> bool | None:
        """Return whether a node's own head is optimistic, by what was said of it last.

        :param optimistic: what the node said last of the head that it had then.
        """
        if own.optimistic is None:
            return optimistic
        record = self._open().book.records.get(own.node_id)
        if record is None or record.checked_head != own.slot or record.health.failed:
            return own.optimistic
        checked, said = record.health.checked, record.health.optimistic
        return own.optimistic if said is None or checked is None or checked <= own.received else said

    def _outdated(self, answer: Sourced[AttestationData]) -> bool:
        """Whether data with a higher source was given to another call since it was judged."""
        return answer.value.source.epoch < self._highest_source

    def _gave(self, answer: Sourced[AttestationData]) -> None:
        self._highest_source = max(self._highest_source, Epoch(answer.value.source.epoch))
