"""Answers that follow HTTP and not the Beacon API: pages, other JSON, no JSON, redirects, pages with a status.

As in `test_node_bad_answers.py`: each call ends in its named failure, and the next one works.
"""

import gzip
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.node_calls import CALLS, TIMEOUT, Call, Visit, fails, good, say, talk, works
from tests.rawserver import answer
from tests.wire_helpers import Authority
from vc_fallback.base.errors import NodeError
from vc_fallback.node import failures
from vc_fallback.node.values.publication import Publication

pytestmark = pytest.mark.anyio

PAGE = b"<!DOCTYPE html><html><head><title>Welcome to nginx!</title></head><body>" + b"x" * 3000 + b"</body></html>"


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


every = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
reading = [call for call in CALLS.values() if not call.publishes]
every_reading = pytest.mark.parametrize("call", reading, ids=[call.method for call in reading])
every_publishing = pytest.mark.parametrize(
    "call", [CALLS["publish_attestations"], CALLS["publish_block"]], ids=["list", "block"]
)


def in_json(body: bytes, *, status: str = "200 -", more: str = "") -> bytes:
    return answer(body, status=status, headers=f"Content-Type: application/json\r\n{more}")


def plain(call: Call) -> bytes:
    """Return the body of a good answer."""
    return good(call.operation).partition(b"\r\n\r\n")[2]


