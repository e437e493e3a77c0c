"""Secrets of a node that repeats them in all it says: none in an error, a log, a lack, or the command (rule 11)."""

import base64
import html
import itertools
import json
import logging
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import quote, quote_plus

import anyio
import pytest

from tests.conformance.openapi_calls import Row
from tests.conformance.openapi_rows import plain_calls
from tests.processes import ROOT
from tests.rawserver import RawConnection, RawServer, Request, answer, serve
from vc_fallback.base.errors import NodeError
from vc_fallback.base.signals import Signal
from vc_fallback.config import FallbackConfig
from vc_fallback.heads.monitor import HeadMonitor
from vc_fallback.node import failures
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.command import main
from vc_fallback.observe.log import FailureLog


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Real time: the command is another process."""
    backend: str = request.param
    return backend


USER, PASSWORD = "us3r-name", "p4ss/w@rd&<'x y\">"
PATH, ODD_PATH, QUERY = "t0kenpath", "t0k/en+p th", "t0kenquery=="
KEY, BEARER = "k3y+with/signs==", "b3arer.t0ken-value_1"
OF_URL = (USER, PASSWORD, f"{USER}:{PASSWORD}", PATH, ODD_PATH, QUERY)
SECRETS = (*OF_URL, KEY, BEARER)
HEADERS = [("X-Api-Key", KEY), ("X-Auth", f"Bearer {BEARER}"), ("Cookie", f"session={BEARER}; other=1")]
TARGET = f"/{PATH}/{quote(ODD_PATH, safe='')}?key={quote(QUERY, safe='')}"


def url_of(server: RawServer) -> str:
    user = f"{quote(USER, safe='')}:{quote(PASSWORD, safe='')}@"
    return server.url.replace("http://", f"http://{user}") + TARGET


def forms(secret: str) -> Iterator[str]:
    """Yield a secret in all the ways in which a node may write it."""
    yield secret
    yield quote(secret, safe="")
    yield quote(secret)
    yield re.sub("%..", lambda match: match[0].lower(), quote(secret, safe=""))
    yield quote_plus(secret)
    yield html.escape(secret)
    yield html.escape(secret, quote=False)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret)[1:-1].replace("/", "\\/")
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(secret.encode()).decode()
        yield encode(secret.encode()).decode().rstrip("=")


FORMS = list(dict.fromkeys(form for secret in SECRETS for form in forms(secret)))
FORMS_OF_URL = list(dict.fromkeys(form for secret in OF_URL for form in forms(secret)))


def shown(text: str, secrets: Sequence[str] = tuple(FORMS)) -> list[str]:
    """Return the secrets that are in a text, in whatever form."""
    return [form for form in secrets if form in text]


class Echo:
    """A node that says in every answer some of what it was sent, all of it by and by."""

    def __init__(self, status: int, reply: "Reply", said: Sequence[str] = tuple(FORMS)) -> None:
        self.status = status
        self.requests: list[Request] = []
        self.some = itertools.cycle([said[start : start + 3] for start in range(0, len(said), 3)])
        self._reply = reply

    def words(self) -> str:
        """Return words that no pattern takes for a credential."""
        return " ".join(f"saw {form}, and" for form in next(self.some))

    async def handle(self, connection: RawConnection) -> None:
        while True:
            self.requests.append(await connection.request())
            await connection.send(self._reply(self, self.requests[-1]))


def _json(echo: Echo, value: object, more: str = "") -> bytes:
    body = json.dumps(value).encode()
    return answer(body, status=f"{echo.status} -", headers=f"Content-Type: application/json\r\n{more}")


def _message(echo: Echo, request: Request) -> bytes:
    return _json(echo, {"code": echo.status, "message": echo.words(), "stacktraces": [echo.words()]})


def _nested(echo: Echo, request: Request) -> bytes:
    return _json(echo, {"error": {"code": echo.status, "message": echo.words()}})


def _complaints(echo: Echo, request: Request) -> bytes:
    return _json(echo, [{"dataPath": echo.words(), "message": echo.words()}])


def _items(echo: Echo, request: Request) -> bytes:
    listed = [{"index": n, "message": echo.words()} for n in range(3)]
    return _json(echo, {"code": echo.status, "message": echo.words(), "failures": listed})


def _page(echo: Echo, request: Request) -> bytes:
    return answer(f"<html><title>{echo.words()}</title></html>".encode(), status=f"{echo.status} -")


def _text(echo: Echo, request: Request) -> bytes:
    return answer(("x" * 250 + " " + echo.words()).encode(), status=f"{echo.status} -")


def _long(echo: Echo, request: Request) -> bytes:
    """So long that it is cut, somewhere in a secret."""
    words = (f"{echo.words()} " for _ in range(200))
    return answer(b"".join(word.encode() for word in words), status=f"{echo.status} -")


def _escaped(echo: Echo, request: Request) -> bytes:
    """JSON that is cut off, so that it is shown as it stands."""
    text = json.dumps({"message": echo.words()}).replace("/", "\\/")
    return answer(text[:-1].encode(), status=f"{echo.status} -")


def _headers(echo: Echo, request: Request) -> bytes:
    words = next(echo.some)[0].encode("latin-1", "replace").replace(b"\n", b" ")
    head = b"HTTP/1.1 %d -\r\nContent-Length: 4\r\n" % echo.status
    names = [b"Content-Type", b"Eth-Consensus-Version", b"Eth-Execution-Payload-Blinded", b"Retry-After", b"Location"]
    return head + b"".join(b"%b: %b\r\n" % (name, words) for name in names) + b"\r\nnull"


def _coding(echo: Echo, request: Request) -> bytes:
    return answer(b"x", status=f"{echo.status} -", headers=f"Content-Encoding: {PATH}\r\n")


def _no_http(echo: Echo, request: Request) -> bytes:
    return f"HTTP/1.1 {echo.words()}\r\n\r\n".encode()


def _bad_header(echo: Echo, request: Request) -> bytes:
    return f"HTTP/1.1 {echo.status} -\r\n{PATH} : {BEARER}\r\n\r\n".encode()


def _members(echo: Echo, request: Request) -> bytes:
    """Its names and values are secrets."""
    value = dict.fromkeys(SECRETS, echo.words())
    return _json(echo, {"data": [value], "dependent_root": BEARER, "version": PATH, **value})


def _redirect(echo: Echo, request: Request) -> bytes:
    return answer(status="307 -", headers=f"Location: http://{quote(USER)}:{KEY}@elsewhere.example/{PATH}\r\n")


Reply = Callable[[Echo, Request], bytes]
KINDS: dict[str, Reply] = {
    function.__name__.strip("_"): function
    for function in (
        _message, _nested, _complaints, _items, _page, _text, _long, _escaped, _headers, _coding, _no_http,
        _bad_header, _members, _redirect,
    )
}  # fmt: skip
STATUSES = {"message": (200, 202, 400, 404, 405, 406, 415, 429, 500, 501, 503), "items": (400,), "long": (500,)}
WAYS = [(kind, status) for kind in KINDS for status in STATUSES.get(kind, (200, 400, 500))]


def said(error: BaseException) -> str:
    """Return all that can be read of an exception."""
    texts = [str(error), repr(error), repr(vars(error)), *traceback.format_exception(error)]
    if isinstance(error, failures.BadRequest):
        texts += map(repr, error.failures)
    return "\n".join(texts)


async def failure_of(node: BeaconNode, row: Row) -> NodeError | None:
    try:
        await getattr(node, row.method)(*row.args, **row.kwargs)
    except NodeError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("anyio_backend", "kind", "status"),
    [("asyncio", *way) for way in WAYS]
    # Words are made of an answer in the same way, however it was read.
    + [("trio", *way) for way in WAYS if way[1] == max(STATUSES.get(way[0], (500,)))],
)
@pytest.mark.anyio
async def test_no_secret_in_what_is_said_of_a_call(kind: str, status: int, caplog: pytest.LogCaptureFixture) -> None:
    """Of any method, whatever it is that the node repeats; every logger is heard at its most talkative."""
    caplog.set_level(logging.DEBUG)
    echo = Echo(status, KINDS[kind])
    failed = 0
    async with serve(echo.handle) as server:
        for row in plain_calls():
            async with BeaconNode.at(url_of(server), name="n1", headers=HEADERS) as node:
                error = await failure_of(node, row)
                failed += error is not None
                texts = "" if error is None else said(error)
                texts += repr(node.capabilities.lacks(None)) + repr(node.http.statistics()) + repr(node)
                assert shown(texts) == [], (row.label, texts)
    assert failed or status < 300
    request = echo.requests[0]
    assert request.headers["authorization"] == f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"
    assert request.headers["x-auth"] == HEADERS[1][1]
    assert request.target.startswith(TARGET.partition("?")[0])
    assert shown(caplog.text) == []


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["well", "message", "page", "text", "headers", "no_http", "redirect"])
async def test_no_secret_in_signals(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """Of the node's stream, its checks and its chain, as the observers hear of them."""
    caplog.set_level(logging.DEBUG)
    echo = Echo(200 if kind == "well" else 400, {**KINDS, "well": _well}[kind])
    signals: list[Signal] = []
    async with serve(echo.handle) as server:
        candidate = {"url": url_of(server), "name": "n1", "headers": dict(HEADERS)}
        config = FallbackConfig.of({"candidates": [candidate]})
        async with HeadMonitor(config, observers=[signals.append, FailureLog()]) as monitor:
            await anyio.sleep(0.5)
            texts = [*map(repr, signals), repr(monitor.statistics()), repr(monitor.candidates.current), caplog.text]
    assert signals
    assert len(echo.requests) > 1
    assert shown("\n".join(texts)) == []


