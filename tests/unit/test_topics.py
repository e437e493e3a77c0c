"""What a node is asked for after it refused topics, as a table of its answers (H10; cases 6 and 7)."""

import pytest

from vc_fallback.decide.topics import HEAD_TOPICS, TopicPlan

NIMBUS = "Invalid topics value"
GRANDINE = "invalid query string: topics: Matching variant not found"
BOTH, REORG, HEAD = ("head", "head_v2"), ("head", "chain_reorg"), ("head",)


def test_the_first_request_carries_both_forms_of_the_head() -> None:
    """H10: an unknown topic alone gets no answer at all from some nodes."""
    plan = TopicPlan()
    assert plan.topics == HEAD_TOPICS == ("head", "head_v2", "chain_reorg")
    assert not plan.reduced


@pytest.mark.parametrize(
    ("messages", "asked"),
    [
        pytest.param([NIMBUS], [BOTH], id="no name: without the optional topic first"),
        pytest.param([NIMBUS, NIMBUS], [BOTH, REORG], id="then head_v2 → head"),
        pytest.param([GRANDINE] * 3, [BOTH, REORG, HEAD], id="then head alone"),
        pytest.param(["Invalid topic: head_v2"], [REORG], id="spec: the name is dropped at once"),
        pytest.param(["head_v2: invalid topic name"], [REORG], id="Prysm's order of words"),
        pytest.param(["chain_reorg: invalid topic name", "head_v2: invalid topic name"], [BOTH, HEAD], id="one by one"),
        pytest.param(["Topics head_v2,chain_reorg are not allowed"], [HEAD], id="two names at once"),
        pytest.param(["Invalid topics: head,head_v2,chain_reorg"], [HEAD], id="the whole request echoed: head stays"),
        pytest.param(["Invalid topic: head"], [BOTH], id="head is never given up"),
        pytest.param(["unknown topic chain_reorganisation"], [BOTH], id="part of a word is no name"),
        pytest.param(["Invalid topic: head_v20"], [BOTH], id="nor is a longer one"),
        pytest.param([""], [BOTH], id="an empty body"),
    ],
)
def test_what_is_asked_after_a_refusal(messages: list[str], asked: list[tuple[str, ...]]) -> None:
    """H10, case 6: bodies as real nodes write them."""
    plan = TopicPlan()
    found = []
    for message in messages:
        assert plan.refuse(message)
        found.append(plan.topics)
    assert found == asked
    assert plan.reduced


@pytest.mark.parametrize(
    "message", ["", NIMBUS, "Invalid topic: head", "Invalid topic: head_v2", "head,head_v2,chain_reorg"]
)
def test_a_node_that_refuses_everything_is_asked_for_head_with_backoff(message: str) -> None:
    """H10, rule 6, scenario 17: the number of requests without a wait is bounded, `head` is never given up."""
    plan = TopicPlan()
    at_once = 0
    while plan.refuse(message):
        at_once += 1
        assert "head" in plan.topics
        assert at_once <= 4
    assert plan.topics == HEAD
    for _ in range(3):
        assert not plan.refuse(message)
        assert plan.topics == HEAD


def test_a_refusal_is_remembered_while_the_version_is_the_same() -> None:
    """H10: per node."""
    plan = TopicPlan()
    plan.refuse("Invalid topic: head_v2")
    plan.seen_version("Teku/v1")
    plan.seen_version("Teku/v1")
    plan.seen_version("")
    assert plan.topics == REORG
    plan.seen_version("Teku/v2")
    assert not plan.reduced
    assert plan.refuse(NIMBUS)
    assert plan.topics == BOTH
