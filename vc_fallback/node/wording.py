"""The words of real clients, as one table: what a text means that a status does not say.

A row is a regular expression and its source. It fits a text that it matches from its first character to its last, in
the case in which its client writes; where it has the groups `asked` and `present`, the first has to be the larger
number. The first row that fits holds. A text that no row fits keeps the meaning of its status: it blames whom that
blames. Read by `vc_fallback.node.meanings`.
"""

from collections.abc import Mapping
from enum import Enum


class Meaning(Enum):
    """What a text says of the request."""

    ALREADY_KNOWN = "the node has this very thing already"
    OPTIMISTIC = "its head is not verified by its execution layer"
    NOT_READY = "it is syncing, starting or overloaded"
    UNKNOWN_BLOCK = "the block that this is about has not come to it"
    FUTURE_SLOT = "by its clock this is in the future"
    NO_ENDPOINT = "it does not have this endpoint"
    NO_SUCH_ANSWER = "it does not have this form of the answer"
    NO_SUCH_REQUEST = "it does not take this form of the request"
    TOO_LARGE = "the request is larger than it takes"
    NOT_FOUND = "what is asked for is not there, or not there yet"
    REFUSED = "it is well and will not, whatever the status says"


FOLDERS = {
    "Caplin": "erigontech/erigon: cl/",
    "Grandine": "grandinetech/grandine: http_api/src/",
    "Lighthouse": "sigp/lighthouse: beacon_node/http_api/src/",
    "Lodestar": "ChainSafe/lodestar: packages/beacon-node/src/",
    "Nimbus": "status-im/nimbus-eth2: beacon_chain/",
    "Prysm": "OffchainLabs/prysm: beacon-chain/rpc/",
    "Teku": "Consensys/teku: */src/main/java/tech/pegasys/teku/",
}
"""Whose words these are, and where the files are that rows name as their sources; `#` precedes an issue's number."""

_POOL = "(ATTESTATION_SLASHING|PROPOSER_SLASHING|VOLUNTARY_EXIT|BLS_TO_EXECUTION_CHANGE)"
_VERDICT = "(BAD|INCORRECT|INVALID|NOT|PAST|PROPOSAL)"
_ASKED, _PRESENT = r"(?P<asked>\d{1,20})", r"(?P<present>\d{1,20})"
_IN_ITEM = r"(Verification: |Validation\()?"
_RPC = r"(\w+: )?rpc error: code"

