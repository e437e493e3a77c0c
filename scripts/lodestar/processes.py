"""Processes that outlive the command that started them, told apart from strangers that got the same pid later."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessId:
    """A pid with the start time the system reports for it; both are needed to name a process."""

    pid: int
    started: str


def _look_up(pid: int) -> tuple[str, str] | None:
    """State letter and start time of `pid`, or None when there is no such process."""
    if Path("/proc/self/stat").exists():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The name in brackets may hold spaces and brackets itself: count from the last one. After it come the
        # state (field 3 of proc(5)) and, 19 fields on, the start time in clock ticks since boot (field 22).
        fields = stat.rpartition(")")[2].split()
        return fields[0], fields[19]
    answer = subprocess.run(
        ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    state, _, started = answer.partition(" ")
    return (state[0], started.strip()) if state else None


def is_running(process: ProcessId) -> bool:
    """True while exactly this process exists (frozen counts, a zombie does not)."""
    found = _look_up(process.pid)
    if found is None or found[1] != process.started:
        return False
    if found[0] != "Z":
        return True
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)
    return False


def is_frozen(process: ProcessId) -> bool:
    """True while this process is stopped by a signal."""
    found = _look_up(process.pid)
    return found is not None and found[0] in "Tt" and found[1] == process.started


def send(process: ProcessId, number: signal.Signals) -> bool:
    """Signal the process if it still is the one meant; says whether it was."""
    if not is_running(process):
        return False
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return False
    return True


def freeze(process: ProcessId, patience: float = 10.0) -> bool:
    """SIGSTOP and wait until it has stopped, at most `patience` seconds; says whether it was running."""
    if not send(process, signal.SIGSTOP):
        return False
    deadline = time.monotonic() + patience
    while is_running(process) and not is_frozen(process) and time.monotonic() < deadline:
        time.sleep(0.001)
    return True


def kill(process: ProcessId, patience: float = 10.0) -> bool:
    """SIGKILL and wait until it is gone, at most `patience` seconds; says whether it was running.

    Lodestar closes its ports on SIGTERM but never exits, so there is no gentler way.
    """
    if not send(process, signal.SIGKILL):
        return False
    deadline = time.monotonic() + patience
    while is_running(process) and time.monotonic() < deadline:
        time.sleep(0.01)
    return True


def spawn(command: Sequence[str], *, directory: Path, environment: Mapping[str, str], log: Path) -> ProcessId:
    """Start a process in a session of its own, so that Ctrl-C in the terminal does not reach it.

    Both its outputs are appended to `log`. Only the pid is kept: the process lives on when we end, and while we
    live `is_running` collects it.
    """
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    found = _look_up(child.pid)
    # Popen warns when it is dropped while its process runs, which is the point here.
    child.returncode = 0
    return ProcessId(child.pid, found[1] if found else "")
