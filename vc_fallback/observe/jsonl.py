"""JSON lines: one object per signal, for programs. The schema is in `docs/json-lines.md`."""

import json
from collections.abc import Callable, Mapping
from typing import Any

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
    GateChanged,
    GenerationChanged,
    HeadDelivered,
    HeadHeld,
    NodeHeadSeen,
    Signal,
    Started,
    StreamChanged,
)
from vc_fallback.base.types import BlockRef, NodeId, Root, root_hex
from vc_fallback.observe.counts import Counts
from vc_fallback.observe.rank_moves import RankMoves
from vc_fallback.observe.words import shown

SCHEMA = 1
"""Version of the schema, in every `start` line; raised by any change but a new type, or a new key at a line's end."""


class JsonLines:
    """An observer that writes a JSON line for each signal that has a type in the schema, keys in a stable order.

    :param unix: turns loop time into Unix time in seconds (:meth:`Clock.unix`).
    :param write: takes one line without its line break; it must not wait and may not fail.
    """

    def __init__(self, unix: Callable[[float], float], write: Callable[[str], None]) -> None:
        self.counts = Counts()
        self._moves = RankMoves()
        self._unix = unix
        self._write = write

    def __call__(self, signal: Signal) -> None:
        """Write the line of a signal."""
        self.counts(signal)
        for health in self._moves(signal):
            self._line("health", signal.at, None, _health(health))
        match signal:
            case HeadDelivered():
                self._line("head", signal.at, signal.received, _head(signal))
            case NodeHeadSeen():
                self._line("node_head", signal.at, signal.received, _node_head(signal))
            case StreamChanged():
                self._line("stream", signal.at, None, _stream(signal))
            case GenerationChanged():
                self._line("generation", signal.at, None, _generation(signal))
            case HeadHeld():
                self._line("held", signal.at, None, _held(signal))
            case ChainReorged():
                self._line("reorg", signal.at, signal.received, _reorg(signal))
            case GateChanged():
                self._line("gate", signal.at, None, _gate(signal))
            case Started():
                self._line("start", signal.at, None, _start(signal))
            case DutiesMoved():
                self._line("failover", signal.at, None, _failover(signal))
            case AllUnhealthy():
                self._line("all_unhealthy", signal.at, None, {"begins": signal.begins})
            case BranchesDiffer():
                self._line("branches", signal.at, None, _branches(signal))
            case FinalityDiffers():
                self._line("finality", signal.at, None, {"epoch": signal.epoch, "roots": _roots(signal.roots)})
            case ClockDoubted():
                self._line("clock", signal.at, None, {"node": signal.node_id, "warning": shown(signal.warning)})

    def summary(self, at: float) -> str:
        """Write what waits, and return the last line; `at` is loop time."""
        for health in self._moves.rest():
            self._line("health", at, None, _health(health))
        nodes = [
            {
                "node": node_id,
                "heads": counts.heads,
                "reconnects": counts.reconnects,
                "stalls": counts.stalls,
                "last_slot": counts.last_slot,
            }
            for node_id, counts in self.counts.nodes.items()
        ]
        counts = self.counts
        fields = {
            "delivered": counts.delivered,
            "nodes": nodes,
            "failovers": counts.failovers,
            "failbacks": counts.failbacks,
        }
        return self._json("summary", at, None, fields)

    def _line(self, kind: str, at: float, received: float | None, fields: dict[str, Any]) -> None:
        self._write(self._json(kind, at, received, fields))

    def _json(self, kind: str, at: float, received: float | None, fields: dict[str, Any]) -> str:
        line: dict[str, Any] = {"type": kind, "time": _seconds(self._unix(at))}
        if received is not None:
            line["received"] = _seconds(self._unix(received))
        # ASCII only: no terminal, locale or line splitter can take a character of a node's words amiss.
        return json.dumps(line | fields, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _start(signal: Started) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "nodes": [{"node": node_id, "tier": tier} for node_id, tier in signal.nodes],
        "genesis_time": signal.genesis_time,
        "slot_duration": signal.slot_duration,
    }


