"""What stands around `data` in an answer."""

from typing import Generic, TypeVar

from pydantic.dataclasses import dataclass

from vc_fallback.node.values.fields import VALUE, Flag, RootBytes

T = TypeVar("T")


@dataclass(frozen=True, slots=True, config=VALUE)
class Data(Generic[T]):
    """An answer of which only `data` counts."""

    data: T


@dataclass(frozen=True, slots=True, config=VALUE)
class OnChain(Generic[T]):
    """An answer about a state or a block.

    :param execution_optimistic: whether it rests on a payload that is not verified; `None` where the node does not say.
    :param finalized: whether it is about finalized history; `None` where the node does not say.
    """

    data: T
    execution_optimistic: Flag | None = None
    finalized: Flag | None = None


@dataclass(frozen=True, slots=True, config=VALUE)
class Duties(Generic[T]):
    """Duties of an epoch.

    :param dependent_root: block root that fixes them; it means different roots for proposer v1 and v2 (Q14b). `None`
        where the API has none: sync committee duties.
    :param execution_optimistic: as in `OnChain`.
    """

    data: list[T]
    dependent_root: RootBytes | None = None
    execution_optimistic: Flag | None = None
