"""The client: finds its validators on the chain, and starts their duties slot by slot."""

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import attrgetter

import anyio

import vc_fallback as vf
from examples.minimal_vc import attesting, proposing, syncing
from examples.minimal_vc.duties import Known
from examples.minimal_vc.keys import Key
from examples.minimal_vc.signing import Signer
from examples.minimal_vc.slashing_guard import SlashingGuard
from examples.minimal_vc.turn import Turn


async def run(
    nodes: vf.BeaconNodeFallback, keys: Iterable[Key], guard: SlashingGuard, write: Callable[[str], object]
) -> None:
    """Do all duties of the validators that have these keys, until this is cancelled; `write` is given JSON lines."""
    by_pubkey, ours = {key.pubkey: key for key in keys}, dict[int, Key]()
    while not ours:
        await nodes.wait_ready()
        with suppress(vf.FallbackError):
            listed = (await nodes.validators("head", by_pubkey)).value.data
            ours = {one.index: by_pubkey[one.validator.pubkey] for one in listed}
        if not ours:
            logging.getLogger(__name__).warning("of %d keys no node knows a validator; asking again", len(by_pubkey))
            await anyio.sleep(1)

    def turn_of(slot: int) -> Turn:
        slots = nodes.slots
        assert slots is not None  # noqa: S101 - nodes that are ready are on a chain
        return Turn(nodes, slots, Signer(slots.chain, ours, guard), write, vf.Slot(slot))

    def now() -> Turn:
        first = turn_of(0)
        return turn_of(max(0, first.slots.slot_at(nodes.clock.now())))

    ahead = now().slots.chain.slots_per_epoch // 2
    attesters, members = Known(partial(attesting.duties, ours), ahead), Known(partial(syncing.duties, ours), ahead)
    proposers = Known(partial(proposing.duties, ours), 0)

    async def propose(turn: Turn) -> None:
        for duty in await proposers.at(turn, turn.slot):
            if duty.slot == turn.slot and duty.validator_index in ours:
                await proposing.propose(turn, duty.validator_index)

    async def attest(turn: Turn) -> None:
        committee = attrgetter("committee_index")
        due = sorted((duty for duty in await attesters.at(turn, turn.slot) if duty.slot == turn.slot), key=committee)
        async with anyio.create_task_group() as committees:
            for _, of_it in groupby(due, committee):
                committees.start_soon(attesting.attest, turn, [*of_it])

    async def sign_head(turn: Turn) -> None:
        # What is signed at a slot goes into the next block, and is by the committee of that one's epoch.
        await syncing.sign_head(turn, await members.at(turn, vf.Slot(turn.slot + 1)))

    async with anyio.create_task_group() as tasks:
        for known in (attesters, members, proposers):
            tasks.start_soon(known.keep, now)
        turn = now()
        while True:
            turn = turn_of(max(turn.slot + 1, now().slot))
            await anyio.sleep_until(turn.slots.start_of(turn.slot))
            for duty in (propose, attest, sign_head):
                tasks.start_soon(duty, turn)
