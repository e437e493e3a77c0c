"""`--config`, its mistakes, SIGHUP, and `--fallback`, as a user meets them (O6, C5)."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.json_schema import check_line
from tests.processes import Process, devnet
from vc_fallback.cli.main import main

DEAD = "http://127.0.0.1:1"
"""A port at which nobody listens."""

Line = dict[str, Any]


@pytest.fixture
def status_of(capfd: pytest.CaptureFixture[str]) -> Iterator[Callable[..., tuple[int, str, str]]]:
    """Run the command in this process: a process for each mistake would take half a second."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())

    def status_of(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        return status, *capfd.readouterr()

    yield status_of
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def write(path: Path, *nodes: str, rest: str = "") -> Path:
    """Write a configuration file, at once as an editor does."""
    text = rest + "".join(f"[[candidates]]\n{node}\n" for node in nodes)
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)
    return path


def until(process: Process, wanted: Callable[[Line], bool], most: int = 2_000) -> list[Line]:
    """Read JSON lines up to and with the first one that is wanted."""
    lines: list[Line] = []
    while not lines or not wanted(lines[-1]):
        lines.append(check_line(process.line()))
        assert len(lines) < most
    return lines


def of(kind: str, **values: Any) -> Callable[[Line], bool]:
    """Return a test for lines of a type that have these values."""
    return lambda line: line["type"] == kind and all(line[key] == value for key, value in values.items())


# What is wrong with a file


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "candidates: "),
        ("candidates = []", "candidates: "),
        ("network = 'mainnet'", "candidates: "),
        ("[[candidates]", "config: "),
        ("hunter2", "config: "),
        ("x = 1", "x: "),
        (f"[[candidates]]\nurl = '{DEAD}'\nhunter2 = 1", "candidates[0].hunter2: "),
        (f"[[candidates]]\nurl = '{DEAD}'\nx = 'hunter2'", "candidates[0].x: "),
        ("[[candidates]]\nurl = 5052", "candidates[0].url: "),
        ("[[candidates]]\nname = 'a'", "candidates[0].url: "),
        ("[[candidates]]\nurl = 'u:hunter2@h'", "candidates[0].url: "),
        (f"[[candidates]]\nurl = '{DEAD}'\ntier = 'hunter2'", "candidates[0].tier: "),
        (f"[[candidates]]\nurl = '{DEAD}'\nroles = ['hunter2']", "candidates[0].roles[0]: "),
        (f"[[candidates]]\nurl = '{DEAD}'\npriority = 'hunter2'", "candidates[0].priority: "),
        (f"[[candidates]]\nurl = '{DEAD}'\nheaders = {{ X = \"hunter2\\n\" }}", "candidates[0].headers: "),
        (
            f"[[candidates]]\nurl = '{DEAD}'\nname = 'a'\n[[candidates]]\nurl = 'http://h'\nname = 'a'",
            "candidates[1].name: ",
        ),
        ("[[candidates]]\nurl = 'https://h'\nca = 'missing.pem'", "candidates[0].ca: "),
        ("[[candidates]]\nurl = 'https://h'\nca = 'fallback.toml'", "candidates[0].ca: "),
        ("[[candidates]]\nurl = 'https://h'\ncertificate = 'missing.pem'", "candidates[0].certificate: "),
        ("[[candidates]]\nurl = 'http://u:${MISSING_PASSWORD}@h'", "candidates[0].url: "),
        (f"[[candidates]]\nurl = '{DEAD}'\nheaders = {{ A = '${{MISSING}}' }}", "candidates[0].headers.A: "),
        (f"[[candidates]]\nurl = '{DEAD}'\n[streams]\nhard_clock = 'hunter2'", "streams.hard_clock: "),
        (f"[[candidates]]\nurl = '{DEAD}'\n[streams]\nhunter2 = 3", "streams.hunter2: "),
        (f"[[candidates]]\nurl = '{DEAD}'\n[heads]\nbuffer = 0", "heads.buffer: "),
        (f"[[candidates]]\nurl = '{DEAD}'\n[chain]\ngenesis_time = 0", "chain."),
    ],
)
def test_a_bad_file_is_one_line_that_names_the_field_and_status_2(
    text: str, field: str, tmp_path: Path, status_of: Callable[..., tuple[int, str, str]]
) -> None:
    """Scenario 8, O6, rule 11."""
    path = tmp_path / "fallback.toml"
    path.write_text(text)
    status, out, err = status_of("monitor", "--duration", "0.1", "--config", str(path))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith(field)
    assert "hunter2" not in err.removeprefix(field)
    assert err.rstrip("\n").isprintable()


