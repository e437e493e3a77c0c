"""The failure log (H9, N9, N10): loud about failures 1, 2, 4, 8, … in a row, quiet about the rest.

The library logs nothing of this by itself, since :mod:`vc_fallback.heads` knows no observers: whoever wants it hands a
:class:`FailureLog` to the monitor, as the command does.
"""

import logging
from dataclasses import dataclass

from vc_fallback.base.health_signals import (
    AllUnhealthy,
    BranchesDiffer,
    ClockDoubted,
    DutiesMoved,
    FinalityDiffers,
    HealthChanged,
)
from vc_fallback.base.signals import (
    ChainReorged,
    DependentRootChanged,
    GateChanged,
    GenerationChanged,
    HeadOutcome,
    NodeHeadSeen,
    NodeQuarantined,
    Signal,
    Started,
    StreamChanged,
    StreamReason,
    StreamState,
)
from vc_fallback.base.types import HeadSource, NodeId, root_hex
from vc_fallback.observe.health_news import HealthNews, News, Turn
from vc_fallback.observe.health_text import (
    all_unhealthy_text,
    branches_text,
    clock_text,
    finality_text,
    moved_text,
    news_text,
)
from vc_fallback.observe.reorg_text import reorg_text
from vc_fallback.observe.words import shown

logger = logging.getLogger(__name__)

_SHOWS_LIFE = frozenset({HeadOutcome.DELIVERED, HeadOutcome.DUPLICATE, HeadOutcome.TIER, HeadOutcome.OPTIMISTIC})
"""What becomes of a head of a stream that works; another may be one of a burst of old heads."""

_CONNECTED = frozenset({StreamState.REQUESTED, StreamState.OPEN, StreamState.STALLED})

_WARNINGS = frozenset({Turn.SUSPECT, Turn.UNHEALTHY, Turn.OPTIMISTIC, Turn.EL_OFFLINE})
_STEPS = frozenset({Turn.RECOVERING})
"""Steps on the way back, which are no news to a log: the recovery is one line."""


@dataclass(slots=True)
class _Stream:
    state: StreamState | None = None
    gone_since: float | None = None
    stalled: bool = False
    failures: int = 0
    mismatch: str = ""


