"""The command on a terminal: a table while it runs, and the terminal as it was afterwards (O4)."""

import fcntl
import os
import pty
import re
import selectors
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes import COMMAND, ROOT, devnet

ENTER, LEAVE, HIDE, SHOW, HOME = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25l", "\x1b[?25h", "\x1b[H"
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture(scope="module")
def urls() -> Iterator[list[str]]:
    """Two nodes with slots of half a second."""
    with devnet(2, "--slot-duration", "0.5") as served:
        yield served


class Terminal:
    """The command on a terminal of its own, and what it wrote there."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self.text = ""
        self.process = process
        self._master = master

    def resize(self, columns: int, lines: int) -> None:
        """Change the size, as a window does."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, text: str, times: int = 1, timeout: float = 30) -> None:
        """Read until a text was written so many times."""
        end = time.monotonic() + timeout
        while self.text.count(text) < times:
            assert self._read(end - time.monotonic()), f"no {text!r} in {self.text[-500:]!r}"

    def finish(self, timeout: float = 30) -> int:
        """Read to the end and return the exit status."""
        end = time.monotonic() + timeout
        while self._read(end - time.monotonic()):
            pass
        return self.process.wait(timeout)

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._master, keys)

    def hang_up(self) -> None:
        """Go away."""
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, self._master)
        os.close(null)

    def _read(self, timeout: float) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(self._master, selectors.EVENT_READ)
            assert selector.select(max(0.0, timeout)), f"not in time, after {self.text[-500:]!r}"
        try:
            data = os.read(self._master, 65536)
        except OSError:
            # Linux says EIO when the last one that had the terminal open is gone.
            return False
        self.text += data.decode()
        return bool(data)


@contextmanager
def terminal(*arguments: str, columns: int = 120, lines: int = 30, **env: str) -> Iterator[Terminal]:
    """Run `vc-fallback monitor` on a terminal; it is killed where it still runs at the end."""
    master, slave = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLORTERM", "COLUMNS")}
    try:
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        # A session of its own, whose terminal this becomes as it is opened: so Ctrl-C and a resize are signals.
        opens = "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); os.execv(sys.argv[1], sys.argv[1:])"
        process = subprocess.Popen(  # noqa: S603 - our own command
            [COMMAND[0], "-c", opens, *COMMAND, "monitor", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=ROOT,
            env=environment | {"TERM": "xterm-256color"} | env,
            start_new_session=True,
        )
    finally:
        os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(master)


def frames(text: str) -> list[list[str]]:
    """Return the drawings in a text, as lines without escape sequences; the last may be cut."""
    # The first one is empty: entering the alternate screen goes to its top too.
    return [_ESCAPE.sub("", frame).split("\r\n") for frame in text.partition(LEAVE)[0].split(HOME)[2:]]


@pytest.mark.parametrize("ending", ["SIGTERM", "Ctrl-C"])
def test_a_terminal_shows_a_table_and_is_left_as_it_was(urls: list[str], ending: str) -> None:
    with terminal(*urls) as shown:
        shown.until("seen by", 2)
        if ending == "SIGTERM":
            shown.process.send_signal(signal.SIGTERM)
        else:
            shown.type(b"\x03")
        assert shown.finish() == 0
    assert shown.text.startswith(ENTER)
    before, _, after = shown.text.partition(LEAVE)
    assert before.rindex(SHOW) > before.rindex(HIDE)
    assert HIDE not in after
    # The last table stays, the summary stands below it.
    last = _ESCAPE.sub("", after).splitlines()
    table = next(number for number, line in enumerate(last) if line.startswith("node "))
    summary = next(number for number, line in enumerate(last) if "heads delivered" in line)
    assert table < summary
    for url in urls:
        assert sum(url.removeprefix("http://") in line for line in last[table:summary]) >= 1
        assert sum(url.removeprefix("http://") in line for line in last[summary:]) == 1
    assert "\x1b[32m" in before
    assert "Traceback" not in shown.text


def test_a_change_of_the_size_is_followed_at_once_and_never_wraps(urls: list[str]) -> None:
    with terminal(*urls, columns=120, lines=20) as shown:
        shown.until("seen by", 2)
        for columns, lines in ((60, 12), (140, 40), (20, 5)):
            shown.resize(columns, lines)
            seen = len(frames(shown.text))
            shown.until(HOME, seen + 4)
            frame = frames(shown.text)[-2]
            assert len(frame) == lines
            assert {len(line) for line in frame} == {columns}
        shown.process.send_signal(signal.SIGTERM)
        assert shown.finish() == 0


def test_no_color_takes_the_colours_away_and_nothing_else(urls: list[str]) -> None:
    with terminal(*urls, NO_COLOR="1") as shown:
        shown.until("seen by", 2)
        shown.process.send_signal(signal.SIGTERM)
        assert shown.finish() == 0
    assert shown.text.startswith(ENTER)
    assert "healthy" in shown.text
    assert not re.search(r"\x1b\[(?:[0-9]+;)*[34][0-9]m", shown.text)


@pytest.mark.parametrize("arguments", [(), ("--format", "table")])
def test_a_terminal_that_cannot_be_drawn_on_gets_plain_lines(urls: list[str], arguments: tuple[str, ...]) -> None:
    with terminal(*arguments, *urls, TERM="dumb") as shown:
        shown.until("  head    slot ")
        shown.process.send_signal(signal.SIGTERM)
        assert shown.finish() == 0
    assert "\x1b" not in shown.text
    assert ("plain lines instead" in shown.text) is bool(arguments)


def test_a_terminal_that_stalls_holds_up_nothing(urls: list[str]) -> None:
    """Rule 7: nobody reads the terminal, as after Ctrl-S; a signal ends the command all the same."""
    with terminal(*urls) as shown:
        shown.until("seen by")
        time.sleep(2)
        shown.process.send_signal(signal.SIGTERM)
        assert shown.process.wait(20) in (0, 1)


@pytest.fixture
def config(urls: list[str], tmp_path: Path) -> str:
    """A configuration file with the nodes."""
    path = tmp_path / "fallback.toml"
    path.write_text("".join(f'[[candidates]]\nurl = "{url}"\n' for url in urls))
    return str(path)


def test_a_terminal_that_hangs_up_ends_it_also_where_sighup_means_something_else(config: str) -> None:
    with terminal("--config", config) as shown:
        shown.until("seen by")
        shown.hang_up()
        assert shown.process.wait(20) == 0


def test_what_is_logged_does_not_tear_the_table(config: str) -> None:
    with terminal("--config", config) as shown:
        shown.until("seen by")
        shown.process.send_signal(signal.SIGHUP)
        shown.until("configuration read again, the candidates are the same")
        shown.until(HOME, len(frames(shown.text)) + 2)
        shown.process.send_signal(signal.SIGTERM)
        assert shown.finish() == 0
    for frame in frames(shown.text)[:-1]:
        assert len(frame) == 30
        assert {len(line) for line in frame} == {120}
    event = r"\d\d:\d\d:\d\d  info     configuration read again, the candidates are the same *"
    assert any(re.fullmatch(event, line) for frame in frames(shown.text) for line in frame)
