"""The validator clients that are compared: each has all validators, and the same nodes in the same order."""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from scripts.lodestar import processes
from scripts.lodestar.devnet import Devnet
from scripts.lodestar.errors import DevnetError
from scripts.lodestar.launch import VALIDATORS, VC, log_tail
from scripts.lodestar.processes import ProcessId

Name = Literal["minimal", "lodestar"]
NAMES: tuple[Name, ...] = ("minimal", "lodestar")
TITLES: Mapping[Name, str] = {"minimal": "`examples/minimal_vc`", "lodestar": "Lodestar's validator client 1.5.1"}
ROOT = Path(__file__).parents[2]
STOP_LIMIT = 10.0


class Client:
    """A validator client on a devnet, from `start` to `stop`."""

    def __init__(self, name: Name, devnet: Devnet) -> None:
        self._name = name
        self._devnet = devnet
        self._process: ProcessId | None = None

    def start(self) -> None:
        """Start it; it may begin before genesis."""
        self._process = self._devnet.other_client(_minimal(self._devnet) if self._name == "minimal" else None)

    def check(self) -> None:
        """See that it runs.

        :raises DevnetError: it ended by itself.
        """
        assert self._process is not None  # noqa: S101 - it was started
        try:
            ended, status = os.waitpid(self._process.pid, os.WNOHANG)
        except ChildProcessError:
            raise DevnetError("the validator client ended by itself", self._tail()) from None
        if ended:
            code = os.waitstatus_to_exitcode(status)
            raise DevnetError(f"the validator client ended by itself with exit status {code}", self._tail())

    def stop(self) -> int | None:
        """End it; return its exit status, or `None` for Lodestar's, which does not always end by itself.

        :raises DevnetError: it ended before, or did not end when it was told to.
        """
        self.check()
        assert self._process is not None  # noqa: S101 - it was started
        processes.send(self._process, signal.SIGTERM)
        status = _wait(self._process)
        if status is None:
            processes.kill(self._process)
            if self._name == "minimal":
                raise DevnetError(f"the validator client did not end within {STOP_LIMIT:.0f} s", self._tail())
        return status if self._name == "minimal" else None

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The JSON lines that it has printed."""
        found = []
        for line in self._devnet.client_output.read_text(errors="replace").splitlines():
            if line.startswith("{"):
                with contextlib.suppress(ValueError):
                    found.append(json.loads(line))
        return found

    @property
    def guard(self) -> dict[str, tuple[int, int, int]]:
        """What its slashing protection holds: by public key the highest source, target and slot."""
        file = _guard(self._devnet) / "signed.json"
        if not file.exists():
            return {}
        return {pubkey: tuple(marks) for pubkey, marks in json.loads(file.read_text().splitlines()[0]).items()}

    def _tail(self) -> str:
        return log_tail(self._devnet.directory, VC)


def _minimal(devnet: Devnet) -> Sequence[str]:
    return (
        # It runs in a folder of the devnet's.
        *("env", f"PYTHONPATH={ROOT}", sys.executable, "-P", "-m", "examples.minimal_vc", *devnet.urls),
        *("--interop", f"0..{VALIDATORS - 1}", "--guard", str(_guard(devnet))),
    )


def _guard(devnet: Devnet) -> Path:
    return devnet.directory / VC / "guard"


def _wait(process: ProcessId) -> int | None:
    deadline = time.monotonic() + STOP_LIMIT
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process.pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    return None