_BAD = f"http://{quote(USER)}:{KEY}@127.0.0.1/{PATH}"
_GENESIS = {"genesis_time": "1606824023", "genesis_validators_root": "0x" + "00" * 32}


def _well(echo: Echo, request: Request) -> bytes:
    """Answer as the API has it, with secrets wherever there may be a text of the node's own."""
    some = next(echo.some)
    words, word = " ".join(some), some[0]
    client = {"code": words, "name": words, "version": words, "commit": words}
    identity = {"peer_id": words, "enr": words, "p2p_addresses": [words], "discovery_addresses": [], "metadata": {}}
    name = PATH.upper()
    spec = {
        "SECONDS_PER_SLOT": "12",
        "PRESET_BASE": words,
        f"{name}_FORK_EPOCH": "1",
        f"{name}_FORK_VERSION": "0x00000001",
    }
    fork = {"previous_version": "0x00000000", "current_version": "0x00000001", "epoch": "1"}
    key, root = "0x" + "ab" * 48, "0x" + "ab" * 32
    validator = {"pubkey": key, "withdrawal_credentials": root, "effective_balance": "1", "slashed": False}
    validator |= dict.fromkeys(
        ["activation_eligibility_epoch", "activation_epoch", "exit_epoch", "withdrawable_epoch"], "1"
    )
    found: dict[str, object] = {
        "node/version": {"version": f"Lighthouse/{words}", "beacon_node": client, "execution_client": client},
        "node/identity": identity,
        "beacon/genesis": _GENESIS,
        "config/spec": spec,
        "config/fork_schedule": [fork],
        "states/head/fork": fork,
        "states/head/validators/0": {"index": "0", "balance": "1", "status": "b3arer", "validator": validator},
        "blocks/head": {"message": words},
    }
    data = next((value for path, value in found.items() if request.target.partition("?")[0].endswith(path)), None)
    if data is None:
        return _message(echo, request)
    return _json(echo, {"version": PATH, "data": data}, f"Eth-Consensus-Version: {word.strip()}\r\n")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kind", ["well", "message", "page", "headers", "members", "no_http"])
