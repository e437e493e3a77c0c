"""Telling all nodes what they are to be ready for, off the caller's path, and again those that come back (Q14)."""

import logging
from collections.abc import Awaitable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import Epoch, NodeId, Role, Slot, Sourced
from vc_fallback.node import routes
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.failures import SemanticError, Unauthorized
from vc_fallback.node.sending import consensus_version, forms
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.preparations import (
    BeaconCommitteeSelection,
    BeaconCommitteeSubscription,
    ProposerPreparation,
    SyncCommitteeSelection,
    SyncCommitteeSubscription,
)
from vc_fallback.node.values.publication import Publication
from vc_fallback.routing.ahead import Ahead
from vc_fallback.routing.broadcast import start_broadcast
from vc_fallback.routing.broadcast_result import BroadcastResult
from vc_fallback.routing.delivery import Sending
from vc_fallback.routing.outcomes import NoCandidates, NotSent
from vc_fallback.routing.preparations import PROPOSERS, Kind, Preparation, Preparations, Tell
from vc_fallback.routing.returns import Returns
from vc_fallback.routing.sends import Begun
from vc_fallback.routing.turns import Turns

logger = logging.getLogger(__name__)

PREPARED_EPOCHS = 3
"""Epochs for which a node keeps fee recipients: the present one and two more (definition of the endpoint)."""

SIGNED_EPOCHS = 2
"""Epochs for which registrations and preferences are kept: nothing of them is decoded, and who signs them does so again
with each epoch."""


class Overtaken(NotSent):
    """While it waited for its turn at a node, the caller told something newer in the place of all of it."""


