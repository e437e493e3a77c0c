"""Events about the head, parsed into what they mean; which spelling a node used does not show.

`head` and `head_v2` become one type. Dependent roots are named by the offset of the epoch whose duties they fix, as in
`head_v2`: v1's `previous_duty_dependent_root` is that of the current epoch, its `current_duty_dependent_root` that of
the next one.

Members are read by hand. A head comes once in a slot, when no cache is warm, and what counts then is how little code it
takes: a pydantic model with the same readers took a third longer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic_core import from_json

from vc_fallback.base.types import ZERO_ROOT, Epoch, PayloadStatus, Root, Slot, parse_root
from vc_fallback.node.error_body import read_error
from vc_fallback.node.scalars import flag, uint64


class MalformedEvent(ValueError):
    """An event whose data does not follow the Beacon API; the text names topic and fields and holds no data."""

    def __init__(self, topic: str, problem: str) -> None:
        super().__init__(f"{topic}: {problem}")
        self.topic = topic
        self.problem = problem


class HeadEvent(NamedTuple):
    """A `head` or `head_v2` event. Only slot and block are always there."""

    slot: Slot
    block: Root
    state: Root | None = None
    payload_status: PayloadStatus | None = None
    """Of a Gloas block; `None` where the node did not say, as with every v1 event."""
    epoch_transition: bool = False
    current_epoch_dependent_root: Root | None = None
    """`None`: unknown. Some nodes say so with zeros or nothing; it is never a change (C11)."""
    next_epoch_dependent_root: Root | None = None
    optimistic: bool | None = None
    """`None`: the node did not say (H12)."""


class ReorgEvent(NamedTuple):
    """A `chain_reorg` event. It has no dependent roots: those of the new head are unknown until it is announced."""

    slot: Slot
    depth: int
    old_head_block: Root
    new_head_block: Root
    epoch: Epoch
    optimistic: bool | None = None


@dataclass(frozen=True, slots=True)
class StreamError:
    """An in-band `event: error`: the subscription failed, though it was answered 200."""

    status: int | None
    message: str
    """The node's words, redacted, on one line, of bounded length."""


HeadTopicEvent = HeadEvent | ReorgEvent

_LARGEST = 64 * 1024
"""Characters of an event about the head: a hundred times what one has."""

Members = Mapping[str, Any]


def _root_or_unknown(value: object) -> Root | None:
    """Read a root that a node may not know: null, nothing and all zeros (case 15) are `None`."""
    if value is None or value in ("", "0x"):
        return None
    known = parse_root(value)
    return None if known == ZERO_ROOT else known


def _payload_status(value: object) -> PayloadStatus | None:
    if value is None:
        return None
    if value not in ("empty", "full"):
        raise ValueError("neither empty nor full")
    return PayloadStatus(value)


def _switch(value: object) -> bool:
    if value is True or value is False:
        return value
    raise ValueError("not a boolean")


def _head(members: Members) -> HeadEvent:
    get = members.get
    return HeadEvent(
        Slot(uint64(members["slot"])),
        parse_root(members["block"]),
        _root_or_unknown(get("state")),
        _payload_status(get("payload_status")),
        _switch(get("epoch_transition", False)),
        _root_or_unknown(get("current_epoch_dependent_root", get("previous_duty_dependent_root"))),
        _root_or_unknown(get("next_epoch_dependent_root", get("current_duty_dependent_root"))),
        flag(get("execution_optimistic")),
    )


def _reorg(members: Members) -> ReorgEvent:
    return ReorgEvent(
        slot=Slot(uint64(members["slot"])),
        depth=uint64(members["depth"]),
        old_head_block=parse_root(members["old_head_block"]),
        new_head_block=parse_root(members["new_head_block"]),
        epoch=Epoch(uint64(members["epoch"])),
        optimistic=flag(members.get("execution_optimistic")),
    )


class _Shape(NamedTuple):
    """How the data of a topic is read; the tables of readers by member only serve to say what is wrong."""

    read: Callable[[Members], HeadTopicEvent]
    needed: Mapping[str, Callable[[object], object]]
    optional: Mapping[str, Callable[[object], object]]
    versioned: bool
    """Whether the definition has a `{"version", "data"}` around the data."""

    def problems(self, members: Members) -> list[str]:
        """Name the members that are missing or malformed."""
        found = []
        for name, read in {**self.needed, **self.optional}.items():
            if name not in members:
                if name in self.needed:
                    found.append(f"{name} missing")
                continue
            try:
                read(members[name])
            except ValueError as error:
                found.append(f"{name} {error}")
        return found


_HEAD_OPTIONAL: Mapping[str, Callable[[object], object]] = {
    "state": _root_or_unknown,
    "payload_status": _payload_status,
    "epoch_transition": _switch,
    "current_epoch_dependent_root": _root_or_unknown,
    "previous_duty_dependent_root": _root_or_unknown,
    "next_epoch_dependent_root": _root_or_unknown,
    "current_duty_dependent_root": _root_or_unknown,
    "execution_optimistic": flag,
}
_HEAD = _Shape(_head, {"slot": uint64, "block": parse_root}, _HEAD_OPTIONAL, versioned=False)
_REORG = _Shape(
    _reorg,
    {"slot": uint64, "depth": uint64, "old_head_block": parse_root, "new_head_block": parse_root, "epoch": uint64},
    {"execution_optimistic": flag},
    versioned=False,
)
_SHAPES = {"head": _HEAD, "head_v2": _HEAD._replace(versioned=True), "chain_reorg": _REORG}


def parse_event(topic: str, data: str) -> HeadTopicEvent | StreamError | None:
    """Parse one event of a head stream: its type and its data, as the decoder gives them.

    :returns: `None` for a topic that is not about the head, whose data is not looked at.
    :raises MalformedEvent: if the topic is known and the data does not follow the Beacon API.
    """
    shape = _SHAPES.get(topic)
    if shape is None:
        return StreamError(*read_error(data)) if topic == "error" else None
    if len(data) > _LARGEST:
        # To read it would take so long that other nodes' heads wait.
        raise MalformedEvent(topic, "much larger than it can be")
    try:
        value = from_json(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise MalformedEvent(topic, "not a JSON object")
    # Nodes have sent versioned topics without their wrapper and others with one, so each topic is read in both shapes,
    # the defined one first.
    wrapped = value.get("data")
    inner = wrapped if isinstance(wrapped, dict) else None
    for members in (inner, value) if shape.versioned else (value, inner):
        if members is not None:
            try:
                return shape.read(members)
            except (KeyError, ValueError):
                continue
    told, prefix = (inner, "data.") if shape.versioned and inner is not None else (value, "")
    raise MalformedEvent(topic, ", ".join(prefix + problem for problem in shape.problems(told)))