class FailureLog:
    """An observer that writes to :mod:`logging`, under the name of this module."""

    __slots__ = ("_health", "_streams")

    def __init__(self) -> None:
        self._streams: dict[NodeId, _Stream] = {}
        self._health = HealthNews()

    def __call__(self, signal: Signal) -> None:
        """Log a signal, where it is worth it."""
        for news in self._health(signal):
            if isinstance(signal, HealthChanged):
                _log_news(signal, news)
        match signal:
            case StreamChanged():
                self._stream(signal)
            case NodeHeadSeen():
                self._head(signal)
            case GenerationChanged():
                logger.info(
                    "generation %d: added [%s], removed [%s], changed [%s], kept [%s]",
                    signal.generation,
                    *(", ".join(nodes) for nodes in (signal.added, signal.removed, signal.changed, signal.kept)),
                )
                for node_id in signal.removed:
                    self._streams.pop(node_id, None)
            case GateChanged():
                if signal.open:
                    logger.warning("tier gate open, heads of fallbacks are delivered: %s", shown(signal.reason))
                else:
                    logger.info("tier gate closed, held by %s", signal.holder)
            case NodeQuarantined():
                self._quarantined(signal)
            case DependentRootChanged():
                logger.info(
                    "dependent root of epoch %d: %s became %s, shown by [%s]",
                    signal.epoch,
                    root_hex(signal.old),
                    root_hex(signal.new),
                    ", ".join(signal.nodes),
                )
            case ChainReorged():
                logger.info("reorg: %s", reorg_text(signal, root_hex))
            case Started():
                if signal.genesis_time is None:
                    logger.info("following %d nodes, their chain is not known yet", len(signal.nodes))
                else:
                    logger.info("following %d nodes, slots of %s s", len(signal.nodes), signal.slot_duration)
            case DutiesMoved():
                logger.info("%s", moved_text(signal))
            case AllUnhealthy():
                logger.log(logging.ERROR if signal.begins else logging.INFO, "%s", all_unhealthy_text(signal))
            case FinalityDiffers():
                logger.critical("%s", finality_text(signal, root_hex))
            case BranchesDiffer():
                over = not (signal.reason or signal.roots)
                level = logging.INFO if over else logging.WARNING
                logger.log(
                    level if self._health.branches(signal) else logging.DEBUG, "%s", branches_text(signal, root_hex)
                )
            case ClockDoubted():
                level = logging.WARNING if signal.warning else logging.INFO
                logger.log(level if self._health.clock(signal) else logging.DEBUG, "%s", clock_text(signal))

    def _stream(self, signal: StreamChanged) -> None:
        stream = self._streams.setdefault(signal.node_id, _Stream())
        stream.state = signal.state
        if signal.state is StreamState.STOPPED:
            logger.debug("%s: stream stopped: %s", signal.node_id, _reason(signal))
            # Told after its node left the list; a stream that takes its place begins anew.
            del self._streams[signal.node_id]
        elif signal.state is StreamState.BACKOFF and signal.retry_in is not None:
            self._failed(signal, stream)
        elif signal.state is StreamState.STALLED or (
            signal.state in _CONNECTED and signal.reason is StreamReason.START_GRACE_OVER
        ):
            self._stalled(signal, stream)
        elif signal.reason is StreamReason.TOPICS_REDUCED:
            logger.warning("%s: asks for fewer topics: %s", signal.node_id, _reason(signal))
        else:
            logger.debug("%s: stream %s: %s", signal.node_id, signal.state, _reason(signal))
            if signal.reason is StreamReason.CURRENT_HEAD:
                self._fresh(signal, stream)

    def _head(self, signal: NodeHeadSeen) -> None:
        # A stream that was away for a short time is fresh as soon as it is answered (H6), but it has recovered with a
        # head only: one that is answered and ended again and again has not.
        stream = self._streams.get(signal.node_id)
        if stream is None or stream.state is not StreamState.FRESH:
            return
        if signal.source is HeadSource.STREAM and signal.outcome in _SHOWS_LIFE:
            self._fresh(signal, stream)

    def _fresh(self, signal: StreamChanged | NodeHeadSeen, stream: _Stream) -> None:
        if stream.gone_since is not None:
            gone = signal.at - stream.gone_since
            logger.info("%s: fresh again after %.1f s (%d failures)", signal.node_id, gone, stream.failures)
            self._streams[signal.node_id] = _Stream(state=stream.state, mismatch=stream.mismatch)

    def _stalled(self, signal: StreamChanged, stream: _Stream) -> None:
        if stream.gone_since is None:
            stream.gone_since = signal.at
        level = logging.DEBUG if stream.stalled else logging.WARNING
        logger.log(level, "%s: stream stalled: %s", signal.node_id, _reason(signal))
        stream.stalled = True

    def _failed(self, signal: StreamChanged, stream: _Stream) -> None:
        if stream.gone_since is None:
            stream.gone_since = signal.at
        stream.failures = signal.failures
        loud = signal.failures > 0 and signal.failures & (signal.failures - 1) == 0
        # A clean end is no error of the node; if it then stays away, the next failures are.
        level = logging.WARNING if loud and signal.reason is not StreamReason.ENDED else logging.DEBUG
        wait = "" if signal.retry_in is None else f", next attempt in {signal.retry_in:.1f} s"
        logger.log(
            level, "%s: stream lost: %s, failure %d in a row%s", signal.node_id, _reason(signal), signal.failures, wait
        )

    def _quarantined(self, signal: NodeQuarantined) -> None:
        stream = self._streams.setdefault(signal.node_id, _Stream())
        mismatch = shown(signal.mismatch)
        if not mismatch:
            logger.info("%s: fits the chain again", signal.node_id)
        else:
            level = logging.DEBUG if mismatch == stream.mismatch else logging.ERROR
            logger.log(level, "%s: quarantined, it is on another chain: %s", signal.node_id, mismatch)
        stream.mismatch = mismatch


def _log_news(signal: HealthChanged, news: News) -> None:
    level = logging.WARNING if news.turn in _WARNINGS else logging.INFO
    if news.turn in _STEPS or not news.loud:
        level = logging.DEBUG
    logger.log(level, "%s: %s", signal.node_id, news_text(signal, [news]))


def _reason(signal: StreamChanged) -> str:
    detail = shown(signal.detail)
    return f"{signal.reason} ({detail})" if detail else str(signal.reason)