TABLE: Mapping[Meaning, Mapping[str, Mapping[str, str]]] = {
    Meaning.ALREADY_KNOWN: {
        # Published before: here, through another node, or by gossip from there.
        "Lodestar": {
            r"PublishError\.Duplicate": "api/impl/beacon/pool/index.ts; recorded of 1.5.1 (500)",
            r"ATTESTATION_ERROR_(ATTESTATION|AGGREGATOR|ATTESTERS)_ALREADY_KNOWN": "chain/errors/; recorded (500)",
            r"ATTESTATION_ERROR_PRIOR_ATTESTATION_KNOWN": "chain/errors/attestationError.ts",
            r"BLOCK_ERROR_ALREADY_KNOWN": "chain/errors/blockError.ts; lodestar#5404, #6397; charon#3869 (500)",
            r"SYNC_COMMITTEE_ERROR_SYNC_COMMITTEE_MESSAGE_KNOWN": "chain/errors/syncCommitteeError.ts",
            r"SYNC_COMMITTEE_ERROR_SYNC_COMMITTEE_(AGGREGATOR|PARTICIPANTS)_ALREADY_KNOWN": "chain/errors/",
            rf"{_POOL}_ERROR_ALREADY_EXISTS": "chain/errors/",
            r"PAYLOAD_ATTESTATION_ERROR_PAYLOAD_ATTESTATION_ALREADY_KNOWN": "chain/errors/payloadAttestation.ts",
            r"EXECUTION_PAYLOAD_ENVELOPE_ERROR_ALREADY_KNOWN": "chain/errors/executionPayloadEnvelope.ts; ssv#2922",
        },
        "Lighthouse": {
            r"(BAD_REQUEST: )?duplicate block": "publish_blocks.rs; lighthouse#4655 (202, or as its flag says)",
            r"[A-Z_]+: (.*\W)?BlockIsAlreadyKnown\b.*": "publish_blocks.rs; lighthouse#3341",
            rf"{_IN_ITEM}Prior(Attestation|SyncCommitteeMessage)Known\b.*": "publish_attestations.rs; charon#777",
            rf"{_IN_ITEM}PriorPayloadAttestationMessageKnown\b.*": "beacon/pool.rs",
            rf"{_IN_ITEM}Attestation(Superset|Already)Known\b.*": "validator/mod.rs",
            rf"{_IN_ITEM}SyncContribution(Superset|Already)Known\b.*": "sync_committees.rs",
            rf"{_IN_ITEM}AggregatorAlreadyKnown\b.*": "validator/mod.rs, sync_committees.rs",
        },
        "Prysm": {
            r"(.*: )?slashing object already exists in pending proposer slashings": "../operations/slashings/pool.go",
        },
        "Teku": {
            r"Exit is not the first one for validator \d+\.": "statetransition/validation/VoluntaryExitValidator.java",
            r"(.*: )?Already received execution payload envelope with block root .*": (
                "statetransition/validation/ExecutionPayloadGossipValidator.java (400)"
            ),
        },
        "Caplin": {
            r"ignore: already seen payload attestation from validator .*": (
                "phase1/network/services/payload_attestation_service.go"
            ),
        },
    },
    Meaning.OPTIMISTIC: {
        # Nimbus and Teku say that they sync.
        "Lighthouse": {
            r"[A-Z_]+: (.*\W)?HeadBlockNotFullyVerified\b.*": "lib.rs; case 30 (500)",
        },
        "Prysm": {
            r"(.*\W)?[Tt]he node is currently optimistic and cannot serve validators": (
                "eth/validator/handlers_block.go (503), prysm/v1alpha1/validator/status.go (500)"
            ),
        },
        "Lodestar": {
            r"Node is syncing - Block's execution payload not yet validated, .*": "api/impl/validator/index.ts (503)",
        },
        "Grandine": {
            r"head has not been fully verified by an execution engine": "error.rs (503)",
            r"block 0x[0-9a-f]{64} not validated": "error.rs (503)",
        },
    },
    Meaning.NOT_READY: {
        "Lodestar": {
            r"Node is syncing - .*": "api/impl/errors.ts (503)",
        },
        "Lighthouse": {
            r"SERVICE_UNAVAILABLE: beacon node is syncing: .*": "lib.rs (503)",
            r"INTERNAL_SERVER_ERROR: The task (was dropped|did not execute)\. The server is .*": "task_spawner.rs",
            r"NOT_FOUND: Beacon chain genesis has not yet been observed\.": "lib.rs; lighthouse#2127 (404)",
            r"NOT_FOUND: The networking stack has not yet started\b.*": "lib.rs (404)",
        },
        "Nimbus": {
            r"Beacon node is currently syncing and not serving request on that endpoint": "rpc/rest_constants.nim",
            r"Beacon node not fully and non-optimistically synced": "rpc/rest_utils.nim (503)",
        },
        "Prysm": {
            r"Beacon node is currently syncing and not serving request on that endpoint Details: .*": (
                "eth/shared/request.go (503)"
            ),
            r"(.*\W)?Syncing to latest head, not ready to respond": "core/validator.go (503, 500)",
            rf"{_RPC} = Unavailable desc = .*": "prysm/v1alpha1/validator/ (500)",
        },
        "Teku": {
            r"Beacon node is currently syncing( and not serving requests)?\.?": "infrastructure/http/, restapi/ (503)",
        },
        "Grandine": {
            r"beacon node is currently syncing and not serving requests on this endpoint": "error.rs (503)",
            r"too many empty slots after head: .*": "error.rs (503)",
            r"head is not available": "error.rs (500)",
        },
        "Caplin": {
            r"not synced": "beacon/synced_data/; erigon#13154, #23464 (500), #23619 (400)",
            r"node is (not synced|syncing)": "beacon/handler/pool.go, block_production.go (503)",
            r"head state not available": "beacon/handler/pool.go (503, 500)",
        },
    },
    Meaning.UNKNOWN_BLOCK: {
        # Another node knows the block (case 44), or this one will in a moment (case 51).
        "Lodestar": {
            r"Block not in forkChoice(, .*)?": "api/impl/validator/index.ts; lodestar#5063; recorded (400, 404)",
            r"ATTESTATION_ERROR_UNKNOWN_(OR_PREFINALIZED_BEACON_BLOCK|TARGET)_ROOT": "chain/errors/; lodestar#5496",
            r"SYNC_COMMITTEE_ERROR_UNKNOWN_BEACON_BLOCK_ROOT": "chain/errors/syncCommitteeError.ts",
            r"PAYLOAD_ATTESTATION_ERROR_UNKNOWN_BLOCK_ROOT": "chain/errors/payloadAttestation.ts",
            r"EXECUTION_PAYLOAD_ENVELOPE_ERROR_BLOCK_ROOT_UNKNOWN": "chain/errors/executionPayloadEnvelope.ts",
            r"BLOCK_ERROR_PARENT_UNKNOWN": "chain/errors/blockError.ts (500)",
            r"Block not found for beacon block root 0x.*": "api/impl/beacon/blocks/index.ts (404)",
        },
        "Lighthouse": {
            rf"{_IN_ITEM}Unknown(HeadBlock|TargetRoot)\b.*": "publish_attestations.rs",
            r"BAD_REQUEST: (.*\W)?ParentUnknown\(.*": "publish_blocks.rs (400)",
            r"([A-Z_]+: )?No block received for slot \d+": "validator/mod.rs",
        },
        "Prysm": {
            r"(.*: )?envelope beacon block root (0x[0-9a-f]+ )?is (unknown|not canonical head)": (
                "eth/beacon/handlers_gloas.go (400)"
            ),
            r"no valid block root for slot \d+, highest received block slot is \d+": "core/validator.go (503)",
        },
        "Nimbus": {
            r"Attempt to send attestation for unknown target": "validators/message_router.nim",
        },
        "Grandine": {
            r"matching head block for attestation is not found": "error.rs",
        },
        "Caplin": {
            r"ignore: attestation queued: block not available": (
                "phase1/network/services/payload_attestation_service.go"
            ),
        },
    },
    Meaning.FUTURE_SLOT: {
        # A clock is off, the node's or ours (N8).
        "Lodestar": {
            r"Requested slot \d+ is in the future": "api/impl/validator/index.ts; recorded of 1.5.1 (500)",
            r"Requested epoch \d+ must not be more than one epoch in the future": "api/impl/validator/index.ts (400)",
            rf"Requested epoch {_ASKED} must equal current \d+ or next epoch {_PRESENT}": "recorded of 1.5.1 (500)",
            r"Cannot get duties for epoch more than one ahead": "api/impl/validator/index.ts; recorded (400)",
            r"(ATTESTATION|BLOCK)_ERROR_FUTURE_(SLOT|EPOCH)": "chain/errors/",
        },
        "Lighthouse": {
            r"BAD_REQUEST: request slot \d+ is more than one slot past the current slot \d+": "validator/mod.rs (400)",
            r"BAD_REQUEST: request epoch \d+ is more than one epoch past .*": "attester_duties.rs (400)",
            r"BAD_REQUEST: request epoch \d+ is ahead of the next epoch \d+": "proposer_duties.rs (400)",
            r"UNHANDLED_ERROR: CannotAttestToFutureState": "../../beacon_chain/src/errors.rs (500)",
            rf"{_IN_ITEM}FutureSlot \{{.*": "publish_attestations.rs",
        },
        "Prysm": {
            rf"invalid request: slot {_ASKED} is not the current slot {_PRESENT}": "core/validator.go (400)",
            rf".* is only available for current slot: requested {_ASKED}, current {_PRESENT}": "core/validator.go",
            r"Request epoch \d+ can not be greater than next epoch \d+": "eth/validator/handlers.go (400)",
            r"Requested epoch cannot be in the future": "eth/validator/handlers.go (400)",
        },
        "Teku": {
            r"Cannot create attestation for future slot\. .*": "validator/coordinator/ValidatorApiHandler.java (400)",
            r"(Attestation|Proposer|Ptc) duties were requested \d+ epochs ahead, .*": (
                "validator/coordinator/ValidatorApiHandler.java (400)"
            ),
            r"Cannot produce a block more than \d+ slots in the future\.": "api/ValidatorDataProvider.java (400)",
        },
        "Nimbus": {
            r"Slot cannot be in the future": "rpc/rest_validator_api.nim (400)",
            r"Cannot request duties past next epoch": "rpc/rest_validator_api.nim (400)",
        },
        "Caplin": {
            r"slot is in the future": "beacon/handler/block_production.go (400)",
            rf"PTC duties only available for .* next epoch {_PRESENT}, requested {_ASKED}": "beacon/handler/epbs.go",
        },
    },
    Meaning.NO_ENDPOINT: {
        # Nimbus and Grandine send no text; what Go's programs say, a proxy says as well (`error_body`).
        "Lighthouse": {
            r"NOT_FOUND": "../../../common/warp_utils/src/reject.rs (404)",
        },
        "Lodestar": {
            r"Route [A-Z]+:\S+ not found": "api/rest/base.ts; recorded of 1.5.1 (404)",
        },
        "Prysm": {
            r"Not Found": "before its release 5: grpc-gateway#1517",
        },
        "Nimbus": {
            r"(\S+ and )?\S+ endpoints? (was|were) deprecated and replaced by .*": "rpc/rest_constants.nim (410)",
        },
        "Grandine": {
            r"liveness tracking not enabled": "error.rs (500)",
        },
    },
    Meaning.NO_SUCH_ANSWER: {
        "Caplin": {
            r"This endpoint does not support SSZ response": "beacon/beaconhttp/api.go (400)",
            r"content type must be application/json, application/octet-stream, or .*": "beacon/beaconhttp/api.go (400)",
        },
    },
    Meaning.NO_SUCH_REQUEST: {
        "Lodestar": {
            r"Unsupported Media Type: .*": "api/rest/base.ts makes 500 of Fastify's 415; lodestar#6564",
        },
    },
    Meaning.TOO_LARGE: {
        "Lodestar": {
            r"Request body is too large": "api/rest/base.ts makes 500 of Fastify's 413",
        },
    },
    Meaning.NOT_FOUND: {
        # For where the status says something else, or the definition lists no 404.
        "Lighthouse": {
            r"NOT_FOUND: .+": "../../../common/warp_utils/src/reject.rs (404)",
            r"BAD_REQUEST: block commits to blobs but the beacon node has no cached blobs .*": (
                "beacon/execution_payload_envelopes.rs; case 61 (400)"
            ),
        },
        "Teku": {
            r"Not found": "infrastructure/restapi/endpoints/AsyncApiResponse.java (404)",
        },
        "Lodestar": {
            r"No (aggregated )?attestation for slot=\d+,? .*": "api/impl/validator/; recorded of 1.5.1 (500), 404",
            r"No sync committee contribution for slot=.*": "api/impl/validator/index.ts (404)",
            r"No contribution available": "api/impl/validator/index.ts of 1.5.1 (500)",
            r"No (block|state) found for id '.*'": "api/impl/beacon/; recorded of 1.5.1 (404)",
            r"Validator index from future state": "api/impl/beacon/state/utils.ts; recorded of 1.5.1 (404)",
            r"No cached block production result found for block root 0x.*": "api/impl/beacon/blocks/index.ts; case 61",
            r"PayloadEnvelopeInput not found for block root 0x.*": "api/impl/beacon/blocks/index.ts (404)",
        },
        "Nimbus": {
            r"Unable to retrieve an aggregated attestation": "rpc/rest_validator_api.nim (400)",
            r"Unable to produce contribution using the passed parameters": "rpc/rest_validator_api.nim (400)",
            r"Trying to access a pruned historical state": "rpc/rest_validator_api.nim (400)",
            r"Block header/data has not been found": "rpc/rest_constants.nim (404)",
            r"Could not get requested state": "rpc/rest_constants.nim (404)",
        },
        "Prysm": {
            r"No matching attestations found": "eth/validator/handlers.go (404)",
            r"No subcommittee messages found": "eth/validator/handlers.go (404)",
            r"(Block|State) not found(: .*)?": "eth/shared/errors.go (404)",
            rf"{_RPC} = NotFound desc = .*": "before its release 4: prysm#9636, #11472 (500)",
            r"execution payload envelope not found( for slot \d+)?": "eth/validator/handlers_block_gloas.go (404)",
            r"no cached execution payload envelope to reconstruct from": "eth/beacon/handlers_gloas.go; case 61 (400)",
            r"cached envelope .+ does not match .+": "eth/beacon/handlers_gloas.go (400, 404)",
            r"payload attestation data not yet final for slot \d+": "core/validator.go (503)",
            r"no canonical shuffling block for slot \d+": "core/validator.go (503)",
        },
        "Grandine": {
            r"attestation cannot be found": "error.rs (404)",
            r"(block|state|target state|validator) not found": "error.rs (404)",
        },
        "Caplin": {
            r"(block|state) not found [0-9a-f]+": "beacon/handler/block_production.go (404)",
            r"Could not find beacon state": "beacon/beaconhttp/api.go (404)",
            r"no proposers for this epoch\. .*": "beacon/handler/duties_proposer.go (404)",
            r"dependent root not found for epoch \d+": "beacon/handler/duties_attester.go; erigon#24116 (404)",
            r"genesis block not found": "beacon/handler/duties_attester.go (404)",
            r"payload attestation data only available for head slot .*": "beacon/handler/epbs.go (404)",
            r"no (bid|execution payload envelope) found for slot .*": "beacon/handler/epbs.go (404)",
        },
    },
    Meaning.REFUSED: {
        # What is asked for cannot be, or needs what the node has not got (case 39).
        "Lighthouse": {
            r"UNHANDLED_ERROR: BuilderMissing": "lighthouse#3416, #6951 (500)",
        },
        "Teku": {
            r"(\S+: )?Unable to register validators: builder not (available|configured)": "teku#6366 (500)",
            r"(\S+: )?Invalid remote response: .*": "of a builder's error; case 39, teku#5880 (400), #6262 (500)",
            r"FAILED_BROADCAST_VALIDATION: \w+": "validator/coordinator/publisher/AbstractBlockPublisher.java (500)",
        },
        "Lodestar": {
            r"Execution builder (not enabled|not set|disabled)": "api/impl/validator/index.ts (500)",
            r"External builder (not configured|disabled|circuit breaker)\b.*": "api/impl/validator/index.ts (500)",
            r"executionBuilder required to publish SignedBlindedBeaconBlock": "api/impl/beacon/blocks/index.ts (500)",
            r"validatorIndex \d+ too high\. Current validator count \d+": "recorded of 1.5.1 (500)",
            r"Requested epoch \d+ must equal current \d+ or next epoch \d+": "recorded of 1.5.1 (500)",
            r"Block is not newer than latest block header .*": "recorded of 1.5.1 (500)",
            rf"(ATTESTATION|BLOCK)_ERROR_{_VERDICT}_[A-Z_]+": "chain/errors/ (500)",
            rf"SYNC_COMMITTEE(_ERROR)?_{_VERDICT}_[A-Z_]+": "chain/errors/syncCommitteeError.ts (500)",
            r"BLOCK_ERROR_(REPEAT_PROPOSAL|WOULD_REVERT_FINALIZED_SLOT|KNOWN_BAD_BLOCK)": "chain/errors/ (500)",
        },
        "Nimbus": {
            r"BeaconBlock: .*": "rpc/rest_beacon_api.nim: 503, with words of a node that syncs",
            r"Block could not be sent from validator that is also managed .*": "validators/message_router.nim (503)",
            r"Only `gossip` broadcast_validation option supported": "rpc/rest_beacon_api.nim (500)",
            r"Not implemented yet": "rpc/rest_beacon_api.nim: states by their root (500)",
            r"Unable to initialize payload builder client: .*": "rpc/rest_validator_api.nim (500)",
            r"Validator index exceeds maximum .*number of validators.*": "rpc/rest_constants.nim (500)",
        },
    },
}
