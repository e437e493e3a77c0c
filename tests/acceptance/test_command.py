"""The command as a user runs it: what it prints, how it ends, and what it never shows."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.json_schema import check_line
from tests.processes import COMMAND, ROOT, Process, devnet, run
from vc_fallback.cli.main import main

DEAD = "http://127.0.0.1:1"
"""A port at which nobody listens."""

SECRETS = ("hunter2", "s3cr3t-path", "t0ken-query")
SECRET_URL = "http://user:hunter2@{}/s3cr3t-path?key=t0ken-query"


@pytest.fixture(scope="module")
def urls() -> Iterator[list[str]]:
    """Three nodes with slots of half a second."""
    with devnet(3, "--slot-duration", "0.5", "--framing", "lighthouse", "--framing", "lodestar") as served:
        yield served


def following(*arguments: str) -> Process:
    return Process("monitor", "--format", "jsonl", *arguments)


def until_head(process: Process) -> list[dict[str, Any]]:
    """Read lines up to and with the first delivered head."""
    lines = [check_line(process.line())]
    while lines[-1]["type"] != "head":
        lines.append(check_line(process.line()))
    return lines


def parsed(lines: list[str]) -> list[dict[str, Any]]:
    return [check_line(line) for line in lines]


# What is wrong with the command line


MISTAKES: list[tuple[list[str], str]] = [
    (["monitor"], "candidates: "),
    (["monitor", DEAD, "ftp://u:hunter2@h/"], "candidates[1].url: "),
    (["monitor", DEAD, "u:hunter2@h"], "candidates[1].url: "),
    (["monitor", DEAD, ""], "candidates[1].url: "),
    (["monitor", "http://u:hunter2@h:port/"], "candidates[0].url: "),
    (["monitor", "http://u:hunter2@h:99999/"], "candidates[0].url: "),
    (["monitor", "http://u:hunter2@/"], "candidates[0].url: "),
    (["monitor", "http://h/#hunter2"], "candidates[0].url: "),
    (["monitor", "http://h/\x1b[31mhunter2"], "candidates[0].url: "),
    (["monitor", "--demo", "http://u:hunter2@h"], "--demo: "),
    (["monitor", "--duration", "0", DEAD], "--duration: "),
    (["monitor", "--duration", "-1", DEAD], "--duration: "),
    (["monitor", "--duration", "nan", DEAD], "--duration: "),
    (["monitor", "--duration", "inf", DEAD], "--duration: "),
    (["monitor", "--duration", "http://u:hunter2@h"], "--duration: "),
    (["monitor", DEAD, "--duration"], "--duration"),
    (["monitor", "--slots", "0", DEAD], "--slots: "),
    (["monitor", "--slots", "-3", DEAD], "--slots: "),
    (["monitor", "--slots", "1.5", DEAD], "--slots: "),
    (["monitor", "--slots", "9" * 5000, DEAD], "--slots: "),
    (["monitor", "--format", "xml", DEAD], "--format: "),
    (["monitor", "--format", "http://u:hunter2@h", DEAD], "--format: "),
    (["monitor", "--log-level", "loud", DEAD], "--log-level: "),
    (["monitor", "--unknown=hunter2", DEAD], "--unknown"),
    (["--unknown"], "--unknown"),
    (["http://u:hunter2@h"], "command: "),
    ([], "command: "),
    (["devnet", "0"], "COUNT: "),
    (["devnet", "two"], "COUNT: "),
    (["devnet", "2", "--slot-duration", "0"], "--slot-duration: "),
    (["devnet", "2", "--port", "70000", "--port", "1"], "--port: "),
    (["devnet", "2", "--port", "5000"], "--port: "),
    (["devnet", "2", "--host", "localhost"], "--host: "),
    (["devnet", "2", "--framing", "geth"], "--framing: "),
    (["devnet", "2", "--faults"], "--faults: "),
]


@pytest.fixture
def signals_as_before() -> Iterator[None]:
    """The command holds signals back from its beginning on, and ends with its process."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def assert_one_line(err: str, field: str) -> None:
    assert err.count("\n") == 1
    assert field in err
    assert "hunter2" not in err
    assert err.rstrip("\n").isprintable()


