"""What comes from a gateway under the status of a success is no success of a publish (rule 8, Q5)."""

import pytest

from tests.acceptance.held import SYNC_MESSAGES, held, messages, node_id, to_next_slot
from vc_fallback import NotPublished
from vc_fallback.node.failures import Malformed
from vc_fallback.testing import Answer, simulated_devnet

pytestmark = pytest.mark.anyio

JSON = "application/json"


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"<html><body>Please log in</body></html>", "text/html; charset=utf-8"),
        (b"Please log in", "text/html"),
        (b'{"code":500,"message":"upstream error"}', JSON),
        (b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"rate limited"}}', JSON),
        (b'{"error":"not found"}', "text/plain"),
    ],
)
async def test_a_page_or_an_error_is_no_success(body: bytes, media_type: str) -> None:
    """The caller is told that no node took it, or who did."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        await to_next_slot(nodes)
        net[0].inject(SYNC_MESSAGES, Answer(200, body, {}, media_type))
        result = await nodes.publish_sync_committee_messages(messages(nodes, net.chain))
        await result.settled()
        assert (result.failed, result.accepted) == ((node_id(net[0]),), (node_id(net[1]),))
        assert isinstance(result.deliveries[node_id(net[0])].error, Malformed)
        net[1].answer(SYNC_MESSAGES, 503)
        with pytest.raises(NotPublished, match=r"in the (place|body) of an answer"):
            await nodes.publish_sync_committee_messages(messages(nodes, net.chain, 2))


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"", "text/html"),
        (b"", JSON),
        (b"null", JSON),
        (b"[]", JSON),
        (b'{"data":null}', JSON),
        (b'{"code":200,"message":"OK"}', JSON),
        (b'{"error":null,"message":"done"}', JSON),
        (b'{"code":', JSON),
        (b"OK", "text/plain"),
    ],
)
async def test_any_other_body_of_a_success_says_nothing(body: bytes, media_type: str) -> None:
    """Nodes send what they like there, and most send nothing."""
    async with simulated_devnet(1) as net, held(net) as nodes:
        await to_next_slot(nodes)
        net[0].inject(SYNC_MESSAGES, Answer(200, body, {}, media_type))
        result = await nodes.publish_sync_committee_messages(messages(nodes, net.chain))
        await result.settled()
        assert result.accepted == (node_id(net[0]),)