class PreparingCalls(Turns):
    """Every node of both tiers is told, whatever its roles, but for quarantined ones; and told again when its stream
    had ended, when it has recovered, when it has become a node of ours, and when it failed to hear it: a node forgets
    all of it when it restarts, and after a failover would pay the wrong fee recipient. What is over is dropped.

    The calls return at once, with all nodes pending: `await result.settled()` waits for them, within a slot. An empty
    list is told nobody. `deadline`, in loop time, is when sends are given up.

    :raises NoCandidates: there is nobody to tell yet; it is kept, and told to nodes as they come.
    :raises ValueError: no request can be made of it; it is not kept.
    """

    _ahead: Ahead
    _preparations: Preparations
    _returns: Returns | None

    async def prepare_beacon_proposer(
        self, preparations: Sequence[ProposerPreparation], *, deadline: float | None = None
    ) -> BroadcastResult:
        """Say who gets the fees of which validators' blocks, for this epoch and two more."""
        until = self._epochs_from_now(PREPARED_EPOCHS)
        return self._prepare(
            PROPOSERS,
            lambda node, items, t: node.prepare_beacon_proposer(items, timeout=t),
            [(one.validator_index, one, until) for one in preparations],
            deadline,
        )

    async def register_validators(
        self, registrations: Sequence[Encodings], *, deadline: float | None = None
    ) -> BroadcastResult:
        """Hand `SignedValidatorRegistration`s on to the builder network."""
        until = self._epochs_from_now(SIGNED_EPOCHS)
        return self._prepare(
            Kind(Preparation.REGISTRATIONS, routes.REGISTER_VALIDATORS, forms=_forms(registrations)),
            lambda node, items, t: node.register_validators(items, timeout=t),
            [(one, one, until) for one in registrations],
            deadline,
        )

    async def submit_proposer_preferences(
        self, preferences: Sequence[Encodings], version: str, *, deadline: float | None = None
    ) -> BroadcastResult:
        """Publish `SignedProposerPreferences` of proposals to come (Gloas)."""
        until = self._epochs_from_now(SIGNED_EPOCHS)
        consensus_version(version)
        return self._prepare(
            Kind(Preparation.PREFERENCES, routes.PROPOSER_PREFERENCES, version, _forms(preferences)),
            lambda node, items, t: node.submit_proposer_preferences(items, version, timeout=t),
            [(one, one, until) for one in preferences],
            deadline,
        )

    async def subscribe_beacon_committees(
        self, subscriptions: Sequence[BeaconCommitteeSubscription], *, deadline: float | None = None
    ) -> BroadcastResult:
        """Have nodes look for peers of the subnets of duties, and gather what is to be aggregated."""
        slots = self._open().chain.slots

        def until(slot: int) -> float:
            return self._epochs_from_now(SIGNED_EPOCHS) if slots is None else slots.start_of(Slot(slot + 1))

        return self._prepare(
            Kind(Preparation.COMMITTEES, routes.SUBSCRIBE_COMMITTEES),
            lambda node, items, t: node.subscribe_beacon_committees(items, timeout=t),
            [((one.validator_index, one.slot, one.committee_index), one, until(one.slot)) for one in subscriptions],
            deadline,
        )

    async def subscribe_sync_committees(
        self, subscriptions: Sequence[SyncCommitteeSubscription], *, deadline: float | None = None
    ) -> BroadcastResult:
        """Have nodes follow the subnets of members of sync committees."""
        slots = self._open().chain.slots

        def until(epoch: int) -> float:
            if slots is None:
                return self._epochs_from_now(SIGNED_EPOCHS)
            return slots.start_of(slots.chain.first_slot(Epoch(epoch)))

        return self._prepare(
            Kind(Preparation.SYNC_COMMITTEES, routes.SUBSCRIBE_SYNC_COMMITTEES),
            lambda node, items, t: node.subscribe_sync_committees(items, timeout=t),
            [((one.validator_index, one.until_epoch), one, until(one.until_epoch)) for one in subscriptions],
            deadline,
        )

    async def beacon_committee_selections(
        self, selections: Sequence[BeaconCommitteeSelection], *, deadline: float | None = None
    ) -> Sourced[list[BeaconCommitteeSelection]]:
        """Exchange parts of selection proofs for the whole ones, in a cluster of distributed validators."""
        return await self._first(
            routes.COMMITTEE_SELECTIONS,
            Role.DUTIES,
            lambda node, t: node.beacon_committee_selections(selections, timeout=t),
            end=self._end(self._open().settings.duties_end, None, deadline),
        )

    async def sync_committee_selections(
        self, selections: Sequence[SyncCommitteeSelection], *, deadline: float | None = None
    ) -> Sourced[list[SyncCommitteeSelection]]:
        """As :meth:`beacon_committee_selections`, for sync committees."""
        return await self._first(
            routes.SYNC_SELECTIONS,
            Role.DUTIES,
            lambda node, t: node.sync_committee_selections(selections, timeout=t),
            end=self._end(self._open().settings.duties_end, None, deadline),
        )

    # --- how it is done

    def _epochs_from_now(self, epochs: int) -> float:
        """Return the start of the epoch that comes so many after the present one."""
        desk = self._open()
        slots, now = desk.chain.slots, desk.clock.now()
        if slots is None:
            return now + epochs * 32 * desk.slot_duration
        return slots.start_of(slots.chain.first_slot(Epoch(slots.epoch_at(now) + epochs)))

    def _prepare(
        self, kind: Kind, tell: Tell, items: Sequence[tuple[Hashable, Any, float]], deadline: float | None
    ) -> BroadcastResult:
        desk = self._open()
        what = kind.route.what
        if not items:
            return BroadcastResult(what, [], 0, desk.clock.now())
        now = desk.clock.now()
        self._preparations.expire(now)
        self._preparations.remember(kind, tell, items)
        end = self._end(desk.settings.preparation_end, None, deadline)
        values = [item for _, item, _ in items]
        one_by_one = kind.subscribes and "subscriptions" not in desk.settings.broadcast
        try:
            nodes, later = self._in_turn(what, None, one_by_one=one_by_one)
        except NoCandidates:
            self._not_told(desk.candidates.current.members, kind)
            raise
        settled = None
        if not one_by_one:
            # Who is not ours yet, or to be left alone, is told when that is over, and not where nobody else is there.
            self._not_told([node_id for node_id in desk.candidates.current.members if node_id not in nodes], kind)
            later, settled = [], partial(self._settled, kind)

        async def send(node_id: NodeId, begun: Begun) -> Sourced[Publication]:
            async def telling(node: BeaconNode, timeout: float) -> Sourced[Any]:
                return await tell(node.telling(begun), values, timeout)

            async with self._ahead.turn(node_id, kind.preparation):
                if self._preparations.overtaken(kind, items):
                    raise Overtaken(node_id, what, "told something newer in its place")
                return await self._ask(telling, what, end, node_id)

        return start_broadcast(
            send,
            nodes,
            bound=end,
            items=len(values),
            later=later,
            runner=desk.runner,
            bounds=self._ahead.bounds(kind.preparation),
            on_settled=settled,
            what=what,
        )

    def _settled(self, kind: Kind, result: BroadcastResult) -> None:
        """Have those told again that may not have heard it."""
        failed = [d for d in result.deliveries.values() if d.state is Sending.FAILED]
        self._not_told([d.node_id for d in failed if not isinstance(d.error, Overtaken)], kind)

    def _not_told(self, nodes: Iterable[NodeId], kind: Kind) -> None:
        if self._returns is not None:
            for node_id in nodes:
                self._returns.not_told(node_id, kind)

    async def _tell_again(self, node_id: NodeId, kind: Kind) -> NodeError | None:
        """Tell a node all that is kept of a kind; return what it failed at. What it refuses it would refuse again.

        What the caller tells meanwhile has its turn after it: a node never ends with the older of two fee recipients.
        """
        async with self._ahead.turn(node_id, kind.preparation):
            return await self._tell_all(node_id, kind)

    async def _tell_all(self, node_id: NodeId, kind: Kind) -> NodeError | None:
        desk = self._open()
        for tell, items in self._preparations.requests(kind):
            end = desk.clock.now() + desk.part(desk.settings.preparation_end)
            try:
                await self._ask(partial(_tell, tell, items), kind.route.what, end, node_id)
            except (SemanticError, Unauthorized) as error:
                logger.info("%s: %s, told again: %s", node_id, kind.preparation, error.words)
            except NodeError as error:
                logger.debug("%s: %s, told again: %s", node_id, kind.preparation, error.words)
                return error
            except ValueError:
                # No request can be made of it, to no node: the rest is told all the same.
                logger.warning("%s: %s cannot be told again", node_id, kind.preparation, exc_info=True)
        return None


def _tell(tell: Tell, items: Sequence[Any], node: BeaconNode, timeout: float) -> Awaitable[Sourced[Any]]:
    return tell(node, items, timeout)


def _forms(values: Sequence[Encodings]) -> tuple[bool, bool]:
    """Return the forms that a list can be sent in.

    :raises ValueError: for none: what no request can be made of is not kept.
    """
    return forms(values) if values else (False, False)
