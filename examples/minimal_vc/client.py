"""The client: finds its validators on the chain, and starts their duties slot by slot."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

import vc_fallback as vf
from examples.minimal_vc import attesting, proposing, syncing
from examples.minimal_vc.duties import Known
from examples.minimal_vc.signing import Key, Signer
from examples.minimal_vc.slashing_guard import SlashingGuard
from examples.minimal_vc.work import Work


async def run(
    nodes: vf.BeaconNodeFallback,
    keys: Iterable[Key],
    guard: SlashingGuard,
    write: Callable[[str], object],
    blocking: Callable[..., Any] = to_thread.run_sync,
) -> None:
    """Do all duties of the validators that have these keys, until this is cancelled.

    :param write: is given a JSON line for each duty.
    :param blocking: as of :class:`Signer`.
    """
    await nodes.wait_ready()
    slots, by_pubkey = nodes.slots, {key.pubkey: key for key in keys}
    assert slots is not None  # noqa: S101 - nodes that are ready are on a chain
    ours = {
        one.index: by_pubkey[one.validator.pubkey] for one in (await nodes.validators("head", by_pubkey)).value.data
    }
    work = Work(nodes, slots, Signer(slots.chain, ours, guard, blocking), write)
    attesters = Known(work, partial(attesting.duties, ours))
    members = Known(work, partial(syncing.duties, ours))
    proposers = Known(work, partial(proposing.duties, ours), ahead=False)

    async def propose(slot: vf.Slot) -> None:
        for duty in await proposers.at(slot):
            if duty.slot == slot and duty.validator_index in ours:
                await proposing.propose(work, slot, duty.validator_index)

    async def attest(slot: vf.Slot) -> None:
        due = [duty for duty in await attesters.at(slot) if duty.slot == slot]
        async with anyio.create_task_group() as committees:
            for index in {duty.committee_index for duty in due}:
                committee = {duty.validator_index: duty for duty in due if duty.committee_index == index}
                committees.start_soon(attesting.attest, work, slot, committee)

    async def sign_head(slot: vf.Slot) -> None:
        # What is signed at a slot goes into the next block: by the committee of that one's epoch.
        await syncing.sign_head(work, slot, await members.at(vf.Slot(slot + 1)))

    async with anyio.create_task_group() as tasks:
        for known in (attesters, members, proposers):
            tasks.start_soon(known.keep)
        slot = slots.slot_at(nodes.clock.now())
        while True:
            slot = vf.Slot(max(slot + 1, slots.slot_at(nodes.clock.now()), 1))
            await anyio.sleep_until(slots.start_of(slot))
            for duty in (propose, attest, sign_head):
                tasks.start_soon(duty, slot)
