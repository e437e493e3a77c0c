"""Answers that come late, a byte at a time, or never: each call takes no more than its time, and the next one works.

As in `test_node_bad_answers.py`, in virtual time: what is sent fits into the buffers of sockets.
"""

from dataclasses import replace
from typing import Any

import anyio
import pytest

from tests.conformance.node_calls import CALLS, TIMEOUT, Call, Trouble, Visit, fails, good, say, talk, works
from tests.rawserver import answer
from vc_fallback.node import failures
from vc_fallback.node.values.encodings import Encodings

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Real sockets, virtual time: a byte a second takes no time."""
    return virtual_time_backend


_SMALL = replace(CALLS["publish_block"], args=(Encodings(ssz=bytes(1024)), "fulu"))
every = pytest.mark.parametrize("call", [*list(CALLS.values())[:-1], _SMALL], ids=CALLS)


def drip(data: bytes, *, first: bytes = b"", size: int = 1, pause: float = 1.0) -> Trouble:
    """Send a byte a second, or so."""

    async def trouble(visit: Visit) -> None:
        await visit.say(first)
        for start in range(0, len(data), size):
            await anyio.sleep(pause)
            await visit.connection.send(data[start : start + size])

    return trouble


async def _silence(visit: Visit) -> None:
    await visit.read()
    await visit.connection.until_gone()


SLOW: dict[str, Trouble] = {
    "silence": _silence,
    "half a head": say(OK),
    "less than announced": say(OK + b"Content-Length: 20\r\n\r\n{}"),
    "no last chunk": say(CHUNKED + b"2\r\n{}\r\n"),
    "head a byte a second": drip(answer(b" " * 100)),
    "body a byte a second": drip(b" " * 100, first=OK + b"Content-Length: 100\r\n\r\n"),
    "body without an end a byte a second": drip(b" " * 100, first=OK + b"\r\n"),
    "chunks a byte a second": drip(b"1\r\n \r\n" * 100, first=CHUNKED),
    "informational heads": drip(b"HTTP/1.1 102 Processing\r\n\r\n" * 10, size=27),
}


@every
@pytest.mark.parametrize("trouble", SLOW.values(), ids=SLOW)
async def test_answer_that_does_not_end_costs_the_time_of_the_call(call: Call, trouble: Trouble) -> None:
    """Rule 6: and not a moment more, however many bytes come."""
    async with talk(call.operation, trouble) as asked:
        began = anyio.current_time()
        found = await fails(asked, call, failures.RequestTimeout)
        assert f"{TIMEOUT:g} s" in found.problem
        assert anyio.current_time() - began >= TIMEOUT


@every
async def test_slow_answer_that_ends_in_time_is_an_answer(call: Call) -> None:
    """In pieces it is as good as all at once."""
    data = good(call.operation)
    async with talk(call.operation, drip(data, size=1 + len(data) // 100, pause=0.02)) as asked:
        began = anyio.current_time()
        await call.make(asked.ours, TIMEOUT)
        assert anyio.current_time() - began > 0.5
        await works(asked, call)


@every
@pytest.mark.parametrize("late", [False, True])
async def test_second_answer_is_nobodys(call: Call, late: bool) -> None:
    """Hazard 11: neither the next call's, be it at once, nor this one's."""
    first, second = good(call.operation), answer(b"<html>", status="500 -")

    async def trouble(visit: Visit) -> None:
        await visit.say(first if late else first + second)
        if late:
            await anyio.sleep(0.01)
            await visit.connection.send(second)

    async with talk(call.operation, trouble) as asked:
        await call.make(asked.ours, TIMEOUT)
        if late:
            await anyio.sleep(0.02)
        await works(asked, call)
