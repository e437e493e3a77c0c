"""What is kept of a node is bounded, and how much that is (rule 6); measured on CPython 3.11, with a fifth to spare."""

from tests.deep_size import deep_size
from vc_fallback.base.types import Epoch, NodeId, Root, Slot
from vc_fallback.decide.branches import MOST
from vc_fallback.decide.clock_offset import ClockPolicy, ClockWatch
from vc_fallback.decide.consistency import Consistency
from vc_fallback.decide.finality import Finality
from vc_fallback.decide.health_policy import HealthPolicy
from vc_fallback.decide.health_state import MOST_TRANSITIONS, NodeHealth
from vc_fallback.decide.tip_consensus import Heights

NODES = [NodeId(f"node {number}") for number in range(20)]
IDS = sum(deep_size(node_id) for node_id in NODES)


def root(number: int) -> Root:
    return Root(number.to_bytes(32, "big"))


def of_each(thing: object) -> float:
    """Return the bytes that a thing takes for each of the twenty nodes."""
    return (deep_size(thing) - IDS) / len(NODES)


def test_of_health() -> None:
    """15 kB a node, however long its words are."""
    policy = HealthPolicy()
    health = NodeHealth(policy, 0.0)
    words = "😀" * 5000
    for number in range(2000):
        now = 1.0 + number
        for _ in range(3):
            health.check_failed(now, f"{number} {words}")
        health.check_passed(now, lag=number, latency=0.01 * number)
        health.duty_answered(now, 0.02 * number)
        health.request_failed(now, words, started=now, transport=bool(number % 2))
        if number % 100 == 99:
            assert deep_size(health) - deep_size(policy) < 18_000
    assert len(health.history) == MOST_TRANSITIONS


def test_of_heights() -> None:
    """1.6 kB a node."""
    heights = Heights(3.0)
    for slot in range(1000, 2000):
        for node_id in NODES:
            heights.saw(node_id, Slot(slot), float(slot), served=bool(slot % 2))
    assert of_each(heights) < 2_000


def test_of_consistency() -> None:
    """1.5 kB a node, and 90 kB of links for all together."""
    nodes = Consistency()
    for slot in range(1000, 1000 + 4 * MOST):
        nodes.branches.link(root(slot), Slot(slot), root(10**6 + slot))
        for number, node_id in enumerate(NODES):
            nodes.head(node_id, Slot(slot), root(slot * 100 + number))
        if slot % 100 == 0:
            nodes.judge()
    links = deep_size(nodes.branches)
    assert links < 100_000
    assert of_each(nodes) - links / len(NODES) < 1_800


def test_of_clocks() -> None:
    """2.1 kB a node."""
    clocks = ClockWatch(ClockPolicy())
    for slot in range(1000):
        for number, node_id in enumerate(NODES):
            clocks.head(node_id, Slot(slot), slot * 1e-4 + number)
        if slot % 10:
            clocks.judge(Slot(slot))
    assert of_each(clocks) < 2_500


def test_of_finality() -> None:
    """1.3 kB a node."""
    finality = Finality()
    for epoch in range(1, 500):
        for number, node_id in enumerate(NODES):
            finality.finalized(node_id, Epoch(epoch), root(epoch * 100 + number))
    assert of_each(finality) < 1_500
