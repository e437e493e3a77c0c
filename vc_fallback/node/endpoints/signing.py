"""What a node makes for a validator to sign, blocks excepted."""

# Functions are made here at every call: their annotations are not to be evaluated each time.
from __future__ import annotations

from functools import partial

from vc_fallback.base.types import Root, Slot, Sourced, root_hex
from vc_fallback.node import routes
from vc_fallback.node.caller import Caller, is_ssz, reads_data
from vc_fallback.node.endpoints.blocks import sized
from vc_fallback.node.forks import up_to
from vc_fallback.node.opaque_answers import read_opaque
from vc_fallback.node.routes import Route
from vc_fallback.node.scalars import uint64
from vc_fallback.node.values.adapters import Unreadable
from vc_fallback.node.values.answers import Data
from vc_fallback.node.values.attestation import AttestationData
from vc_fallback.node.values.opaque import Opaque
from vc_fallback.node.values.payload_attestation import PayloadAttestationData
from vc_fallback.node.values.sync_committee import SyncCommitteeContribution
from vc_fallback.wire.http import Response

_READ_DATA = reads_data(Data[AttestationData])
_CONTRIBUTION = Data[SyncCommitteeContribution]
_PAYLOAD_ATTESTATION_DATA = Data[PayloadAttestationData]
_WITHOUT_VERSION = partial(read_opaque, versioned=False)


class SigningEndpoints(Caller):
    """What is signed must be what was asked for: an answer for another slot, or another block, is `Malformed`.

    A node that mixes up its answers, or a cache before it, would else have a validator sign for a slot twice.
    """

    async def attestation_data(
        self, slot: Slot, committee_index: int = 0, *, timeout: float | None = None
    ) -> Sourced[AttestationData]:
        """Return what the attesters of a slot are to sign.

        :param committee_index: counts before Electra only. Where the slot is known to be in Gloas or later it is not
            sent: the node itself sets the index then.
        :raises Malformed: for data of another slot too. Its epochs and roots are not judged here (Q8).
        :raises NotReady: while the node is syncing; `Optimistic` where its head is not verified.
        """
        query = [("slot", str(uint64(slot)))]
        fork = self._fork(slot)
        if fork is None or up_to(fork, "fulu"):
            query.append(("committee_index", str(uint64(committee_index))))

        def read(response: Response) -> AttestationData:
            ssz = is_ssz(response)
            data: AttestationData = AttestationData.from_ssz(response.body) if ssz else _READ_DATA(response)
            _check("slot", data.slot == slot)
            return data

        return await self._ask_either_form(routes.ATTESTATION_DATA, read, query=query, timeout=timeout)

    async def aggregate_attestation(
        self, slot: Slot, attestation_data_root: Root, committee_index: int, *, timeout: float | None = None
    ) -> Sourced[Opaque]:
        """Return the best aggregate that a node has of attestations to the same data.

        It is not decoded; `aggregation_bit_count` tells how much it is worth. Nodes of before Electra that do not have
        the newer route are asked by the older, whose answer names no fork.

        :param attestation_data_root: hash tree root of the `AttestationData`.
        :param committee_index: committee whose attestations are wanted; the older route has the data name it.
        :raises NotFound: when the node has no such attestation.
        """
        wanted = [
            ("attestation_data_root", root_hex(sized(attestation_data_root, 32, "a root"))),
            ("slot", str(uint64(slot))),
        ]
        committee = ("committee_index", str(uint64(committee_index)))

        async def call(route: Route, limit: float) -> Sourced[Opaque]:
            if route is routes.AGGREGATE:
                return await self._ask_either_form(route, read_opaque, query=[*wanted, committee], timeout=limit)
            return await self._ask(route, _WITHOUT_VERSION, query=wanted, timeout=limit)

        return await self._ask_newest(
            routes.AGGREGATE, routes.AGGREGATE_V1, call, fork=self._fork(slot), timeout=timeout
        )

    async def sync_committee_contribution(
        self, slot: Slot, subcommittee_index: int, beacon_block_root: Root, *, timeout: float | None = None
    ) -> Sourced[SyncCommitteeContribution]:
        """Return the best contribution that a node has of one subcommittee's messages for a block.

        :raises Malformed: for a contribution to another slot, subcommittee or block too.
        :raises NotFound: when the node has none.
        """
        query = [
            ("slot", str(uint64(slot))),
            ("subcommittee_index", str(uint64(subcommittee_index))),
            ("beacon_block_root", root_hex(sized(beacon_block_root, 32, "a root"))),
        ]

        def read(response: Response) -> SyncCommitteeContribution:
            found: SyncCommitteeContribution = reads_data(_CONTRIBUTION)(response)
            _check("slot", found.slot == slot)
            _check("subcommittee_index", found.subcommittee_index == subcommittee_index)
            _check("beacon_block_root", found.beacon_block_root == beacon_block_root)
            return found

        return await self._ask(routes.CONTRIBUTION, read, query=query, timeout=timeout)

    async def payload_attestation_data(
        self, slot: Slot, *, timeout: float | None = None
    ) -> Sourced[PayloadAttestationData | None]:
        """Return what the payload timeliness committee of a slot is to sign; `None`: no block was seen, do not vote.

        The length of SSZ tells that it is this data, whether its fork is named or not.

        :raises Malformed: for data of another slot too.
        :raises NotFound: where a node says with 404 that it has no block, or does not have the endpoint.
        """

        def read(response: Response) -> PayloadAttestationData | None:
            if response.status == 204:
                return None
            if is_ssz(response):
                data = PayloadAttestationData.from_ssz(response.body)
            else:
                data = reads_data(_PAYLOAD_ATTESTATION_DATA)(response)
            _check("slot", data.slot == slot)
            return data

        query = [("slot", str(uint64(slot)))]
        return await self._ask_either_form(
            routes.PAYLOAD_ATTESTATION_DATA, read, query=query, timeout=timeout, success=(200, 204)
        )


def _check(what: str, holds: bool) -> None:
    if not holds:
        raise Unreadable(f"{what}: not the one that was asked for")
