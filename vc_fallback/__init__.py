"""Many Ethereum beacon nodes held as one, for Python validator clients.

The public names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc_fallback.base.clock import Clock
    from vc_fallback.base.errors import (
        ConfigurationError,
        FallbackError,
        NodeError,
        SubscriptionClosed,
    )
    from vc_fallback.base.signals import (
        DependentRootChanged,
        GenerationChanged,
        HeadDelivered,
        HeadOutcome,
        NodeHeadSeen,
        NodeQuarantined,
        Observer,
        Signal,
        Started,
        StreamChanged,
        StreamReason,
        StreamState,
    )
    from vc_fallback.base.types import (
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
    from vc_fallback.decide.ledger import NodeHead
    from vc_fallback.heads.monitor import HeadMonitor, SlotHead
    from vc_fallback.heads.statistics import StreamStatistics
    from vc_fallback.heads.subscription import Subscription, SubscriptionStatistics
    from vc_fallback.node.client import BeaconNode
    from vc_fallback.node.failures import (
        AlreadyKnown,
        AnswerTooLarge,
        BadRequest,
        Closed,
        ConnectError,
        ConnectionLost,
        ConnectTimeout,
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
        SemanticError,
        ServerError,
        StatusError,
        Unauthorized,
        Unreachable,
        UnsupportedEndpoint,
        UnsupportedMediaType,
    )
    from vc_fallback.node.values.encodings import Encodings
    from vc_fallback.observe.jsonl import JsonLines
    from vc_fallback.observe.log import FailureLog
    from vc_fallback.observe.plain import PlainLines
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
    "AlreadyKnown",
    "AnswerTooLarge",
    "BadRequest",
    "BaseURL",
    "BeaconNode",
    "Candidate",
    "CandidateList",
    "ChainIdentity",
    "Clock",
    "Closed",
    "ConfigurationError",
    "ConnectError",
    "ConnectTimeout",
    "ConnectionLost",
    "Delivered",
    "DependentRootChanged",
    "Encodings",
    "Epoch",
    "FailureLog",
    "FallbackConfig",
    "FallbackError",
    "Fork",
    "GenerationChanged",
    "HeadDelivered",
    "HeadMonitor",
    "HeadOutcome",
    "HeadSource",
    "InsecureConnection",
    "ItemFailure",
    "JsonLines",
    "ListChange",
    "Malformed",
    "Member",
    "NodeError",
    "NodeHead",
    "NodeHeadSeen",
    "NodeId",
    "NodeQuarantined",
    "NotAcceptable",
    "NotFound",
    "NotReady",
    "Observer",
    "Optimistic",
    "PayloadStatus",
    "PayloadTooLarge",
    "PlainLines",
    "Provenance",
    "Quarantined",
    "RateLimited",
    "RequestTimeout",
    "Role",
    "Root",
    "SemanticError",
    "ServerError",
    "Signal",
    "Slot",
    "SlotClock",
    "SlotHead",
    "Sourced",
    "Started",
    "StatusError",
    "StreamChanged",
    "StreamReason",
    "StreamState",
    "StreamStatistics",
    "Subscription",
    "SubscriptionClosed",
    "SubscriptionStatistics",
    "TLSSettings",
    "Tier",
    "Unauthorized",
    "Unreachable",
    "UnsupportedEndpoint",
    "UnsupportedMediaType",
    "Watch",
    "WatchClosed",
    "Watcher",
]

_HOMES = {
    name: module
    for module, names in {
        "vc_fallback.base.clock": "Clock",
        "vc_fallback.base.errors": """
            ConfigurationError FallbackError NodeError SubscriptionClosed
        """,
        "vc_fallback.base.signals": """
            DependentRootChanged GenerationChanged HeadDelivered HeadOutcome NodeHeadSeen Observer
            NodeQuarantined Signal Started StreamChanged StreamReason StreamState
        """,
        "vc_fallback.base.types": "Epoch HeadSource NodeId PayloadStatus Provenance Role Root Slot Sourced Tier",
        "vc_fallback.base.urls": "BaseURL",
        "vc_fallback.base.watch": "Watch WatchClosed Watcher",
        "vc_fallback.candidates": "Candidate CandidateList ListChange Member TLSSettings",
        "vc_fallback.chain": "NETWORKS ChainIdentity Fork SlotClock",
        "vc_fallback.config": "FallbackConfig",
        "vc_fallback.decide.delivery": "Delivered",
        "vc_fallback.decide.ledger": "NodeHead",
        "vc_fallback.heads.monitor": "HeadMonitor SlotHead",
        "vc_fallback.heads.statistics": "StreamStatistics",
        "vc_fallback.heads.subscription": "Subscription SubscriptionStatistics",
        "vc_fallback.node.client": "BeaconNode",
        "vc_fallback.node.failures": """
            AlreadyKnown AnswerTooLarge BadRequest Closed ConnectError ConnectTimeout ConnectionLost
            InsecureConnection ItemFailure Malformed NotAcceptable NotFound NotReady Optimistic PayloadTooLarge
            Quarantined RateLimited RequestTimeout SemanticError ServerError StatusError Unauthorized
            Unreachable UnsupportedEndpoint UnsupportedMediaType
        """,
        "vc_fallback.node.values.encodings": "Encodings",
        "vc_fallback.observe.jsonl": "JsonLines",
        "vc_fallback.observe.log": "FailureLog",
        "vc_fallback.observe.plain": "PlainLines",
    }.items()
    for name in names.split()
}
