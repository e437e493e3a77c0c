"""The version, as it is shown."""

from importlib.metadata import PackageNotFoundError, version


def version_line() -> str:
    """Return the name of the command and its version."""
    try:
        return f"vc-fallback {version('vc-fallback')}"
    except PackageNotFoundError:
        return "vc-fallback (run from a source tree, not installed)"
