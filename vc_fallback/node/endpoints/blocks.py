"""Headers, blocks and their blobs, by their identifiers."""

from typing import Literal

from vc_fallback.base.types import Root, Slot, Sourced, root_hex
from vc_fallback.node import routes
from vc_fallback.node.caller import Caller, reads
from vc_fallback.node.values.answers import OnChain
from vc_fallback.node.values.blocks import Head, Header, HeadPosition
from vc_fallback.wire.http import Response

BlockId = Slot | Root | Literal["head", "genesis", "finalized", "justified"]
"""A slot, a block root, or a word."""

_HEAD = OnChain[HeadPosition]
_HEADER = OnChain[Header]


class BlockEndpoints(Caller):
    """What the node has of blocks."""

    async def head(self, *, timeout: float | None = None) -> Sourced[Head]:
        """Return the node's head; of its header nothing else is looked at."""
        return await self._ask(routes.HEADER, _head, place={"block_id": "head"}, timeout=timeout)

    async def header(self, block_id: BlockId, *, timeout: float | None = None) -> Sourced[OnChain[Header]]:
        """Return a block's header.

        :raises NotFound: when the node has no such block.
        """
        return await self._ask(routes.HEADER, reads(_HEADER), place={"block_id": identifier(block_id)}, timeout=timeout)


def _head(response: Response) -> Head:
    answer = reads(_HEAD)(response)
    return Head(answer.data.header.message.slot, answer.data.root, answer.execution_optimistic)


def identifier(value: int | bytes | str) -> str:
    """Write what names a block or a state: a slot, a root, or a word.

    :raises ValueError: for a negative slot, or bytes that are no root.
    """
    if isinstance(value, bytes):
        if len(value) != 32:
            raise ValueError("a root has 32 bytes")
        return root_hex(value)
    if isinstance(value, int):
        if isinstance(value, bool) or not 0 <= value < 2**64:
            raise ValueError("a slot is a number from 0 to 2^64−1")
        return str(value)
    return value
