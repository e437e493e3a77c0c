"""What an event means, whatever node told it and however it was written (T6): the key by which copies are known.

Three nodes tell of the same block, attestation or slashing, each in its own spelling. Two events of a topic are copies
where their meanings are equal. What a node thinks of a thing (whether it is optimistic, which state it computed) is no
part of it, and neither is a signature: over the same message there is one.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from vc_fallback.node.events import HeadEvent, ReorgEvent
from vc_fallback.node.values.attestation import SingleAttestation
from vc_fallback.node.values.blocks import BeaconBlockHeader
from vc_fallback.node.values.events import (
    AttestationEvent,
    AttesterSlashing,
    BlockEvent,
    DataColumnSidecarEvent,
    FastConfirmationEvent,
    FinalizedCheckpointEvent,
    LightClientFinalityUpdate,
    LightClientOptimisticUpdate,
    PayloadAttributesEvent,
    PayloadAvailableEvent,
    PayloadEvent,
    SignedExecutionPayloadBid,
)
from vc_fallback.node.values.operations import ProposerSlashing, SignedBLSToExecutionChange, SignedVoluntaryExit
from vc_fallback.node.values.payload_attestation import PayloadAttestationMessage
from vc_fallback.node.values.preparations import SignedProposerPreferences
from vc_fallback.node.values.sync_committee import SignedContributionAndProof

Meaning = tuple[object, ...]
"""Numbers, bytes, flags, `None`, and tuples and lists of them."""


def _head(head: HeadEvent) -> Meaning:
    """A block's payload that came is news of the same block (H11)."""
    return head.slot, head.block, head.payload_status


def _reorg(reorg: ReorgEvent) -> Meaning:
    """From where to where, and when: the same two blocks may be changed for each other again in another slot.

    The depth does not count: it is a number that nodes make of these, each in its own way.
    """
    return reorg.slot, reorg.old_head_block, reorg.new_head_block


def _block(event: BlockEvent) -> Meaning:
    """The slot is in what the root is of, and is told too: it costs nothing that a wrong one differs."""
    return event.slot, event.block


def _attestation(event: AttestationEvent | SingleAttestation) -> Meaning:
    """The vote and whose it is: another set of bits is another aggregate, though of the same vote."""
    if isinstance(event, SingleAttestation):
        return _single_attestation(event)
    return event.data.to_ssz(), event.aggregation_bits, event.committee_bits


def _single_attestation(event: SingleAttestation) -> Meaning:
    """The whole vote: two that one validator may not both cast are two events, and who looks for them gets both."""
    return event.attester_index, event.committee_index, event.data.to_ssz()


def _exit(signed: SignedVoluntaryExit) -> Meaning:
    """All of the message."""
    return signed.message.validator_index, signed.message.epoch


def _proposer_slashing(slashing: ProposerSlashing) -> Meaning:
    """The two headers, in either order: other evidence against the same proposer is told as well."""
    return tuple(sorted(_header(signed.message) for signed in (slashing.signed_header_1, slashing.signed_header_2)))


def _attester_slashing(slashing: AttesterSlashing) -> Meaning:
    """The two votes with their voters, in either order: another slashing may catch others."""
    one, two = slashing.attestation_1, slashing.attestation_2
    return slashing_meaning((one.data.to_ssz(), one.attesting_indices), (two.data.to_ssz(), two.attesting_indices))


def slashing_meaning(one: tuple[bytes, list[int]], two: tuple[bytes, list[int]]) -> Meaning:
    """Return the meaning of a slashing of which either attestation is given by its data's serialisation and indices."""
    return (one, two) if one <= two else (two, one)


def _credentials(signed: SignedBLSToExecutionChange) -> Meaning:
    """All of the message."""
    change = signed.message
    return change.validator_index, change.from_bls_pubkey, change.to_execution_address


def _finalized(event: FinalizedCheckpointEvent) -> Meaning:
    """The checkpoint. Nodes have named states that are of no block (case 16): the state does not count."""
    return event.epoch, event.block


