"""What real clients say, one text at least for each row of `vc_fallback.node.wording`, and how each of them says it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.rawserver import answer
from vc_fallback.node.wording import Meaning

ROOT = "0x" + "c7" * 32
_OPTIMISTIC = f"HeadBlockNotFullyVerified {{ beacon_block_root: {ROOT}, execution_status: Optimistic({ROOT}) }}"
_UNVALIDATED = f"Block's execution payload not yet validated, executionPayloadBlockHash={ROOT} number=9"
_DETAILS = '{"data":{"head_slot":"7","sync_distance":"92","is_syncing":true}}'
_RELAY = '{"code":502,"message":"no successful relay response"}'
_DEPRECATED_BOTH = "endpoints were deprecated and replaced by v2: https://github.com/ethereum/beacon-APIs/pull/218"
_DEPRECATED = "endpoint was deprecated and replaced by v2: https://github.com/ethereum/beacon-APIs/pull/220"


@dataclass(frozen=True)
class Said:
    """A text, the status that it comes with, and what it means."""

    client: str
    status: int
    text: str
    meaning: Meaning

    def __str__(self) -> str:
        return f"{self.client}, {self.text[:60]}"

    @property
    def body(self) -> bytes:
        """The body of the answer, in the form of its client."""
        value: dict[str, Any] = {"code": self.status, "message": self.text}
        match self.client:
            case "Lighthouse" | "Nimbus":
                value["stacktraces"] = []
            case "Lodestar":
                value = {"statusCode": self.status, "error": "Some Error", "message": self.text}
        return json.dumps(value).encode()

    @property
    def answer(self) -> bytes:
        """All of it, in bytes."""
        return answer(self.body, status=f"{self.status} -", headers="Content-Type: application/json\r\n")


_TEXTS: Mapping[Meaning, Mapping[str, Sequence[tuple[int, str]]]] = {
    Meaning.ALREADY_KNOWN: {
        "Lodestar": [
            (500, "PublishError.Duplicate"),
            (500, "ATTESTATION_ERROR_ATTESTATION_ALREADY_KNOWN"),
            (500, "ATTESTATION_ERROR_AGGREGATOR_ALREADY_KNOWN"),
            (500, "ATTESTATION_ERROR_ATTESTERS_ALREADY_KNOWN"),
            (500, "ATTESTATION_ERROR_PRIOR_ATTESTATION_KNOWN"),
            (500, "BLOCK_ERROR_ALREADY_KNOWN"),
            (500, "SYNC_COMMITTEE_ERROR_SYNC_COMMITTEE_MESSAGE_KNOWN"),
            (500, "SYNC_COMMITTEE_ERROR_SYNC_COMMITTEE_AGGREGATOR_ALREADY_KNOWN"),
            (500, "SYNC_COMMITTEE_ERROR_SYNC_COMMITTEE_PARTICIPANTS_ALREADY_KNOWN"),
            (500, "VOLUNTARY_EXIT_ERROR_ALREADY_EXISTS"),
            (500, "BLS_TO_EXECUTION_CHANGE_ERROR_ALREADY_EXISTS"),
            (500, "ATTESTATION_SLASHING_ERROR_ALREADY_EXISTS"),
            (500, "PROPOSER_SLASHING_ERROR_ALREADY_EXISTS"),
            (500, "PAYLOAD_ATTESTATION_ERROR_PAYLOAD_ATTESTATION_ALREADY_KNOWN"),
            (500, "EXECUTION_PAYLOAD_ENVELOPE_ERROR_ALREADY_KNOWN"),
        ],
        "Lighthouse": [
            (400, "BAD_REQUEST: duplicate block"),
            (400, f"BAD_REQUEST: Invalid block: BlockIsAlreadyKnown({ROOT})"),
            (400, "BAD_REQUEST: BlockIsAlreadyKnown"),
            (400, "PriorAttestationKnown { validator_index: 5, epoch: Epoch(7) }"),
            (400, "Verification: PriorAttestationKnown { validator_index: 5, epoch: Epoch(7) }"),
            (400, "Validation(PriorAttestationKnown { validator_index: 5, epoch: Epoch(7) })"),
            (400, "Verification: PriorSyncCommitteeMessageKnown { validator_index: 5, slot: Slot(9) }"),
            (400, "PriorPayloadAttestationMessageKnown { validator_index: 5, slot: Slot(9) }"),
            (400, f"Verification: AttestationSupersetKnown({ROOT})"),
            (400, f"Verification: SyncContributionSupersetKnown({ROOT})"),
            (400, "Verification: AggregatorAlreadyKnown(5)"),
        ],
        "Prysm": [
            (500, "Could not insert proposer slashing: slashing object already exists in pending proposer slashings"),
        ],
        "Teku": [
            (400, "Exit is not the first one for validator 5."),
            (400, f"Rejected: Already received execution payload envelope with block root {ROOT} from builder 7"),
        ],
        "Caplin": [(400, "ignore: already seen payload attestation from validator 5 for slot 9")],
    },
    Meaning.OPTIMISTIC: {
        "Lighthouse": [
            (500, f"UNHANDLED_ERROR: {_OPTIMISTIC}"),
            (500, f"INTERNAL_SERVER_ERROR: unable to produce: BeaconChainError({_OPTIMISTIC})"),
        ],
        "Prysm": [
            (503, "The node is currently optimistic and cannot serve validators"),
            (500, "rpc error: code = Internal desc = the node is currently optimistic and cannot serve validators"),
        ],
        "Lodestar": [
            (503, f"Node is syncing - {_UNVALIDATED}"),
        ],
        "Grandine": [
            (503, "head has not been fully verified by an execution engine"),
            (503, f"block {ROOT} not validated"),
        ],
    },
    Meaning.NOT_READY: {
        "Lodestar": [
            (503, "Node is syncing - headSlot 7 currentSlot 99"),
            (503, "Node is syncing - waiting for peers"),
        ],
        "Lighthouse": [
            (503, "SERVICE_UNAVAILABLE: beacon node is syncing: head slot is 7, current slot is 99"),
            (500, "INTERNAL_SERVER_ERROR: The task was dropped. The server is overloaded."),
            (500, "INTERNAL_SERVER_ERROR: The task did not execute. The server is overloaded or shutting down."),
            (404, "NOT_FOUND: Beacon chain genesis has not yet been observed."),
            (404, "NOT_FOUND: The networking stack has not yet started (network_tx)."),
        ],
        "Nimbus": [
            (503, "Beacon node is currently syncing and not serving request on that endpoint"),
            (503, "Beacon node not fully and non-optimistically synced"),
        ],
        "Prysm": [
            (503, f"Beacon node is currently syncing and not serving request on that endpoint Details: {_DETAILS}"),
            (503, "Could not get attestation data: Syncing to latest head, not ready to respond"),
            (500, "rpc error: code = Unavailable desc = Syncing to latest head, not ready to respond"),
            (500, "rpc error: code = Unavailable desc = connection error"),
        ],
        "Teku": [
            (503, "Beacon node is currently syncing and not serving requests."),
            (503, "Beacon node is currently syncing"),
        ],
        "Grandine": [
            (503, "beacon node is currently syncing and not serving requests on this endpoint"),
            (503, "too many empty slots after head: 7 + 32 < 99"),
            (500, "head is not available"),
        ],
        "Caplin": [
            (500, "not synced"),
            (400, "not synced"),
            (503, "node is not synced"),
            (503, "node is syncing"),
            (503, "head state not available"),
        ],
    },
    Meaning.UNKNOWN_BLOCK: {
        "Lodestar": [
            (400, "Block not in forkChoice"),
            (404, f"Block not in forkChoice, beaconBlockRoot={ROOT}"),
            (500, "ATTESTATION_ERROR_UNKNOWN_OR_PREFINALIZED_BEACON_BLOCK_ROOT"),
            (500, "ATTESTATION_ERROR_UNKNOWN_TARGET_ROOT"),
            (500, "SYNC_COMMITTEE_ERROR_UNKNOWN_BEACON_BLOCK_ROOT"),
            (500, "PAYLOAD_ATTESTATION_ERROR_UNKNOWN_BLOCK_ROOT"),
            (500, "EXECUTION_PAYLOAD_ENVELOPE_ERROR_BLOCK_ROOT_UNKNOWN"),
            (500, "BLOCK_ERROR_PARENT_UNKNOWN"),
            (404, f"Block not found for beacon block root {ROOT}"),
        ],
        "Lighthouse": [
            (400, f"Verification: UnknownHeadBlock {{ beacon_block_root: {ROOT} }}"),
            (400, f"UnknownHeadBlock {{ beacon_block_root: {ROOT} }}"),
            (400, f"Validation(UnknownTargetRoot({ROOT}))"),
            (400, f"BAD_REQUEST: Invalid block: ParentUnknown(parent_root:{ROOT})"),
            (404, "NOT_FOUND: No block received for slot 9"),
        ],
        "Prysm": [
            (400, "gossip validation failed: envelope beacon block root is unknown"),
            (400, f"envelope beacon block root {ROOT} is not canonical head"),
            (503, "no valid block root for slot 9, highest received block slot is 8"),
        ],
        "Nimbus": [(400, "Attempt to send attestation for unknown target")],
        "Grandine": [(404, "matching head block for attestation is not found")],
        "Caplin": [(400, "ignore: attestation queued: block not available")],
    },
    Meaning.FUTURE_SLOT: {
        "Lodestar": [
            (500, "Requested slot 77 is in the future"),
            (400, "Requested epoch 9 must not be more than one epoch in the future"),
            (500, "Requested epoch 5 must equal current 3 or next epoch 4"),
            (400, "Cannot get duties for epoch more than one ahead"),
            (500, "ATTESTATION_ERROR_FUTURE_SLOT"),
            (500, "ATTESTATION_ERROR_FUTURE_EPOCH"),
            (500, "BLOCK_ERROR_FUTURE_SLOT"),
        ],
        "Lighthouse": [
            (400, "BAD_REQUEST: request slot 9 is more than one slot past the current slot 7"),
            (400, "BAD_REQUEST: request epoch 9 is more than one epoch past the current epoch 7"),
            (400, "BAD_REQUEST: request epoch 9 is ahead of the next epoch 8"),
            (500, "UNHANDLED_ERROR: CannotAttestToFutureState"),
            (400, "Verification: FutureSlot { attestation_slot: Slot(9), latest_permissible_slot: Slot(8) }"),
        ],
        "Prysm": [
            (400, "invalid request: slot 9 is not the current slot 8"),
            (400, "payload attestation data is only available for current slot: requested 9, current 8"),
            (400, "Request epoch 9 can not be greater than next epoch 8"),
            (400, "Requested epoch cannot be in the future"),
        ],
        "Teku": [
            (400, "Cannot create attestation for future slot. Requested 9 but current slot is 7"),
            (400, "Attestation duties were requested 2 epochs ahead, only 1 epoch in future is supported."),
            (400, "Proposer duties were requested 2 epochs ahead, only 1 epoch in future is supported."),
            (400, "Cannot produce a block more than 32 slots in the future."),
        ],
        "Nimbus": [
            (400, "Slot cannot be in the future"),
            (400, "Cannot request duties past next epoch"),
        ],
        "Caplin": [
            (400, "slot is in the future"),
            (400, "PTC duties only available for current epoch 7 and next epoch 8, requested 9"),
        ],
    },
    Meaning.NO_ENDPOINT: {
        "Lighthouse": [(404, "NOT_FOUND")],
        "Lodestar": [
            (404, "Route POST:/eth/v2/beacon/blocks not found"),
            (404, "Route GET:/eth/v3/validator/blocks/28?randao_reveal=0xc0 not found"),
        ],
        "Prysm": [(404, "Not Found")],
        "Nimbus": [
            (410, f"v1/validator/blocks/{{slot}} {_DEPRECATED}"),
            (410, f"v1/beacon/blocks/{{block_id}} and v1/debug/beacon/states/{{state_id}} {_DEPRECATED_BOTH}"),
        ],
        "Grandine": [(500, "liveness tracking not enabled")],
    },
    Meaning.NO_SUCH_ANSWER: {
        "Caplin": [
            (400, "This endpoint does not support SSZ response"),
            (400, "content type must be application/json, application/octet-stream, or text/event-stream"),
        ],
    },
    Meaning.NO_SUCH_REQUEST: {
        "Lodestar": [(500, "Unsupported Media Type: application/octet-stream")],
    },
    Meaning.TOO_LARGE: {
        "Lodestar": [(500, "Request body is too large")],
    },
    Meaning.NOT_FOUND: {
        "Lighthouse": [
            (404, "NOT_FOUND: beacon block at slot 9"),
            (404, "NOT_FOUND: no matching aggregate found"),
            (400, "BAD_REQUEST: block commits to blobs but the beacon node has no cached blobs for it"),
        ],
        "Teku": [(404, "Not found")],
        "Lodestar": [
            (500, f"No attestation for slot=27 dataRoot={ROOT}"),
            (404, f"No aggregated attestation for slot=27, committeeIndex=1, dataRoot={ROOT}"),
            (404, f"No sync committee contribution for slot=27, subnet=1, beaconBlockRoot={ROOT}"),
            (500, "No contribution available"),
            (404, f"No block found for id '{ROOT}'"),
            (404, "No state found for id '999999'"),
            (404, "Validator index from future state"),
            (500, f"No cached block production result found for block root {ROOT}"),
            (404, f"PayloadEnvelopeInput not found for block root {ROOT}"),
        ],
        "Nimbus": [
            (400, "Unable to retrieve an aggregated attestation"),
            (400, "Unable to produce contribution using the passed parameters"),
            (400, "Trying to access a pruned historical state"),
            (404, "Block header/data has not been found"),
            (404, "Could not get requested state"),
        ],
        "Prysm": [
            (404, "No matching attestations found"),
            (404, "No subcommittee messages found"),
            (404, "Block not found"),
            (404, f"State not found: could not find state {ROOT}"),
            (500, "rpc error: code = NotFound desc = Could not find block"),
            (404, "execution payload envelope not found for slot 9"),
            (400, "no cached execution payload envelope to reconstruct from"),
            (400, "cached envelope hash tree root does not match blinded envelope"),
            (503, "payload attestation data not yet final for slot 9"),
            (503, "no canonical shuffling block for slot 9"),
        ],
        "Grandine": [
            (404, "attestation cannot be found"),
            (404, "block not found"),
            (404, "target state not found"),
        ],
        "Caplin": [
            (404, f"block not found {ROOT[2:]}"),
            (404, "Could not find beacon state"),
            (404, "no proposers for this epoch. either this epoch is too far ahead or not downloaded yet"),
            (404, "dependent root not found for epoch 1"),
            (404, "genesis block not found"),
            (404, "payload attestation data only available for head slot 8, requested 9"),
            (404, "no bid found for slot 9 and builder 5"),
        ],
    },
    Meaning.REFUSED: {
        "Lighthouse": [(500, "UNHANDLED_ERROR: BuilderMissing")],
        "Teku": [
            (500, "Unable to register validators: builder not available"),
            (500, "java.lang.IllegalStateException: Unable to register validators: builder not configured"),
            (400, f"Invalid remote response: {_RELAY}"),
            (500, f"java.lang.IllegalArgumentException: Invalid remote response: {_RELAY}"),
            (500, "FAILED_BROADCAST_VALIDATION: EQUIVOCATION"),
        ],
        "Lodestar": [
            (500, "Execution builder not set"),
            (500, "External builder circuit breaker is active"),
            (500, "executionBuilder required to publish SignedBlindedBeaconBlock"),
            (500, "validatorIndex 9999 too high. Current validator count 8"),
            (500, "Requested epoch 2 must equal current 3 or next epoch 4"),
            (500, "Block is not newer than latest block header blockSlot=28 latestBlockHeader.slot=28"),
            (500, "ATTESTATION_ERROR_PAST_SLOT"),
            (500, "BLOCK_ERROR_INVALID_STATE_ROOT"),
            (500, "SYNC_COMMITTEE_ERROR_INVALID_SIGNATURE"),
            (500, "BLOCK_ERROR_REPEAT_PROPOSAL"),
        ],
        "Nimbus": [
            (503, "BeaconBlock: parent block is not viable"),
            (503, "Block could not be sent from validator that is also managed by the beacon node"),
            (500, "Only `gossip` broadcast_validation option supported"),
            (500, "Not implemented yet"),
            (500, "Unable to initialize payload builder client: no URL"),
            (500, "Validator index exceeds maximum supported number of validators"),
        ],
    },
}

SAID = [
    Said(client, status, text, meaning)
    for meaning, clients in _TEXTS.items()
    for client, texts in clients.items()
    for status, text in texts
]
