"""The example as a whole: how long it is, and how its command begins and ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from examples.minimal_vc.__main__ import main
from examples.minimal_vc.slashing_guard import SlashingGuard

ROOT = Path(__file__).parents[2]
NOBODY = "http://127.0.0.1:1"


def test_it_can_be_read_in_ten_minutes() -> None:
    """Under 600 lines in all, those without a word not counted."""
    files = (ROOT / "examples" / "minimal_vc").glob("*.py")
    assert 0 < sum(bool(line.strip()) for file in files for line in file.read_text().splitlines()) < 600


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--interop", "0..7"], "--guard"),
        ([NOBODY, "--guard", "guard"], "--interop"),
        ([NOBODY, "--interop", "x", "--guard", "guard"], "--interop"),
        ([NOBODY, "--interop", "0-7", "--guard", "guard"], "A..B, such as 0..7"),
        ([NOBODY, "--interop", "7..0", "--guard", "guard"], "A..B, such as 0..7"),
        (["--interop", "0..7", "--guard", "guard"], "beacon nodes are needed"),
        (["ftp://bn", "--interop", "0..7", "--guard", "guard"], "candidates[0].url"),
        (["--config", "absent.toml", "--interop", "0..7", "--guard", "guard"], "config: the file cannot be read"),
    ],
)
def test_what_cannot_be_used_is_named(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Status 2, before anything is done."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["minimal_vc", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_it_does_not_start_where_nobody_knows_what_was_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A guard that is broken, and one that another process has."""
    monkeypatch.setattr(sys, "argv", ["minimal_vc", NOBODY, "--interop", "0..7", "--guard", str(tmp_path / "broken")])
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "signed.json").write_bytes(b"{}")
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "not as it was written" in capsys.readouterr().err
    guard = SlashingGuard(tmp_path / "held")
    monkeypatch.setattr(sys, "argv", [*sys.argv[:-1], str(tmp_path / "held")])
    with pytest.raises(SystemExit, match="2"):
        main()
    os.close(guard._held)
    assert "another process" in capsys.readouterr().err


def listens(process: int) -> bool:
    """Whether a process has handlers for signals: for SIGINT every Python has one, the other one comes with ours."""
    status = Path(f"/proc/{process}/status").read_text()
    mask = int(next(line for line in status.splitlines() if line.startswith("SigCgt")).split()[1], 16)
    return bool(mask & 1 << signal.SIGTERM - 1)


def test_ctrl_c_ends_it_cleanly(tmp_path: Path) -> None:
    """Status 0, nothing of Python's on the terminal, and the next one may have the guard."""
    command = [sys.executable, "-m", "examples.minimal_vc", NOBODY, "--interop", "0", "--guard", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603 - ourselves
        while not listens(process.pid):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 0, said
    assert "Traceback" not in said
    os.close(SlashingGuard(tmp_path)._held)
