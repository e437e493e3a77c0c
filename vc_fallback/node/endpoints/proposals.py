"""Proposing: blocks and envelopes to be signed, and the signed ones on their way out."""

from typing import Literal, get_args

from vc_fallback.base.types import Root, Slot, Sourced, root_hex
from vc_fallback.node import routes
from vc_fallback.node.caller import Pairs
from vc_fallback.node.endpoints.blocks import sized
from vc_fallback.node.forks import up_to
from vc_fallback.node.opaque_answers import read_block_v2, read_block_v3, read_block_v4, read_opaque
from vc_fallback.node.routes import Route
from vc_fallback.node.scalars import uint64
from vc_fallback.node.sending import Sender, consensus_version
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.fields import write_hex
from vc_fallback.node.values.opaque import Opaque, ProducedBlock
from vc_fallback.node.values.publication import Publication

BroadcastValidation = Literal["gossip", "consensus", "consensus_and_equivocation"]
"""What a node checks before it sends a block or an envelope on; where it is not given, nodes do as with `gossip`."""

BLOB_DATA_INCLUDED = "Eth-Blob-Data-Included"

_POINT_AT_INFINITY = b"\xc0" + bytes(95)


class ProposalEndpoints(Sender):
    """What a proposer asks for and hands in. Nothing of a block or an envelope is decoded (rule 12)."""

    async def produce_block(
        self,
        slot: Slot,
        randao_reveal: bytes,
        *,
        graffiti: bytes | None = None,
        builder_boost_factor: int | None = None,
        skip_randao_verification: bool = False,
        include_payload: bool = True,
        fork: str | None = None,
        timeout: float | None = None,
    ) -> Sourced[ProducedBlock]:
        """Have the node make a block for a slot.

        The slot's fork decides the route: from Gloas on v4, else v3; v2 where the node has no v3 and the fork is Deneb
        or before, or not known. By v2 a block is never blinded, and has no values.

        :param randao_reveal: the proposer's signature of the epoch, 96 bytes.
        :param graffiti: 32 bytes; the node's own where it is not given.
        :param builder_boost_factor: percentage by which a builder's payload counts against the node's own, 0 to 2^64−1:
            0 prefers the node's own, 100 the one that pays more, 2^64−1 the builder's. v2 asks no builder.
        :param skip_randao_verification: for who cannot sign it: `randao_reveal` is then the point at infinity.
        :param include_payload: from Gloas on, whether the node's own payload comes with the block. Without it the
            envelope is to be had from, and published through, this very node (case 61).
        :param fork: name of the slot's fork, for a chain whose forks this client does not know yet.
        """
        common = [("randao_reveal", write_hex(sized(randao_reveal, 96, "a randao reveal")))]
        if graffiti is not None:
            common.append(("graffiti", write_hex(sized(graffiti, 32, "a graffiti"))))
        if skip_randao_verification:
            if randao_reveal != _POINT_AT_INFINITY:
                raise ValueError("a randao reveal that is not to be verified is the point at infinity")
            common.append(("skip_randao_verification", ""))
        query = list(common)
        if builder_boost_factor is not None:
            query.append(("builder_boost_factor", str(uint64(builder_boost_factor))))
        place = {"slot": str(uint64(slot))}
        if fork is None:
            fork = self._fork(slot)
        if fork is not None and not up_to(fork, "fulu"):
            query.append(("include_payload", _flag(include_payload)))
            return await self._ask_either_form(
                routes.PRODUCE_BLOCK_V4, read_block_v4, place=place, query=query, timeout=timeout
            )

        async def produce(route: Route, limit: float) -> Sourced[ProducedBlock]:
            if route is routes.PRODUCE_BLOCK:
                return await self._ask_either_form(route, read_block_v3, place=place, query=query, timeout=limit)
            return await self._ask_either_form(route, read_block_v2, place=place, query=common, timeout=limit)

        return await self._ask_newest(
            routes.PRODUCE_BLOCK, routes.PRODUCE_BLOCK_V2, produce, fork=fork, timeout=timeout
        )

    async def execution_payload_bid(
        self, slot: Slot, builder_index: int, *, timeout: float | None = None
    ) -> Sourced[Opaque]:
        """Return the bid of a builder for the present or the next slot, to be signed by it.

        :raises NotFound: when the node has none.
        """
        place = {"slot": str(uint64(slot)), "builder_index": str(uint64(builder_index))}
        return await self._ask_either_form(routes.PAYLOAD_BID, read_opaque, place=place, timeout=timeout)

    async def execution_payload_envelope(
        self, slot: Slot, beacon_block_root: Root, *, timeout: float | None = None
    ) -> Sourced[Opaque]:
        """Return the envelope of the payload that goes with a block which this node made, to be signed.

        :raises NotFound: when the node made no such block for this slot, or gave the payload with it.
        """
        place = {"slot": str(uint64(slot)), "beacon_block_root": root_hex(sized(beacon_block_root, 32, "a root"))}
        return await self._ask_either_form(routes.PAYLOAD_ENVELOPE, read_opaque, place=place, timeout=timeout)

    async def publish_block(
        self,
        block: Encodings,
        version: str,
        *,
        broadcast_validation: BroadcastValidation | None = None,
        timeout: float | None = None,
    ) -> Sourced[Publication]:
        """Publish a signed block; from Deneb to Fulu it is the signed block contents.

        :param version: name of its fork, as it came with the block.
        :raises AlreadyKnown: when the node has it already; beside one success that is success (rule 8).
        :raises BadRequest: when it is invalid, or failed `broadcast_validation` and was not sent on.
        """
        return await self._publish_block(
            routes.PUBLISH_BLOCK, routes.PUBLISH_BLOCK_V1, block, version, broadcast_validation, timeout
        )

    async def publish_blinded_block(
        self,
        block: Encodings,
        version: str,
        *,
        broadcast_validation: BroadcastValidation | None = None,
        timeout: float | None = None,
    ) -> Sourced[Publication]:
        """Publish a signed blinded block, whose payload the node gets from its builder. As `publish_block`."""
        return await self._publish_block(
            routes.PUBLISH_BLINDED_BLOCK, routes.PUBLISH_BLINDED_BLOCK_V1, block, version, broadcast_validation, timeout
        )

    async def publish_execution_payload_envelope(
        self,
        envelope: Encodings,
        version: str,
        *,
        blob_data_included: bool,
        broadcast_validation: BroadcastValidation | None = None,
        timeout: float | None = None,
    ) -> Sourced[Publication]:
        """Publish a signed envelope. Errors as `publish_block`.

        :param blob_data_included: whether blobs and proofs are in it, as any node can take it; without them only the
            node that made the block can (Q9), others answer `BadRequest`.
        """
        headers = [consensus_version(version), (BLOB_DATA_INCLUDED, _flag(blob_data_included))]
        return await self._publish(
            routes.PUBLISH_ENVELOPE,
            envelope,
            query=_validation(broadcast_validation),
            headers=headers,
            timeout=timeout,
        )

    async def _publish_block(
        self,
        newer: Route,
        older: Route,
        block: Encodings,
        version: str,
        validation: BroadcastValidation | None,
        timeout: float | None,
    ) -> Sourced[Publication]:
        query, headers = _validation(validation), [consensus_version(version)]

        async def publish(route: Route, limit: float) -> Sourced[Publication]:
            wanted = query if route is newer else ()
            return await self._publish(route, block, query=wanted, headers=headers, timeout=limit)

        if validation not in (None, "gossip"):
            # The older route checks no more than gossip does; who asked for more is not given less (rule 9).
            return await publish(newer, self.request_timeout if timeout is None else timeout)
        return await self._ask_newest(newer, older, publish, fork=version, timeout=timeout)


def _validation(validation: BroadcastValidation | None) -> Pairs:
    if validation is None:
        return ()
    if validation not in get_args(BroadcastValidation):
        raise ValueError(f"broadcast_validation is one of {', '.join(get_args(BroadcastValidation))}")
    return (("broadcast_validation", validation),)


def _flag(value: bool) -> str:
    return "true" if value else "false"
