"""Hazard 23: addresses and names, one after another and at once."""

import socket
import ssl
from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import httpx
import pytest

from tests.rawserver import answer, replies, serve
from tests.wire_helpers import Deaf, Recorder, client_of, descriptors, eventually, fails, get
from vc_fallback.base.urls import BaseURL
from vc_fallback.wire import dial as dialling
from vc_fallback.wire.client import HTTPClient
from vc_fallback.wire.dial import Address
from vc_fallback.wire.errors import ClientClosed

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Real sockets, virtual time: no wait is too short for a busy machine."""
    return virtual_time_backend


OK = b"HTTP/1.1 200 OK\r\n"


def unused(count: int) -> list[int]:
    """Ports on which nobody listens."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports: list[int] = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def resolver_to(*ports: int, calls: list[str] | None = None) -> "object":
    async def resolve(host: str, port: int) -> Sequence[Address]:
        if calls is not None:
            calls.append(host)
        return [(socket.AF_INET, ("127.0.0.1", port)) for port in ports]

    return resolve


def client_to(url: str, resolver: object = None, tls: ssl.SSLContext | None = None) -> HTTPClient:
    return HTTPClient(BaseURL.parse(url), resolver=resolver, tls=tls)  # type: ignore[arg-type]


async def test_ipv6_literal() -> None:
    """Hazard 23, case 25."""
    async with serve(replies(answer(b"six")), host="::1") as server, client_of(server) as client:
        assert (await get(client)).body == b"six"


async def test_literals_ask_no_resolver() -> None:
    """Virtual time has no threads: a literal goes to no resolver at all."""

    async def never(host: str, port: int) -> Sequence[Address]:
        raise AssertionError

    for host in ("127.0.0.1", "::1"):
        async with serve(replies(answer()), host=host) as server, client_of(server, resolver=never) as client:
            await get(client)


class TestInRealTime:
    """The system's resolver needs a thread, which virtual time does not see."""

    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        backend: str = request.param
        return backend

    async def test_localhost_is_resolved_by_the_system_to_whichever_family_listens(self) -> None:
        """Case 25: `localhost` is `::1` first for many, while the node listens on 127.0.0.1."""
        async with serve(replies(answer()), name="localhost") as server, client_of(server) as client:
            await get(client)


async def test_second_address_is_tried_at_once_when_the_first_refuses() -> None:
    """Hazard 23."""
    async with serve(replies(answer())) as server:
        client = client_to("http://node", resolver_to(*unused(2), server.port))
        begun = anyio.current_time()
        await client.request("GET", "/")
        assert anyio.current_time() == begun
        await client.aclose()


async def test_second_address_is_tried_as_well_while_the_first_hangs() -> None:
    """Hazard 23: staggered; the loser is closed."""
    async with serve(replies(answer())) as server:
        with Deaf() as deaf:
            before = descriptors()
            client = client_to("http://node", resolver_to(deaf, server.port))
            begun = anyio.current_time()
            await client.request("GET", "/")
            assert anyio.current_time() - begun == pytest.approx(0.25)
            await eventually(lambda: descriptors() == before + 2)  # ours and the server's
            await client.aclose()


async def test_hanging_dial_is_over_after_its_time() -> None:
    """H2: all of it, the later addresses included."""
    with Deaf() as deaf:
        for resolver in (resolver_to(deaf), resolver_to(deaf, deaf, deaf)):
            before = descriptors()
            client = client_to("http://node", resolver)
            begun = anyio.current_time()
            with pytest.raises(httpx.ConnectTimeout):
                await client.request("GET", "/", connect_timeout=0.3)
            assert anyio.current_time() - begun == pytest.approx(0.3)
            assert descriptors() == before
            await client.aclose()


async def test_name_is_resolved_anew_at_each_connect() -> None:
    """Hazard 23: a name that cannot be resolved yet is an error of that call only; a moved node is found."""
    async with serve(replies(answer(b"old"))) as old, serve(replies(answer(b"new"))) as new:
        ports: list[int] = []

        async def resolve(host: str, port: int) -> Sequence[Address]:
            assert (host, port) == ("node", 5052)
            if not ports:
                raise OSError(-2, "Name or service not known")
            return [(socket.AF_INET, ("127.0.0.1", ports[-1]))]

        client = client_to("http://node:5052", resolve)
        await fails(client, httpx.ConnectError)
        for server, body in ((old, b"old"), (new, b"new")):
            ports.append(server.port)
            recorder = Recorder()
            with anyio.fail_after(5), anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(partial(client.stream, "/", sink=recorder))
                    await recorder.first.wait()
                    scope.cancel()
            assert recorder.body == body
        await client.aclose()


async def test_name_without_addresses_and_refused_ports_are_connect_errors() -> None:
    """Hazard 23."""
    for resolver in (resolver_to(), resolver_to(*unused(1)), resolver_to(*unused(3))):
        client = client_to("http://node", resolver)
        assert "node" not in str(await fails(client, httpx.ConnectError))
        await client.aclose()


async def test_of_several_that_connect_in_one_moment_all_but_one_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hazard 23: the kernel cannot be made to do that on demand, so what is beneath the race is replaced."""
    made: list[socket.socket] = []
    go = anyio.Event()

    async def connect(address: Address) -> socket.socket:
        one = socket.socket()
        made.append(one)
        try:
            await go.wait()
        except BaseException:
            one.close()
            raise
        return one

    async def start() -> None:
        await eventually(lambda: len(made) == 5)
        go.set()

    monkeypatch.setattr(dialling, "_connect", connect)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        winner = await dialling.dial([(socket.AF_INET, ("127.0.0.1", 1))] * 5, stagger=0.001)
    assert [one for one in made if one.fileno() >= 0] == [winner]
    winner.close()


async def test_closing_the_client_ends_a_dial() -> None:
    """Hazard 17."""
    with Deaf() as deaf:
        before = descriptors()
        client = client_to("http://node", resolver_to(deaf, deaf))

        async def call() -> None:
            with pytest.raises(ClientClosed):
                await client.request("GET", "/")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await anyio.sleep(0.4)
            assert client.statistics().dials == 1
            begun = anyio.current_time()
            await client.aclose()
        assert anyio.current_time() == begun
        assert descriptors() == before


async def test_socket_is_set_up_for_small_messages_and_for_peers_that_vanish() -> None:
    """TCP_NODELAY, and keep-alive with its times where the platform has them (H2)."""
    async with serve(replies(answer())) as server:
        with await dialling.dial([(socket.AF_INET, ("127.0.0.1", server.port))]) as connected:
            assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
            assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 15
            assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 4
            assert not connected.getblocking()


async def test_proxies_of_the_environment_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Q16."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused(1)[0]}")
    async with serve(replies(answer(b"direct"))) as server, client_of(server) as client:
        assert (await get(client)).body == b"direct"
