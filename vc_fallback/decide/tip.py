"""Which slot the nodes together hold to be the newest (N5)."""

from collections.abc import Iterable

from vc_fallback.base.types import Slot


def tip(heights: Iterable[Slot], wall: Slot) -> Slot | None:
    """Return the tip of what the nodes show, or `None` when nobody shows anything usable.

    Heights beyond the wall-clock slot + 1 are discarded. Of three or more the second highest counts, so that one liar
    never moves it; of two the higher one, whose header its node serves (that is how it came to be shown); one is its
    own tip.

    :param heights: the slot of each node's head, one for each node.
    :param wall: the slot by the clock.
    """
    usable = sorted((height for height in heights if height <= wall + 1), reverse=True)
    if not usable:
        return None
    return usable[1] if len(usable) >= 3 else usable[0]
