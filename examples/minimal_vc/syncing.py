"""Members of the sync committee sign the head of each slot; one of each part of it puts together what that signed."""

from collections.abc import Collection

import anyio

import vc_fallback as vf
from examples.minimal_vc.containers import SYNC_SELECTION, root
from examples.minimal_vc.signing import Domain, is_aggregator
from examples.minimal_vc.turn import Turn

SUBCOMMITTEES = 4


async def duties(validators: Collection[int], turn: Turn, epoch: vf.Epoch) -> vf.Duties[vf.SyncCommitteeDuty]:
    """Fetch the duties of an epoch, and have the nodes gather messages."""
    found = (await turn.nodes.sync_committee_duties(epoch, validators)).value
    places = [(one.validator_index, one.validator_sync_committee_indices, vf.Epoch(epoch + 1)) for one in found.data]
    await turn.nodes.subscribe_sync_committees([vf.SyncCommitteeSubscription(*place) for place in places])
    return found


async def sign_head(turn: Turn, members: Collection[vf.SyncCommitteeDuty]) -> None:
    """Sign the root of the head as soon as it is there, or when messages are due; then contribute."""
    nodes, validators, messages = turn.nodes, [one.validator_index for one in members], {}
    with turn.attempt("sync_message", validators):
        head = await nodes.heads.wait_for_slot(turn.slot, turn.slots.sync_message_due(turn.slot))
        block = await nodes.sync_message_root(turn.slot, head=head)
        for validator in validators:
            signature = await turn.signer.other(validator, Domain.SYNC, turn.slot, block.value)
            message = vf.SyncCommitteeMessage(turn.slot, block.value, validator, signature)
            messages[validator] = message.encodings()
        await turn.publish("sync_message", messages, block.node_id, nodes.publish_sync_committee_messages)
        async with anyio.create_task_group() as tasks:
            for number in range(SUBCOMMITTEES):
                tasks.start_soon(contribute, turn, number, members, block)


async def contribute(
    turn: Turn, number: int, members: Collection[vf.SyncCommitteeDuty], block: vf.Sourced[vf.Root]
) -> None:
    """Publish what the nodes have of a subcommittee's messages when contributions are due."""
    signer, selection = turn.signer, root(SYNC_SELECTION, (turn.slot, number))
    size = (32 if turn.slots.chain.preset == "minimal" else 512) // SUBCOMMITTEES
    for duty in members:
        validator = duty.validator_index
        if number not in {place // size for place in duty.validator_sync_committee_indices}:
            continue
        proof = await signer.other(validator, Domain.SYNC_SELECTION, turn.slot, selection)
        if not is_aggregator(proof, size):
            continue
        with turn.attempt("contribution", [validator]):
            await anyio.sleep_until(turn.slots.contribution_due(turn.slot))
            found = await turn.nodes.sync_committee_contribution(turn.slot, number, block.value, source=block.node_id)
            message = vf.ContributionAndProof(validator, found.value, proof)
            signature = await signer.other(validator, Domain.CONTRIBUTION, turn.slot, message.hash_tree_root())
            ready = vf.SignedContributionAndProof(message, signature).encodings()
            await turn.publish("contribution", {validator: ready}, found.node_id, turn.nodes.publish_contributions)
        return  # One is enough, as with votes.
