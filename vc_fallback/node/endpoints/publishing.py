"""Publishing what was signed, blocks excepted: attestations, contributions, and operations."""

# Functions are made here at every call: their annotations are not to be evaluated each time.
from __future__ import annotations

from collections.abc import Sequence

from vc_fallback.base.types import Sourced
from vc_fallback.node import routes
from vc_fallback.node.forks import up_to
from vc_fallback.node.routes import Route
from vc_fallback.node.sending import Sender, consensus_version
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.publication import Publication


class PublishingEndpoints(Sender):
    """Everything goes out as it was given (Q2a); the values of `vc_fallback.node.values` have `encodings()`.

    Of a list a node takes what it can. Where it refuses some, :exc:`~vc_fallback.node.failures.BadRequest` has them by
    index in `failures`; `known` ones are at the node already, and every other item was taken where `rest_taken` (Q12).
    Where it has all of them already, :exc:`~vc_fallback.node.failures.AlreadyKnown` says so. :exc:`BadRequest` without
    `failures` means the request as a whole.

    :exc:`ValueError` is raised for an empty list: nothing is sent, so no node can have taken it; and for a list of
    which neither form can be made. Where only a form was given that the node, or the API, does not take, it is
    :exc:`~vc_fallback.node.failures.UnsupportedMediaType`.
    """

    async def publish_attestations(
        self, attestations: Sequence[Encodings], version: str, *, timeout: float | None = None
    ) -> Sourced[Publication]:
        """Publish attestations of one fork: `SingleAttestation`s from Electra on, before it `Attestation`s.

        :param version: name of the fork of their slots.
        """
        return await self._publish_newest(
            routes.PUBLISH_ATTESTATIONS,
            routes.PUBLISH_ATTESTATIONS_V1,
            attestations,
            version,
            fixed_size=not up_to(version, "deneb"),
            timeout=timeout,
        )

    async def publish_aggregates(
        self, aggregates: Sequence[Encodings], version: str, *, timeout: float | None = None
    ) -> Sourced[Publication]:
        """Publish `SignedAggregateAndProof`s of one fork.

        :param version: name of the fork of their slots.
        """
        return await self._publish_newest(
            routes.PUBLISH_AGGREGATES, routes.PUBLISH_AGGREGATES_V1, aggregates, version, timeout=timeout
        )

    async def publish_payload_attestations(
        self, messages: Sequence[Encodings], version: str, *, timeout: float | None = None
    ) -> Sourced[Publication]:
        """Publish `PayloadAttestationMessage`s of one fork.

        :param version: name of the fork of their slots: `gloas` or later.
        """
        return await self._publish(
            routes.PUBLISH_PAYLOAD_ATTESTATIONS,
            messages,
            fixed_size=True,
            headers=[consensus_version(version)],
            timeout=timeout,
        )

    async def publish_sync_committee_messages(
        self, messages: Sequence[Encodings], *, timeout: float | None = None
    ) -> Sourced[Publication]:
        """Publish `SyncCommitteeMessage`s, as JSON."""
        return await self._publish(routes.PUBLISH_SYNC_MESSAGES, messages, takes_ssz=False, timeout=timeout)

    async def publish_contributions(
        self, contributions: Sequence[Encodings], *, timeout: float | None = None
    ) -> Sourced[Publication]:
        """Publish `SignedContributionAndProof`s, as JSON."""
        return await self._publish(routes.PUBLISH_CONTRIBUTIONS, contributions, takes_ssz=False, timeout=timeout)

    async def publish_voluntary_exit(
        self, voluntary_exit: Encodings, *, timeout: float | None = None
    ) -> Sourced[Publication]:
        """Publish a `SignedVoluntaryExit`, as JSON."""
        return await self._publish(routes.PUBLISH_EXIT, voluntary_exit, takes_ssz=False, timeout=timeout)

    async def publish_bls_to_execution_changes(
        self, changes: Sequence[Encodings], *, timeout: float | None = None
    ) -> Sourced[Publication]:
        """Publish `SignedBLSToExecutionChange`s, as JSON."""
        return await self._publish(routes.PUBLISH_BLS_CHANGES, changes, takes_ssz=False, timeout=timeout)

    async def publish_attester_slashing(
        self, slashing: Encodings, version: str, *, timeout: float | None = None
    ) -> Sourced[Publication]:
        """Publish an `AttesterSlashing`, as JSON.

        :param version: name of the fork whose `AttesterSlashing` it is.
        """
        return await self._publish_newest(
            routes.PUBLISH_ATTESTER_SLASHING,
            routes.PUBLISH_ATTESTER_SLASHING_V1,
            slashing,
            version,
            takes_ssz=False,
            timeout=timeout,
        )

    async def publish_proposer_slashing(
        self, slashing: Encodings, *, timeout: float | None = None
    ) -> Sourced[Publication]:
        """Publish a `ProposerSlashing`, as JSON."""
        return await self._publish(routes.PUBLISH_PROPOSER_SLASHING, slashing, takes_ssz=False, timeout=timeout)

    async def _publish_newest(
        self,
        newer: Route,
        older: Route,
        value: Encodings | Sequence[Encodings],
        version: str,
        *,
        fixed_size: bool = False,
        takes_ssz: bool = True,
        timeout: float | None,
    ) -> Sourced[Publication]:
        headers = [consensus_version(version)]

        async def publish(route: Route, limit: float) -> Sourced[Publication]:
            if route is newer:
                return await self._publish(
                    route, value, fixed_size=fixed_size, takes_ssz=takes_ssz, headers=headers, timeout=limit
                )
            # The older routes have neither SSZ nor forks.
            return await self._publish(route, value, takes_ssz=False, timeout=limit)

        return await self._ask_newest(newer, older, publish, fork=version, timeout=timeout)
