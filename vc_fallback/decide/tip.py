"""Which slot the nodes together hold to be the newest (N5)."""

from collections.abc import Iterable

from vc_fallback.base.types import Slot


def tip(heights: Iterable[Slot], wall: Slot, served: Iterable[Slot] | None = None) -> Slot | None:
    """Return the tip of what the nodes show, or `None` when nobody shows anything usable.

    Heights beyond the wall-clock slot + 1 are discarded. Of three or more the second highest counts, so that one liar
    never moves it; of two the higher one, if its node serves that header; one is its own tip.

    :param heights: the slot of each node's head, one for each node.
    :param wall: the slot by the clock.
    :param served: those slots that came with a header, where it is not all of them: a head that was announced or asked
        for is one, the number in `node/syncing` is not.
    """
    usable = sorted((height for height in heights if height <= wall + 1), reverse=True)
    if not usable:
        return None
    if len(usable) == 2 and served is not None:
        return max((slot for slot in served if usable[1] <= slot <= usable[0]), default=usable[1])
    return usable[1] if len(usable) >= 3 else usable[0]
