"""The example's slashing guard: what it lets pass, and what is on the disk whatever happens."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from examples.minimal_vc import slashing_guard
from examples.minimal_vc.slashing_guard import GuardError, Refused, SlashingGuard

ONE, OTHER = b"\1" * 48, b"\2" * 48
"""Public keys."""

ROOT = Path(__file__).parents[2]


@contextmanager
def opened(directory: Path) -> Iterator[SlashingGuard]:
    """A guard, as it is for a process; at its end the process has ended."""
    guard = SlashingGuard(directory)
    try:
        yield guard
    finally:
        os.close(guard._held)


def vote(source: int, target: int, pubkey: bytes = ONE) -> Callable[[SlashingGuard], None]:
    return lambda guard: guard.allow_vote(pubkey, source, target)


def block(slot: int, pubkey: bytes = ONE) -> Callable[[SlashingGuard], None]:
    return lambda guard: guard.allow_block(pubkey, slot)


# --- what passes


@pytest.mark.parametrize(
    ("before", "then"),
    [
        ([vote(0, 1)], vote(0, 1)),  # the same, or another one for the same target
        ([vote(0, 3)], vote(0, 2)),
        ([vote(2, 3)], vote(1, 4)),  # surrounds
        ([vote(1, 6)], vote(2, 5)),  # is surrounded
        ([vote(1, 2), vote(2, 3)], vote(1, 3)),
        ([], vote(4, 3)),
        ([block(7)], block(7)),
        ([block(7)], block(6)),
        ([block(0)], block(0)),
    ],
)
@pytest.mark.parametrize("again", [False, True])
def test_what_may_be_slashable_is_refused(
    tmp_path: Path, before: list[Callable[[SlashingGuard], None]], then: Callable[[SlashingGuard], None], again: bool
) -> None:
    """Source never lower, target and slot always higher; `again`: by another process, too."""
    with opened(tmp_path) as guard:
        for one in before:
            one(guard)
        if not again:
            with pytest.raises(Refused):
                then(guard)
    with opened(tmp_path) as guard, pytest.raises(Refused):
        then(guard)


def test_honest_validators_are_never_refused_and_each_is_known(tmp_path: Path) -> None:
    """Votes with rising targets, also from the same source and from epoch 0; blocks in between; several validators."""
    with opened(tmp_path) as guard:
        for target in range(6):
            for pubkey in (ONE, OTHER):
                guard.allow_vote(pubkey, max(0, target - 2), target)
                guard.allow_block(pubkey, 8 * target)
    with opened(tmp_path) as guard:
        guard.allow_vote(ONE, 3, 6)
        guard.allow_block(ONE, 41)
        with pytest.raises(Refused):
            guard.allow_vote(OTHER, 3, 5)


def test_a_refusal_changes_nothing(tmp_path: Path) -> None:
    """Neither of what is refused nor of others."""
    with opened(tmp_path) as guard:
        guard.allow_vote(ONE, 1, 5)
        with pytest.raises(Refused, match="from epoch 0 to 9 after one from 1 to 5"):
            guard.allow_vote(ONE, 0, 9)
        guard.allow_vote(ONE, 1, 6)


# --- what is on the disk


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", range(8))
def test_whoever_ends_at_any_step_leaves_the_old_state_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """And what was allowed is there; what was not, was not signed."""
    with opened(tmp_path) as guard:
        guard.allow_block(ONE, 5)
    steps: list[str] = []

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            if len(steps) == step:
                raise Crash
            steps.append(name)
            return real(*arguments, **more)

        return call

    allowed = False
    with opened(tmp_path) as guard, monkeypatch.context() as patched:
        for name in ("fsync", "open", "close"):
            patched.setattr(os, name, counted(name, getattr(os, name)))
        for name in ("open", "replace"):
            patched.setattr(Path, name, counted(f"Path.{name}", getattr(Path, name)))
        try:
            guard.allow_block(ONE, 6)
            allowed = True
        except Crash:
            pass
    with opened(tmp_path) as guard:
        slot = guard._marks[ONE].slot
        assert slot in (5, 6)
        assert slot == 6 or not allowed
    assert allowed == (step >= 6)
    # The file before its name, the name before the answer.
    assert steps == ["Path.open", "fsync", "Path.replace", "open", "fsync", "close"][:step]


def test_a_file_that_is_torn_or_was_changed_ends_the_start(tmp_path: Path) -> None:
    """Cut at any length, or with any byte changed: nothing is signed on a guess."""
    with opened(tmp_path) as guard:
        guard.allow_vote(ONE, 3, 4)
    file = tmp_path / "signed.json"
    whole = file.read_bytes()
    broken = [whole[:length] for length in range(0, len(whole), 5)]
    broken += [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in range(0, len(whole), 5)]
    for content in broken:
        file.write_bytes(content)
        with pytest.raises(GuardError):
            slashing_guard._read(file)
    with pytest.raises(GuardError, match="not as it was written"):
        SlashingGuard(tmp_path)


def test_what_was_left_unfinished_is_no_harm(tmp_path: Path) -> None:
    """A process was killed while it wrote."""
    with opened(tmp_path) as guard:
        guard.allow_block(ONE, 3)
    (tmp_path / "signed.new").write_bytes(b'{"01')
    with opened(tmp_path) as guard:
        with pytest.raises(Refused):
            guard.allow_block(ONE, 3)
        guard.allow_block(ONE, 4)


def fails(descriptor: int) -> None:
    raise OSError("full")


def test_where_it_cannot_be_noted_nothing_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: the error comes out, and the same may be tried again."""
    with opened(tmp_path) as guard:
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fails)
            with pytest.raises(OSError, match="full"):
                guard.allow_block(ONE, 3)
        guard.allow_block(ONE, 3)


def test_one_process_at_a_time_has_a_directory(tmp_path: Path) -> None:
    """Two clients with the same keys would sign twice; the second one does not start, until the first has ended."""
    with opened(tmp_path), pytest.raises(GuardError, match="another process"):
        SlashingGuard(tmp_path)
    with opened(tmp_path):
        pass


SIGNER = """
import sys
from pathlib import Path
from examples.minimal_vc.slashing_guard import SlashingGuard
guard = SlashingGuard(Path(sys.argv[1]))
slot = 1 + max((marks.slot for marks in guard._marks.values()), default=-1)
while True:
    guard.allow_block(b"1" * 48, slot)
    print(slot, flush=True)
    slot += 1
"""


def test_a_killed_process_has_noted_all_that_it_signed(tmp_path: Path) -> None:
    """SIGKILL at some moment, three times over; the lock ends with the process."""
    for _ in range(3):
        with subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-c", SIGNER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            last = [int(process.stdout.readline()) for _ in range(4)][-1]
            process.send_signal(signal.SIGKILL)
            last = max([last, *(int(line) for line in process.stdout.read().splitlines())])
        with opened(tmp_path) as guard, pytest.raises(Refused):
            guard.allow_block(b"1" * 48, last)
