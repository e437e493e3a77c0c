"""The order of forks by their names, for routes and layouts that a fork changed."""

from vc_fallback.chain import KNOWN_FORKS


def up_to(fork: str, last: str) -> bool:
    """Whether a fork is `last` or one before it. Forks that are not known come after those that are."""
    return fork.lower() in KNOWN_FORKS[: KNOWN_FORKS.index(last) + 1]
