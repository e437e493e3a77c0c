"""Hazards 17 and 21: TLS, its errors, and what is left of a handshake that was cancelled."""

import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import trustme

from tests.rawserver import RawConnection, answer, replies, serve
from tests.wire_helpers import Authority, Recorder, client_of, descriptors, eventually, fails, get
from vc_fallback.base.errors import ConfigurationError
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import TLSSettings
from vc_fallback.wire.client import HTTPClient
from vc_fallback.wire.dial import Address
from vc_fallback.wire.errors import CertificateError, TLSError, TLSTruncated, Truncated
from vc_fallback.wire.tls import TLSContexts, tls_context

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Real sockets, virtual time: no wait is too short for a busy machine."""
    return virtual_time_backend


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def client_to(url: str, resolver: object = None, tls: ssl.SSLContext | None = None) -> HTTPClient:
    return HTTPClient(BaseURL.parse(url), resolver=resolver, tls=tls)  # type: ignore[arg-type]


async def test_own_authority_and_kept_connections(authority: Authority) -> None:
    """Hazard 21: TLS with one's own CA, large bodies both ways, connections used again."""

    async def handler(connection: RawConnection) -> None:
        while True:
            await connection.send(answer((await connection.request()).body or b"ok"))

    async def resolve(host: str, port: int) -> Sequence[Address]:
        return [(socket.AF_INET, ("127.0.0.1", port))]

    body = bytes(300_000)
    tls = tls_context(authority.settings)
    for name in (None, "localhost"):
        served = serve(handler, tls=authority.server, name=name)
        async with served as server, client_of(server, tls=tls, resolver=resolve) as client:
            assert (await get(client)).body == b"ok"
            assert (await client.request("POST", "/", body=body)).body == body
            assert client.statistics().dials == 1


async def test_wrong_name_and_unknown_authority_have_their_own_error(tmp_path: Path) -> None:
    """Hazard 21, case 25: not "offline"."""
    wrong = Authority(tmp_path, "example.org")
    async with serve(replies(answer()), tls=wrong.server) as server:
        async with client_of(server, tls=tls_context(wrong.settings)) as client:
            error = await fails(client, CertificateError)
            assert "certificate" in str(error)
            assert "not valid for '127.0.0.1'" in str(error)
        async with client_of(server, tls=tls_context()) as client:
            error = await fails(client, CertificateError)
            assert "unable to get local issuer" in str(error) or "self-signed" in str(error)


async def test_peer_that_speaks_no_tls_is_a_tls_error(authority: Authority) -> None:
    """Hazard 21."""

    async def plain(connection: RawConnection) -> None:
        await connection.receive()
        await connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def closes(connection: RawConnection) -> None:
        await connection.receive()

    for handler in (plain, closes):
        async with serve(handler) as server:
            client = client_to(server.url.replace("http:", "https:"), tls=tls_context(authority.settings))
            error = await fails(client, TLSError)
            assert not isinstance(error, CertificateError)
            await client.aclose()


