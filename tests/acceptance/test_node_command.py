"""`python -m vc_fallback.node URL`: what it says of a node, and with which status it ends."""

import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from subprocess import PIPE

import anyio
import pytest
from anyio.abc import Process

from tests.processes import ROOT
from tests.rawserver import RawConnection, replies, serve
from vc_fallback.base.clock import Clock
from vc_fallback.node.command import main
from vc_fallback.node.routes import ROUTES
from vc_fallback.testing import Answer, SimulatedChain, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

COMMAND = [sys.executable, "-m", "vc_fallback.node"]
_LINE = re.compile(r"(GET|POST) (/eth/\S+) +(\d+\.\d) ms  (.*)")
ASKS_TO_READ = {
    route
    for route in ROUTES
    if route.method == "GET" or "{state_id}" in route.template or "duties" in route.template or "live" in route.template
} - {route for route in ROUTES if route.until}
NOT_ASKED = {
    # Older routes, what is made, and what only its maker has.
    *("getStateValidators", "getStateValidatorBalances", "getProposerDuties", "eventstream", "produceBlockV3"),
    *("produceBlockV4", "getExecutionPayloadBid", "getExecutionPayloadEnvelope"),
}


@pytest.fixture
def anyio_backend() -> str:
    """Real time: the command is another process. What serves it is not under test, so that one event loop is enough."""
    return "asyncio"


class Said:
    """What the command wrote, taken apart."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        self.err = err
        self.lines = out.splitlines()
        head = self.lines[: self.lines.index("")] if "" in self.lines else []
        self.about: dict[str, list[str]] = {}
        name = ""
        for line in head:
            name = line[:13].strip() or name
            self.about.setdefault(name, []).append(line[13:])
        self.asked: dict[str, str] = {}
        self.times: list[float] = []
        for line in self.lines[len(head) + 1 :]:
            method, template, time, words = line_of(line)
            self.asked[f"{method} {template}"] = words
            self.times.append(time)


def line_of(line: str) -> tuple[str, str, float, str]:
    found = _LINE.fullmatch(line)
    assert found is not None, line
    return found[1], found[2], float(found[3]), found[4]


async def said(*arguments: str) -> Said:
    """Run the command to its end."""
    done = await anyio.run_process([*COMMAND, *arguments], check=False, cwd=ROOT)
    assert isinstance(done.returncode, int)
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


async def test_a_node_that_is_well() -> None:
    """Every reading endpoint has its line with a time; nothing is made, and nothing published."""
    async with simulated_devnet(1, clock=Clock(), gloas_epoch=0) as net:
        node = net[0]
        told = await said(node.url)
        paths = {request.path for request in node.requests}
        assert not any(path.endswith("/blocks") or "produce" in path or "pool" in path for path in paths)
        assert node.connections == 0
    assert (told.status, told.err) == (0, "")
    assert told.about["node"] == [node.url]
    assert told.about["version"] == ["Lighthouse/v8.0.0-simulated"]
    chain = net.chain.slots.chain
    genesis, shape = told.about["chain"]
    assert genesis == f"genesis {chain.genesis_time:.0f}, validators root 0x{chain.genesis_validators_root.hex()}"
    assert shape == "mainnet preset, slots of 12 s, 32 an epoch"
    assert [line.rpartition(" ")[2] for line in told.about["forks"]] == [fork.name for fork in chain.forks]
    assert re.fullmatch(r"head slot \d+, (synced|\d+ slots? behind)", told.about["sync"][0])
    assert told.about["peers"] == ["50"]
    assert "lacks" not in told.about
    templates = {f"{route.method} {route.template}" for route in ASKS_TO_READ if route.operation not in NOT_ASKED}
    assert told.asked.keys() == templates
    assert all(0 < time < 10_000 for time in told.times)
    failed = {name for name, words in told.asked.items() if words.startswith("! ")}
    # Nobody attests here, so there is nothing to aggregate.
    assert failed == {
        "GET /eth/v2/validator/aggregate_attestation",
        "GET /eth/v1/validator/sync_committee_contribution",
    }


@pytest.mark.parametrize(("gloas", "version"), [(None, 3), (0, 4)])
async def test_a_block_is_made_only_where_it_is_asked_for(gloas: int | None, version: int) -> None:
    """`--produce-block`, by the route of the fork."""
    async with simulated_devnet(1, clock=Clock(), gloas_epoch=gloas) as net:
        without, with_it = await said(net[0].url), await said(net[0].url, "--produce-block")
    assert with_it.status == 0
    route = f"GET /eth/v{version}/validator/blocks/{{slot}}"
    assert set(with_it.asked) - set(without.asked) == {route}
    assert re.fullmatch(r"(fulu|gloas), [\d,]+ bytes of SSZ", with_it.asked[route])


async def test_what_a_node_lacks() -> None:
    """Q13: older routes stand in, which takes two requests; and what there is no other way to."""
    missing = {"postStateValidators", "getProposerDutiesV2", "getLiveness", "getPeerCount"}
    chain = SimulatedChain(clock=Clock())
    async with SimulatedNode(chain, routes_missing=missing, ssz=False) as node:
        told = await said(node.url)
    assert told.status == 0
    lacks = {line.partition(": ")[0] for line in told.about["lacks"]}
    assert lacks == missing
    assert "peers" not in told.about
    assert told.asked["POST /eth/v1/beacon/states/{state_id}/validators"] == "1 found (2 requests)"
    assert told.asked["GET /eth/v2/validator/duties/proposer/{epoch}"] == "32 duties (2 requests)"
    assert told.asked["GET /eth/v1/node/peer_count"].startswith("! UnsupportedEndpoint: 404 ")
    assert told.asked["GET /eth/v2/beacon/blocks/{block_id}"].endswith(" of JSON")


BROKEN: Mapping[str, tuple[Answer, str]] = {
    "/eth/v1/node/version": (Answer(500, '{"code":500,"message":"no version"}'), "! ServerError: 500 no version"),
    "/eth/v1/node/syncing": (Answer(200, "<html>OK</html>", content_type="text/html"), "! Malformed: "),
    "/eth/v1/node/identity": (Answer(502, "<h1>Bad Gateway</h1>", content_type="text/html"), "! ServerError: 502 Bad"),
    "/eth/v1/node/peer_count": (Answer(200, "null"), "! Malformed: "),
    "/eth/v1/config/fork_schedule": (Answer(503, ""), "! NotReady: 503"),
    "/eth/v1/validator/attestation_data": (Answer(401, "\x1b[2Jred\nline"), "! Unauthorized: 401 \ufffd[2Jred line"),
    "/eth/v2/beacon/blocks/head": (Answer(200, ""), "! Malformed: "),
}


async def test_a_node_that_is_half_broken() -> None:
    """Each endpoint for itself; it was reached."""
    async with simulated_devnet(1, clock=Clock()) as net:
        for path, (answer, _) in BROKEN.items():
            net[0].inject(path, answer)
        told = await said(net[0].url)
    assert (told.status, told.err) == (0, "")
    assert "version" not in told.about
    assert told.about["sync"][0].startswith("Malformed: ")
    for path, (_, words) in BROKEN.items():
        assert told.asked[f"GET {path.replace('head', '{block_id}')}"].startswith(words), path
    assert re.fullmatch(r"slot \d+", told.asked["GET /eth/v1/beacon/headers/{block_id}"])


async def test_a_node_that_says_nothing_but_pages() -> None:
    """It is no beacon node; it is there."""
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\nContent-Type: text/html\r\n\r\n<html>OK</html>"
    async with serve(replies(page)) as server:
        told = await said(server.url)
    assert (told.status, told.err) == (0, "")
    assert told.about.keys() == {"node", "sync"}
    assert len(told.asked) > 20
    healthy = told.asked.pop("GET /eth/v1/node/health")
    assert healthy == "200"
    assert {words.partition(":")[0] for words in told.asked.values()} == {"! Malformed"}


async def test_a_node_that_cannot_be_reached() -> None:
    """Exit status 1, and the one line says why."""
    async with serve(replies()) as server:
        gone = server.url
    told = await said(gone)
    assert (told.status, told.err) == (1, "")
    assert told.asked["GET /eth/v1/node/version"].startswith("! ConnectError: ")
    assert len(told.asked) == 1
    told = await said("http://name.invalid:5052")
    assert (told.status, told.err) == (1, "")
    async with serve(_silent) as server:
        told = await said(server.url, "--timeout", "0.2")
    assert (told.status, told.err) == (1, "")
    assert told.asked == {"GET /eth/v1/node/version": "! RequestTimeout: no answer within 0.2 s"}


async def _silent(connection: RawConnection) -> None:
    await connection.until_gone()


@pytest.mark.parametrize(
    "arguments", [[], ["ftp://node"], ["http://"], ["http://node", "--timeout", "0"], ["http://node", "x"], ["--what"]]
)
def test_a_bad_command_line(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, and one line."""
    assert main(arguments) == 2
    written = capfd.readouterr()
    assert written.out == ""
    assert re.fullmatch(r"(arguments|URL|--timeout): [^\n]{10,}\n", written.err)


