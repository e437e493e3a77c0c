"""The configuration file of the command: read at the start, and again at SIGHUP (O6)."""

import logging
import stat
from pathlib import Path

import anyio

from vc_fallback.base.errors import ConfigurationError
from vc_fallback.base.redact import printable
from vc_fallback.cli.stopping import HANGUP, released
from vc_fallback.config import FallbackConfig
from vc_fallback.heads.monitor import HeadMonitor

logger = logging.getLogger(__name__)


def load(path: Path) -> FallbackConfig:
    """Read a configuration file that names one beacon node or more, as the command wants it (G6).

    :raises ConfigurationError: naming the field; no value is repeated.
    """
    config = FallbackConfig.load(path)
    if not config.candidates:
        raise ConfigurationError("candidates", "at least one beacon node is needed")
    return config


async def reload_on_hangup(path: Path, running: FallbackConfig, monitor: HeadMonitor) -> None:
    """Read the file again at each SIGHUP, for ever.

    :param running: what the monitor was started with.
    """
    reload = Reload(path, running, monitor)
    with anyio.open_signal_receiver(*HANGUP) as received, released(*HANGUP):
        async for _ in received:
            reload()


class Reload:
    """Reads the file and gives its candidates to the monitor; what cannot be used changes nothing.

    A file of 100 nodes takes some 12 ms.
    """

    def __init__(self, path: Path, running: FallbackConfig, monitor: HeadMonitor) -> None:
        self._path = path
        self._running = running
        self._candidates = running.candidate_list()
        self._monitor = monitor

    def __call__(self) -> None:
        """Do it once."""
        try:
            self._reload()
        except ConfigurationError as error:
            logger.error("the configuration stays as it was: %s", printable(str(error)))
        except Exception:
            logger.exception("the configuration could not be read again")

    def _reload(self) -> None:
        if _is_pipe(self._path):
            # Opening it would wait for a writer, and everything with it.
            raise ConfigurationError("config", "a pipe cannot be read again")
        config = load(self._path)
        candidates = config.candidate_list()
        same = candidates == self._candidates
        if not same:
            self._monitor.update_candidates(candidates)
            self._candidates = candidates
        logger.info("configuration read again, the candidates are %s", "the same" if same else "new")
        waiting = [name for name in FallbackConfig.model_fields if _differs(name, self._running, config)]
        if waiting:
            logger.warning("these settings are others in the file now, which takes a restart: %s", ", ".join(waiting))


def _is_pipe(path: Path) -> bool:
    try:
        return stat.S_ISFIFO(path.stat().st_mode)
    except OSError:
        # Reading it says what is wrong.
        return False


def _differs(section: str, running: FallbackConfig, config: FallbackConfig) -> bool:
    if section == "candidates":
        return False
    # What was set counts too: a default scales with the slot, the same value set does not.
    return _section(running, section) != _section(config, section)


def _section(config: FallbackConfig, name: str) -> object:
    return config.model_dump(include={name}), config.model_dump(include={name}, exclude_unset=True)
