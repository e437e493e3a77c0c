"""The client of one node, used by itself."""

import logging

import httpx
import pytest

from vc_fallback import BeaconNode, ConfigurationError, Unauthorized
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio


async def test_a_node_is_asked_by_itself() -> None:
    """Every answer is a value with its provenance (rule 1)."""
    async with simulated_devnet(1) as net, BeaconNode.at(net.urls[0]) as node:
        syncing = await node.syncing()
        assert syncing.value.head_slot == net[0].head.slot
        assert syncing.node_id == node.node_id == net.urls[0].removeprefix("http://")
        assert syncing.latency is not None
        assert syncing.latency >= 0
        assert syncing.provenance.attempts == 1


async def test_the_user_of_a_url_is_sent_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    """Q16, rule 11."""
    seen: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization"))
        return httpx.Response(401, text="no such user: sekretuser:sekretpw")

    caplog.set_level(logging.DEBUG)
    transport = httpx.MockTransport(answer)
    async with BeaconNode.at("http://sekretuser:sekretpw@bn1:5052", name="mine", transport=transport) as node:
        with pytest.raises(Unauthorized) as error:
            await node.version()
    assert seen == ["Basic c2VrcmV0dXNlcjpzZWtyZXRwdw=="]
    assert "sekret" not in f"{error.value} {error.value!r} {vars(error.value)} {caplog.text}"
    assert error.value.node_id == "mine"


@pytest.mark.parametrize(
    ("url", "headers"), [("ftp://bn1", ()), ("http://bn1", (("A b", "c"),)), ("http://bn1", (("a", "b\r\nc: d"),))]
)
async def test_what_cannot_be_used_is_named(url: str, headers: tuple[tuple[str, str], ...]) -> None:
    """Scenario 8: before anything is dialled."""
    with pytest.raises(ConfigurationError):
        BeaconNode.at(url, headers=headers)