async def test_a_process_with_a_bad_command_line() -> None:
    """The same, as a shell sees it."""
    done = await said("http://node", "--timeout", "0")
    assert (done.status, done.lines) == (2, [])
    assert re.fullmatch(r"--timeout: [^\n]{10,}\n", done.err)


async def test_help() -> None:
    """Which says what it does."""
    done = await anyio.run_process([*COMMAND, "--help"], cwd=ROOT)
    assert b"--produce-block" in done.stdout


async def test_ctrl_c_ends_it_without_a_word() -> None:
    """While it waits for the node; a shell calls the status 130."""
    asked = anyio.Event()

    async def handler(connection: RawConnection) -> None:
        await connection.request()
        asked.set()
        await connection.until_gone()

    async with serve(handler) as server, running(COMMAND, server.url) as process:
        await asked.wait()
        process.send_signal(signal.SIGINT)
        assert (await process.wait(), await errors(process)) == (-signal.SIGINT, "")


async def test_ctrl_c_ends_it_while_its_modules_load() -> None:
    """As the interpreter lists them."""
    async with running([COMMAND[0], "-X", "importtime", *COMMAND[1:]], "http://127.0.0.1:9") as process:
        assert process.stderr is not None
        async for part in process.stderr:
            if b"anyio" in part:
                break
        process.send_signal(signal.SIGINT)
        assert await process.wait() == -signal.SIGINT
        assert "Traceback" not in await errors(process)


async def test_reader_that_has_enough() -> None:
    """`python -m vc_fallback.node URL | head -1`."""
    async with simulated_devnet(1, clock=Clock()) as net, running(COMMAND, net[0].url) as process:
        assert process.stdout is not None
        await process.stdout.aclose()
        assert (await errors(process), await process.wait()) == ("", 0)


@asynccontextmanager
async def running(command: Sequence[str], url: str) -> AsyncIterator[Process]:
    """Start the command; in a minute it is to have ended."""
    with anyio.fail_after(60):
        async with await anyio.open_process([*command, url], cwd=ROOT, stdout=PIPE, stderr=PIPE) as process:
            yield process


async def errors(process: Process) -> str:
    """Return the rest of stderr."""
    assert process.stderr is not None
    return b"".join([part async for part in process.stderr]).decode()
