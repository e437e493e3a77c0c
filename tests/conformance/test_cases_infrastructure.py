"""Cases from the field: what stands between us and a node: tokens, limits, IPv6, TLS, names (21, 22, 24, 25, 38)."""

import json
import socket
import ssl
from collections.abc import Sequence
from email.utils import formatdate
from pathlib import Path
from typing import Any

import anyio
import pytest
import trustme

from tests.acceptance.harness import monitor
from tests.conformance.scripted import event, following, head, scripted
from tests.rawserver import Handler, RawConnection, Request, answer, serve
from vc_fallback.base.signals import StreamReason
from vc_fallback.base.types import root_hex
from vc_fallback.testing import SimulatedChain, SimulatedNode, redirect, simulated_devnet
from vc_fallback.testing.spec import spec
from vc_fallback.wire.dial import Address

pytestmark = pytest.mark.anyio


def _server_context(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


def provider(chain: SimulatedChain, requests: list[Request], *, prefix: str = "", authorization: str = "") -> Handler:
    """Return a node behind a provider: only requests with its token are served, others are unauthorised."""
    identity = chain.identity
    genesis = {
        "genesis_time": str(int(identity.genesis_time)),
        "genesis_validators_root": root_hex(identity.genesis_validators_root),
    }
    bodies = {"/eth/v1/beacon/genesis": {"data": genesis}, "/eth/v1/config/spec": {"data": spec(chain)}}

    async def handle(connection: RawConnection) -> None:
        while True:
            request = await connection.request()
            requests.append(request)
            path = request.target.partition("?")[0]
            if not path.startswith(f"{prefix}/eth/") or request.headers.get("authorization", "") != authorization:
                await connection.send(
                    answer(b'{"code":401,"message":"project id required"}', status="401 Unauthorized")
                )
                continue
            path = path.removeprefix(prefix)
            if path == "/eth/v1/events":
                await connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
                await connection.send(event("head", head(chain.slots.slot_at(anyio.current_time()))))
                await connection.until_gone()
            elif path in bodies:
                await connection.send(answer(json.dumps(bodies[path]).encode()))
            else:
                await connection.send(answer(b"{}", status="404 Not Found"))

    return handle


async def test_user_and_password_of_the_url_go_with_every_request() -> None:
    """Case 21, Q16: percent-decoded, on REST and events alike, out of the target, and out of all that is told."""
    chain = SimulatedChain(into=1)
    requests: list[Request] = []
    async with (
        scripted(chain) as clock_of,
        serve(provider(chain, requests, authorization="Basic dXNlcjpwQHNz")) as server,
    ):
        url = server.url.replace("http://", "http://user:p%40ss@")
        async with following([clock_of], candidates=[{"url": url}]) as followed:
            await anyio.sleep(1)
            assert followed.delivered_slots() == [128]
            assert not any(secret in str(followed.signals) for secret in ("p@ss", "p%40ss", "dXNlcjpwQHNz"))
    targets = {request.target.partition("?")[0] for request in requests}
    assert {"/eth/v1/events", "/eth/v1/beacon/genesis", "/eth/v1/config/spec"} <= targets
    assert {request.headers["host"] for request in requests} == {f"127.0.0.1:{server.port}"}


async def test_node_that_wants_a_password_says_so() -> None:
    """Case 21: without the password the node's own words are told, and attempts are few."""
    chain = SimulatedChain(into=1)
    async with (
        scripted(chain) as clock_of,
        serve(provider(chain, [], authorization="Basic dXNlcjpwQHNz")) as server,
        following([clock_of], candidates=[{"url": server.url, "name": "bn1"}]) as followed,
    ):
        await anyio.sleep(30)
        assert {end.detail for end in followed.ends("bn1")} == {"401 project id required"}
        assert len(followed.waits("bn1")) <= 6


async def test_password_does_not_follow_a_redirect_to_another_host() -> None:
    """Case 21, Q16: a redirect to another host is an answer, not a way; not a byte goes there."""
    chain = SimulatedChain(into=1)
    async with scripted(chain) as node, SimulatedNode(chain, name="bn2", host="127.0.0.2") as elsewhere:
        node.inject("*", redirect(f"{elsewhere.url}/eth/v1/events"))
        url = node.url.replace("http://", "http://user:p%40ss@")
        async with following([node, elsewhere], candidates=[{"url": url, "name": "bn1"}]) as followed:
            await anyio.sleep(10)
            assert elsewhere.accepted == 0
            assert followed.ends(node)[0].reason is StreamReason.REFUSED
            assert all(request.headers["authorization"] == "Basic dXNlcjpwQHNz" for request in node.requests)


@pytest.mark.parametrize("end", ["", "/"])
@pytest.mark.parametrize("prefix", ["/TOKEN", "/v2/TOKEN", "/a%2Fb/TOKEN"])
async def test_path_of_the_url_stands_before_every_request(prefix: str, end: str) -> None:
    """Case 22, Q16: prefix, with and without a slash at its end, escapes as they are, on REST and events alike."""
    chain = SimulatedChain(into=1)
    requests: list[Request] = []
    async with (
        scripted(chain) as clock_of,
        serve(provider(chain, requests, prefix=prefix)) as server,
        following([clock_of], candidates=[{"url": server.url + prefix + end}]) as followed,
    ):
        await anyio.sleep(1)
        assert followed.delivered_slots() == [128]
        assert "TOKEN" not in str(followed.signals)
    assert {request.target.partition("?")[0] for request in requests} == {
        f"{prefix}/eth/v1/{path}"
        for path in ("events", "beacon/genesis", "config/spec", "beacon/headers/head", "node/syncing")
    }


@pytest.mark.parametrize(("retry_after", "wait"), [("20", 20.0), ("date", 20.0), (None, 0.8), ("soon", 0.8)])
async def test_retry_after_of_a_rate_limit_is_obeyed(retry_after: str | None, wait: float) -> None:
    """Case 24, H4: seconds, an HTTP date, nothing, nonsense: the node is left alone so long, others serve."""
    async with simulated_devnet(2, into=0.5) as net:
        limited, other = net
        if retry_after == "date":
            retry_after = formatdate(net.clock.unix() + 20, usegmt=True)
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        refusal = limited.answer("/eth/v1/events", 429, '{"code":429,"message":"slow down"}', headers=headers, times=1)
        async with monitor(net) as followed:
            await followed.wait_slots(wait / 12 + 4)
            assert refusal.met == 1
            first, second = limited.opens
            assert (first.status, second.status) == (429, 200)
            assert wait - 1 <= second.opened - first.opened <= max(wait, 1.2) + 0.1
            assert followed.ends(limited)[0].detail == "429 slow down"
            assert len(other.opens) == 1
            followed.assert_every_slot_delivered(129, followed.slot - 1)


async def test_retry_after_for_ever_is_an_hour() -> None:
    """Case 24, rule 6: every wait has a limit."""
    async with simulated_devnet(1) as net:
        net[0].answer("/eth/v1/events", 503, headers={"Retry-After": "99999999999"})
        async with monitor(net) as followed:
            await anyio.sleep(1)
            assert followed.waits(net[0]) == [3600]


async def test_spent_quota_costs_few_requests() -> None:
    """Case 24: 402 for ever in the words of a provider: told, and asked at the pace of the backoff only."""
    async with simulated_devnet(2) as net:
        spent, _ = net
        body = '{"jsonrpc":"2.0","id":1,"error":{"code":402,"event":-33000,"message":"Payment Required"}}'
        spent.answer("*", 402, body)
        async with monitor(net) as followed:
            await followed.wait_slots(20)
            assert {end.detail for end in followed.ends(spent)} == {"402 Payment Required"}
            # 1 + 2 + 4 + 8 s, then 16 s each, with jitter.
            assert len(spent.opens) <= 5 + 240 / 12.8
            assert spent.request_counts["/eth/v1/beacon/genesis"] <= 5 + 240 / 12.8
            followed.assert_every_slot_delivered(129, 147)


async def test_ipv6_literal() -> None:
    """Case 25: `http://[::1]:port`."""
    async with simulated_devnet(1, host="::1") as net, monitor(net) as followed:
        await followed.until(130.5)
        followed.assert_every_slot_delivered(128, 130)


async def test_name_whose_first_address_is_not_listened_on() -> None:
    """Case 25: `localhost` is `::1` first and the node listens on 127.0.0.1 only: the second address is tried."""
    async with simulated_devnet(1) as net:
        (node,) = net

        async def resolver(host: str, port: int) -> Sequence[Address]:
            assert (host, port) == ("localhost", node.port)
            return [(socket.AF_INET6, ("::1", port, 0, 0)), (socket.AF_INET, ("127.0.0.1", port))]

        candidates = [{"url": f"http://localhost:{node.port}", "name": "bn1"}]
        async with following([node], resolver=resolver, candidates=candidates) as followed:
            await followed.until(130.5)
            followed.assert_every_slot_delivered(128, 130)
            assert len(node.opens) == 1


async def test_certificates_of_an_own_authority_and_for_another_name(tmp_path: Path) -> None:
    """Case 25: a node's own CA is trusted for it alone; a certificate for another name is told as such."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    chain = SimulatedChain(into=1)
    servers = [
        serve(provider(chain, []), tls=_server_context(authority, name), name="127.0.0.1")
        for name in ("127.0.0.1", "eth2.node", "127.0.0.1")
    ]
    async with scripted(chain) as clock_of, servers[0] as good, servers[1] as misnamed, servers[2] as untrusted:
        ca = str(tmp_path / "ca.pem")
        candidates = [
            {"url": good.url, "name": "good", "ca": ca},
            {"url": misnamed.url, "name": "misnamed", "ca": ca},
            {"url": untrusted.url, "name": "untrusted"},
        ]
        async with following([clock_of], candidates=candidates) as followed:
            await anyio.sleep(8)  # one answer of three decides after six seconds
            assert followed.delivered_slots() == [128]
            assert not followed.ends("good")
            for name in ("misnamed", "untrusted"):
                for end in followed.ends(name):
                    assert end.reason is StreamReason.CONNECT_FAILED
                    assert "certificate" in end.detail
            assert "127.0.0.1" in followed.ends("misnamed")[0].detail


async def test_name_that_has_moved_is_found_at_the_next_connect() -> None:
    """Case 38, G5: the stream to the old address is open and dead: it is replaced by one to the new address."""
    async with simulated_devnet(2) as net:
        before, after = net
        address = before

        async def resolver(host: str, port: int) -> Sequence[Address]:
            assert (host, port) == ("bn.example", 5052)
            return [(socket.AF_INET, ("127.0.0.1", address.port))]

        candidates = [{"url": "http://bn.example:5052", "name": "bn1"}]
        async with following([before], resolver=resolver, candidates=candidates) as followed:
            await followed.until(130.5)
            assert len(before.opens) == 1
            address = after
            before.freeze()
            await followed.until(136.5)
            assert [record.status for record in after.opens] == [200]
            assert followed.healthy(before) is True
            assert followed.delivered_slots(since=135) == [135, 136]


async def test_name_that_resolves_later() -> None:
    """Case 38, 36: a name that is not known yet at the start is asked for again at every attempt."""
    async with simulated_devnet(1) as net:
        (node,) = net
        asked = 0

        async def resolver(host: str, port: int) -> Sequence[Address]:
            nonlocal asked
            asked += 1
            if asked < 4:
                raise OSError(socket.EAI_NONAME, "Name or service not known")
            return [(socket.AF_INET, ("127.0.0.1", node.port))]

        candidates = [{"url": "http://bn.example:5052", "name": "bn1"}]
        async with following([node], resolver=resolver, candidates=candidates) as followed:
            await followed.until(130.5)
            first = followed.ends(node)[0]
            assert first.reason is StreamReason.CONNECT_FAILED
            assert "name cannot be resolved" in first.detail
            assert len(node.opens) == 1
            assert followed.delivered_slots()[-1] == 130


async def test_two_spellings_of_one_address_are_one_node() -> None:
    """Case 38, G1: `http://h:1` and `http://h:1/` in one list: one stream, one vote."""
    async with simulated_devnet(1) as net:
        (node,) = net
        async with following([node], candidates=[{"url": node.url}, {"url": f"{node.url}/"}]) as followed:
            await followed.until(130.5)
            assert len(node.opens) == 1
            latest = followed.monitor.latest.value
            assert latest is not None
            assert latest.seen_by == (f"127.0.0.1:{node.port}",)
