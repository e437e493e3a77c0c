"""Everything that is known of one node's health, whatever its roles."""

from dataclasses import dataclass

from vc_fallback.base.types import NodeId, Slot
from vc_fallback.candidates import Member
from vc_fallback.decide.health_state import NodeHealth
from vc_fallback.decide.rank import RankFacts


@dataclass(slots=True)
class NodeRecord:
    """One node.

    :param excluded: why it is no node of ours: its chain is not known yet, or another one (N7, G6); empty where it is.
    """

    member: Member
    health: NodeHealth
    excluded: str
    mismatch: str = ""
    """In which respect its chain is not the pinned one."""
    checked_head: Slot | None = None
    """Its head by the last check, and `claim` the distance that it named then."""
    claim: int | None = None
    peers: int | None = None
    peers_at: float | None = None
    finality_at: float | None = None
    identified_at: float | None = None
    """When it was asked for its chain, where it has no head stream that asks."""
    answered: float | None = None
    """When it answered something else after it had failed its checks: it is checked at once, and no check has begun."""
    facts: RankFacts | None = None
    """What its rank was made of last."""
    told: tuple[object, ...] | None = None
    """What was told of it last."""

    @property
    def node_id(self) -> NodeId:
        """The node."""
        return self.member.node_id
