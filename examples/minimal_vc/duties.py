"""Who has to do what in this epoch and the next."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

import vc_fallback as vf
from examples.minimal_vc.turn import Turn

T = TypeVar("T")

RETRY = 1 / 8
"""Part of a slot after which duties are asked for again that no node gave."""


class Known(Generic[T]):
    """Duties of one kind by epoch, replaced when another block turns out to fix them.

    :param fetch: asks the nodes for those of an epoch.
    :param ahead: slots before an epoch at which they are fetched.
    """

    def __init__(self, fetch: Callable[[Turn, vf.Epoch], Awaitable[vf.Duties[T]]], ahead: int) -> None:
        self._fetch, self._ahead = fetch, ahead
        self._known: dict[vf.Epoch, vf.Duties[T]] = {}
        self._news: vf.Watch[None] = vf.Watch(None)

    async def at(self, turn: Turn, slot: vf.Slot) -> list[T]:
        """Return the duties of a slot's epoch as soon as they are known; none where they are not within the turn."""
        epoch, news = turn.slots.chain.epoch_of(slot), self._news.watcher()
        with anyio.CancelScope(deadline=turn.slots.start_of(vf.Slot(turn.slot + 1))):
            while epoch not in self._known:
                await news.wait()
        return self._known[epoch].data if epoch in self._known else []

    async def keep(self, now: Callable[[], Turn]) -> None:
        """Fetch what is missing or outdated, at once, and then with each slot and each head."""
        heads = now().nodes.heads.latest.watcher()
        while True:
            turn = now()
            wanted = {turn.slots.chain.epoch_of(vf.Slot(turn.slot + ahead)) for ahead in (0, self._ahead)}
            for epoch in sorted(wanted):
                if self._outdated(turn, epoch):
                    with turn.attempt("duties", [None]):
                        self._known[epoch] = await self._fetch(turn, epoch)
                        self._news.set(None)
            self._known = {epoch: duties for epoch, duties in self._known.items() if epoch >= min(wanted)}
            until = turn.slots.start_of(vf.Slot(turn.slot + 1))
            if not self._known.keys() >= wanted:
                until = turn.nodes.clock.now() + RETRY * turn.slots.duration
            with anyio.CancelScope(deadline=until):
                await heads.wait()

    def _outdated(self, turn: Turn, epoch: vf.Epoch) -> bool:
        known = self._known.get(epoch)
        if known is None or known.dependent_root is None:
            return known is None
        # Nodes without /eth/v2/validator/duties/proposer give proposers of epoch N with the last block before N, and v2
        # with the last one before N - 1. Heads name, as that of N + 1, what v1 gives for N.
        of = vf.Epoch(epoch + 1) if isinstance(known, vf.ProposerDuties) and known.version == 1 else epoch
        # Compared at each slot and head, what was fetched just before a change is seen as well, and what could not be
        # fetched is tried again. The events of `dependent_root_changes()` would tell of each change once.
        fixed = turn.nodes.heads.dependent_root(of)
        return fixed is not None and fixed != known.dependent_root