@pytest.mark.anyio
async def test_the_command_shows_no_secret(kind: str) -> None:
    """`python -m vc_fallback.node URL`: nothing of its URL on stdout or stderr, whatever the node says."""
    replies = {**KINDS, "well": _well}[kind]
    echo = Echo(200 if kind in ("well", "headers", "members") else 500, replies, FORMS_OF_URL)
    async with serve(echo.handle) as server:
        command = [sys.executable, "-m", "vc_fallback.node", url_of(server), "--timeout", "20"]
        done = await anyio.run_process(command, check=False, cwd=ROOT)
    text = (done.stdout + done.stderr).decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert text.startswith(f"node         {server.url}/…\n")
    assert len(text.splitlines()) > 20
    assert all(line.isprintable() for line in text.splitlines())
    assert shown(text, FORMS_OF_URL) == []
    assert PATH.upper() not in text.upper()


@pytest.mark.parametrize(
    "arguments",
    [
        [_BAD, _BAD],
        [_BAD, "--timeout", _BAD],
        [_BAD, f"--timeout={_BAD}"],
        [_BAD, "--timeout", "inf"],
        [_BAD, f"--{PATH}"],
        [_BAD, f"--time={PATH}"],
        [_BAD, f"--produce-block={PATH}"],
        [_BAD.replace("http", "ftp")],
        [f"{_BAD}#{BEARER}"],
        [f"{_BAD} {BEARER}"],
        [f"http://{BEARER}:99999/"],
    ],
)
def test_the_command_repeats_nothing_of_a_bad_command_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A second URL, a URL in the place of a number, an option that is none, a URL that is none."""
    assert main(arguments) == 2
    written = capsys.readouterr()
    assert (written.out, written.err.count("\n")) == ("", 1)
    assert shown(written.err) == []
