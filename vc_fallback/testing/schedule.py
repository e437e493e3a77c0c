"""When the forks of a simulated chain begin."""

from collections.abc import Mapping

from vc_fallback.base.types import Epoch
from vc_fallback.chain import Fork
from vc_fallback.testing.containers.presets import FORKS


def scheduled_forks(forks: Mapping[str, int] | None, gloas_epoch: int | None) -> tuple[Fork, ...]:
    """Return the schedule, by the rules of `SimulatedChain`.

    :raises ValueError: for a name that is none, or epochs that fall.
    """
    named = {"fulu": 0} if forks is None else {**forks}
    if gloas_epoch is not None:
        named["gloas"] = gloas_epoch
    unknown = named.keys() - set(FORKS)
    if unknown or not named:
        raise ValueError(f"forks: names are {', '.join(FORKS)}")
    epochs: dict[str, int] = {}
    later = None
    for name in reversed(FORKS):
        if name in named:
            if later is not None and named[name] > later:
                raise ValueError("forks: epochs rise with the forks")
            later = named[name]
        if later is not None:
            epochs[name] = later
    first = min(FORKS.index(name) for name in named)
    return tuple(
        Fork(name, fork_version(name), Epoch(0 if place < first else epochs[name]))
        for place, name in enumerate(FORKS)
        if name in epochs
    )


def fork_version(name: str) -> bytes:
    """Return the version of a fork."""
    return bytes((FORKS.index(name), 0, 0, 1))
