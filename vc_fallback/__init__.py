"""Many Ethereum beacon nodes held as one, for Python validator clients.

The public names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc_fallback.base.buffered import Buffered, SubscriptionStatistics
    from vc_fallback.base.clock import Clock
    from vc_fallback.base.errors import ConfigurationError, FallbackError, NodeError, SubscriptionClosed
    from vc_fallback.base.health import HealthReason, HealthState
    from vc_fallback.base.health_signals import (
        AllUnhealthy,
        BranchesDiffer,
        ClockDoubted,
        DutiesMoved,
        FinalityDiffers,
        HealthChanged,
    )
    from vc_fallback.base.signals import (
        ChainReorged,
        DependentRootChanged,
        GenerationChanged,
        HeadDelivered,
        HeadOutcome,
        NodeHeadSeen,
        NodeQuarantined,
        NodeReorgSeen,
        Observer,
        ReorgEvidence,
        RootChange,
        Signal,
        Started,
        StreamChanged,
        StreamReason,
        StreamState,
    )
    from vc_fallback.base.types import (
        BlockRef,
        Epoch,
        HeadSource,
        NodeId,
        PayloadStatus,
        Provenance,
        Role,
        Root,
        Slot,
        Sourced,
        Tier,
    )
    from vc_fallback.base.urls import BaseURL
    from vc_fallback.base.watch import Watch, WatchClosed, Watcher
    from vc_fallback.candidates import Candidate, CandidateList, ListChange, Member, TLSSettings
    from vc_fallback.chain import NETWORKS, ChainIdentity, Fork, SlotClock
    from vc_fallback.config import FallbackConfig
    from vc_fallback.decide.delivery import Delivered
    from vc_fallback.decide.health_state import HealthTransition
    from vc_fallback.decide.ledger import NodeHead
    from vc_fallback.decide.plan import Plan
    from vc_fallback.fallback import BeaconNodeFallback, NotReadyInTime
    from vc_fallback.heads.monitor import HeadMonitor, SlotHead
    from vc_fallback.heads.statistics import StreamStatistics
    from vc_fallback.heads.subscription import Subscription
    from vc_fallback.health.verdict import HealthVerdict
    from vc_fallback.node.capabilities import Capabilities, Lack
    from vc_fallback.node.client import BeaconNode
    from vc_fallback.node.events import HeadEvent, ReorgEvent
    from vc_fallback.node.failures import (
        AlreadyKnown,
        AnswerTooLarge,
        BadRequest,
        Closed,
        ConnectError,
        ConnectionLost,
        ConnectTimeout,
        Crowded,
        FutureSlot,
        InsecureConnection,
        ItemFailure,
        Malformed,
        NotAcceptable,
        NotFound,
        NotReady,
        Optimistic,
        PayloadTooLarge,
        Quarantined,
        RateLimited,
        RequestTimeout,
        RetryLater,
        SemanticError,
        ServerError,
        StatusError,
        Unauthorized,
        UnknownBlock,
        Unreachable,
        UnsupportedEndpoint,
        UnsupportedMediaType,
    )
    from vc_fallback.node.topic_events import TopicValue
    from vc_fallback.node.values.about import (
        ClientVersion,
        ClientVersions,
        DepositContract,
        ForkVersions,
        Genesis,
        NetworkIdentity,
        PeerCount,
        Syncing,
    )
    from vc_fallback.node.values.aggregation_bits import aggregation_bit_count
    from vc_fallback.node.values.answers import Duties, OnChain
    from vc_fallback.node.values.attestation import AttestationData, Checkpoint, SingleAttestation
    from vc_fallback.node.values.blocks import BeaconBlockHeader, Header, SignedBeaconBlockHeader
    from vc_fallback.node.values.duties import (
        AttesterDuty,
        Liveness,
        ProposerDuties,
        ProposerDuty,
        PtcDuty,
        SyncCommitteeDuty,
    )
    from vc_fallback.node.values.encodings import Encodings
    from vc_fallback.node.values.events import (
        AttestationEvent,
        AttesterSlashing,
        BlockEvent,
        DataColumnSidecarEvent,
        ExecutionPayloadBid,
        FastConfirmationEvent,
        FinalizedCheckpointEvent,
        IndexedAttestation,
        LightClientFinalityUpdate,
        LightClientHeader,
        LightClientOptimisticUpdate,
        PayloadAttributesEvent,
        PayloadAvailableEvent,
        PayloadEvent,
        SignedExecutionPayloadBid,
        SyncAggregate,
    )
    from vc_fallback.node.values.opaque import Opaque, ProducedBlock
    from vc_fallback.node.values.operations import (
        BLSToExecutionChange,
        ProposerSlashing,
        SignedBLSToExecutionChange,
        SignedVoluntaryExit,
        VoluntaryExit,
    )
    from vc_fallback.node.values.payload_attestation import PayloadAttestationData, PayloadAttestationMessage
    from vc_fallback.node.values.preparations import (
        BeaconCommitteeSelection,
        BeaconCommitteeSubscription,
        ProposerPreferences,
        ProposerPreparation,
        SignedProposerPreferences,
        SignedValidatorRegistration,
        SyncCommitteeSelection,
        SyncCommitteeSubscription,
        ValidatorRegistration,
    )
    from vc_fallback.node.values.publication import Publication
    from vc_fallback.node.values.states import (
        Committee,
        FinalityCheckpoints,
        ListedValidator,
        SyncCommittees,
        Validator,
        ValidatorBalance,
        ValidatorStatus,
    )
    from vc_fallback.node.values.sync_committee import (
        ContributionAndProof,
        SignedContributionAndProof,
        SyncCommitteeContribution,
        SyncCommitteeMessage,
    )
    from vc_fallback.observe.jsonl import JsonLines
    from vc_fallback.observe.log import FailureLog
    from vc_fallback.observe.plain import PlainLines
    from vc_fallback.payloads import SlotPayload
    from vc_fallback.routing.broadcast_result import BroadcastResult, NotPublished, Outcome
    from vc_fallback.routing.calls.liveness import LivenessReport, LivenessUnknown
    from vc_fallback.routing.calls.measuring import HeadAware
    from vc_fallback.routing.delivery import AtNode, Delivery, Sending
    from vc_fallback.routing.outcomes import (
        AllNodesFailed,
        Attempt,
        DeadlineExceeded,
        Doubt,
        NoCandidates,
        NotSent,
        QuorumNotReached,
        RequestFailed,
    )
    from vc_fallback.routing.quorum import Agreement
    from vc_fallback.status import ChainStatus, HeadStatus, NodeStatus, Status, TopicConnectionStatus, TopicStatus
    from vc_fallback.topics.event import TopicEvent, TopicUnavailable
    from vc_fallback.topics.subscription import TopicSubscription
    from vc_fallback.topics.unit import TopicStatistics
else:
    from importlib import import_module

    def __getattr__(name: str) -> object:
        module = _HOMES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        # The next look-up finds it without coming here.
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "NETWORKS",
    "Agreement",
    "AllNodesFailed",
    "AllUnhealthy",
    "AlreadyKnown",
    "AnswerTooLarge",
    "AtNode",
    "Attempt",
    "AttestationData",
    "AttestationEvent",
    "AttesterDuty",
    "AttesterSlashing",
    "BLSToExecutionChange",
    "BadRequest",
    "BaseURL",
    "BeaconBlockHeader",
    "BeaconCommitteeSelection",
    "BeaconCommitteeSubscription",
    "BeaconNode",
    "BeaconNodeFallback",
    "BlockEvent",
    "BlockRef",
    "BranchesDiffer",
    "BroadcastResult",
    "Buffered",
    "Candidate",
    "CandidateList",
    "Capabilities",
    "ChainIdentity",
    "ChainReorged",
    "ChainStatus",
    "Checkpoint",
    "ClientVersion",
    "ClientVersions",
    "Clock",
    "ClockDoubted",
    "Closed",
    "Committee",
    "ConfigurationError",
    "ConnectError",
    "ConnectTimeout",
    "ConnectionLost",
    "ContributionAndProof",
    "Crowded",
    "DataColumnSidecarEvent",
    "DeadlineExceeded",
    "Delivered",
    "Delivery",
    "DependentRootChanged",
    "DepositContract",
    "Doubt",
    "Duties",
    "DutiesMoved",
    "Encodings",
    "Epoch",
    "ExecutionPayloadBid",
    "FailureLog",
    "FallbackConfig",
    "FallbackError",
    "FastConfirmationEvent",
    "FinalityCheckpoints",
    "FinalityDiffers",
    "FinalizedCheckpointEvent",
    "Fork",
    "ForkVersions",
    "FutureSlot",
    "GenerationChanged",
    "Genesis",
    "HeadAware",
    "HeadDelivered",
    "HeadEvent",
    "HeadMonitor",
    "HeadOutcome",
    "HeadSource",
    "HeadStatus",
    "Header",
    "HealthChanged",
    "HealthReason",
    "HealthState",
    "HealthTransition",
    "HealthVerdict",
    "IndexedAttestation",
    "InsecureConnection",
    "ItemFailure",
    "JsonLines",
    "Lack",
    "LightClientFinalityUpdate",
    "LightClientHeader",
    "LightClientOptimisticUpdate",
    "ListChange",
    "ListedValidator",
    "Liveness",
    "LivenessReport",
    "LivenessUnknown",
    "Malformed",
    "Member",
    "NetworkIdentity",
    "NoCandidates",
    "NodeError",
    "NodeHead",
    "NodeHeadSeen",
    "NodeId",
    "NodeQuarantined",
    "NodeReorgSeen",
    "NodeStatus",
    "NotAcceptable",
    "NotFound",
    "NotPublished",
    "NotReady",
    "NotReadyInTime",
    "NotSent",
    "Observer",
    "OnChain",
    "Opaque",
    "Optimistic",
    "Outcome",
    "PayloadAttestationData",
    "PayloadAttestationMessage",
    "PayloadAttributesEvent",
    "PayloadAvailableEvent",
    "PayloadEvent",
    "PayloadStatus",
    "PayloadTooLarge",
    "PeerCount",
    "PlainLines",
    "Plan",
    "ProducedBlock",
    "ProposerDuties",
    "ProposerDuty",
    "ProposerPreferences",
    "ProposerPreparation",
    "ProposerSlashing",
    "Provenance",
    "PtcDuty",
    "Publication",
    "Quarantined",
    "QuorumNotReached",
    "RateLimited",
    "ReorgEvent",
    "ReorgEvidence",
    "RequestFailed",
    "RequestTimeout",
    "RetryLater",
    "Role",
    "Root",
    "RootChange",
    "SemanticError",
    "Sending",
    "ServerError",
    "Signal",
    "SignedBLSToExecutionChange",
    "SignedBeaconBlockHeader",
    "SignedContributionAndProof",
    "SignedExecutionPayloadBid",
    "SignedProposerPreferences",
    "SignedValidatorRegistration",
    "SignedVoluntaryExit",
    "SingleAttestation",
    "Slot",
    "SlotClock",
    "SlotHead",
    "SlotPayload",
    "Sourced",
    "Started",
    "Status",
    "StatusError",
    "StreamChanged",
    "StreamReason",
    "StreamState",
    "StreamStatistics",
    "Subscription",
    "SubscriptionClosed",
    "SubscriptionStatistics",
    "SyncAggregate",
    "SyncCommitteeContribution",
    "SyncCommitteeDuty",
    "SyncCommitteeMessage",
    "SyncCommitteeSelection",
    "SyncCommitteeSubscription",
    "SyncCommittees",
    "Syncing",
    "TLSSettings",
    "Tier",
    "TopicConnectionStatus",
    "TopicEvent",
    "TopicStatistics",
    "TopicStatus",
    "TopicSubscription",
    "TopicUnavailable",
    "TopicValue",
    "Unauthorized",
    "UnknownBlock",
    "Unreachable",
    "UnsupportedEndpoint",
    "UnsupportedMediaType",
    "Validator",
    "ValidatorBalance",
    "ValidatorRegistration",
    "ValidatorStatus",
    "VoluntaryExit",
    "Watch",
    "WatchClosed",
    "Watcher",
    "aggregation_bit_count",
]

_HOMES = {
    name: module
    for module, names in {
        "vc_fallback.base.buffered": "Buffered SubscriptionStatistics",
        "vc_fallback.base.clock": "Clock",
        "vc_fallback.base.errors": "ConfigurationError FallbackError NodeError SubscriptionClosed",
        "vc_fallback.base.health": "HealthReason HealthState",
        "vc_fallback.base.health_signals": """
            AllUnhealthy BranchesDiffer ClockDoubted DutiesMoved FinalityDiffers HealthChanged
        """,
        "vc_fallback.base.signals": """
            ChainReorged DependentRootChanged GenerationChanged HeadDelivered HeadOutcome NodeHeadSeen
            NodeQuarantined NodeReorgSeen Observer ReorgEvidence RootChange Signal Started StreamChanged
            StreamReason StreamState
        """,
        "vc_fallback.base.types": """
            BlockRef Epoch HeadSource NodeId PayloadStatus Provenance Role Root Slot Sourced Tier
        """,
        "vc_fallback.base.urls": "BaseURL",
        "vc_fallback.base.watch": "Watch WatchClosed Watcher",
        "vc_fallback.candidates": "Candidate CandidateList ListChange Member TLSSettings",
        "vc_fallback.chain": "ChainIdentity Fork NETWORKS SlotClock",
        "vc_fallback.config": "FallbackConfig",
        "vc_fallback.decide.delivery": "Delivered",
        "vc_fallback.decide.health_state": "HealthTransition",
        "vc_fallback.decide.ledger": "NodeHead",
        "vc_fallback.decide.plan": "Plan",
        "vc_fallback.fallback": "BeaconNodeFallback NotReadyInTime",
        "vc_fallback.heads.monitor": "HeadMonitor SlotHead",
        "vc_fallback.heads.statistics": "StreamStatistics",
        "vc_fallback.heads.subscription": "Subscription",
        "vc_fallback.health.verdict": "HealthVerdict",
        "vc_fallback.node.capabilities": "Capabilities Lack",
        "vc_fallback.node.client": "BeaconNode",
        "vc_fallback.node.events": "HeadEvent ReorgEvent",
        "vc_fallback.node.failures": """
            AlreadyKnown AnswerTooLarge BadRequest Closed ConnectError ConnectTimeout ConnectionLost Crowded
            FutureSlot InsecureConnection ItemFailure Malformed NotAcceptable NotFound NotReady Optimistic
            PayloadTooLarge Quarantined RateLimited RequestTimeout RetryLater SemanticError ServerError
            StatusError Unauthorized UnknownBlock Unreachable UnsupportedEndpoint UnsupportedMediaType
        """,
        "vc_fallback.node.topic_events": "TopicValue",
        "vc_fallback.node.values.about": """
            ClientVersion ClientVersions DepositContract ForkVersions Genesis NetworkIdentity PeerCount Syncing
        """,
        "vc_fallback.node.values.aggregation_bits": "aggregation_bit_count",
        "vc_fallback.node.values.answers": "Duties OnChain",
        "vc_fallback.node.values.attestation": "AttestationData Checkpoint SingleAttestation",
        "vc_fallback.node.values.blocks": "BeaconBlockHeader Header SignedBeaconBlockHeader",
        "vc_fallback.node.values.duties": """
            AttesterDuty Liveness ProposerDuties ProposerDuty PtcDuty SyncCommitteeDuty
        """,
        "vc_fallback.node.values.encodings": "Encodings",
        "vc_fallback.node.values.events": """
            AttestationEvent AttesterSlashing BlockEvent DataColumnSidecarEvent ExecutionPayloadBid
            FastConfirmationEvent FinalizedCheckpointEvent IndexedAttestation LightClientFinalityUpdate
            LightClientHeader LightClientOptimisticUpdate PayloadAttributesEvent PayloadAvailableEvent
            PayloadEvent SignedExecutionPayloadBid SyncAggregate
        """,
        "vc_fallback.node.values.opaque": "Opaque ProducedBlock",
        "vc_fallback.node.values.operations": """
            BLSToExecutionChange ProposerSlashing SignedBLSToExecutionChange SignedVoluntaryExit VoluntaryExit
        """,
        "vc_fallback.node.values.payload_attestation": "PayloadAttestationData PayloadAttestationMessage",
        "vc_fallback.node.values.preparations": """
            BeaconCommitteeSelection BeaconCommitteeSubscription ProposerPreferences ProposerPreparation
            SignedProposerPreferences SignedValidatorRegistration SyncCommitteeSelection
            SyncCommitteeSubscription ValidatorRegistration
        """,
        "vc_fallback.node.values.publication": "Publication",
        "vc_fallback.node.values.states": """
            Committee FinalityCheckpoints ListedValidator SyncCommittees Validator ValidatorBalance
            ValidatorStatus
        """,
        "vc_fallback.node.values.sync_committee": """
            ContributionAndProof SignedContributionAndProof SyncCommitteeContribution SyncCommitteeMessage
        """,
        "vc_fallback.observe.jsonl": "JsonLines",
        "vc_fallback.observe.log": "FailureLog",
        "vc_fallback.observe.plain": "PlainLines",
        "vc_fallback.payloads": "SlotPayload",
        "vc_fallback.routing.broadcast_result": "BroadcastResult NotPublished Outcome",
        "vc_fallback.routing.calls.liveness": "LivenessReport LivenessUnknown",
        "vc_fallback.routing.calls.measuring": "HeadAware",
        "vc_fallback.routing.delivery": "AtNode Delivery Sending",
        "vc_fallback.routing.outcomes": """
            AllNodesFailed Attempt DeadlineExceeded Doubt NoCandidates NotSent QuorumNotReached RequestFailed
        """,
        "vc_fallback.routing.quorum": "Agreement",
        "vc_fallback.status": "ChainStatus HeadStatus NodeStatus Status TopicConnectionStatus TopicStatus",
        "vc_fallback.topics.event": "TopicEvent TopicUnavailable",
        "vc_fallback.topics.subscription": "TopicSubscription",
        "vc_fallback.topics.unit": "TopicStatistics",
    }.items()
    for name in names.split()
}
