"""What is known of one node's health, whatever its roles."""

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
    check_now: bool = True
    """Whether it is to be checked at once: it is new, or its chain has just become known to be ours."""
    checked_head: Slot | None = None
    """Its head by the last check, and `claim` the distance that it named then."""
    claim: int | None = None
    peers: int | None = None
    peers_at: float | None = None
    """When it was asked for its peers; `None` before that, and since it has been unhealthy: they are other ones now."""
    finality_at: float | None = None
    identified_at: float | None = None
    """When it said which chain it is on."""
    facts: RankFacts | None = None
    """What its rank was made of last."""
    told: tuple[object, ...] | None = None
    """What was told of it last."""

    @property
    def node_id(self) -> NodeId:
        """The node."""
        return self.member.node_id

    @property
    def unhealthy(self) -> str:
        """Why requests should not go to it; empty while it is healthy."""
        return self.mismatch or self.health.unhealthy
