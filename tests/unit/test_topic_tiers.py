"""Which node carries which topics, as tables and properties (T1–T3, T7; scenarios 24, 27, 28)."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc_fallback.base.types import NodeId, Tier
from vc_fallback.decide.topic_tiers import HIGH_RATE, Lack, NodeTopics, Outlook, assign, groups, live_from, outlook

PRIMARY, FALLBACK = Tier.PRIMARY, Tier.FALLBACK


def node(
    name: str,
    *,
    live: str = "",
    asked: str = "",
    standing: str = "",
    opening: str = "",
    refuses: str = "",
    at: float = 10.0,
    carries: bool = True,
    serves: bool = True,
    flows: bool | None = None,
) -> NodeTopics:
    """A node whose topics are single letters; a name of `f…` is a fallback."""
    return NodeTopics(
        NodeId(name),
        FALLBACK if name.startswith("f") else PRIMARY,
        carries=carries,
        serves=serves,
        flows=serves if flows is None else flows,
        live=frozenset(live),
        asked=frozenset(asked + live),
        standing=frozenset(standing + live),
        opening=frozenset(opening),
        lacks={topic: Lack("400 no", refused=True, at=at) for topic in refuses},
    )


def assigned(wanted: str, *nodes: NodeTopics) -> dict[str, str]:
    return {name: "".join(sorted(topics)) for name, topics in assign(wanted, nodes).items()}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([node("p1"), node("p2"), node("f1")], ["ab", "ab", "ab"], id="nobody has anything yet"),
        pytest.param([node("p1", live="ab"), node("p2"), node("f1")], ["ab", "ab", ""], id="one primary is enough"),
        pytest.param([node("p1", live="a"), node("p2", live="b"), node("f1")], ["ab", "ab", ""], id="one topic each"),
        pytest.param([node("p1", live="a"), node("p2", live="a"), node("f1")], ["ab", "ab", "b"], id="one is lost"),
        pytest.param([node("p1", live="a"), node("f1"), node("f2")], ["ab", "b", "b"], id="all of the fallback tier"),
        pytest.param([node("p1", opening="ab"), node("f1")], ["ab", ""], id="an answer is on its way"),
        pytest.param([node("p1", opening="ab"), node("f1", live="b")], ["ab", "b"], id="what it carries it keeps"),
        pytest.param([node("p1", asked="ab"), node("f1", live="b")], ["ab", "ab"], id="asked is not live"),
        pytest.param([node("p1", live="ab", serves=False), node("f1")], ["ab", "ab"], id="not to be relied on"),
        pytest.param([node("p1", live="ab", carries=False), node("f1")], ["", "ab"], id="on another chain"),
        pytest.param([node("p1", live="a"), node("f1", carries=False)], ["ab", ""], id="so is the fallback"),
        pytest.param([node("f1")], ["ab"], id="no primary"),
        pytest.param([node("p1", live="ab"), node("f1", live="ab")], ["ab", ""], id="handed back"),
    ],
)
def test_primaries_carry_all_and_fallbacks_what_no_primary_has(nodes: list[NodeTopics], expected: list[str]) -> None:
    """T2, T3."""
    assert list(assigned("ab", *nodes).values()) == expected


@pytest.mark.parametrize(
    ("opened", "requested", "healthy_since", "expected"),
    [
        pytest.param(5.0, 4.0, None, 5.0, id="an answer is enough, whatever the health"),
        pytest.param(None, 4.0, 0.0, 34.0, id="healthy for long: 2½ slots from the request on"),
        pytest.param(None, 4.0, 9.0, 39.0, id="healthy since: 2½ slots from then on"),
        pytest.param(None, 4.0, None, None, id="not healthy"),
        pytest.param(None, None, 0.0, None, id="no request"),
    ],
)
def test_a_request_without_an_answer_is_live_after_a_while(
    opened: float | None, requested: float | None, healthy_since: float | None, expected: float | None
) -> None:
    """T1, H2: some nodes send the head of the response with their first event."""
    assert live_from(opened, requested, healthy_since, 12.0) == expected


def test_topics_of_a_high_rate_are_apart() -> None:
    """T1."""
    wanted = {"block", "attestation", "data_column_sidecar", "something_new"}
    assert groups(wanted) == {False: {"block", "something_new"}, True: {"attestation", "data_column_sidecar"}}
    assert "single_attestation" in HIGH_RATE


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([node("p1", live="a")], Outlook.CARRIED, id="live"),
        pytest.param([node("p1", refuses="a"), node("f1", live="a")], Outlook.CARRIED, id="live on a fallback"),
        pytest.param([node("p1", refuses="a"), node("f1", standing="a")], Outlook.CARRIED, id="the request stands"),
        pytest.param([node("p1", refuses="a"), node("f1", refuses="a")], Outlook.REFUSED, id="all refuse it"),
        pytest.param([node("p1", refuses="a", at=9.0)], Outlook.MISSING, id="refused before it was asked for"),
        pytest.param([node("p1", refuses="a"), node("f1")], Outlook.MISSING, id="one has not said yet"),
        pytest.param([node("p1", refuses="a"), node("f1", carries=False)], Outlook.REFUSED, id="who is left refuses"),
        pytest.param([node("p1", live="a", serves=False)], Outlook.MISSING, id="silent"),
        pytest.param([node("p1", live="a", serves=False, flows=True)], Outlook.CARRIED, id="unhealthy, yet it flows"),
        pytest.param([node("p1", asked="a")], Outlook.MISSING, id="it may be refused yet"),
        pytest.param([], Outlook.MISSING, id="an empty list"),
    ],
)
def test_whether_a_topic_reaches_its_subscribers(nodes: list[NodeTopics], expected: Outlook) -> None:
    """T7."""
    assert outlook("a", nodes, since=10.0) is expected


SETS = st.frozensets(st.sampled_from("abcd"))


@st.composite
def any_nodes(draw: st.DrawFn) -> list[NodeTopics]:
    nodes = []
    for number in range(draw(st.integers(0, 5))):
        live = draw(SETS)
        serves = draw(st.booleans())
        nodes.append(
            NodeTopics(
                NodeId(f"n{number}"),
                draw(st.sampled_from((PRIMARY, FALLBACK))),
                carries=draw(st.booleans()) or serves,
                serves=serves,
                flows=serves,
                live=live,
                asked=live | draw(SETS),
                opening=draw(SETS) - live,
            )
        )
    return nodes


def live_on_primaries(nodes: Iterable[NodeTopics]) -> frozenset[str]:
    return frozenset().union(*(n.live for n in nodes if n.tier is PRIMARY and n.serves and n.carries))


@given(SETS, any_nodes())
def test_nothing_is_dropped_before_somebody_better_has_it(wanted: frozenset[str], nodes: list[NodeTopics]) -> None:
    """T2, T3, T5, for any state: nobody is asked for what nobody wants; a fallback lets go of what is wanted only where
    a primary has it live; each topic that no primary has or is about to have is on every fallback that may be asked."""
    found = assign(wanted, nodes)
    live = live_on_primaries(nodes)
    coming = frozenset().union(*(n.opening for n in nodes if n.tier is PRIMARY and n.carries))
    assert set(found) == {n.node_id for n in nodes}
    for one in nodes:
        topics = found[one.node_id]
        assert topics <= wanted
        if not one.carries:
            assert not topics
        elif one.tier is PRIMARY:
            assert topics == wanted
        else:
            assert not topics & live
            assert (one.asked & wanted) - topics <= live
            assert (wanted - live) - topics <= coming


@given(SETS, any_nodes())
def test_a_hand_back_leaves_no_moment_without_a_carrier(wanted: frozenset[str], nodes: list[NodeTopics]) -> None:
    """T3: what a node in order carries before a decision, one carries after it, too."""
    found = assign(wanted, nodes)
    before = frozenset().union(*(n.live for n in nodes if n.serves)) & wanted
    after = frozenset().union(*(n.live & found[n.node_id] for n in nodes if n.serves))
    assert before <= after
