"""The order of forks by their names, for routes and layouts that a fork changed."""

_FORKS = ("phase0", "altair", "bellatrix", "capella", "deneb", "electra", "fulu", "gloas")


def up_to(fork: str, last: str) -> bool:
    """Whether a fork is `last` or one before it. Forks that are not known come after those that are."""
    return fork.lower() in _FORKS[: _FORKS.index(last) + 1]
