"""Takes a devnet down when the process that wanted it ends, however it ends: SIGKILL, a crash, a lost terminal."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.lodestar.devnet import Devnet
from scripts.lodestar.errors import DevnetError

ROOT = Path(__file__).resolve().parents[2]
DOWN_LIMIT = 60.0


@contextmanager
def tethered(devnet: Devnet) -> Iterator[Devnet]:
    """Run a block that may call `up`; afterwards, even if this process is killed in it, the devnet is down."""
    watcher = subprocess.Popen(
        [sys.executable, "-P", "-m", "scripts.lodestar.tether", str(devnet.directory)],
        stdin=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    try:
        yield devnet
    finally:
        # The pipe ends with us; its end is what the watcher waits for.
        watcher.communicate(timeout=DOWN_LIMIT)
    if watcher.returncode != 0:
        raise DevnetError(f"the devnet in {devnet.directory} could not be taken down")


if __name__ == "__main__":
    sys.stdin.buffer.read()
    Devnet(Path(sys.argv[1])).down()
