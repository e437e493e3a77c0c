"""Events about the head, parsed into what they mean; which spelling a node used does not show.

`head` and `head_v2` become one type. Dependent roots are named by the offset of the epoch whose duties they fix, as in
`head_v2`: v1's `previous_duty_dependent_root` is that of the current epoch, its `current_duty_dependent_root` that of
the next one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Generic, TypeVar

from pydantic import AliasChoices, ConfigDict, Field, PlainValidator, Strict, TypeAdapter, ValidationError

from vc_fallback.base.types import ZERO_ROOT, Epoch, PayloadStatus, Root, Slot
from vc_fallback.node.error_body import read_error
from vc_fallback.node.scalars import root, uint64

T = TypeVar("T")


def root_or_unknown(value: object) -> Root | None:
    """Read a root that a node may not know: null, nothing and all zeros (case 15) are `None`.

    :raises ValueError: for anything else that is no root.
    """
    if value is None or value in ("", "0x"):
        return None
    known = root(value)
    return None if known == ZERO_ROOT else known


_Flag = Annotated[bool, Strict()]
_Root = Annotated[Root, PlainValidator(root)]
_RootOrUnknown = Annotated[Root | None, PlainValidator(root_or_unknown)]
_OptimisticFlag = Annotated[_Flag | None, Field(validation_alias="execution_optimistic")]

_CONFIG = ConfigDict(hide_input_in_errors=True)


class MalformedEvent(ValueError):
    """An event whose data does not follow the Beacon API; the text names topic and fields and holds no data."""

    def __init__(self, topic: str, problem: str) -> None:
        super().__init__(f"{topic}: {problem}")
        self.topic = topic
        self.problem = problem


@dataclass(frozen=True, slots=True)
class HeadEvent:
    """A `head` or `head_v2` event. Only slot and block are always there."""

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    slot: Annotated[Slot, PlainValidator(uint64)]
    block: _Root
    state: _RootOrUnknown = None
    payload_status: PayloadStatus | None = None
    """Of a Gloas block; `None` where the node did not say, as with every v1 event."""
    epoch_transition: _Flag = False
    current_epoch_dependent_root: Annotated[
        _RootOrUnknown,
        Field(validation_alias=AliasChoices("current_epoch_dependent_root", "previous_duty_dependent_root")),
    ] = None
    """`None`: unknown. Some nodes say so with zeros or nothing; it is never a change (C11)."""
    next_epoch_dependent_root: Annotated[
        _RootOrUnknown,
        Field(validation_alias=AliasChoices("next_epoch_dependent_root", "current_duty_dependent_root")),
    ] = None
    optimistic: _OptimisticFlag = None
    """`None`: the node did not say (H12)."""


@dataclass(frozen=True, slots=True)
class ReorgEvent:
    """A `chain_reorg` event. It has no dependent roots: those of the new head are unknown until it is announced."""

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    slot: Annotated[Slot, PlainValidator(uint64)]
    depth: Annotated[int, PlainValidator(uint64)]
    old_head_block: _Root
    new_head_block: _Root
    epoch: Annotated[Epoch, PlainValidator(uint64)]
    optimistic: _OptimisticFlag = None


@dataclass(frozen=True, slots=True)
class StreamError:
    """An in-band `event: error`: the subscription failed, though it was answered 200."""

    status: int | None
    message: str
    """The node's words, redacted, on one line, of bounded length."""


@dataclass(slots=True)
class _Versioned(Generic[T]):
    """The `{"version", "data"}` around an event."""

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    data: T


HeadTopicEvent = HeadEvent | ReorgEvent

_head = TypeAdapter(HeadEvent).validate_json
_reorg = TypeAdapter(ReorgEvent).validate_json
_versioned_head_adapter = TypeAdapter(_Versioned[HeadEvent])
_versioned_reorg_adapter = TypeAdapter(_Versioned[ReorgEvent])


def _versioned_head(data: str) -> HeadEvent:
    return _versioned_head_adapter.validate_json(data).data


def _versioned_reorg(data: str) -> ReorgEvent:
    return _versioned_reorg_adapter.validate_json(data).data


# Nodes have sent versioned topics without their wrapper and others with one, so each topic is read in both shapes,
# the defined one first.
_SHAPES: dict[str, tuple[Callable[[str], HeadTopicEvent], ...]] = {
    "head": (_head, _versioned_head),
    "head_v2": (_versioned_head, _head),
    "chain_reorg": (_reorg, _versioned_reorg),
}


def parse_event(topic: str, data: str) -> HeadTopicEvent | StreamError | None:
    """Parse one event of a head stream: its type and its data, as the decoder gives them.

    :returns: `None` for a topic that is not about the head, whose data is not looked at.
    :raises MalformedEvent: if the topic is known and the data does not follow the Beacon API.
    """
    shapes = _SHAPES.get(topic)
    if shapes is None:
        return StreamError(*read_error(data)) if topic == "error" else None
    problems: list[list[str]] = []
    for shape in shapes:
        try:
            return shape(data)
        except ValidationError as error:
            problems.append(_problems(error))
    # Where there is no wrapper, what is wrong is told by the other shape.
    told = next(found for found in problems if found != ["data missing"])
    raise MalformedEvent(topic, ", ".join(told))


def _problems(error: ValidationError) -> list[str]:
    """Where and what: names of fields, never keys of the data, and texts of ours, which repeat nothing."""
    problems = []
    for detail in error.errors(include_url=False, include_input=False):
        kind = detail["type"]
        what = str(detail["ctx"]["error"]) if kind == "value_error" else kind
        problems.append(f"{'.'.join(map(str, detail['loc']))} {what}".lstrip())
    return problems
