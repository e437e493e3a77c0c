"""The routes of the Beacon API that are spoken here, as one table: method, template, and what an answer may mean.

Source: the API definition at `ethereum/beacon-APIs` 7a58b5a; older routes from its releases before Electra.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Route:
    """One route.

    :param operation: its `operationId`.
    :param template: path with `{names}`.
    :param absent: whether the definition lists a 404: then it is an answer, else it means that the route is not there.
    :param ssz: whether the answer can be had as SSZ.
    :param inspects: whether it is asked to learn what the node is: of quarantined nodes too, and of those that seemed
        not to have it.
    :param until: the last fork in which the route has a meaning, empty where there is none such.
    :param patient: whether it may wait behind what is due within seconds, where a node is asked much at once.
    :param everywhere: whether every node has it that has duties at all: a 404 that does not speak of routes is then a
        proxy's, or of what is asked for, and no reason not to ask for the rest of an epoch (Q13).
    """

    operation: str
    method: Literal["GET", "POST"]
    template: str
    absent: bool = False
    ssz: bool = False
    inspects: bool = False
    until: str = ""
    patient: bool = False
    everywhere: bool = False

    @property
    def what(self) -> str:
        """Method and template: the name of a kind of requests, in errors and where nodes are remembered for it."""
        return f"{self.method} {self.template}"


def _get(
    operation: str,
    template: str,
    *,
    absent: bool = False,
    ssz: bool = False,
    inspects: bool = False,
    until: str = "",
    patient: bool = False,
    everywhere: bool = False,
) -> Route:
    return Route(operation, "GET", template, absent, ssz, inspects, until, patient, everywhere)


def _post(
    operation: str,
    template: str,
    *,
    absent: bool = False,
    ssz: bool = False,
    until: str = "",
    patient: bool = False,
    everywhere: bool = False,
) -> Route:
    return Route(operation, "POST", template, absent, ssz, False, until, patient, everywhere)


# What the node is.
VERSION = _get("getNodeVersion", "/eth/v1/node/version", inspects=True)
VERSION_V2 = _get("getNodeVersionV2", "/eth/v2/node/version", inspects=True)
HEALTH = _get("getHealth", "/eth/v1/node/health", inspects=True)
SYNCING = _get("getSyncingStatus", "/eth/v1/node/syncing", inspects=True)
IDENTITY = _get("getNetworkIdentity", "/eth/v1/node/identity", inspects=True)
PEER_COUNT = _get("getPeerCount", "/eth/v1/node/peer_count", inspects=True)
GENESIS = _get("getGenesis", "/eth/v1/beacon/genesis", absent=True, inspects=True)
SPEC = _get("getSpec", "/eth/v1/config/spec", inspects=True)
FORK_SCHEDULE = _get("getForkSchedule", "/eth/v1/config/fork_schedule", inspects=True)
DEPOSIT_CONTRACT = _get("getDepositContract", "/eth/v1/config/deposit_contract", inspects=True)

# Headers and blocks.
HEADER = _get("getBlockHeader", "/eth/v1/beacon/headers/{block_id}", absent=True, inspects=True)
# The definition lists no 404 here; nodes answer with it for a slot without a block (prysm#13175).
HEADERS = _get("getBlockHeaders", "/eth/v1/beacon/headers", absent=True, inspects=True)
BLOCK_ROOT = _get("getBlockRoot", "/eth/v1/beacon/blocks/{block_id}/root", absent=True, inspects=True)
BLOCK = _get("getBlockV2", "/eth/v2/beacon/blocks/{block_id}", absent=True, ssz=True, patient=True)
BLINDED_BLOCK = _get("getBlindedBlock", "/eth/v1/beacon/blinded_blocks/{block_id}", absent=True, ssz=True, patient=True)
BLOBS = _get("getBlobs", "/eth/v1/beacon/blobs/{block_id}", absent=True, ssz=True, patient=True)

# States.
STATE_ROOT = _get("getStateRoot", "/eth/v1/beacon/states/{state_id}/root", absent=True, patient=True)
STATE_FORK = _get("getStateFork", "/eth/v1/beacon/states/{state_id}/fork", absent=True, patient=True)
FINALITY = _get(
    "getStateFinalityCheckpoints", "/eth/v1/beacon/states/{state_id}/finality_checkpoints", absent=True, patient=True
)
VALIDATORS = _post("postStateValidators", "/eth/v1/beacon/states/{state_id}/validators", absent=True, patient=True)
VALIDATORS_GET = _get("getStateValidators", "/eth/v1/beacon/states/{state_id}/validators", absent=True, patient=True)
VALIDATOR = _get(
    "getStateValidator", "/eth/v1/beacon/states/{state_id}/validators/{validator_id}", absent=True, patient=True
)
BALANCES = _post(
    "postStateValidatorBalances",
    "/eth/v1/beacon/states/{state_id}/validator_balances",
    absent=True,
    ssz=True,
    patient=True,
)
BALANCES_GET = _get(
    "getStateValidatorBalances",
    "/eth/v1/beacon/states/{state_id}/validator_balances",
    absent=True,
    ssz=True,
    patient=True,
)
COMMITTEES = _get("getEpochCommittees", "/eth/v1/beacon/states/{state_id}/committees", absent=True, patient=True)
SYNC_COMMITTEES = _get(
    "getEpochSyncCommittees", "/eth/v1/beacon/states/{state_id}/sync_committees", absent=True, patient=True
)
RANDAO = _get("getStateRandao", "/eth/v1/beacon/states/{state_id}/randao", absent=True, patient=True)

# Duties.
ATTESTER_DUTIES = _post("getAttesterDuties", "/eth/v1/validator/duties/attester/{epoch}", everywhere=True)
PROPOSER_DUTIES = _get("getProposerDutiesV2", "/eth/v2/validator/duties/proposer/{epoch}")
PROPOSER_DUTIES_V1 = _get("getProposerDuties", "/eth/v1/validator/duties/proposer/{epoch}", everywhere=True)
SYNC_DUTIES = _post("getSyncCommitteeDuties", "/eth/v1/validator/duties/sync/{epoch}", everywhere=True)
PTC_DUTIES = _post("getPtcDuties", "/eth/v1/validator/duties/ptc/{epoch}")
LIVENESS = _post("getLiveness", "/eth/v1/validator/liveness/{epoch}", patient=True)

# What is signed.
ATTESTATION_DATA = _get("produceAttestationData", "/eth/v1/validator/attestation_data", ssz=True, everywhere=True)
AGGREGATE = _get("getAggregatedAttestationV2", "/eth/v2/validator/aggregate_attestation", absent=True, ssz=True)
AGGREGATE_V1 = _get("getAggregatedAttestation", "/eth/v1/validator/aggregate_attestation", absent=True, until="deneb")
CONTRIBUTION = _get(
    "produceSyncCommitteeContribution", "/eth/v1/validator/sync_committee_contribution", absent=True, everywhere=True
)
PRODUCE_BLOCK = _get("produceBlockV3", "/eth/v3/validator/blocks/{slot}", ssz=True)
PRODUCE_BLOCK_V2 = _get("produceBlockV2", "/eth/v2/validator/blocks/{slot}", ssz=True, until="deneb")
PRODUCE_BLOCK_V4 = _get("produceBlockV4", "/eth/v4/validator/blocks/{slot}", ssz=True)
# The definition has 204 for a slot without a block; nodes made before it had (in 2026) answer with 404.
PAYLOAD_ATTESTATION_DATA = _get(
    "producePayloadAttestationData", "/eth/v1/validator/payload_attestation_data", absent=True, ssz=True
)
PAYLOAD_BID = _get(
    "getExecutionPayloadBid", "/eth/v1/validator/execution_payload_bids/{slot}/{builder_index}", absent=True, ssz=True
)
PAYLOAD_ENVELOPE = _get(
    "getExecutionPayloadEnvelope",
    "/eth/v1/validator/execution_payload_envelopes/{slot}/{beacon_block_root}",
    absent=True,
    ssz=True,
)

# Publishing.
PUBLISH_BLOCK = _post("publishBlockV2", "/eth/v2/beacon/blocks")
PUBLISH_BLOCK_V1 = _post("publishBlock", "/eth/v1/beacon/blocks", until="deneb")
PUBLISH_BLINDED_BLOCK = _post("publishBlindedBlockV2", "/eth/v2/beacon/blinded_blocks")
PUBLISH_BLINDED_BLOCK_V1 = _post("publishBlindedBlock", "/eth/v1/beacon/blinded_blocks", until="deneb")
PUBLISH_ENVELOPE = _post("publishExecutionPayloadEnvelope", "/eth/v1/beacon/execution_payload_envelopes")
PUBLISH_ATTESTATIONS = _post("submitPoolAttestationsV2", "/eth/v2/beacon/pool/attestations", everywhere=True)
PUBLISH_ATTESTATIONS_V1 = _post("submitPoolAttestations", "/eth/v1/beacon/pool/attestations", until="deneb")
PUBLISH_AGGREGATES = _post("publishAggregateAndProofsV2", "/eth/v2/validator/aggregate_and_proofs", everywhere=True)
PUBLISH_AGGREGATES_V1 = _post("publishAggregateAndProofs", "/eth/v1/validator/aggregate_and_proofs", until="deneb")
PUBLISH_PAYLOAD_ATTESTATIONS = _post("submitPayloadAttestationMessages", "/eth/v1/beacon/pool/payload_attestations")
PUBLISH_SYNC_MESSAGES = _post(
    "submitPoolSyncCommitteeSignatures", "/eth/v1/beacon/pool/sync_committees", everywhere=True
)
PUBLISH_CONTRIBUTIONS = _post(
    "publishContributionAndProofs", "/eth/v1/validator/contribution_and_proofs", everywhere=True
)
PUBLISH_EXIT = _post("submitPoolVoluntaryExit", "/eth/v1/beacon/pool/voluntary_exits")
PUBLISH_BLS_CHANGES = _post("submitPoolBLSToExecutionChange", "/eth/v1/beacon/pool/bls_to_execution_changes")
PUBLISH_ATTESTER_SLASHING = _post("submitPoolAttesterSlashingsV2", "/eth/v2/beacon/pool/attester_slashings")
PUBLISH_ATTESTER_SLASHING_V1 = _post(
    "submitPoolAttesterSlashings", "/eth/v1/beacon/pool/attester_slashings", until="deneb"
)
PUBLISH_PROPOSER_SLASHING = _post("submitPoolProposerSlashings", "/eth/v1/beacon/pool/proposer_slashings")

# Preparations.
SUBSCRIBE_COMMITTEES = _post(
    "prepareBeaconCommitteeSubnet", "/eth/v1/validator/beacon_committee_subscriptions", patient=True
)
SUBSCRIBE_SYNC_COMMITTEES = _post(
    "prepareSyncCommitteeSubnets", "/eth/v1/validator/sync_committee_subscriptions", patient=True
)
COMMITTEE_SELECTIONS = _post("submitBeaconCommitteeSelections", "/eth/v1/validator/beacon_committee_selections")
SYNC_SELECTIONS = _post("submitSyncCommitteeSelections", "/eth/v1/validator/sync_committee_selections")
PREPARE_PROPOSERS = _post("prepareBeaconProposer", "/eth/v1/validator/prepare_beacon_proposer", patient=True)
REGISTER_VALIDATORS = _post("registerValidator", "/eth/v1/validator/register_validator", patient=True)
PROPOSER_PREFERENCES = _post("submitProposerPreferences", "/eth/v1/validator/proposer_preferences", patient=True)

EVENTS = _get("eventstream", "/eth/v1/events", inspects=True)

ROUTES = tuple(route for route in vars().values() if isinstance(route, Route))
"""All of them, in the order above."""
