"""What is at hand in one slot, and how it is told what became of its duties."""

import json
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import vc_fallback as vf
from examples.minimal_vc.signing import Signer
from examples.minimal_vc.slashing_guard import Refused

Publish = Callable[[list[vf.Encodings]], Awaitable[vf.BroadcastResult]]

GOOD = (vf.Outcome.ACCEPTED, vf.Outcome.BROADCAST, vf.Outcome.UNCERTAIN)
"""Uncertain is what nodes have and none took: they have it from one that took it, and died before it could say so.
Broadcast is a block that a node sent on to others and did not import itself. Both may end on the chain, and nothing is
gained by sending them again; the line says in `detail` which it was."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A slot, the nodes, who signs, and where one JSON line for each duty goes."""

    nodes: vf.BeaconNodeFallback
    slots: vf.SlotClock
    signer: Signer
    write: Callable[[str], object]
    slot: vf.Slot

    @property
    def fork(self) -> str:
        """The slot's fork, which nodes want to know of what they are sent."""
        fork = self.slots.chain.fork_at(self.slots.chain.epoch_of(self.slot))
        return "" if fork is None else fork.name

    @property
    def next_end(self) -> float:
        """The end of the next slot, in loop time: until then votes are worth being published, if not for full."""
        return self.slots.start_of(vf.Slot(self.slot + 2))

    def tell(self, duty: str, validator: int | None, outcome: str, node_id: str = "", detail: str = "") -> None:
        """Write what became of a duty; `at` is when, in seconds into the slot."""
        at = round(self.slots.into_slot(self.nodes.clock.now(), self.slot), 3)
        line = {"slot": self.slot, "duty": duty, "validator": validator, "outcome": outcome, "at": at}
        self.write(json.dumps({**line, "node_id": node_id, "detail": detail}))

    @contextmanager
    def attempt(self, duty: str, validators: Collection[int | None]) -> Iterator[None]:
        """Whatever goes wrong within costs these validators this duty, and nobody anything else."""
        try:
            yield
        except Exception as error:
            if not isinstance(error, Refused | vf.FallbackError):
                logging.getLogger(__name__).exception("%s of slot %d", duty, self.slot)
            for validator in validators:
                outcome = "refused" if isinstance(error, Refused) else "missed"
                self.tell(duty, validator, outcome, detail=str(error) or repr(error))

    async def publish(self, duty: str, signed: Mapping[int, vf.Encodings], node_id: str, call: Publish) -> None:
        """Publish what validators have signed, and tell what became of it; `node_id` gave what they signed."""
        if not signed:
            return
        with self.attempt(duty, signed):
            result = await call([*signed.values()])
            for number, (validator, outcome) in enumerate(zip(signed, result.by_item, strict=True)):
                detail = "" if outcome is vf.Outcome.ACCEPTED else f"{outcome}: {result.reasons(number)}"
                self.tell(duty, validator, "published" if outcome in GOOD else "missed", node_id, detail)
