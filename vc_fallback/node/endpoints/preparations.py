"""Telling a node what it is to be ready for: proposers, committees, subnets."""

from collections.abc import Sequence
from typing import Any

from vc_fallback.base.types import Sourced
from vc_fallback.node import routes
from vc_fallback.node.caller import Body, reads_data
from vc_fallback.node.routes import Route
from vc_fallback.node.sending import TAKEN, Sender, consensus_version, read_outcome
from vc_fallback.node.values.adapters import adapter
from vc_fallback.node.values.answers import Data
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.preparations import (
    BeaconCommitteeSelection,
    BeaconCommitteeSubscription,
    ProposerPreparation,
    SyncCommitteeSelection,
    SyncCommitteeSubscription,
)
from vc_fallback.node.values.publication import Publication
from vc_fallback.wire.http import Response

_PREPARATIONS = list[ProposerPreparation]
_SUBSCRIPTIONS = list[BeaconCommitteeSubscription]
_SYNC_SUBSCRIPTIONS = list[SyncCommitteeSubscription]
_SELECTIONS = list[BeaconCommitteeSelection]
_SYNC_SELECTIONS = list[SyncCommitteeSelection]
_SELECTED = Data[_SELECTIONS]
_SYNC_SELECTED = Data[_SYNC_SELECTIONS]


class PreparationEndpoints(Sender):
    """A node forgets all of it when it restarts (Q14).

    Where there is nothing to tell no request is sent, and the answer has no attempts. What is signed, registrations
    and preferences, is published, with the errors of `PublishingEndpoints`: an empty list of these no node can have
    taken, so it is a :exc:`ValueError`.
    """

    async def prepare_beacon_proposer(
        self, preparations: Sequence[ProposerPreparation], *, timeout: float | None = None
    ) -> Sourced[None]:
        """Say who gets the fees of which validators' blocks, for this epoch and two more.

        Deprecated from Gloas on, where :meth:`submit_proposer_preferences` has its place: a node may have it no more.
        """
        return await self._tell(routes.PREPARE_PROPOSERS, _PREPARATIONS, preparations, timeout)

    async def register_validators(
        self, registrations: Sequence[Encodings], *, timeout: float | None = None
    ) -> Sourced[Publication]:
        """Hand on `SignedValidatorRegistration`s to the builder network. Deprecated from Gloas on, as above.

        A node without a builder refuses them, which says nothing about the node (case 39).
        """
        return await self._publish(routes.REGISTER_VALIDATORS, registrations, fixed_size=True, timeout=timeout)

    async def submit_proposer_preferences(
        self, preferences: Sequence[Encodings], version: str, *, timeout: float | None = None
    ) -> Sourced[Publication]:
        """Publish `SignedProposerPreferences` of proposals to come.

        :param version: name of their fork: `gloas` or later, also in the epoch before it begins.
        :raises BadRequest: with those that were refused in `failures`; every other one was taken.
        """
        return await self._publish(
            routes.PROPOSER_PREFERENCES,
            preferences,
            fixed_size=True,
            headers=[consensus_version(version)],
            timeout=timeout,
        )

    async def subscribe_beacon_committees(
        self, subscriptions: Sequence[BeaconCommitteeSubscription], *, timeout: float | None = None
    ) -> Sourced[None]:
        """Have the node look for peers of the subnets of duties, and gather what is to be aggregated.

        One for each validator, also where several have one slot and committee: nodes count validators by them.
        """
        return await self._tell(routes.SUBSCRIBE_COMMITTEES, _SUBSCRIPTIONS, subscriptions, timeout)

    async def subscribe_sync_committees(
        self, subscriptions: Sequence[SyncCommitteeSubscription], *, timeout: float | None = None
    ) -> Sourced[None]:
        """Have the node follow the subnets of members of sync committees."""
        return await self._tell(routes.SUBSCRIBE_SYNC_COMMITTEES, _SYNC_SUBSCRIPTIONS, subscriptions, timeout)

    async def beacon_committee_selections(
        self, selections: Sequence[BeaconCommitteeSelection], *, timeout: float | None = None
    ) -> Sourced[list[BeaconCommitteeSelection]]:
        """Exchange parts of selection proofs for the whole ones, in a cluster of distributed validators.

        :raises UnsupportedEndpoint: where the node is not the middleware of such a cluster; that is remembered (Q13).
        """
        if not selections:
            return self._unasked([])
        return await self._ask(
            routes.COMMITTEE_SELECTIONS, reads_data(_SELECTED), body=_body(_SELECTIONS, selections), timeout=timeout
        )

    async def sync_committee_selections(
        self, selections: Sequence[SyncCommitteeSelection], *, timeout: float | None = None
    ) -> Sourced[list[SyncCommitteeSelection]]:
        """As :meth:`beacon_committee_selections`, for sync committees."""
        if not selections:
            return self._unasked([])
        return await self._ask(
            routes.SYNC_SELECTIONS,
            reads_data(_SYNC_SELECTED),
            body=_body(_SYNC_SELECTIONS, selections),
            timeout=timeout,
        )

    async def _tell(self, route: Route, kind: Any, items: Sequence[Any], timeout: float | None) -> Sourced[None]:  # noqa: ANN401 - a type, of any form
        if not items:
            return self._unasked(None)
        return await self._ask(route, _nothing, body=_body(kind, items), timeout=timeout, success=TAKEN)


def _body(kind: Any, items: Sequence[Any]) -> Body:  # noqa: ANN401 - as above
    return Body(adapter(kind).dump_json([*items]), items=len(items))


def _nothing(response: Response) -> None:
    """Whatever stands in the answer, its status said it; unless it is a page, or an error: then no node was told."""
    read_outcome(response)
