"""The devnet's scripts where no beacon node is needed: installing, failing, and whom they kill."""

# ruff: noqa: S603, S607 - the processes started here are our own script and `sleep`

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts.lodestar import processes
from scripts.lodestar.devnet import Devnet
from scripts.lodestar.errors import DevnetError, MisuseError
from scripts.lodestar.links import wanted_links
from scripts.lodestar.modules import ensure_modules
from scripts.lodestar.processes import ProcessId
from scripts.lodestar.state import State, free_ports, load

ROOT = Path(__file__).parents[2]
DEVNET = ROOT / "scripts" / "devnet"


class Tools:
    """Stands in for Node.js: the PATH starts with a `node` and an `npm` of ours, the cache is empty."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.cache = folder / "cache" / "vc-fallback"
        (folder / "bin").mkdir()
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        self.npm(f"echo $1 >>{folder}/npm-calls; mkdir -p node_modules")
        self.node("sleep 60")

    def node(self, does: str, version: str = "v20.0.0") -> None:
        self._write("node", f'if [ "$1" = -p ]; then echo "{version} 115 linux x64"; exit; fi\n{does}')

    def npm(self, does: str) -> None:
        self._write("npm", does)

    def _write(self, name: str, body: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    return Tools(tmp_path, monkeypatch)


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def eventually(holds: Callable[[], bool], limit: float = 10.0) -> bool:
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.02)
    return False


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(DEVNET), *words], capture_output=True, text=True, timeout=30, check=False)


def started(directory: Path, number: int) -> list[ProcessId]:
    """The processes of a devnet once there are `number`."""

    def enough() -> bool:
        state = load(directory)
        return state is not None and len(state.processes) >= number

    assert eventually(enough)
    state = load(directory)
    assert state is not None
    return list(state.processes.values())


def state_with(process: ProcessId) -> State:
    return State(
        slot_duration=1,
        nodes=1,
        genesis_time=0,
        rest_ports=[1, 2],
        p2p_ports=[3, 4],
        processes={"node-0": process, "node-1": process},
    )


NODE = """
import json, pathlib, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

if "validator" in sys.argv:
    time.sleep(60)
