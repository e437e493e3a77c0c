"""Cases from the field: requests to one node through providers, proxies and TLS (kind b: 21, 22, 24, 25).

What of these is about streams and whole monitors is in `test_cases_infrastructure.py`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.openapi_node import Answering, Exchange
from tests.conformance.openapi_rows import plain_calls
from tests.rawserver import Request, answer, replies, serve
from tests.scripted_node import in_json, talk
from tests.wire_helpers import Authority
from vc_fallback import BeaconNode, ConfigurationError
from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import NodeError
from vc_fallback.base.types import Slot
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import TLSSettings
from vc_fallback.node import failures
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.wire.client import HTTPClient

pytestmark = pytest.mark.anyio

Call = Callable[[BeaconNode], Awaitable[Any]]

ROOT = "0x" + "aa" * 32
_POINT = {"epoch": "5", "root": ROOT}
DATA = in_json({"data": {"slot": "161", "index": "0", "beacon_block_root": ROOT, "source": _POINT, "target": _POINT}})
BLOCK = Encodings(ssz=b"\x00block", json=b"{}")
UNAUTHORISED = answer(b"project id required\n", status="401 Unauthorized", headers="Content-Type: text/plain\r\n")


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Real sockets, virtual time."""
    return virtual_time_backend


async def fails(call: Awaitable[object], error: type[NodeError], status: int | None = None) -> NodeError:
    """Await a call that is to fail with this very error."""
    with pytest.raises(NodeError) as caught:
        await call
    assert (type(caught.value), caught.value.status) == (error, status)
    return caught.value


def attest(node: BeaconNode) -> Awaitable[Any]:
    return node.attestation_data(Slot(161), timeout=5)


@dataclass
class Provider(Answering):
    """Serves those alone who come with its password and below its prefix."""

    prefix: str = ""
    targets: list[str] = field(default_factory=list)

    def reply(self, request: Request) -> bytes:
        self.targets.append(request.target)
        if request.headers.get("authorization") != "Basic dXNlcjpwQHNz" or not request.target.startswith(
            f"{self.prefix}/eth/"
        ):
            return UNAUTHORISED
        return super().reply(replace(request, target=request.target.removeprefix(self.prefix)))


@pytest.mark.parametrize("end", ["", "/"])
@pytest.mark.parametrize("prefix", ["", "/TOKEN", "/v2/TOKEN", "/a%2Fb/TOKEN"])
async def test_password_and_prefix_go_with_every_request(prefix: str, end: str) -> None:
    """Cases 21, 22, Q16: of every endpoint, with and without a body; nothing of the password in the target."""
    provider = Provider(prefix=prefix)
    async with serve(provider.handle) as server:
        http = HTTPClient(BaseURL.parse(f"http://user:p%40ss@127.0.0.1:{server.port}{prefix}{end}"))
        exchange = Exchange(provider, http)
        for row in plain_calls():
            exchange.answer(row.replies())
            assert (await row.call(exchange)).node_id == "bn1", row.label
        await http.aclose()
    assert len(provider.targets) > len(plain_calls()) > 60
    assert "ss@" not in "".join(provider.targets)


@pytest.mark.parametrize("user", ["user:p%40ssword@", "user:@", ""])
async def test_wrong_password_is_said_and_never_shown(user: str) -> None:
    """Case 21, rule 11: in the provider's own words."""
    provider = Provider()
    async with (
        serve(provider.handle) as server,
        BeaconNode.at(f"http://{user}127.0.0.1:{server.port}", name="n1") as node,
    ):
        for call in (node.syncing(), node.publish_block(BLOCK, "fulu")):
            error = await fails(call, failures.Unauthorized, 401)
            assert error.words == "401 project id required"
            assert error.blames_node
            assert not any(secret in f"{error!r} {vars(error)}" for secret in ("p@ss", "p%40ss", "dXNlcjpw"))


@pytest.mark.parametrize("form", ["seconds", "date", "absent", "of another kind"])
@pytest.mark.parametrize("call", [attest, lambda node: node.publish_block(BLOCK, "fulu")], ids=["read", "publish"])
async def test_rate_limit_is_told_at_once_with_its_pause(call: Call, form: str) -> None:
    """Case 24, Q11: nothing is repeated here, so the next node can be asked; the pause is for who chooses nodes."""
    clock = Clock()
    headers = {
        "seconds": "Retry-After: 2\r\n",
        "date": f"Retry-After: {formatdate(clock.unix(clock.now()) + 2, usegmt=True)}\r\n",
        "absent": "",
        "of another kind": "ratelimit-reset: 2\r\n",
    }[form]
    async with talk(answer(b"", status="429 Too Many Requests", headers=headers)) as asked:
        error = await fails(call(asked.node), failures.RateLimited, 429)
        assert isinstance(error, failures.RateLimited)
        # A date has no parts of a second.
        assert error.retry_after == {"seconds": 2.0, "date": pytest.approx(2, abs=1.01)}.get(form)
        assert error.blames_node
        assert len(asked.requests) == 1


QUOTA = b'{"jsonrpc":"2.0","id":1,"error":{"code":402,"event":-33000,"message":"Payment Required"}}'


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (402, QUOTA, "Payment Required"),
        (401, b"project id required\n", "project id required"),
        (403, b'{"message":"Forbidden"}', "Forbidden"),
    ],
)
async def test_spent_quota_is_no_answer_of_the_node(status: int, body: bytes, said: str) -> None:
    """Case 24, Q11: a long cool-down, and told in the provider's words."""
    async with talk(answer(body, status=f"{status} -")) as asked:
        for call in (attest(asked.node), asked.node.publish_block(BLOCK, "fulu")):
            error = await fails(call, failures.Unauthorized, status)
            assert error.blames_node
        assert (
            error.words == {402: "402 Payment Required", 401: "401 project id required", 403: "403 Forbidden"}[status]
        )
        assert len(asked.requests) == 2
        assert not asked.node.capabilities.any


async def test_node_by_an_ipv6_literal() -> None:
    """Case 25."""
    async with serve(replies(DATA), host="::1") as server, BeaconNode.at(server.url) as node:
        assert server.url == f"http://[::1]:{server.port}"
        assert (await attest(node)).node_id == f"[::1]:{server.port}"


async def test_certificates_have_their_own_failure(tmp_path: Path) -> None:
    """Case 25: a node's own authority is trusted; another, or another name, is no node that is offline."""
    (tmp_path / "other").mkdir()
    authority, other = Authority(tmp_path), Authority(tmp_path / "other", "eth2.node")
    async with serve(replies(DATA), tls=authority.server) as server:
        async with BeaconNode.at(server.url, tls=authority.settings) as node:
            await attest(node)
        for settings in (TLSSettings(), other.settings):
            async with BeaconNode.at(server.url, tls=settings) as node:
                error = await fails(attest(node), failures.InsecureConnection)
                assert "certificate" in error.problem
                assert error.blames_node
    async with (
        serve(replies(DATA), tls=other.server) as server,
        BeaconNode.at(server.url, tls=other.settings) as node,
    ):
        assert "not valid for '127.0.0.1'" in (await fails(attest(node), failures.InsecureConnection)).problem


@pytest.mark.parametrize("url", ["https://xxx:4000,yyy:4000", "https://xxx:4000,https://yyy:4000"])
def test_two_nodes_in_one_url_are_refused(url: str) -> None:
    """Case 25: no list becomes the name that a certificate is to have."""
    with pytest.raises(ConfigurationError) as caught:
        BeaconNode.at(url)
    assert "yyy" not in str(caught.value)
