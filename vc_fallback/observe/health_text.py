"""Health in words, for lines, events and logs."""

from collections.abc import Callable, Iterable, Mapping

from vc_fallback.base.health_signals import (
    AllUnhealthy,
    BranchesDiffer,
    ClockDoubted,
    DutiesMoved,
    FinalityDiffers,
    HealthChanged,
)
from vc_fallback.base.types import NodeId, Root
from vc_fallback.observe.health_news import News, Turn
from vc_fallback.observe.words import shown


def news_text(signal: HealthChanged, news: Iterable[News]) -> str:
    """Return what is new of a node, without its name."""
    return ", ".join(_turn(signal, item) for item in news)


def moved_text(signal: DutiesMoved) -> str:
    """Return who has the duties now, and why."""
    reason = shown(signal.reason)
    if signal.kind == "start":
        return f"{signal.target} has the duties: {reason}"
    return f"{signal.kind} from {signal.source} to {signal.target or 'no node'}: {reason}"


def all_unhealthy_text(signal: AllUnhealthy) -> str:
    """Return what it means that no node is healthy (N10), or that one is again."""
    if signal.begins:
        return "no node is healthy any more: requests are still tried, in order of rank"
    return "a node is healthy again"


def branches_text(signal: BranchesDiffer, root: Callable[[Root], str]) -> str:
    """Return who is on another branch (N3); `root` writes a root."""
    if signal.blamed is not None:
        if not signal.reason and signal.slot is None:
            return f"{signal.blamed} is no longer compared with the others"
        if not signal.reason:
            return f"{signal.blamed} is on the branch of the others again"
        return f"{signal.blamed} is on another branch than the others: {shown(signal.reason)}"
    if not signal.roots:
        return "the nodes are on one branch again"
    return f"the nodes are on different branches at slot {signal.slot}: {_roots(signal.roots, root)}"


def finality_text(signal: FinalityDiffers, root: Callable[[Root], str]) -> str:
    """Return who has finalized what (N3); `root` writes a root."""
    return f"nodes have finalized different blocks for epoch {signal.epoch}: {_roots(signal.roots, root)}"


def clock_text(signal: ClockDoubted) -> str:
    """Return whose clock is in doubt, or is so no more (N8)."""
    whose = "our own clock" if signal.node_id is None else f"the clock of {signal.node_id}"
    if not signal.warning:
        return f"{whose} is in doubt no more"
    return f"{whose} is in doubt: {shown(signal.warning)}"


def _turn(signal: HealthChanged, news: News) -> str:
    detail = shown(signal.detail)
    match news.turn:
        case Turn.SUSPECT | Turn.UNHEALTHY | Turn.RECOVERING:
            return f"{news.turn}: {detail}"
        case Turn.CLEARED | Turn.RECOVERED:
            return f"healthy again after {news.gone or 0.0:.1f} s: {detail}"
        case Turn.OPTIMISTIC:
            return "optimistic: it follows blocks that its execution layer has not verified"
        case Turn.VERIFIED:
            return "optimistic no more"
        case Turn.EL_OFFLINE:
            return "its execution layer is offline"
        case Turn.EL_BACK:
            return "its execution layer is back"


def _roots(roots: Mapping[Root, tuple[NodeId, ...]], root: Callable[[Root], str]) -> str:
    return ", ".join(f"{root(shown_root)} ({', '.join(nodes)})" for shown_root, nodes in roots.items())