port, data = (sys.argv[sys.argv.index(word) + 1] for word in ("--rest.port", "--dataDir"))
broken = pathlib.Path(data, "broken").exists()
root = "0x" + 64 * "1"

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        slot = str(int(time.time()))
        answers = {
            "/eth/v1/node/identity": {"peer_id": port},
            "/eth/v1/node/peers?state=connected": [{"peer_id": other} for other in sys.argv[1].split(",")],
            "/eth/v1/node/syncing": {"head_slot": "104"},
            "/eth/v1/beacon/headers/head": {"root": root, "header": {"message": {"slot": slot}}},
        }
        found = not (broken and self.path.endswith("/head"))
        body = json.dumps({"data": answers[self.path]} if found else {}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()
"""
"""A node whose head has the slot of the moment, unless its data are broken: it has no block of its head then."""


@pytest.mark.parametrize(
    ("nodes", "cut", "validators_with"),
    [
        (1, set(), {1}),
        (3, set(), {1, 2, 3}),
        (3, {(1, 2)}, {1, 2, 3}),  # linked by way of 3
        (3, {(1, 2), (1, 3)}, {2, 3}),
        (3, {(1, 2), (1, 3), (2, 3)}, {1}),
        (2, {(1, 2)}, {1}),
        (5, {(a, b) for a in (1, 2) for b in (3, 4, 5)}, {3, 4, 5}),
    ],
)
def test_validators_stay_with_the_largest_group_of_linked_nodes(
    nodes: int, cut: set[tuple[int, int]], validators_with: set[int]
) -> None:
    links = wanted_links(nodes, cut)
    assert {high for low, high in links if low == 0} == validators_with
    assert not links & cut


def test_ports_are_distinct_and_never_given_to_outgoing_connections() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert max(ports) < int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


def test_a_stale_state_file_does_not_make_down_kill_a_stranger(
    tmp_path: Path, stranger: subprocess.Popen[bytes]
) -> None:
    state_with(ProcessId(stranger.pid, "another start time")).save(tmp_path)
    assert Devnet(tmp_path).down()
    assert stranger.poll() is None


def test_a_stale_state_file_does_not_make_kill_or_freeze_hit_a_stranger(
    tmp_path: Path, stranger: subprocess.Popen[bytes]
) -> None:
    state_with(ProcessId(stranger.pid, "another start time")).save(tmp_path)
    for command in (Devnet(tmp_path).kill, Devnet(tmp_path).freeze):
        with pytest.raises(MisuseError, match="node 1 is not running"):
            command(1)
    assert Devnet(tmp_path).condition(1) == "dead"
    assert stranger.poll() is None


def test_a_process_is_frozen_thawed_and_killed(tmp_path: Path) -> None:
    process = processes.spawn(["sleep", "60"], directory=tmp_path, environment=os.environ, log=tmp_path / "log")
    assert processes.is_running(process)
    assert processes.freeze(process)
    assert processes.is_frozen(process)
    assert processes.is_running(process)
    assert processes.send(process, signal.SIGCONT)
    assert eventually(lambda: not processes.is_frozen(process))
    assert processes.kill(process)
    assert not processes.is_running(process)
    assert not processes.kill(process)


def test_a_running_validator_client_is_left_alone(tmp_path: Path, tools: Tools) -> None:
    validators = processes.spawn(["sleep", "60"], directory=tmp_path, environment=os.environ, log=tmp_path / "log")
    state = state_with(ProcessId(1, "another start time"))
    state.processes["vc"] = validators
    state.save(tmp_path)
    assert not Devnet(tmp_path).validator_client()
    assert processes.is_running(validators)
    assert processes.kill(validators)


def test_up_tells_the_end_of_the_log_of_a_node_that_died_and_leaves_nothing_running(
    tmp_path: Path, tools: Tools
) -> None:
    tools.node("echo this went wrong; exit 3")
    done = run("up", "2", "--dir", str(tmp_path / "net"))
    assert done.returncode == 1
    first, *rest = done.stderr.splitlines()
    assert first == "devnet: node-0 ended by itself"
    assert "this went wrong" in rest
    assert not any(map(processes.is_running, started(tmp_path / "net", 3)))
    assert run("down", "--dir", str(tmp_path / "net")).returncode == 0
    assert not (tmp_path / "net").exists()


def test_up_gives_up_on_a_node_that_never_answers(tmp_path: Path, tools: Tools) -> None:
    with pytest.raises(DevnetError, match="node-0 does not answer in time"):
        Devnet(tmp_path / "net", nodes=1).up(timeout=0.3)
    assert not any(map(processes.is_running, started(tmp_path / "net", 2)))


def test_a_node_whose_data_a_kill_has_broken_begins_anew(
    tmp_path: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scripts.lodestar.devnet.CATCH_UP_LIMIT", 0.1)
    (tmp_path / "node.py").write_text(NODE)
    ports = free_ports(2)
    tools.node(f'exec {sys.executable} {tmp_path / "node.py"} {",".join(map(str, ports))} "$@"')
    net = tmp_path / "net"
    for number in (0, 1):
        (net / f"node-{number}" / "data").mkdir(parents=True)
    (net / "node-1" / "data" / "broken").touch()
    dead = ProcessId(1, "another start time")
    state = state_with(dead)
    state.rest_ports = ports
    state.save(net)
    devnet = Devnet(net)
    try:
        assert devnet.heal(timeout=30).slot >= devnet.slot_now() - 1
        assert not (net / "node-1" / "data").exists()
        assert (net / "node-0" / "data").exists()
    finally:
        assert devnet.down()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_up_tidies_when_it_is_told_to_end(tmp_path: Path, tools: Tools, number: signal.Signals) -> None:
    with subprocess.Popen([str(DEVNET), "up", "1", "--dir", str(tmp_path / "net")], stderr=subprocess.PIPE) as up:
        nodes = started(tmp_path / "net", 2)
        up.send_signal(number)
        _, errors = up.communicate(timeout=20)
    assert up.returncode == 128 + number
    assert not errors
    assert not any(map(processes.is_running, nodes))


def test_a_tethered_devnet_goes_down_with_the_process_that_wanted_it(tmp_path: Path, tools: Tools) -> None:
    program = (
        "from pathlib import Path\n"
        "from scripts.lodestar.devnet import Devnet\n"
        "from scripts.lodestar.tether import tethered\n"
        f"with tethered(Devnet(Path({str(tmp_path / 'net')!r}), nodes=1)) as devnet:\n"
        "    devnet.up()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT) as owner:
        nodes = started(tmp_path / "net", 2)
        processes.send(nodes[1], signal.SIGSTOP)
        owner.kill()
    assert eventually(lambda: not any(map(processes.is_running, nodes)))
    assert eventually(lambda: not (tmp_path / "net").exists())


def test_modules_are_installed_once_by_commands_that_start_together(tools: Tools) -> None:
    tools.npm(f"sleep 0.3; echo $1 >>{tools.folder}/npm-calls; mkdir -p node_modules")
    with (
        subprocess.Popen([str(DEVNET), "install"], stdout=subprocess.PIPE, text=True) as one,
        subprocess.Popen([str(DEVNET), "install"], stdout=subprocess.PIPE, text=True) as other,
    ):
        said = one.communicate(timeout=20)[0], other.communicate(timeout=20)[0]
    assert said[0] == said[1]
    assert ensure_modules().parent == tools.cache
    assert (tools.folder / "npm-calls").read_text().split() == ["ci", "rebuild"]


def test_a_failed_installation_says_what_npm_said_and_leaves_nothing_that_passes_for_modules(tools: Tools) -> None:
    tools.npm("mkdir -p node_modules; echo no network; exit 1")
    with pytest.raises(DevnetError, match=r"`npm ci .*` failed with exit code 1") as caught:
        ensure_modules()
    assert caught.value.detail == "no network"
    assert [entry.suffix for entry in tools.cache.iterdir()] == [".lock"]


def test_modules_built_for_another_node_are_not_used(tools: Tools) -> None:
    first = ensure_modules()
    tools.node("", version="v22.0.0 127")
    assert ensure_modules() != first


def test_an_old_node_is_refused_in_one_line(tools: Tools) -> None:
    tools.node("", version="v16.20.0")
    done = run("install")
    assert (done.returncode, done.stderr) == (1, "devnet: Node.js v16.20.0 is too old: the devnet needs 18 or newer\n")


def test_a_missing_node_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DevnetError, match=r"^node and npm not found: "):
        Devnet(tmp_path / "net").up()


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("fly",),
        ("up",),
        ("up", "0"),
        ("up", "3", "--slot-duration", "12"),
        ("kill", "one"),
        ("kill", "1"),
        ("el", "1", "maybe"),
        ("peer", "1"),
    ],
)
def test_misuse_is_told_in_one_line_with_exit_code_2(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(*words, "--dir", str(tmp_path)) if words else run()
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("devnet: ")
    assert done.stderr.count("\n") == 1


def test_up_refuses_a_folder_with_other_things_in_it(tmp_path: Path, tools: Tools) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "node-1").touch()
    with pytest.raises(MisuseError, match="not a devnet"):
        Devnet(folder).up()
    assert not Devnet(folder).down()
    assert [entry.name for entry in folder.iterdir()] == ["node-1"]