def bodies(call: Call) -> dict[str, bytes]:
    """Return bodies that are no answer to a call."""
    text = plain(call)
    return {
        "page": PAGE,
        "nothing": b"",
        "blanks": b" \r\n\t",
        "null": b"null",
        "list": b"[]",
        "list of nothing": b"[null]",
        "object": b"{}",
        "text": b'"text"',
        "number": b"0",
        "flag": b"true",
        "data of nothing": b'{"data":null}',
        "list for an object": b'{"data":[]}',
        "object for a list": b'{"data":{}}',
        "text for both": b'{"data":"text"}',
        "deep list": b"[" * 50_000,
        "deep object": b'{"data":' * 6_000,
        "deep list that ends": b'{"data":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        "deep object that ends": b'{"data":' * 5_000 + b"1" + b"}" * 5_000,
        "deep member": text[:-1] + b',"new":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
        "byte order mark": b"\xef\xbb\xbf" + text,
        "UTF-16": text.decode().encode("utf-16"),
        "no UTF-8": b"\xff\xfe\xfd",
        "no UTF-8 for a name": b'{"d\xff":1}',
        "half": text[: len(text) // 2],
        "all but a byte": text[:-1],
        "twice": text + text,
        "garbage behind it": text + b"\x00",
        "garbage before it": b")]}'\n" + text,
        "comma too many": text[:-1] + b",}",
        "apostrophes": text.replace(b'"', b"'"),
        "comment": b"/* */" + text,
        "infinite": b'{"data":Infinity}',
        "no number": b'{"data":NaN}',
        "large number": b'{"data":1' + b"0" * 400 + b"}",
        "larger number": b'{"data":1' + b"0" * 40_000 + b"}",
        "gzip that nobody names": gzip.compress(text),
    }


@every_reading
async def test_what_is_no_answer_is_malformed(call: Call) -> None:
    """Case 67; the connection is kept: HTTP was in order."""
    for body in bodies(call).values():
        async with talk(call.operation, say(in_json(body))) as asked:
            await fails(asked, call, failures.Malformed, 200)
            assert asked.http.statistics().dials == 1


@every_publishing
async def test_what_a_success_says_beside_its_status_is_nobodys_concern(call: Call) -> None:
    """Rule 8: the node took it. A page of a gateway is no word of the node's."""
    async with talk(call.operation) as asked:
        for name, body in bodies(call).items():
            asked.theirs.trouble = say(in_json(body))
            if name == "page":
                with pytest.raises(failures.Malformed):
                    await call.make(asked.ours, TIMEOUT)
                continue
            assert (await call.make(asked.ours, TIMEOUT)).value is Publication.ACCEPTED
        await works(asked, call)


NUMBERS = [
    "1" + "0" * 400, '"1' + "0" * 400 + '"', "1e400", "18446744073709551616", '"18446744073709551616"', "NaN",
    '"NaN"', "Infinity", "-Infinity", '"Infinity"', "-1", '"-1"', '"+1"', '" 1"', '"1 "', '"1_0"', '"01"', "01", "1.0",
    '"1.0"', "1e3", '"1e3"', '"0x1"', '""', "null", "true", '"true"', "[]", "{}", '"٣"', '"１"', '"1\\u0000"',
]  # fmt: skip
MEMBERS = {
    "attestation_data": ("slot", "index", "epoch"),
    "attester_duties": ("validator_index", "committee_length", "slot"),
    "syncing": ("head_slot", "sync_distance"),
    "identity": ("SECONDS_PER_SLOT", "SLOTS_PER_EPOCH"),
}


def replaced(call: Call, member: str, token: str) -> bytes:
    """Return a good answer, in which a number is something else."""
    name = f'"{member}":'.encode()
    before, found, after = plain(call).replace(b'": ', b'":').partition(name)
    assert found
    ends = min(place for mark in (b",", b"}") if (place := after.find(mark)) >= 0)
    return before + found + token.encode() + after[ends:]


@pytest.mark.parametrize("method", MEMBERS)
async def test_what_is_no_number_is_malformed(method: str) -> None:
    """Q17, cases 63 and 65: in containers, in rows, and in what is configured; they are read in three ways."""
    call = CALLS[method]
    async with talk(call.operation) as asked:
        for member in MEMBERS[method]:
            for token in ("7", '"7"'):
                asked.theirs.trouble = say(in_json(replaced(call, member, token)))
                if member not in ("slot", "SLOTS_PER_EPOCH"):
                    await call.make(asked.ours, TIMEOUT)
            for token in NUMBERS:
                if member == "SLOTS_PER_EPOCH" and token == "null":
                    continue  # it is as if it were not there
                asked.theirs.trouble = say(in_json(replaced(call, member, token)))
                with pytest.raises(failures.Malformed) as caught:
                    await call.make(asked.ours, TIMEOUT)
                assert (type(caught.value), caught.value.status) == (failures.Malformed, 200), token
        await works(asked, call)


async def test_of_members_that_are_there_twice_the_last_one_holds() -> None:
    """In every reader alike, whatever the first one was."""
    call = CALLS["syncing"]
    async with talk(call.operation) as asked:
        for first in (b'"1"', b"null", b"NaN", b"[[]]"):
            body = (
                b'{"data":null,"data":{"head_slot":%b,"sync_distance":"0","is_syncing":false,"head_slot":"2"}}' % first
            )
            asked.theirs.trouble = say(in_json(body))
            assert (await call.make(asked.ours, TIMEOUT)).value.head_slot == 2
        await works(asked, call)
    call = CALLS["block"]
    async with talk(call.operation) as asked:
        body = b'{"version":"deneb","data":[],"data":{"a":"1"},"version":"fulu"}'
        asked.theirs.trouble = say(in_json(body))
        block = (await call.make(asked.ours, TIMEOUT)).value
        assert (block.version, block.body) == ("fulu", b'{"a":"1"}')
        await works(asked, call)


STATUSES: dict[int, type[NodeError]] = {
    201: failures.StatusError,
    206: failures.StatusError,
    300: failures.StatusError,
    304: failures.StatusError,
    400: failures.BadRequest,
    401: failures.Unauthorized,
    403: failures.Unauthorized,
    408: failures.NotReady,
    409: failures.SemanticError,
    413: failures.PayloadTooLarge,
    429: failures.RateLimited,
    500: failures.ServerError,
    502: failures.ServerError,
    503: failures.NotReady,
    504: failures.ServerError,
    530: failures.ServerError,
    999: failures.ServerError,
}


@every
@pytest.mark.parametrize(
    ("anyio_backend", "status"),
    # A status has its meaning however it was read.
    [("asyncio", status) for status in STATUSES] + [("trio", status) for status in (206, 304, 400, 503)],
)
async def test_status_counts_whatever_the_body_is(call: Call, status: int) -> None:
    """Case 39: pages of proxies, and everything else that is no error of the API."""
    several = [b""] if status == 304 else bodies(call).values()
    async with talk(call.operation) as asked:
        for body in list(several)[: 2 if call.method == "publish_block" else None]:
            asked.theirs.trouble = say(in_json(body, status=f"{status} -"))
            # How far a node is may be said with 206, where it is said (case 40).
            said = failures.Malformed if (call.method, status) == ("syncing", 206) else STATUSES[status]
            await fails(asked, call, said, status)


@every_reading
async def test_success_without_content_is_a_node_that_has_none_yet(call: Call) -> None:
    """Teku says so before it has a chain; with a body, which 204 may not have, the connection is not used again."""
    for body in (b"", b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"):
        async with talk(call.operation, say(b"HTTP/1.1 204 -\r\n" + (body or b"\r\n"))) as asked:
            await fails(asked, call, failures.NotReady, 204)
            assert asked.http.statistics().dials == 1 + bool(body)


@pytest.mark.parametrize("method", ["attestation_data", "produce_block", "block"])
async def test_ssz_that_is_none_is_malformed(method: str) -> None:
    """Of another length; of no length; JSON is asked for where it does not name its fork, and SSZ comes again."""
    call = CALLS[method]
    for body in (b"", b"\x00", bytes(127), bytes(129), b'{"data":{}}', PAGE):
        if method != "attestation_data" and body:
            head = "Content-Type: application/octet-stream\r\n"
            requests = 2
        else:
            head = "Content-Type: Application/Octet-Stream; charset=binary\r\nEth-Consensus-Version: fulu\r\n"
            requests = 1
        async with talk(call.operation, say(answer(body, headers=head))) as asked:
            await fails(asked, call, failures.Malformed, None if requests == 2 else 200)
            assert len(asked.theirs.visits) == requests + 1


NOWHERE = [
    "",
    "http://elsewhere.example/eth/v1/node/syncing",
    "https://elsewhere.example/",
    "//elsewhere.example/",
    "http://user:password@127.0.0.1/",
    "http://127.0.0.2:{port}/",
    "http://localhost:{port}/",
    "http://127.1:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://127.0.0.1:0/",
    "http://127.0.0.1:99999/",
    "http://127.0.0.1:{port}@elsewhere.example/",
    "ftp://127.0.0.1:{port}/",
    "javascript:alert(1)",
    "http://[",
    "http://",
    "http://\xff/",
    "data:application/json,{{}}",
    "/" + "a" * 20_000,
    "/?" + "\xff" * 20_000,
]


@every
async def test_redirect_that_may_not_be_followed_is_the_answer(call: Call) -> None:
    """Another host, another scheme, a host in other words, none at all: no request leaves with our secrets."""
    async with talk(call.operation) as asked:
        for location in NOWHERE if call.method != "publish_block" else NOWHERE[:3]:
            where = location.format(port=asked.server.port).encode("latin-1")
            for status in (307, 308):
                data = b"HTTP/1.1 %d -\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % (status, where)
                asked.theirs.trouble = say(data)
                await fails(asked, call, failures.StatusError, status)
        assert asked.http.statistics().dials == len(asked.server.connections) == 1


@every
@pytest.mark.parametrize("status", [301, 302, 303, 305])
async def test_redirect_that_would_make_another_request_of_it_is_the_answer(call: Call, status: int) -> None:
    """Q16: to the same host too."""
    data = answer(PAGE, status=f"{status} -", headers="Location: /eth/v1/node/syncing\r\n")
    async with talk(call.operation, say(data)) as asked:
        await fails(asked, call, failures.StatusError, status)


@every
@pytest.mark.parametrize("status", [307, 308])
async def test_redirects_in_a_circle_end(call: Call, status: int) -> None:
    """Hazard 5: after three of them, and each with the body."""
    taken: list[int] = []

    async def trouble(visit: Visit) -> None:
        taken.append(visit.length)
        target = visit.request.target.encode()
        await visit.say(b"HTTP/1.1 %d -\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % (status, target))

    async with talk(call.operation, trouble) as asked:
        await fails(asked, call, failures.StatusError, status)
        assert len(taken) == 4
        assert len(set(taken)) == 1


@every
async def test_redirect_on_the_same_host_keeps_method_headers_and_body(call: Call) -> None:
    """Q16: with all of it, wherever on the host."""
    seen: list[Visit] = []

    async def trouble(visit: Visit) -> None:
        seen.append(visit)
        first = visit.request.target
        if len(seen) == 2:
            assert visit.length == seen[0].length
            await visit.say(good(call.operation))
            return
        where = f"{first}{'&' if '?' in first else '?'}moved=1"
        await visit.say(answer(status="307 -", headers=f"Location: {where}\r\n"))

    async with talk(call.operation, trouble) as asked:
        await call.make(asked.ours, TIMEOUT)
        first, second = (visit.request for visit in seen)
        assert second.target.endswith("moved=1")
        assert (second.method, second.headers) == (first.method, first.headers)
        await works(asked, call)


@every
async def test_redirect_from_https_to_http_is_the_answer(call: Call, tmp_path: Path) -> None:
    """Q16: secrets are not sent in the clear."""

    async def trouble(visit: Visit) -> None:
        where = f"http://{visit.request.headers['host']}{visit.request.target}"
        await visit.say(answer(status="308 -", headers=f"Location: {where}\r\n"))

    async with talk(call.operation, trouble, tls=Authority(tmp_path)) as asked:
        await fails(asked, call, failures.StatusError, 308)
        assert asked.http.statistics().dials == 1
