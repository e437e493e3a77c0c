"""What each validator has signed last, in a file that is on the disk before the next signature is made."""

import fcntl
import json
import os
import threading
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple


class GuardError(Exception):
    """The guard is broken, or another process has it. Nothing may be signed."""


class Refused(Exception):
    """Signing this might be slashable. The text says why."""


class Marks(NamedTuple):
    """The highest that a validator has signed: source and target epochs of votes, slots of blocks; −1 is none."""

    source: int = -1
    target: int = -1
    slot: int = -1


class SlashingGuard:
    """Allows a vote whose source is not lower and whose target is higher than those of all votes before, and a block
    of a higher slot than all before: with nothing that was allowed before is that slashable.

    What a call allows is on the disk when it returns, file and folder. The file is replaced in one step: whoever is
    killed leaves the old one or the new one. Calls may come from any thread. A process has a directory until it ends.

    :raises GuardError: another process has it, or the file is not as it was written.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        _sync(directory.parent)
        self._directory, self._file = directory, directory / "signed.json"
        self._turn = threading.Lock()
        self._held = os.open(directory / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise GuardError(f"another process has {directory}") from None
        self._marks = _read(self._file) if self._file.exists() else {}

    def allow_vote(self, pubkey: bytes, source: int, target: int) -> None:
        """Note a vote that is about to be signed.

        :raises Refused, OSError: it must not be signed; it could not be noted, and must not be signed.
        """
        with self._turn:
            last = self._marks.get(pubkey, Marks())
            if not last.source <= source <= target or target <= last.target:
                raise Refused(f"a vote from epoch {source} to {target} after one from {last.source} to {last.target}")
            self._note(pubkey, last._replace(source=source, target=target))

    def allow_block(self, pubkey: bytes, slot: int) -> None:
        """Note a block that is about to be signed; raises as :meth:`allow_vote`."""
        with self._turn:
            last = self._marks.get(pubkey, Marks())
            if slot <= last.slot:
                raise Refused(f"a block of slot {slot} after one of slot {last.slot}")
            self._note(pubkey, last._replace(slot=slot))

    def _note(self, pubkey: bytes, marks: Marks) -> None:
        marked = {**self._marks, pubkey: marks}
        line = json.dumps({one.hex(): highest for one, highest in marked.items()}).encode()
        unfinished = self._file.with_suffix(".new")
        with unfinished.open("wb") as file:
            file.write(line + b"\n" + sha256(line).hexdigest().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self._file)
        _sync(self._directory)
        self._marks = marked


def _read(file: Path) -> dict[bytes, Marks]:
    line, _, digest = file.read_bytes().partition(b"\n")
    if digest != sha256(line).hexdigest().encode() + b"\n":
        raise GuardError(f"{file} is not as it was written: nobody knows what was signed")
    return {bytes.fromhex(pubkey): Marks(*marks) for pubkey, marks in json.loads(line).items()}


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
