"""The way in: runs the command line, and turns every mistake in it into one line and status 2."""

import os
import sys
from collections.abc import Sequence

from vc_fallback.base.errors import ConfigurationError
from vc_fallback.base.redact import printable
from vc_fallback.cli.stopping import hold


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (default: that of the process) and return the exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    hold()
    _fill_standard_streams()
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except ConfigurationError as error:
        status = _complain(printable(str(error)))
    except BrokenPipeError:
        # Whoever read `--help` has left. What is buffered would fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 0
    return status


def _run(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        # Answered here because the parser takes a third of a second to load.
        from vc_fallback.cli.version import version_line

        print(version_line())
        return 0
    from vc_fallback.cli.commands import UsageError, app

    try:
        return int(app(args=arguments, prog_name="vc-fallback", standalone_mode=False) or 0)
    except UsageError as error:
        return _complain(printable(str(error)))


def _complain(line: str) -> int:
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        # Nobody listens; the status still tells.
        return 2
    return 2


def _fill_standard_streams() -> None:
    """Open what was closed at the start (`>&-`) on the null device, or the next socket would get its number."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 - a descriptor, for the whole run
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


if __name__ == "__main__":
    sys.exit(main())