def _head(signal: HeadDelivered) -> dict[str, Any]:
    return {
        "node": signal.node_id,
        "tier": signal.tier,
        "slot": signal.slot,
        "block": root_hex(signal.root),
        "generation": signal.generation,
        "source": signal.source,
        "delay": _seconds(signal.delay),
        "optimistic": signal.optimistic,
        "payload_status": signal.payload_status,
        "late": signal.late,
        "reorg": signal.reorg,
        "seen_by": list(signal.seen_by),
    }


def _node_head(signal: NodeHeadSeen) -> dict[str, Any]:
    return {
        "node": signal.node_id,
        "slot": signal.slot,
        "block": root_hex(signal.root),
        "generation": signal.generation,
        "source": signal.source,
        "outcome": signal.outcome,
    }


def _stream(signal: StreamChanged) -> dict[str, Any]:
    return {
        "node": signal.node_id,
        "generation": signal.generation,
        "state": signal.state,
        "subscription_healthy": signal.subscription_healthy,
        "reason": signal.reason,
        "detail": shown(signal.detail),
        "failures": signal.failures,
        "retry_in": None if signal.retry_in is None else _seconds(signal.retry_in),
    }


def _generation(signal: GenerationChanged) -> dict[str, Any]:
    return {
        "generation": signal.generation,
        "added": list(signal.added),
        "removed": list(signal.removed),
        "changed": list(signal.changed),
        "kept": list(signal.kept),
    }


def _held(signal: HeadHeld) -> dict[str, Any]:
    return {"node": signal.node_id, "slot": signal.slot, "block": root_hex(signal.root)}


def _reorg(signal: ChainReorged) -> dict[str, Any]:
    return {
        "node": signal.node_id,
        "generation": signal.generation,
        "old": _block(signal.old),
        "new": _block(signal.new),
        "epoch": signal.epoch,
        "depth": signal.depth,
        "crosses_epoch": signal.crosses_epoch,
        "changed_roots": [
            {"epoch": change.epoch, "old": root_hex(change.old), "new": root_hex(change.new)}
            for change in signal.changed_roots
        ],
        "touches_current_duties": signal.touches_current_duties,
        "touches_next_duties": signal.touches_next_duties,
        "evidence": signal.evidence,
        "reported_by": list(signal.reported_by),
        "nodes": list(signal.nodes),
    }


def _block(block: BlockRef) -> dict[str, Any]:
    return {"slot": block.slot, "block": root_hex(block.root)}


def _gate(signal: GateChanged) -> dict[str, Any]:
    return {"open": signal.open, "holder": signal.holder, "reason": shown(signal.reason)}


def _health(signal: HealthChanged) -> dict[str, Any]:
    return {
        "node": signal.node_id,
        "generation": signal.generation,
        "state": signal.state,
        "suspect": signal.suspect,
        "reason": signal.reason,
        "detail": shown(signal.detail),
        "explanation": shown(signal.explanation),
        "rank": signal.rank,
        "sync_distance": signal.sync_distance,
        "optimistic": signal.optimistic,
        "el_offline": signal.el_offline,
        "latency": None if signal.latency is None else _seconds(signal.latency),
        "offset": None if signal.offset is None else _seconds(signal.offset),
        "peers": signal.peers,
    }


def _failover(signal: DutiesMoved) -> dict[str, Any]:
    return {"kind": signal.kind, "from": signal.source, "to": signal.target, "reason": shown(signal.reason)}


def _branches(signal: BranchesDiffer) -> dict[str, Any]:
    return {
        "slot": signal.slot,
        "blamed": signal.blamed,
        "reason": shown(signal.reason),
        "roots": _roots(signal.roots),
    }


def _roots(roots: Mapping[Root, tuple[NodeId, ...]]) -> list[dict[str, Any]]:
    return [{"block": root_hex(root), "nodes": list(nodes)} for root, nodes in roots.items()]


def _seconds(value: float) -> float:
    return round(value, 6)
