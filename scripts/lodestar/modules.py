"""Lodestar's npm modules, installed once per machine and set of versions, outside the source tree."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.lodestar.errors import DevnetError

HERE = Path(__file__).resolve().parent
PINS = ("package.json", "package-lock.json")
# Lodestar 1.5.1 needs the global `fetch` and ES module features of Node 18.
OLDEST_NODE = 18
INSTALL_LIMIT = 900.0


def missing_tools() -> list[str]:
    """Which of Node.js' two commands are not on the PATH."""
    return [tool for tool in ("node", "npm") if shutil.which(tool) is None]


def ensure_modules() -> Path:
    """The folder that holds `node_modules`; installs it on the first call, which takes about half a minute.

    :raises DevnetError: Node.js is missing or too old, or npm failed.
    """
    missing = missing_tools()
    if missing:
        raise DevnetError(
            f"{' and '.join(missing)} not found: the devnet needs Node.js {OLDEST_NODE} or newer with npm"
        )
    # snappy is built against the interface of the very Node that runs it.
    node = _output("node", "-p", "`${process.version} ${process.versions.modules} ${process.platform} ${process.arch}`")
    if int(node.lstrip("v").split(".")[0]) < OLDEST_NODE:
        raise DevnetError(f"Node.js {node.split()[0]} is too old: the devnet needs {OLDEST_NODE} or newer")
    digest = hashlib.sha256(node.split(" ", 1)[1].encode())
    for pin in PINS:
        digest.update((HERE / pin).read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vc-fallback"
    modules = cache / f"lodestar-{digest.hexdigest()[:16]}"
    if modules.is_dir():
        return modules
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / f"{modules.name}.lock", INSTALL_LIMIT):
        if not modules.is_dir():
            _install(modules)
    return modules


def _install(modules: Path) -> None:
    """Install beside `modules` and rename, so that a half-made folder is never taken for a whole one."""
    unfinished = Path(tempfile.mkdtemp(prefix=f"{modules.name}.", dir=modules.parent))
    try:
        for pin in PINS:
            shutil.copy(HERE / pin, unfinished)
        for command in (
            ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"),
            ("npm", "rebuild", "snappy"),
        ):
            try:
                done = subprocess.run(
                    command,
                    cwd=unfinished,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    timeout=INSTALL_LIMIT,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise DevnetError(f"`{' '.join(command)}` took over {INSTALL_LIMIT:.0f} s") from error
            if done.returncode != 0:
                raise DevnetError(
                    f"`{' '.join(command)}` failed with exit code {done.returncode}",
                    "\n".join(done.stdout.splitlines()[-20:]),
                )
        unfinished.rename(modules)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        raise DevnetError(f"`{command[0]}` does not work: {error}") from error


@contextmanager
def locked(path: Path, patience: float) -> Iterator[None]:
    """Hold an advisory lock on `path`; the system lets go of it when the process dies.

    :raises DevnetError: somebody else held it for `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while True:
        with path.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                # The one before us may have removed the file, and then somebody else may hold a new one.
                if _same(path, file.fileno()):
                    yield
                    return
        if time.monotonic() >= deadline:
            raise DevnetError(f"another command has been holding {path} for {patience:.0f} s")
        time.sleep(0.05)


def _same(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