def test_a_file_that_cannot_be_read_is_a_mistake(
    tmp_path: Path, status_of: Callable[..., tuple[int, str, str]]
) -> None:
    (tmp_path / "latin").write_bytes(b"# \xe9")
    (tmp_path / "large").write_bytes(b"#" * (2**20 + 1))
    for name in ("missing", ".", "latin", "large"):
        status, out, err = status_of("monitor", "--config", str(tmp_path / name))
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith("config: ")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["--config", "f.toml", "http://u:hunter2@h"], "--config: "),
        (["--config", "f.toml", "--fallback", "http://u:hunter2@h"], "--config: "),
        (["--config", "f.toml", "--demo"], "--config: "),
        (["--demo", "--fallback", "http://u:hunter2@h"], "--demo: "),
        (["--fallback", "u:hunter2@h"], "candidates[0].url: "),
        ([DEAD, "--fallback", "u:hunter2@h"], "candidates[1].url: "),
        ([DEAD, "--fallback", DEAD], "candidates[1].url: "),
        (["--format", "tables", DEAD], "--format: "),
    ],
)
def test_what_does_not_go_together_is_a_mistake(
    arguments: list[str], field: str, status_of: Callable[..., tuple[int, str, str]]
) -> None:
    status, out, err = status_of("monitor", *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(field)
    assert "hunter2" not in err


# A file in use


def test_a_file_is_read_again_at_sighup_and_a_bad_one_changes_nothing(tmp_path: Path) -> None:
    """G1, G2, O6, rule 11: a node that was added shows heads; each mistake is one line, and the list stays."""
    with devnet(2, "--slot-duration", "0.5") as urls:
        env = {"FIRST": urls[0].removeprefix("http://"), "PASSWORD": "hunter2"}
        first = 'name = "first"\nurl = "http://u:${PASSWORD}@${FIRST}"'
        second = f'name = "second"\nurl = "{urls[1]}"\ntier = "fallback"'
        path = write(tmp_path / "fallback.toml", first)
        arguments = ("monitor", "--config", str(path), "--format", "jsonl", "--log-level", "warning")
        with Process(*arguments, env=env) as process:
            start = until(process, of("head"))[0]
            assert start["nodes"] == [{"node": "first", "tier": "primary"}]

            # Broken in one way after the other: the list stays, the heads go on.
            write(path, first, "url = 'http://v:hunter2@h'\nnam = 'x'")
            process.send(signal.SIGHUP)
            line = process.error_line()
            assert line.endswith("the configuration stays as it was: candidates[1].nam: Extra inputs are not permitted")
            path.unlink()
            process.send(signal.SIGHUP)
            assert "the configuration stays as it was: config: " in process.error_line()
            write(path)
            process.send(signal.SIGHUP)
            assert "the configuration stays as it was: candidates: " in process.error_line()

            until(process, of("head", node="first", generation=1))
            write(path, first, second, rest="[streams]\nhead_silence = 3\n[heads]\nbuffer = 64\n")
            process.send(signal.SIGHUP)
            change = until(process, of("generation"))[-1]
            assert change["generation"] == 2
            assert (change["added"], change["kept"]) == (["second"], ["first"])
            line = process.error_line()
            assert line.endswith("which takes a restart: streams, heads")
            lines = until(process, of("node_head", node="second"))
            # The connection that is kept goes on; its heads have the new generation.
            assert any(map(of("node_head", generation=2), lines))
            assert not any(map(of("stream", node="first"), lines))

            process.send(signal.SIGTERM)
            status, out, err = process.finish()
    assert (status, err) == (0, "")
    summary = json.loads(out[-1])
    assert [node["node"] for node in summary["nodes"]] == ["first", "second"]
    assert not any("hunter2" in line for line in out)


def test_a_sighup_that_comes_while_modules_are_loaded_is_heeded_later(tmp_path: Path) -> None:
    """A service manager may ask for a reload at any time."""
    path = write(tmp_path / "fallback.toml", f'url = "{DEAD}"')
    code = (
        "import os, sys\n"
        "from vc_fallback.cli.main import main\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == 'vc_fallback.heads.monitor': os.kill(os.getpid(), {int(signal.SIGHUP)})\n"
        "sys.meta_path.insert(0, Finder())\n"
        f"sys.exit(main(['monitor', '--config', {str(path)!r}, '--duration', '1', '--log-level', 'info']))\n"
    )
    with Process("-c", code, command=(sys.executable,)) as process:
        status, _, err = process.finish()
    assert status == 1
    assert err.count("configuration read again, the candidates are the same") == 1


def test_without_a_file_sighup_ends_the_command_as_it_always_did() -> None:
    with Process("monitor", DEAD) as process:
        process.line()
        process.send(signal.SIGHUP)
        assert process.wait() == -signal.SIGHUP


def test_a_pipe_is_not_opened_again_where_it_would_block(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with Process("monitor", "--config", str(path), "--log-level", "warning", "--format", "jsonl") as process:
        path.write_text(f'[[candidates]]\nurl = "{DEAD}"\n')
        process.line()
        process.send(signal.SIGHUP)
        assert "config: a pipe cannot be read again" in process.error_line()
        process.send(signal.SIGTERM)
        assert process.finish()[0] == 1


# Fallbacks


def test_a_fallbacks_heads_are_held_back_until_the_primary_dies() -> None:
    """C5, C6, scenarios 19 and 20, with real processes: the primary dies after 8 slots, for 3, again and again.

    Which of two nodes announces a slot first is up to the system, so a head is held back in some slots only.
    """
    with devnet(3, "--slot-duration", "0.5", "--faults") as urls:
        primary, fallback = (url.removeprefix("http://") for url in (urls[2], urls[0]))
        with Process("monitor", "--format", "jsonl", "--log-level", "error", urls[2], "--fallback", urls[0]) as process:
            lines = until(process, of("gate", open=False, holder=primary))
            assert lines[0]["nodes"] == [{"node": primary, "tier": "primary"}, {"node": fallback, "tier": "fallback"}]
            seen: set[str] = set()
            while seen != {"held", "opened", "head of the fallback", "closed again"}:
                while_closed = until(process, of("gate", open=True))
                assert not any(map(of("head", tier="fallback"), while_closed))
                held = [line for line in while_closed if line["type"] == "held"]
                tier = [line for line in while_closed if line["type"] == "node_head" and line["outcome"] == "tier"]
                assert [(line["node"], line["slot"]) for line in held] == [(fallback, line["slot"]) for line in tier]
                assert while_closed[-1]["reason"].startswith(f"{primary}: ")
                seen |= {"opened"} | {line["type"] for line in held}
                while_open = until(process, of("gate", open=False, holder=primary))
                assert not any(map(of("held"), while_open))
                if any(map(of("head", node=fallback, tier="fallback"), while_open)):
                    seen |= {"head of the fallback", "closed again"}
            process.send(signal.SIGTERM)
            status, _, err = process.finish()
    assert (status, err) == (0, "")