@pytest.mark.usefixtures("signals_as_before")
@pytest.mark.parametrize(
    ("arguments", "field"),
    MISTAKES,
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_a_mistake_is_one_line_that_names_the_field_and_status_2(
    arguments: list[str], field: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Scenario 8, rule 11."""
    status = main(arguments)
    written = capfd.readouterr()
    assert (status, written.out) == (2, "")
    assert_one_line(written.err, field)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [([], "command: "), (["monitor", DEAD, "ftp://u:hunter2@h/"], "candidates[1].url: ")],
    ids=["nothing", "monitor"],
)
def test_a_process_that_is_started_by_mistake(arguments: list[str], field: str) -> None:
    """Scenario 8, as a shell sees it."""
    status, out, err = run(*arguments)
    assert (status, out) == (2, [])
    assert_one_line(err, field)


def test_a_port_that_is_taken_is_a_mistake_too(urls: list[str]) -> None:
    status, out, err = run("devnet", "1", "--port", urls[0].rpartition(":")[2])
    assert (status, out) == (2, [])
    assert err.startswith("--port: ")
    assert err.count("\n") == 1


# How it ends


def test_the_duration_ends_it_with_a_summary_of_what_was_printed(urls: list[str]) -> None:
    status, out, err = run("monitor", "--format", "jsonl", "--duration", "3", *urls)
    lines = parsed(out)
    assert status == 0, err
    assert lines[0]["type"] == "start"
    assert [line["type"] for line in lines].count("summary") == 1
    summary = lines[-1]
    assert summary["type"] == "summary"
    heads = [line for line in lines if line["type"] == "head"]
    assert summary["delivered"] == len(heads) > 0
    assert [node["node"] for node in summary["nodes"]] == [url.removeprefix("http://") for url in urls]
    for node in summary["nodes"]:
        shown = [line for line in lines if line["type"] == "node_head" and line["node"] == node["node"]]
        assert node["heads"] == len(shown)
        assert node["last_slot"] == shown[-1]["slot"]
    assert "Traceback" not in err


def test_a_second_start_tells_the_chain_once_it_is_known(urls: list[str]) -> None:
    with following("--duration", "5", *urls) as process:
        lines = until_head(process)
    unknown, known = (line for line in lines if line["type"] == "start")
    assert unknown["genesis_time"] is None
    assert unknown["slot_duration"] is None
    assert known["slot_duration"] == 0.5
    head = lines[-1]
    began = known["genesis_time"] + head["slot"] * known["slot_duration"]
    assert head["received"] - began == pytest.approx(head["delay"], abs=0.01)
    assert head["received"] <= head["time"]


def test_slots_are_counted_by_the_clock_from_the_start(urls: list[str]) -> None:
    status, out, _ = run("monitor", "--format", "jsonl", "--slots", "4", *urls)
    lines = parsed(out)
    assert status == 0
    assert lines[-1]["time"] - lines[0]["time"] == pytest.approx(2.0, abs=0.5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("form", ["plain", "jsonl"])
def test_a_signal_ends_it_quietly_with_the_summary_last(urls: list[str], number: signal.Signals, form: str) -> None:
    with Process("monitor", "--format", form, "--log-level", "warning", *urls) as process:
        while not any(word in process.line() for word in ("  head  ", '"type":"head"')):
            pass
        process.send(number)
        process.send(number)
        status, out, err = process.finish()
    assert (status, err) == (0, "")
    if form == "jsonl":
        assert parsed(out)[-1]["type"] == "summary"
    else:
        assert "heads delivered" in out[-5]
        assert out[-4].split() == ["node", "heads", "reconnects", "stalls", "last", "slot"]


@pytest.mark.parametrize("ending", ["duration", "signal"])
def test_nothing_delivered_is_status_1(ending: str) -> None:
    with following(*(["--duration", "0.5"] if ending == "duration" else []), DEAD) as process:
        first = check_line(process.line())
        if ending == "signal":
            process.send(signal.SIGTERM)
        status, out, err = process.finish()
    assert status == 1
    assert first["type"] == "start"
    assert parsed(out)[-1] | {"time": 0} == {
        "type": "summary",
        "time": 0,
        "delivered": 0,
        "nodes": [{"node": "127.0.0.1:1", "heads": 0, "reconnects": 0, "stalls": 0, "last_slot": None}],
        "failovers": 0,
        "failbacks": 0,
    }
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("module", "number"),
    [
        (module, number)
        for module in ("typer", "vc_fallback.cli.monitor", "vc_fallback.heads.monitor")
        for number in (signal.SIGINT, signal.SIGTERM)
    ],
)
def test_a_signal_that_comes_while_a_module_is_loaded_is_heeded(module: str, number: signal.Signals) -> None:
    code = (
        "import os, sys\n"
        "from vc_fallback.cli.main import main\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Finder())\n"
        f"sys.exit(main(['monitor', '--log-level', 'error', {DEAD!r}]))\n"
    )
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "0 heads delivered" in done.stdout


def test_a_reader_that_leaves_ends_it_quietly(urls: list[str]) -> None:
    with following("--log-level", "warning", *urls) as process:
        until_head(process)
        process.close_stdout()
        assert process.wait() == 0
        assert process.errors() == ""


@pytest.mark.parametrize("arguments", ["monitor --format jsonl {}", "monitor {}", "--help"])
def test_a_pipe_into_head_ends_quietly(urls: list[str], arguments: str) -> None:
    command = " ".join([*COMMAND, arguments.format(" ".join(urls))])
    script = f"{command} --log-level error | head -n 3" if "{" in arguments else f"{command} | head -n 3"
    done = subprocess.run(  # noqa: S603 - a pipe is the point
        ["/bin/sh", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    assert len(done.stdout.splitlines()) == 3
    assert done.stderr == ""


def test_a_reader_that_stalls_holds_up_nothing(urls: list[str]) -> None:
    """Rule 7: nobody reads the pipe; it fills, and a signal still ends the command."""
    with devnet(3, "--slot-duration", "0.05") as quick, following(*quick) as process:
        until_head(process)
        time.sleep(3)
        process.send(signal.SIGTERM)
        begun = time.monotonic()
        assert process.wait() == 0
        assert time.monotonic() - begun < 6


@pytest.mark.parametrize(("target", "status"), [("/dev/full", 1), ("/dev/null", 0)])
def test_stdout_on_a_device(urls: list[str], target: str, status: int) -> None:
    with open(target, "w") as file:  # noqa: PTH123 - a device
        done = subprocess.run(  # noqa: S603 - our own command
            [*COMMAND, "monitor", "--duration", "2", *urls],
            cwd=ROOT,
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert ("stdout: No space left on device" in done.stderr) is (target == "/dev/full")


def test_closed_standard_streams_do_no_harm(urls: list[str]) -> None:
    command = " ".join([*COMMAND, "monitor", "--duration", "2", *urls])
    done = subprocess.run(  # noqa: S603 - closing them is the shell's art
        ["/bin/sh", "-c", f"exec {command} <&- >&- 2>&-"], cwd=ROOT, timeout=30, check=False
    )
    assert done.returncode == 0


# What it shows


def test_lines_come_as_things_happen(urls: list[str]) -> None:
    with following(*urls) as process:
        head = until_head(process)[-1]
        assert time.time() - head["time"] < 1


def test_plain_lines_are_for_people(urls: list[str]) -> None:
    status, out, err = run("monitor", "--duration", "2", "--log-level", "error", *urls)
    assert (status, err) == (0, "")
    assert any("  head    slot " in line and "seen by" in line for line in out)
    assert not any("duplicate" in line for line in out)


@pytest.mark.parametrize("form", ["plain", "jsonl"])
def test_the_secrets_of_a_url_are_shown_nowhere(urls: list[str], form: str) -> None:
    """Rule 11: neither of a node that is down nor of one that answers with errors, at any level."""
    answering = SECRET_URL.format(urls[0].removeprefix("http://"))
    down = SECRET_URL.format("127.0.0.1:1")
    status, out, err = run(
        "monitor", "--format", form, "--duration", "2", "--log-level", "debug", answering, down, urls[1]
    )
    assert status in (0, 1)
    assert "connect_failed" in err
    assert "refused" in err
    for secret in SECRETS:
        assert secret not in "\n".join(out) + err
    assert "://" not in "\n".join(out)


def test_the_demo_shows_heads_of_two_nodes_and_a_stream_that_stalls_and_recovers() -> None:
    with following("--demo") as process:
        delivered: set[str] = set()
        stalled: set[str] = set()
        recovered: set[str] = set()
        end = time.monotonic() + 30
        while (len(delivered) < 2 or not recovered) and time.monotonic() < end:
            line = check_line(process.line())
            if line["type"] == "head":
                delivered.add(line["node"])
            elif line["type"] == "stream" and line["state"] == "stalled":
                stalled.add(line["node"])
            elif line["type"] == "stream" and line["state"] == "fresh" and line["node"] in stalled:
                recovered.add(line["node"])
        process.send(signal.SIGTERM)
        status, out, err = process.finish()
    assert status == 0
    assert len(delivered) >= 2
    assert recovered
    assert parsed(out)[-1]["type"] == "summary"
    assert "stalls: its event stream falls silent" in err


def test_the_devnet_plays_faults_and_says_so() -> None:
    with Process("devnet", "3", "--slot-duration", "0.2", "--faults", "--port", "0") as process:
        status, _, err = process.finish()
    assert (status, err.count("\n")) == (2, 1)
    with Process("devnet", "3", "--slot-duration", "0.2", "--faults") as process:
        assert all(process.line().startswith("http://127.0.0.1:") for _ in range(3))
        assert process.line() == "bn2 stalls: its event stream falls silent"
        process.send(signal.SIGINT)
        assert process.finish()[0] == 0


# How fast it is there


def loaded_by(*arguments: str) -> list[str]:
    code = (
        "import json, sys\n"
        "from vc_fallback.cli.main import main\n"
        "main(sys.argv[1:])\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    modules: list[str] = json.loads(done.stderr)
    return modules


def test_the_version_is_shown_without_loading_anything_heavy() -> None:
    status, out, err = run("--version")
    assert (status, err) == (0, "")
    assert out[0].startswith("vc-fallback ")
    assert not {"typer", "pydantic", "anyio", "httpx", "ssz", "h11"} & set(loaded_by("--version"))


def test_help_loads_nothing_of_what_a_command_needs() -> None:
    loaded = set(loaded_by("monitor", "--help"))
    assert not {"httpx", "ssz", "h11", "vc_fallback.heads.monitor", "vc_fallback.testing"} & loaded
