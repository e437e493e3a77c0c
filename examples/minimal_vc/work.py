"""How every duty is done: get what is to be signed, sign it for each validator, publish, tell what became of it."""

import json
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import vc_fallback as vf
from examples.minimal_vc.signing import Signer
from examples.minimal_vc.slashing_guard import Refused

T = TypeVar("T")

GOOD = (vf.Outcome.ACCEPTED, vf.Outcome.BROADCAST, vf.Outcome.UNCERTAIN)
"""Uncertain is what nodes have and none took: they have it from one that took it, and died before it could say so."""


@dataclass(frozen=True, slots=True)
class Work:
    """What every duty needs, and where one JSON line for each goes."""

    nodes: vf.BeaconNodeFallback
    slots: vf.SlotClock
    signer: Signer
    write: Callable[[str], object]

    def fork(self, slot: vf.Slot) -> str:
        """Return the name of a slot's fork."""
        fork = self.slots.chain.fork_at(self.slots.chain.epoch_of(slot))
        return "capella" if fork is None else fork.name

    def tell(self, slot: vf.Slot, duty: str, validator: int | None, outcome: str, node_id: str, detail: str) -> None:
        """Write what became of a duty; `at` is when, in seconds into its slot."""
        at = round(self.slots.into_slot(self.nodes.clock.now(), slot), 3)
        line = {"slot": slot, "duty": duty, "validator": validator, "outcome": outcome, "at": at}
        self.write(json.dumps({**line, "node_id": node_id, "detail": detail}))

    async def do(
        self,
        slot: vf.Slot,
        duty: str,
        validators: Collection[int],
        get: Callable[[], Awaitable[vf.Sourced[T]]],
        sign: Callable[[int, T], Awaitable[vf.Encodings]],
        send: Callable[[list[vf.Encodings]], Awaitable[vf.BroadcastResult]],
    ) -> vf.Sourced[T] | None:
        """Do a duty of several validators that sign the same, and return what that is, if a node had it."""
        found: vf.Sourced[T] | None = None
        with Attempt(self, slot, duty, validators):
            found = await get()
        if found is None:
            return None
        signed: dict[int, vf.Encodings] = {}
        for validator in validators:
            with Attempt(self, slot, duty, [validator]):
                signed[validator] = await sign(validator, found.value)
        if signed:
            with Attempt(self, slot, duty, signed):
                result = await send([*signed.values()])
                for number, (validator, outcome) in enumerate(zip(signed, result.by_item, strict=True)):
                    detail = "" if outcome is vf.Outcome.ACCEPTED else f"{outcome}: {result.reasons(number)}"
                    became = "published" if outcome in GOOD else "missed"
                    self.tell(slot, duty, validator, became, found.node_id, detail)
        return found


class Attempt(NamedTuple):
    """Whatever goes wrong within costs these validators this duty, and nobody anything else."""

    work: Work
    slot: vf.Slot
    duty: str
    validators: Collection[int | None]

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, Exception):
            return False
        if not isinstance(error, Refused | vf.FallbackError):
            logging.getLogger(__name__).error("%s of slot %d", self.duty, self.slot, exc_info=error)
        for validator in self.validators:
            outcome = "refused" if isinstance(error, Refused) else "missed"
            self.work.tell(self.slot, self.duty, validator, outcome, "", str(error) or repr(error))
        return True
