"""Dialling: names to addresses, addresses to a connected socket, staggered, clean under cancellation at any point."""

import contextlib
import errno
import math
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from typing import Any

import anyio
import anyio.to_thread
import httpx

from vc_fallback.wire.errors import TLSError
from vc_fallback.wire.tls import TLSSession

Address = tuple[socket.AddressFamily, tuple[Any, ...]]
"""Address family and socket address."""

Resolver = Callable[[str, int], Awaitable[Sequence[Address]]]
"""Host and port to addresses, in order of preference; raises `OSError` when the name is not known."""

MOST_QUESTIONS = 2
"""Questions about one name that may be under way at a time."""

STAGGER = 0.25
"""Seconds until the next address is tried as well (RFC 8305, 8)."""

_IN_PROGRESS = (errno.EINPROGRESS, errno.EWOULDBLOCK, getattr(errno, "WSAEWOULDBLOCK", errno.EWOULDBLOCK))
_READ = 64 * 1024

# An idle stream is probed after half a minute; a peer that vanished is found after a minute and a half (Lodestar and
# Nimbus send no comments, so on a stream of rare topics this is the only sign of life, H2).
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPALIVE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))


async def resolve(host: str, port: int, resolver: Resolver | None = None) -> list[Address]:
    """Return the addresses of a host, families alternating. IP literals ask nobody.

    :raises httpx.ConnectError: when the name has no address (yet).
    """
    literal = _literal(host, port)
    if literal is not None:
        return [literal]
    try:
        found = await (resolver or SystemResolver())(host, port)
    except OSError as error:
        raise httpx.ConnectError(f"name cannot be resolved ({error.strerror or type(error).__name__})") from None
    if not found:
        raise httpx.ConnectError("name has no address")
    return _alternate(found)


class SystemResolver:
    """Asks the system, in worker threads of the event loop's own making.

    The system can hang for half a minute over a name, and nobody can take a question back: whoever waits for it goes,
    and its thread stays. So there are at most two questions about one name at a time, and a name that hangs costs only
    itself (rule 4): asyncio's own threads, of which a small machine has six, are not used for it.
    """

    def __init__(self) -> None:
        self._under_way: dict[str, deque[None]] = {}
        self._places = anyio.CapacityLimiter(math.inf)

    async def __call__(self, host: str, port: int) -> list[Address]:
        """Return the addresses of a host.

        :raises OSError: when the name is not known, or it hangs.
        """
        under_way = self._under_way.setdefault(host, deque())
        if len(under_way) >= MOST_QUESTIONS:
            raise TimeoutError(errno.ETIMEDOUT, "it is still being looked up")
        under_way.append(None)
        # Whoever takes it first, the thread that asks or who gives up before one does, decides whether it is asked.
        turn = deque([None])

        def ask() -> list[Address]:
            try:
                turn.pop()
            except IndexError:
                return []
            try:
                found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            finally:
                under_way.pop()
            return [(socket.AddressFamily(family), address) for family, _, _, _, address in found]

        try:
            return await anyio.to_thread.run_sync(ask, abandon_on_cancel=True, limiter=self._places)
        finally:
            with contextlib.suppress(IndexError):
                turn.pop()
                # No thread has begun to ask: it is no question that is under way, and would stay one for ever.
                under_way.pop()


async def dial(addresses: Sequence[Address], *, stagger: float = STAGGER) -> socket.socket:
    """Connect to the first address that lets us: the next is tried when one fails, and as well after the stagger.

    The socket is the caller's to close. Losers are closed before this returns, as is everything when it is cancelled.

    :raises httpx.ConnectError: when none did.
    """
    if len(addresses) == 1:
        try:
            return await _connect(addresses[0])
        except OSError as error:
            raise httpx.ConnectError(_text([error])) from None
    won: list[socket.socket] = []
    failures: list[OSError] = []

    async def attempt(address: Address, over: anyio.Event) -> None:
        try:
            connected = await _connect(address)
        except OSError as error:
            failures.append(error)
        else:
            if won:
                connected.close()
            else:
                won.append(connected)
                race.cancel_scope.cancel()
        over.set()

    try:
        async with anyio.create_task_group() as race:
            for address in addresses:
                over = anyio.Event()
                race.start_soon(attempt, address, over)
                with anyio.move_on_after(stagger):
                    await over.wait()
    except BaseException:
        for connected in won:
            connected.close()
        raise
    if not won:
        raise httpx.ConnectError(_text(failures))
    return won[0]


async def handshake(connected: socket.socket, context: ssl.SSLContext, host: str) -> TLSSession:
    """Agree on TLS over a connected socket, which stays the caller's to close.

    :raises TLSError: when that fails; its subclass `CertificateError` when we do not trust the peer.
    """
    session = TLSSession(context, host)
    over = False
    while not over:
        try:
            over = session.handshake()
        except TLSError:
            await _send(connected, session.outgoing())  # the alert that tells the peer why
            raise
        await _send(connected, session.outgoing())
        if not over:
            session.receive(await _receive(connected))
    return session


async def _connect(address: Address) -> socket.socket:
    family, where = address
    connected = socket.socket(family, socket.SOCK_STREAM)
    try:
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            if hasattr(socket, name):
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        problem = connected.connect_ex(where)
        if problem in _IN_PROGRESS:
            await anyio.wait_writable(connected)
            problem = connected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if problem:
            raise OSError(problem, errno.errorcode.get(problem, "unknown error"))
    except BaseException:
        connected.close()
        raise
    return connected


async def _send(connected: socket.socket, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[connected.send(rest) :]
        except (BlockingIOError, InterruptedError):
            await anyio.wait_writable(connected)
        except OSError:
            return  # the reading side says what happened


async def _receive(connected: socket.socket) -> bytes:
    while True:
        await anyio.wait_readable(connected)
        try:
            return connected.recv(_READ)
        except (BlockingIOError, InterruptedError):
            continue
        except OSError as error:
            raise TLSError(f"connection lost in the TLS handshake ({_name(error)})") from None


def _literal(host: str, port: int) -> Address | None:
    bare, _, zone = host.partition("%")
    try:
        version = ip_address(bare).version
    except ValueError:
        return None
    if version == 4:
        return socket.AF_INET, (host, port)
    if not zone:
        return socket.AF_INET6, (host, port, 0, 0)
    try:
        return socket.AF_INET6, (bare, port, 0, int(zone) if zone.isdigit() else socket.if_nametoindex(zone))
    except OSError:
        raise httpx.ConnectError("the zone of the IPv6 address is not known here") from None


def _alternate(addresses: Sequence[Address]) -> list[Address]:
    first = addresses[0][0]
    one = [address for address in addresses if address[0] == first]
    other = [address for address in addresses if address[0] != first]
    mixed = [address for pair in zip(one, other, strict=False) for address in pair]
    shorter = min(len(one), len(other))
    return mixed + one[shorter:] + other[shorter:]


def _text(failures: Sequence[OSError]) -> str:
    names = dict.fromkeys(_name(failure) for failure in failures)
    return f"cannot connect ({', '.join(names)})"


def _name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, "unknown error")
