"""The schema of the JSON lines, written down once more on its own, to check lines against."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any], bool]

STATES = {"connecting", "requested", "open", "fresh", "stalled", "backoff", "stopped"}
REASONS = {
    "started", "retry", "request_sent", "response", "current_head", "connect_failed", "refused", "not_an_event_stream",
    "topics_reduced", "ended", "broken", "unreadable", "head_silence", "start_grace_over", "transport_silence",
    "hard_clock", "removed", "closed", "quarantined", "internal",
}  # fmt: skip
HEALTH_STATES = {"healthy", "unhealthy", "recovering"}
HEALTH_REASONS = {
    "new", "checks_failed", "request_failed", "behind", "errors", "slow", "check_passed", "recovered",
}  # fmt: skip
OUTCOMES = {"delivered", "duplicate", "behind", "optimistic", "tier", "future", "wrong_chain", "old"}


def _whole(value: Any) -> bool:
    return type(value) is int


def _count(value: Any) -> bool:
    return _whole(value) and value >= 0


def _number(value: Any) -> bool:
    return type(value) in (int, float)


def _text(value: Any) -> bool:
    return isinstance(value, str) and "://" not in value


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _root(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("0x[0-9a-f]{64}", value) is not None


def _or_null(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _one_of(words: set[str]) -> Check:
    return lambda value: isinstance(value, str) and value in words


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _object(keys: Mapping[str, Check]) -> Check:
    return lambda value: list(value) == list(keys) and all(check(value[key]) for key, check in keys.items())


_TIMES: dict[str, Check] = {"type": _text, "time": _number}
_RECEIVED: dict[str, Check] = {**_TIMES, "received": _number}
_TIER = _one_of({"primary", "fallback"})
_SOURCE = _one_of({"stream", "poll"})
_NODES = _list_of(_text)

_BLOCK = _object({"slot": _whole, "block": _root})
_ROOTS = _list_of(_object({"block": _root, "nodes": _NODES}))

LINES: dict[str, dict[str, Check]] = {
    "start": {
        **_TIMES,
        "schema": lambda value: value == 1,
        "nodes": _list_of(_object({"node": _text, "tier": _TIER})),
        "genesis_time": _or_null(_number),
        "slot_duration": _or_null(_number),
    },
    "head": {
        **_RECEIVED,
        "node": _text,
        "tier": _TIER,
        "slot": _whole,
        "block": _root,
        "generation": _count,
        "source": _SOURCE,
        "delay": _number,
        "optimistic": _or_null(_flag),
        "payload_status": _or_null(_one_of({"empty", "full"})),
        "late": _flag,
        "reorg": _flag,
        "seen_by": _NODES,
    },
    "node_head": {
        **_RECEIVED,
        "node": _text,
        "slot": _whole,
        "block": _root,
        "generation": _count,
        "source": _SOURCE,
        "outcome": _one_of(OUTCOMES),
    },
    "stream": {
        **_TIMES,
        "node": _text,
        "generation": _count,
        "state": _one_of(STATES),
        "subscription_healthy": _or_null(_flag),
        "reason": _one_of(REASONS),
        "detail": _text,
        "failures": _count,
        "retry_in": _or_null(_number),
    },
    "held": {**_TIMES, "node": _text, "slot": _whole, "block": _root},
    "reorg": {
        **_RECEIVED,
        "node": _text,
        "generation": _count,
        "old": _BLOCK,
        "new": _BLOCK,
        "epoch": _count,
        "depth": _or_null(_count),
        "crosses_epoch": _or_null(_flag),
        "changed_roots": _list_of(_object({"epoch": _count, "old": _root, "new": _root})),
        "touches_current_duties": _or_null(_flag),
        "touches_next_duties": _or_null(_flag),
        "evidence": _one_of({"reported", "slot", "parents"}),
        "reported_by": _NODES,
        "nodes": _NODES,
    },
    "gate": {**_TIMES, "open": _flag, "holder": _or_null(_text), "reason": _text},
    "health": {
        **_TIMES,
        "node": _text,
        "generation": _count,
        "state": _one_of(HEALTH_STATES),
        "suspect": _flag,
        "reason": _one_of(HEALTH_REASONS),
        "detail": _text,
        "explanation": _text,
        "rank": _or_null(_count),
        "sync_distance": _or_null(_count),
        "optimistic": _or_null(_flag),
        "el_offline": _or_null(_flag),
        "latency": _or_null(_number),
        "offset": _or_null(_number),
        "peers": _or_null(_count),
    },
    "failover": {
        **_TIMES,
        "kind": _one_of({"start", "failover", "failback"}),
        "from": _or_null(_text),
        "to": _or_null(_text),
        "reason": _text,
    },
    "all_unhealthy": {**_TIMES, "begins": _flag},
    "branches": {**_TIMES, "slot": _or_null(_whole), "blamed": _or_null(_text), "reason": _text, "roots": _ROOTS},
    "finality": {**_TIMES, "epoch": _count, "roots": _ROOTS},
    "clock": {**_TIMES, "node": _or_null(_text), "warning": _text},
    "generation": {
        **_TIMES,
        "generation": _count,
        "added": _NODES,
        "removed": _NODES,
        "changed": _NODES,
        "kept": _NODES,
    },
    "summary": {
        **_TIMES,
        "delivered": _count,
        "nodes": _list_of(
            _object(
                {
                    "node": _text,
                    "heads": _count,
                    "reconnects": _count,
                    "stalls": _count,
                    "last_slot": _or_null(_whole),
                }
            )
        ),
        "failovers": _count,
        "failbacks": _count,
    },
}


def check_line(text: str) -> dict[str, Any]:
    """Parse a line; fail unless it has exactly the keys of its type, in order, with values of the right kind."""
    line = json.loads(text)
    assert isinstance(line, dict), text
    assert line.get("type") in LINES, text
    keys = LINES[line["type"]]
    assert list(line) == list(keys), text
    for key, check in keys.items():
        assert check(line[key]), f"{key} in {text}"
    if line["type"] == "gate":
        assert line["open"] is (line["holder"] is None), text
    if line["type"] == "health":
        assert line["rank"] != 0, text
        assert line["state"] == "healthy" or not line["suspect"], text
    if line["type"] == "failover":
        assert line["from"] != line["to"], text
        assert line["kind"] == "start" or line["from"] is not None, text
    return line