def _contribution(signed: SignedContributionAndProof) -> Meaning:
    """Who contributes what: an aggregator may be heard with other bits by another node."""
    of = signed.message.contribution
    return signed.message.aggregator_index, of.slot, of.subcommittee_index, of.beacon_block_root, of.aggregation_bits


def _optimistic_update(update: LightClientOptimisticUpdate) -> Meaning:
    """The header and who signed it when: the same header comes again when more have signed."""
    return _header(update.attested_header.beacon), update.signature_slot, update.sync_aggregate.sync_committee_bits


def _finality_update(update: LightClientFinalityUpdate) -> Meaning:
    """As of the optimistic update, and what is final by it."""
    attested, finalized = update.attested_header.beacon, update.finalized_header.beacon
    return _header(attested), _header(finalized), update.signature_slot, update.sync_aggregate.sync_committee_bits


def _payload_attributes(event: PayloadAttributesEvent) -> Meaning:
    """Where the payload is to be: the same parent comes again after a missed slot, and two parents in one (case 9).

    The execution layer's hash goes with the block's root until Gloas. From there on a parent with its payload and the
    same parent without are two. What differs besides, such as the fee recipient, is each node's own setting.
    """
    return event.proposal_slot, event.parent_block_root, event.parent_block_hash


def _data_column(event: DataColumnSidecarEvent) -> Meaning:
    """The column of a block."""
    return event.block_root, event.index


def _payload(event: PayloadEvent) -> Meaning:
    """The block; its bid fixes builder and hash, which cost nothing."""
    return event.slot, event.block_root, event.builder_index, event.block_hash


def _payload_available(event: PayloadAvailableEvent) -> Meaning:
    return event.slot, event.block_root


def _bid(signed: SignedExecutionPayloadBid) -> Meaning:
    """What is offered to whom: a builder may raise its bid."""
    bid = signed.message
    return bid.slot, bid.builder_index, bid.parent_block_root, bid.parent_block_hash, bid.block_hash, bid.value


def _payload_attestation(message: PayloadAttestationMessage) -> Meaning:
    """The whole vote, as of a single attestation."""
    data = message.data
    voted = data.payload_present, data.blob_data_available
    return message.validator_index, data.slot, data.beacon_block_root, *voted


def _fast_confirmation(event: FastConfirmationEvent) -> Meaning:
    """It comes at every run, also when nothing has changed: the slot of the run counts."""
    return event.current_slot, event.slot, event.block


def _preferences(signed: SignedProposerPreferences) -> Meaning:
    """All of the message."""
    wanted = signed.message
    where = wanted.validator_index, wanted.proposal_slot, wanted.dependent_root
    return *where, wanted.fee_recipient, wanted.target_gas_limit


def _header(header: BeaconBlockHeader) -> Meaning:
    return header.slot, header.proposer_index, header.parent_root, header.state_root, header.body_root


MEANINGS: Mapping[str, Callable[[Any], Meaning]] = {
    "head": _head,
    "head_v2": _head,
    "block": _block,
    "block_gossip": _block,
    "attestation": _attestation,
    "single_attestation": _single_attestation,
    "voluntary_exit": _exit,
    "bls_to_execution_change": _credentials,
    "proposer_slashing": _proposer_slashing,
    "attester_slashing": _attester_slashing,
    "finalized_checkpoint": _finalized,
    "chain_reorg": _reorg,
    "contribution_and_proof": _contribution,
    "light_client_finality_update": _finality_update,
    "light_client_optimistic_update": _optimistic_update,
    "payload_attributes": _payload_attributes,
    "data_column_sidecar": _data_column,
    "execution_payload": _payload,
    "execution_payload_gossip": _payload,
    "execution_payload_available": _payload_available,
    "execution_payload_bid": _bid,
    "payload_attestation_message": _payload_attestation,
    "fast_confirmation": _fast_confirmation,
    "proposer_preferences": _preferences,
}
"""The meaning of an event, by topic."""

pack = msgspec.msgpack.Encoder().encode
"""Write a meaning as bytes: equal ones as equal bytes, and others as others."""
