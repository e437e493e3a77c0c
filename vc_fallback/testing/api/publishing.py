"""Everything that validators publish on a simulated node; in here exits, changes of credentials, slashings."""

from collections.abc import Mapping
from dataclasses import replace

from vc_fallback.testing.api import publish_blocks, publish_votes
from vc_fallback.testing.api.call import Call, post
from vc_fallback.testing.api.submissions import Received, Sent, receiver
from vc_fallback.testing.containers import operations
from vc_fallback.testing.containers.basic import Kind


def _exit_identity(one: Received) -> object:
    return ("exit", one.value["message"]["validator_index"])


def _change_identity(one: Received) -> object:
    return ("change", one.value["message"]["validator_index"])


def _index_problem(one: Received) -> str:
    return "" if one.value["message"]["validator_index"] < len(one.call.chain.registry) else "unknown validator"


def _proposer_slashing_identity(one: Received) -> object:
    return ("proposer slashing", one.value["signed_header_1"]["message"]["proposer_index"])


def _attester_slashing_kind(call: Call, fork: str) -> Kind:
    return operations.attester_slashing(call.chain.preset, fork)


def _attester_slashing_identity(one: Received) -> object:
    return ("attester slashing", operations.attester_slashing(one.call.chain.preset, one.fork).root(one.value))


_EXIT = Sent(operations.SIGNED_EXIT, many=False, identity=_exit_identity, problem=_index_problem)
_CHANGES = Sent(operations.SIGNED_BLS_CHANGE, identity=_change_identity, problem=_index_problem)
_PROPOSER_SLASHING = Sent(operations.PROPOSER_SLASHING, many=False, identity=_proposer_slashing_identity)
_ATTESTER_SLASHING = Sent(_attester_slashing_kind, many=False, versioned=True, identity=_attester_slashing_identity)

SENT: Mapping[str, tuple[str, Sent]] = {
    "publishBlockV2": ("/eth/v2/beacon/blocks", publish_blocks.BLOCK),
    "publishBlock": ("/eth/v1/beacon/blocks", replace(publish_blocks.BLOCK, versioned=False)),
    "publishBlindedBlockV2": ("/eth/v2/beacon/blinded_blocks", publish_blocks.BLINDED_BLOCK),
    "publishBlindedBlock": ("/eth/v1/beacon/blinded_blocks", replace(publish_blocks.BLINDED_BLOCK, versioned=False)),
    "publishExecutionPayloadEnvelope": ("/eth/v1/beacon/execution_payload_envelopes", publish_blocks.ENVELOPE),
    "submitPoolAttestationsV2": ("/eth/v2/beacon/pool/attestations", publish_votes.ATTESTATIONS),
    "submitPoolAttestations": ("/eth/v1/beacon/pool/attestations", publish_votes.ATTESTATIONS_V1),
    "publishAggregateAndProofsV2": ("/eth/v2/validator/aggregate_and_proofs", publish_votes.AGGREGATES),
    "publishAggregateAndProofs": ("/eth/v1/validator/aggregate_and_proofs", publish_votes.AGGREGATES_V1),
    "submitPayloadAttestationMessages": (
        "/eth/v1/beacon/pool/payload_attestations",
        publish_votes.PAYLOAD_ATTESTATIONS,
    ),
    "submitPoolSyncCommitteeSignatures": ("/eth/v1/beacon/pool/sync_committees", publish_votes.SYNC_MESSAGES),
    "publishContributionAndProofs": ("/eth/v1/validator/contribution_and_proofs", publish_votes.CONTRIBUTIONS),
    "submitPoolVoluntaryExit": ("/eth/v1/beacon/pool/voluntary_exits", _EXIT),
    "submitPoolBLSToExecutionChange": ("/eth/v1/beacon/pool/bls_to_execution_changes", _CHANGES),
    "submitPoolAttesterSlashingsV2": ("/eth/v2/beacon/pool/attester_slashings", _ATTESTER_SLASHING),
    "submitPoolAttesterSlashings": (
        "/eth/v1/beacon/pool/attester_slashings",
        replace(_ATTESTER_SLASHING, versioned=False),
    ),
    "submitPoolProposerSlashings": ("/eth/v1/beacon/pool/proposer_slashings", _PROPOSER_SLASHING),
}
"""What can be published, by operation, with its template."""

ROUTES = tuple(post(operation, template, receiver(sent)) for operation, (template, sent) in SENT.items())
