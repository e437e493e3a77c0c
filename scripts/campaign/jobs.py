"""Campaigns in processes of their own, so that two go on at once and each is tidied up when we are told to end."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from scripts.campaign.clients import Name
from scripts.campaign.plan import Fault
from scripts.campaign.run import Recording, campaign
from scripts.lodestar.errors import DevnetError
from scripts.lodestar.rest import RestError

STOP_LIMIT = 90.0
LEAD = 30
"""Seconds that nodes have for their start where nothing else waits for it."""
FAILED = 1
INTERRUPTED = 130
RECORDING = TypeAdapter(Recording)


@dataclass(frozen=True)
class Job:
    """One campaign; see `campaign`."""

    client: Name
    faults: list[Fault]
    slots: int
    slot_duration: int
    genesis_time: int


JOB = TypeAdapter(Job)


def run_jobs(jobs: Sequence[Job]) -> list[Recording]:
    """Run them all at once; return the recordings of those that did not fail. Those that did have said why."""
    with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
        files = [Path(folder) / f"{number}.json" for number in range(len(jobs))]
        children = [start(job, file) for job, file in zip(jobs, files, strict=True)]
        try:
            while any(child.poll() is None for child in children):
                time.sleep(0.2)
        finally:
            # The end of its input is what a child ends at, as it does when this process is killed.
            for child in children:
                child.communicate(timeout=STOP_LIMIT)
        return [
            RECORDING.validate_json(file.read_bytes())
            for child, file in zip(children, files, strict=True)
            if child.returncode == 0
        ]


def start(job: Job, file: Path) -> subprocess.Popen[bytes]:
    """Start the process of a campaign; it ends early when its standard input does."""
    command = [sys.executable, "-P", "-m", "scripts.campaign.jobs", JOB.dump_json(job).decode(), str(file)]
    # A session of its own: Ctrl-C in the terminal reaches this process alone, which sees to the rest.
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def _end_with_input() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGINT)


def main(job: Job, file: Path) -> int:
    """The process of one campaign; its recording goes into a file."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=_end_with_input, daemon=True).start()
        with tempfile.TemporaryDirectory(prefix="devnet-") as folder:
            recording = campaign(
                *(job.client, job.faults, job.slots, Path(folder) / "nodes"),
                slot_duration=job.slot_duration,
                genesis_time=job.genesis_time,
                lead=LEAD,
                say=lambda text: print(f"{job.client}: {text}", flush=True),
            )
            file.write_bytes(RECORDING.dump_json(recording))
    except DevnetError as error:
        print(f"{job.client}: {error}", file=sys.stderr)
        if error.detail:
            print(error.detail, file=sys.stderr)
        return FAILED
    except (RestError, OSError) as error:
        print(f"{job.client}: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main(JOB.validate_json(sys.argv[1]), Path(sys.argv[2])))
