"""Who has to do what in this epoch and the next."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

import vc_fallback as vf
from examples.minimal_vc.work import Attempt, Work

T = TypeVar("T")

RETRY = 1 / 8
"""Part of a slot after which duties are asked for again that no node gave."""


class Known(Generic[T]):
    """Duties of one kind by epoch, replaced when another block turns out to fix them.

    :param fetch: asks the nodes for those of an epoch.
    :param ahead: whether those of the next epoch are known by the middle of this one.
    """

    def __init__(
        self, work: Work, fetch: Callable[[Work, vf.Epoch], Awaitable[vf.Duties[T]]], *, ahead: bool = True
    ) -> None:
        self._work, self._fetch, self._ahead = work, fetch, ahead
        self._known: dict[vf.Epoch, vf.Duties[T]] = {}
        self._news: vf.Watch[None] = vf.Watch(None)

    async def at(self, slot: vf.Slot) -> list[T]:
        """Return the duties of a slot's epoch as soon as they are known; none where they are not by the slot's end."""
        epoch, news = self._work.slots.chain.epoch_of(slot), self._news.watcher()
        with anyio.CancelScope(deadline=self._work.slots.start_of(vf.Slot(slot + 1))):
            while epoch not in self._known:
                await news.wait()
        return self._known[epoch].data if epoch in self._known else []

    async def keep(self) -> None:
        """Fetch what is missing or outdated, at once, and then with each slot and each head."""
        slots, heads = self._work.slots, self._work.nodes.heads.latest.watcher()
        half = self._ahead * slots.duration * slots.chain.slots_per_epoch / 2
        while True:
            now = self._work.nodes.clock.now()
            slot, wanted = slots.slot_at(now), {slots.epoch_at(now), slots.epoch_at(now + half)}
            for epoch in wanted:
                if self._outdated(epoch):
                    with Attempt(self._work, slot, "duties", [None]):
                        self._known[epoch] = await self._fetch(self._work, epoch)
                        self._news.set(None)
            self._known = {epoch: duties for epoch, duties in self._known.items() if epoch >= min(wanted)}
            all_there = self._known.keys() >= wanted
            until = slots.start_of(vf.Slot(slot + 1)) if all_there else anyio.current_time() + RETRY * slots.duration
            with anyio.CancelScope(deadline=until):
                await heads.wait()

    def _outdated(self, epoch: vf.Epoch) -> bool:
        known = self._known.get(epoch)
        if known is None or known.dependent_root is None:
            return known is None
        # What fixes proposers by the first version of the route fixes the attesters of the next epoch.
        of = vf.Epoch(epoch + 1) if isinstance(known, vf.ProposerDuties) and known.version == 1 else epoch
        fixed = self._work.nodes.heads.dependent_root(of)
        return fixed is not None and fixed != known.dependent_root
