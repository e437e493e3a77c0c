"""The client: finds its validators on the chain, and starts their duties slot by slot."""

from collections.abc import Callable, Iterable
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
    await nodes.wait_ready()
    slots, by_pubkey = nodes.slots, {key.pubkey: key for key in keys}
    assert slots is not None  # noqa: S101 - nodes that are ready are on a chain
    listed = (await nodes.validators("head", by_pubkey)).value.data
    ours = {one.index: by_pubkey[one.validator.pubkey] for one in listed}
    turn_of = partial(Turn, nodes, slots, Signer(slots.chain, ours, guard), write)
    ahead = slots.chain.slots_per_epoch // 2
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
            for _, members_of_it in groupby(due, committee):
                committees.start_soon(attesting.attest, turn, [*members_of_it])

    async def sign_head(turn: Turn) -> None:
        # What is signed at a slot goes into the next block, and is by the committee of that one's epoch.
        await syncing.sign_head(turn, await members.at(turn, vf.Slot(turn.slot + 1)))

    def now() -> Turn:
        return turn_of(vf.Slot(max(0, slots.slot_at(nodes.clock.now()))))

    async with anyio.create_task_group() as tasks:
        for known in (attesters, members, proposers):
            tasks.start_soon(known.keep, now)
        slot = now().slot
        while True:
            slot = vf.Slot(max(slot + 1, now().slot))
            await anyio.sleep_until(slots.start_of(slot))
            for duty in (propose, attest, sign_head):
                tasks.start_soon(duty, turn_of(slot))
