"""What the tests of list changes share."""

from collections.abc import Sequence

from tests.acceptance.harness import Followed, candidate
from vc_fallback.base.signals import HeadDelivered, NodeHeadSeen
from vc_fallback.candidates import Candidate
from vc_fallback.config import CandidateSettings
from vc_fallback.decide.ledger import NodeHead
from vc_fallback.heads.subscription import Subscription
from vc_fallback.testing import SimulatedNode


def listed(nodes: Sequence[SimulatedNode], **more: object) -> list[Candidate]:
    """Return a list of candidates for nodes; `more` are settings of each."""
    return [CandidateSettings.model_validate({**candidate(node), **more}).candidate() for node in nodes]


def opened(node: SimulatedNode) -> int:
    """Return how many event streams were asked for."""
    return len(node.opens)


def drain(heads: Subscription) -> list[NodeHead]:
    """Read what waits; one head for each block (a payload that comes later is told again)."""
    read: list[NodeHead] = []
    while (delivered := heads.receive_nowait()) is not None:
        if not read or not delivered.head.same_block(read[-1]):
            read.append(delivered.head)
    return read


def all_streams_closed_before_the_next(node: SimulatedNode) -> None:
    """No stream of a node began before the one before it had ended."""
    for before, after in zip(node.opens, node.opens[1:], strict=False):
        assert before.closed is not None
        assert before.closed <= after.opened
    assert node.max_streams <= 1


def assert_only(followed: Followed, names: set[str], generation: int, since: float) -> None:
    """Heads told from a position on are of these nodes and of this generation."""
    heads: list[HeadDelivered | NodeHeadSeen] = [*followed.told(HeadDelivered, since=since)]
    heads += followed.told(NodeHeadSeen, since=since)
    assert heads
    assert {head.node_id for head in heads} <= names
    assert {head.generation for head in heads} == {generation}
