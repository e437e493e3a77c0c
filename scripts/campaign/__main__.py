"""The command line behind scripts/minimal-vc."""

import argparse
import itertools
import shlex
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from pydantic import ValidationError

from scripts.campaign.clients import NAMES, Name
from scripts.campaign.jobs import FAILED, INTERRUPTED, LEAD, RECORDING, Job, run_jobs
from scripts.campaign.page import page
from scripts.campaign.plan import CYCLE, plan
from scripts.campaign.run import Recording
from scripts.lodestar.errors import DevnetError
from scripts.lodestar.modules import ensure_modules

MISUSED = 2
APART = 21
"""Seconds between the geneses of two campaigns that go on together: the faults of one come while the other's nodes are
well, and their slots of 2 s begin half a slot apart, so that they are not in each other's way."""


class _Parser(argparse.ArgumentParser):
    """One line for every misuse."""

    def error(self, message: str) -> NoReturn:
        print(f"minimal-vc: {message} (see --help)", file=sys.stderr)
        raise SystemExit(MISUSED)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="scripts/minimal-vc",
        description="Three real beacon nodes (Lodestar 1.5.1) of which one after the other fails, and a validator "
        "client with all validators: what the chain lacks in the end. Needs Node.js and npm.",
    )
    parser.add_argument("--client", choices=(*NAMES, "both"), default="minimal", help="which one (default minimal)")
    parser.add_argument("--faults", action="store_true", help="with faults, which is the default")
    parser.add_argument("--no-faults", action="store_true", help="without faults; with --faults, a run of each")
    parser.add_argument("--minutes", type=_minutes, default=10.0, metavar="N", help="what counts (default 10)")
    parser.add_argument("--slot-seconds", type=int, choices=(1, 2), default=2, help="(default 2)")
    parser.add_argument("--together", action="store_true", help="both clients at once, on a devnet each")
    parser.add_argument("--save", action="store_true", help="keep the tables as benchmarks/minimal_vc.md")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what was recorded, one file for each run")
    parser.add_argument("--read", type=Path, metavar="DIR", help="run nothing; make the tables of what was kept there")
    return parser


def _minutes(text: str) -> float:
    minutes = float(text)
    if not 0.5 <= minutes <= 600:
        raise argparse.ArgumentTypeError("from 0.5 to 600")
    return minutes


def _job(options: argparse.Namespace, client: Name, faults: bool, later: int = 0) -> Job:
    # Each fault has time to pass: a run is as long as its faults with what comes after them.
    count = max(1, int(options.minutes * 60 / options.slot_seconds) // CYCLE)
    return Job(
        client=client,
        faults=plan(count) if faults else [],
        slots=count * CYCLE,
        slot_duration=options.slot_seconds,
        genesis_time=int(time.time()) + LEAD + 1 + later,
    )


def _run(options: argparse.Namespace) -> list[Recording]:
    ensure_modules()
    found: list[Recording] = []
    names: Sequence[Name] = NAMES if options.client == "both" else (options.client,)
    kinds = [faults for faults, wanted in ((False, options.no_faults), (True, options.faults)) if wanted] or [True]
    for faults in kinds:
        if options.together:
            found += run_jobs([_job(options, name, faults, number * APART) for number, name in enumerate(names)])
        else:
            for client in names:
                found += run_jobs([_job(options, client, faults)])
        if options.keep:
            _keep(options.keep, found)
    if len(found) < len(kinds) * len(names):
        raise DevnetError("not every run came to its end")
    return found


def _keep(folder: Path, runs: Iterable[Recording]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for run in runs:
        (folder / f"{run.client}-{'faults' if run.faults else 'no-faults'}.json").write_bytes(RECORDING.dump_json(run))


def _read(folder: Path) -> list[Recording]:
    names = [f"{name}-{kind}.json" for kind, name in itertools.product(("faults", "no-faults"), NAMES)]
    found = [RECORDING.validate_json((folder / name).read_bytes()) for name in names if (folder / name).exists()]
    if not found:
        raise DevnetError(f"nothing was kept in {folder}")
    return found


def _terminate(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def main(words: Sequence[str] | None = None) -> int:
    """0 when it ran and the chain could be read, 1 when not, 2 when it was misused."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)
    words = sys.argv[1:] if words is None else words
    options = _parser().parse_args(words)
    if options.together and options.client != "both":
        _parser().error("--together is for --client both")
    try:
        runs = _read(options.read) if options.read else _run(options)
        report = page(runs, " ".join(("scripts/minimal-vc", *map(shlex.quote, _shown(words)))))
        if options.save:
            print(f"kept in {report.save()}")
    except (DevnetError, OSError, ValidationError) as error:
        print(f"minimal-vc: {error}", file=sys.stderr)
        return FAILED
    except KeyError as error:
        print(f"minimal-vc: the duties of epoch {error} could not be had from the chain", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _shown(words: Sequence[str]) -> list[str]:
    """The arguments that say what was measured."""
    shown, skip = [], False
    for word in words:
        if not skip and word not in ("--save", "--keep", "--read"):
            shown.append(word)
        skip = word in ("--keep", "--read")
    return shown


if __name__ == "__main__":
    sys.exit(main())
