"""Members of the sync committee sign the head of each slot; some put together what their subcommittee signed."""

from collections.abc import Collection

import anyio

import vc_fallback as vf
from examples.minimal_vc.containers import SYNC_SELECTION, root
from examples.minimal_vc.signing import Domain, is_aggregator
from examples.minimal_vc.work import Work

SUBCOMMITTEES = 4


async def duties(validators: Collection[int], work: Work, epoch: vf.Epoch) -> vf.Duties[vf.SyncCommitteeDuty]:
    """Fetch duties, and have the nodes gather the messages of that epoch."""
    found = (await work.nodes.sync_committee_duties(epoch, validators)).value
    places = [(one.validator_index, one.validator_sync_committee_indices) for one in found.data]
    await work.nodes.subscribe_sync_committees(
        [vf.SyncCommitteeSubscription(validator, of, vf.Epoch(epoch + 1)) for validator, of in places]
    )
    return found


async def sign_head(work: Work, slot: vf.Slot, members: Collection[vf.SyncCommitteeDuty]) -> None:
    """Members sign the root of the head as soon as it is there, or when messages are due."""
    nodes = work.nodes
    size = (32 if work.slots.chain.preset == "minimal" else 512) // SUBCOMMITTEES

    async def get() -> vf.Sourced[vf.Root]:
        head = await nodes.heads.wait_for_slot(slot, work.slots.sync_message_due(slot))
        return await nodes.sync_message_root(slot, head=head)

    async def sign(validator: int, block: vf.Root) -> vf.Encodings:
        signature = await work.signer.other(validator, Domain.SYNC, slot, block)
        return vf.SyncCommitteeMessage(slot, block, validator, signature).encodings()

    validators = [one.validator_index for one in members]
    head = await work.do(slot, "sync_message", validators, get, sign, nodes.publish_sync_committee_messages)
    if head is None:
        return
    async with anyio.create_task_group() as tasks:
        for number in range(SUBCOMMITTEES):
            places = range(number * size, (number + 1) * size)
            of_it = [m.validator_index for m in members if any(p in places for p in m.validator_sync_committee_indices)]
            tasks.start_soon(contribute, work, slot, number, size, of_it, head)


async def contribute(
    work: Work, slot: vf.Slot, number: int, size: int, validators: Collection[int], head: vf.Sourced[vf.Root]
) -> None:
    """An aggregator of a subcommittee publishes what the nodes have of its messages when contributions are due.

    One of several is enough: nodes pass on no second contribution of the same messages (network specification).
    """
    selection = root(SYNC_SELECTION, (slot, number))
    for aggregator in validators:
        proof = await work.signer.other(aggregator, Domain.SYNC_SELECTION, slot, selection)
        if is_aggregator(proof, size):
            break
    else:
        return

    async def get() -> vf.Sourced[vf.SyncCommitteeContribution]:
        await anyio.sleep_until(work.slots.contribution_due(slot))
        return await work.nodes.sync_committee_contribution(slot, number, head.value, source=head.node_id)

    async def sign(validator: int, contribution: vf.SyncCommitteeContribution) -> vf.Encodings:
        message = vf.ContributionAndProof(validator, contribution, proof)
        signature = await work.signer.other(validator, Domain.CONTRIBUTION, slot, message.hash_tree_root())
        return vf.SignedContributionAndProof(message, signature).encodings()

    await work.do(slot, "contribution", [aggregator], get, sign, work.nodes.publish_contributions)
