"""A reorg of the delivered chain in one line of text."""

from collections.abc import Callable

from vc_fallback.base.signals import ChainReorged
from vc_fallback.base.types import Root


def reorg_text(signal: ChainReorged, root: Callable[[Root], str]) -> str:
    """Say what left, for what, how deep it goes, and what it touches; nothing of what is not known.

    :param root: writes a root.
    """
    old, new = signal.old, signal.new
    parts = [f"slot {old.slot} {root(old.root)} left for slot {new.slot} {root(new.root)}"]
    if signal.depth is not None:
        parts.append(f"depth {signal.depth}")
    if signal.crosses_epoch:
        parts.append("crosses an epoch")
    touched = [
        word
        for word, holds in (("present", signal.touches_current_duties), ("next", signal.touches_next_duties))
        if holds
    ]
    if touched:
        parts.append(f"touches duties of the {' and the '.join(touched)} epoch")
    parts.append(f"reported by {', '.join(signal.reported_by)}" if signal.reported_by else "reported by no node")
    return ", ".join(parts)
