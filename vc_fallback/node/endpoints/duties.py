"""Duties of validators in an epoch, and their liveness."""

# Functions are made here at every call: their annotations are not to be evaluated each time.
from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

from vc_fallback.base.types import Epoch, Sourced
from vc_fallback.node import routes
from vc_fallback.node.caller import Body, Caller, reads_data
from vc_fallback.node.routes import Route
from vc_fallback.node.scalars import uint64
from vc_fallback.node.values.adapters import Unreadable
from vc_fallback.node.values.answers import Data, Duties
from vc_fallback.node.values.duties import (
    AttesterDuty,
    Liveness,
    ProposerDuties,
    ProposerDuty,
    PtcDuty,
    SyncCommitteeDuty,
    read_duties,
)
from vc_fallback.node.values.validator_ids import write_indices
from vc_fallback.wire.http import Response

T = TypeVar("T")

_LIVENESS = Data[list[Liveness]]


class DutyEndpoints(Caller):
    """Duties are asked of the node by validator indices, which are sent each once. Validators that it does not know,
    or that have no duty in the epoch, are left out of the answer, which is in the node's order.

    An empty list of indices is answered with an empty list, without a request, and so without a dependent root: there
    is nobody whose duties could change. (The API asks for one index at least.)

    Duties of another epoch than was asked for are :exc:`~vc_fallback.node.failures.Malformed`, once the chain is known.
    Whether the answer counts against those of other nodes is not judged here: it says whether the node was optimistic,
    and its dependent root is as the node sent it, be it all zeros. A node that is syncing raises `NotReady`.
    """

    async def attester_duties(
        self, epoch: Epoch, indices: Iterable[int], *, timeout: float | None = None
    ) -> Sourced[Duties[AttesterDuty]]:
        """Return where validators attest in an epoch; nodes know at least the present one and the next."""

        def read(response: Response) -> Duties[AttesterDuty]:
            return self._of_epoch(epoch, read_duties(AttesterDuty, response.body))

        return await self._of_validators(routes.ATTESTER_DUTIES, epoch, indices, read, Duties([]), timeout)

    async def proposer_duties(self, epoch: Epoch, *, timeout: float | None = None) -> Sourced[ProposerDuties]:
        """Return who proposes in an epoch, everyone of the chain.

        The value says of which route version it is: a node without the second is asked by the first, whose dependent
        root is another one.
        """
        place = {"epoch": str(uint64(epoch))}

        async def call(route: Route, limit: float) -> Sourced[ProposerDuties]:
            version: Literal[1, 2] = 2 if route is routes.PROPOSER_DUTIES else 1

            def read(response: Response) -> ProposerDuties:
                found = self._of_epoch(epoch, read_duties(ProposerDuty, response.body))
                return ProposerDuties(found.data, found.dependent_root, found.execution_optimistic, version)

            return await self._ask(route, read, place=place, timeout=limit)

        return await self._ask_newest(
            routes.PROPOSER_DUTIES, routes.PROPOSER_DUTIES_V1, call, fork=None, timeout=timeout
        )

    async def sync_committee_duties(
        self, epoch: Epoch, indices: Iterable[int], *, timeout: float | None = None
    ) -> Sourced[Duties[SyncCommitteeDuty]]:
        """Return which places validators have in the sync committee of an epoch, to the end of the next period.

        They hold for the whole period. The API has no dependent root here.
        """

        def read(response: Response) -> Duties[SyncCommitteeDuty]:
            return read_duties(SyncCommitteeDuty, response.body, rooted=False)

        return await self._of_validators(routes.SYNC_DUTIES, epoch, indices, read, Duties([]), timeout)

    async def ptc_duties(
        self, epoch: Epoch, indices: Iterable[int], *, timeout: float | None = None
    ) -> Sourced[Duties[PtcDuty]]:
        """Return when validators attest the timeliness of payloads in an epoch, up to the next; from Gloas on."""

        def read(response: Response) -> Duties[PtcDuty]:
            return self._of_epoch(epoch, read_duties(PtcDuty, response.body))

        return await self._of_validators(routes.PTC_DUTIES, epoch, indices, read, Duties([]), timeout)

    async def liveness(
        self, epoch: Epoch, indices: Iterable[int], *, timeout: float | None = None
    ) -> Sourced[list[Liveness]]:
        """Return whether the node saw validators do anything in an epoch; nodes know the present and the last one.

        What it says of a validator is what this one node saw: a restarted one has seen nobody (Q14a).

        :raises UnsupportedEndpoint: where the node does not have it; that is remembered (Q13).
        """
        return await self._of_validators(routes.LIVENESS, epoch, indices, reads_data(_LIVENESS), [], timeout)

    async def _of_validators(
        self,
        route: Route,
        epoch: Epoch,
        indices: Iterable[int],
        read: Callable[[Response], T],
        none: T,
        timeout: float | None,
    ) -> Sourced[T]:
        place, wanted = {"epoch": str(uint64(epoch))}, write_indices(indices)
        if not wanted:
            return self._unasked(none)
        body = Body(json.dumps(wanted, separators=(",", ":")).encode())
        return await self._ask(route, read, place=place, body=body, timeout=timeout)

    def _of_epoch(self, epoch: Epoch, duties: Duties[Any]) -> Duties[Any]:
        slots = self._slots()
        if slots is not None:
            per_epoch = slots.chain.slots_per_epoch
            for number, duty in enumerate(duties.data):
                if duty.slot // per_epoch != epoch:
                    raise Unreadable(f"data[{number}].slot: not in the epoch that was asked for")
        return duties
