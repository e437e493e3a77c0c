"""Headers, blocks and their blobs, by their identifiers."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

from vc_fallback.base.types import Root, Slot, Sourced, root_hex
from vc_fallback.node import routes
from vc_fallback.node.caller import Caller, reads
from vc_fallback.node.opaque_answers import read_opaque
from vc_fallback.node.scalars import uint64
from vc_fallback.node.values.answers import OnChain
from vc_fallback.node.values.blocks import BlockRoot, Head, Header, HeadPosition
from vc_fallback.node.values.opaque import Opaque
from vc_fallback.wire.http import Response

BlockId = Slot | Root | Literal["head", "genesis", "finalized"]
"""A slot, a block root, or a word."""

_HEAD = OnChain[HeadPosition]
_HEADER = OnChain[Header]
_HEADERS = OnChain[list[Header]]
_ROOT = OnChain[BlockRoot]
# The words of states are among them; which of them a block has is in the type.
_WORDS = frozenset({"head", "genesis", "finalized", "justified"})


class BlockEndpoints(Caller):
    """What the node has of blocks. For a block that it does not have each raises `NotFound`."""

    async def head(self, *, timeout: float | None = None) -> Sourced[Head]:
        """Return the node's head; of its header nothing else is looked at."""
        return await self._ask(routes.HEADER, _head, place={"block_id": "head"}, timeout=timeout)

    async def header(self, block_id: BlockId, *, timeout: float | None = None) -> Sourced[OnChain[Header]]:
        """Return a block's header."""
        return await self._ask(routes.HEADER, reads(_HEADER), place={"block_id": identifier(block_id)}, timeout=timeout)

    async def headers(
        self, *, slot: Slot | None = None, parent_root: Root | None = None, timeout: float | None = None
    ) -> Sourced[OnChain[list[Header]]]:
        """Return the headers of a slot, of the children of a block, or of both; without either those at the head.

        Blocks that are not on the node's own chain are among them. Where there is none, some nodes answer with an
        empty list and some with 404 (`NotFound`).
        """
        query = []
        if slot is not None:
            query.append(("slot", str(uint64(slot))))
        if parent_root is not None:
            query.append(("parent_root", root_hex(sized(parent_root, 32, "a root"))))
        return await self._ask(routes.HEADERS, reads(_HEADERS), query=query, timeout=timeout)

    async def block_root(self, block_id: BlockId, *, timeout: float | None = None) -> Sourced[OnChain[Root]]:
        """Return a block's root."""
        return await self._ask(routes.BLOCK_ROOT, _root, place={"block_id": identifier(block_id)}, timeout=timeout)

    async def block(self, block_id: BlockId, *, timeout: float | None = None) -> Sourced[Opaque]:
        """Return a signed block; from Deneb on without its blobs, from Gloas on without its payload."""
        place = {"block_id": identifier(block_id)}
        return await self._ask_either_form(routes.BLOCK, read_opaque, place=place, timeout=timeout)

    async def blinded_block(self, block_id: BlockId, *, timeout: float | None = None) -> Sourced[Opaque]:
        """Return a signed block with the header of its payload in the place of that; there are none from Gloas on."""
        place = {"block_id": identifier(block_id)}
        return await self._ask_either_form(routes.BLINDED_BLOCK, read_opaque, place=place, timeout=timeout)

    async def blobs(
        self, block_id: BlockId, *, versioned_hashes: Sequence[bytes] | None = None, timeout: float | None = None
    ) -> Sourced[Opaque]:
        """Return the blobs of a block as one list, in the order of their commitments in the block.

        As SSZ they stand one behind the other, each of 131,072 bytes. From Fulu on only nodes that keep all columns
        are bound to have them.

        :param versioned_hashes: those that are wanted, 32 bytes each and each once; all where it is not given.
        """
        query = []
        if versioned_hashes is not None:
            if not versioned_hashes or len(set(versioned_hashes)) < len(versioned_hashes):
                raise ValueError("versioned hashes are one or more, each once")
            query = [("versioned_hashes", root_hex(sized(one, 32, "a versioned hash"))) for one in versioned_hashes]
        return await self._ask_either_form(
            routes.BLOBS, _BLOBS, place={"block_id": identifier(block_id)}, query=query, timeout=timeout
        )


_BLOBS = partial(read_opaque, versioned=False, listed=True)


def _head(response: Response) -> Head:
    answer = reads(_HEAD)(response)
    return Head(answer.data.header.message.slot, answer.data.root, answer.execution_optimistic)


def _root(response: Response) -> OnChain[Root]:
    answer = reads(_ROOT)(response)
    return OnChain(answer.data.root, answer.execution_optimistic, answer.finalized)


def sized(value: bytes, length: int, what: str) -> bytes:
    """Return bytes that have a length.

    :raises ValueError: when they have another.
    """
    if len(value) != length:
        raise ValueError(f"{what} has {length} bytes")
    return value


def identifier(value: int | bytes | str) -> str:
    """Write what names a block or a state: a slot, a root, or a word.

    :raises ValueError: for a number that is no slot, bytes that are no root, and any other word.
    """
    if isinstance(value, bytes):
        return root_hex(sized(value, 32, "a root"))
    if isinstance(value, int):
        return str(uint64(value))
    if value not in _WORDS:
        raise ValueError(f"neither a slot, nor a root, nor one of {', '.join(sorted(_WORDS))}")
    return value