async def test_end_without_close_notify_is_truncation(authority: Authority) -> None:
    """Hazard 21: where the end of the connection is the end of the body."""
    tls = tls_context(authority.settings)
    for notify in (True, False):

        async def handler(connection: RawConnection, notify: bool = notify) -> None:
            await connection.request()
            await connection.send(OK + b"\r\nbody")
            if notify:
                await connection.close_tls()

        async with serve(handler, tls=authority.server) as server, client_of(server, tls=tls) as client:
            recorder = Recorder()
            if notify:
                assert (await get(client)).body == b"body"
                await client.stream("/", sink=recorder)
            else:
                await fails(client, TLSTruncated)
                with pytest.raises(TLSTruncated):
                    await client.stream("/", sink=recorder)
            assert recorder.body == b"body"

    async def cut(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(OK + b"Content-Length: 9\r\n\r\nbody")

    async with serve(cut, tls=authority.server) as server, client_of(server, tls=tls) as client:
        await fails(client, Truncated)


async def test_idle_tls_connection_that_ends_is_dropped(authority: Authority) -> None:
    """Hazard 12 over TLS: session tickets are no data, a close_notify is an end."""

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(answer())
        if connection.number == 0:
            await anyio.sleep(0.02)
            await connection.close_tls()
        else:
            await connection.request()
            await connection.send(answer())

    tls = tls_context(authority.settings)
    async with serve(handler, tls=authority.server) as server, client_of(server, tls=tls) as client:
        await get(client)
        await anyio.sleep(0.06)
        for _ in range(2):
            assert (await get(client)).attempts == 1
        assert client.statistics().dials == 2


async def test_client_certificate(authority: Authority, tmp_path: Path) -> None:
    """Q16: a node that wants to know who we are."""
    authority.server.verify_mode = ssl.CERT_REQUIRED
    authority.ca.configure_trust(authority.server)
    leaf = authority.ca.issue_cert("client.example.org")
    certificate, key = tmp_path / "client.pem", tmp_path / "client.key"
    certificate.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
    leaf.private_key_pem.write_to_path(key)
    settings = TLSSettings(ca=authority.settings.ca, certificate=certificate, key=key)
    async with serve(replies(answer()), tls=authority.server) as server:
        async with client_of(server, tls=tls_context(settings)) as client:
            await get(client)
        async with client_of(server, tls=tls_context(authority.settings)) as client:
            await fails(client, httpx.TransportError)


async def test_redirect_from_http_to_https_is_followed_and_never_back(authority: Authority) -> None:
    """Q16."""
    tls = tls_context(authority.settings)
    async with serve(replies(answer(b"safe")), tls=authority.server) as safe:
        moved = answer(status="308 X", headers=f"Location: {safe.url}/\r\n")
        async with serve(replies(moved)) as plain, client_of(plain, tls=tls) as client:
            response = await get(client)
            assert (response.status, response.body, response.origin) == (200, b"safe", safe.url)
        back = answer(status="308 X", headers=f"Location: {plain.url}/\r\n")
        async with serve(replies(back), tls=authority.server) as server, client_of(server, tls=tls) as client:
            assert (await get(client)).status == 308


@pytest.mark.parametrize("moment", ["before the handshake", "within the handshake"])
async def test_cancelled_handshake_leaves_nothing(moment: str, authority: Authority) -> None:
    """Hazard 17."""
    arrived: list[bytes] = []

    async def half(connection: RawConnection) -> None:
        hello = await connection.receive_raw()
        arrived.append(hello)
        if moment.startswith("within"):
            # The first bytes of a server's answer: a handshake record that never ends.
            await connection.send_raw(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc")
        await connection.until_gone()

    async with serve(half) as server:
        client = client_to(server.url.replace("http:", "https:"), tls=tls_context(authority.settings))
        before = descriptors()
        for _ in range(5):
            with anyio.move_on_after(0.03):
                await client.request("GET", "/")
        with pytest.raises(httpx.ConnectTimeout):
            await client.request("GET", "/", connect_timeout=0.03)
        await eventually(lambda: server.open == 0)
        assert (descriptors(), len(arrived), client.statistics().open) == (before, 6, 0)
        await client.aclose()


@pytest.mark.parametrize("bad", ["ca", "certificate", "key"])
@pytest.mark.parametrize("content", [None, "not PEM"])
def test_tls_setting_that_cannot_be_used_is_named(bad: str, content: str | None, tmp_path: Path) -> None:
    """Q16: an error of the configuration names the field, not what is in the file."""
    leaf = trustme.CA().issue_cert("x")
    paths = {name: tmp_path / name for name in ("ca", "certificate", "key")}
    paths["ca"].write_bytes(leaf.cert_chain_pems[0].bytes())
    paths["certificate"].write_bytes(leaf.cert_chain_pems[0].bytes())
    paths["key"].write_bytes(leaf.private_key_pem.bytes())
    tls_context(TLSSettings(**paths))
    if content is None:
        paths[bad].unlink()
    else:
        paths[bad].write_text(content)
    with pytest.raises(ConfigurationError) as caught:
        tls_context(TLSSettings(**paths), field="candidates[1].tls")
    assert caught.value.field in {f"candidates[1].tls.{bad}", "candidates[1].tls.certificate"}
    assert content is not None or caught.value.field.endswith(bad)
    assert "not PEM" not in caught.value.problem or bad != "ca"


def test_contexts_are_shared_by_equal_settings(authority: Authority) -> None:
    """One TLS context for all candidates with the same settings."""
    contexts = TLSContexts()
    assert contexts.get(TLSSettings(ca=authority.settings.ca)) is contexts.get(authority.settings)
    assert contexts.get(TLSSettings()) is not contexts.get(authority.settings)
    with pytest.raises(ConfigurationError):
        tls_context(TLSSettings(key=Path("key")))
