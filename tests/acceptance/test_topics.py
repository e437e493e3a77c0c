"""Which topics a node is asked for, and what its refusals change (H10, H11)."""

from urllib.parse import parse_qsl, urlsplit

import anyio
import pytest

from tests.acceptance.harness import Followed, monitor
from vc_fallback.base.signals import NodeHeadSeen, StreamState
from vc_fallback.base.types import PayloadStatus
from vc_fallback.testing import FramingName, SimulatedChain, SimulatedNode, simulated_devnet
from vc_fallback.testing.events import TOPICS, UnknownTopics

pytestmark = pytest.mark.anyio

EVENTS = "/eth/v1/events"
VERSION = "/eth/v1/node/version"
ALL = ("head", "head_v2", "chain_reorg")

REFUSALS: tuple[UnknownTopics, ...] = ("nimbus", "prysm", "grandine", "spec", "lodestar")
"""Nimbus and Grandine do not name the topic they refuse."""


def asked(node: SimulatedNode) -> list[tuple[str, ...]]:
    """Return the topics of each request for events."""
    return [record.topics for record in node.opens]


def assert_followed(followed: Followed, node: SimulatedNode, first: int, last: int) -> None:
    """Every slot's head of the node came by its stream."""
    slots = {seen.slot for seen in followed.told(NodeHeadSeen, node) if seen.source.value == "stream"}
    assert set(range(first, last + 1)) <= slots


async def test_the_request_is_written_as_nodes_want_it() -> None:
    """H10: repeated `topics=` keys, both heads at once, `Accept: text/event-stream` exactly, HTTP/1.1 GET."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        await followed.until(128.5)
        (record,) = net[0].opens
        parts = urlsplit(record.target)
        assert parts.path == EVENTS
        assert parse_qsl(parts.query) == [("topics", topic) for topic in ALL]
        assert record.headers["accept"] == "text/event-stream"
        assert record.headers.get("accept-encoding", "identity") == "identity"


@pytest.mark.parametrize("style", REFUSALS)
@pytest.mark.parametrize(
    ("unknown", "left"),
    [
        (("head_v2",), ("head", "chain_reorg")),
        (("chain_reorg",), ("head", "head_v2")),
        (("head_v2", "chain_reorg"), ("head",)),
    ],
)
async def test_a_refused_topic_is_given_up_and_the_others_are_not(
    style: UnknownTopics, unknown: tuple[str, ...], left: tuple[str, ...]
) -> None:
    """Scenario 17, H10, cases 6 and 7: whoever names the topic or not, the node is followed, and at once."""
    chain = SimulatedChain(start_slot=128)
    known = [topic for topic in TOPICS if topic not in unknown]
    async with (
        SimulatedNode(chain, name="bn1", topics=known, unknown_topics=style) as node,
        monitor([node]) as followed,
    ):
        await anyio.sleep(0.5)
        assert asked(node)[0] == ALL
        assert asked(node)[-1] == left
        assert len(node.opens) <= 4
        reduced = [
            change for change in followed.changes(node) if change.reason.value == "topics_reduced" and change.detail
        ]
        assert len(reduced) == len(node.opens) - 1
        assert all(change.detail.startswith("400 ") for change in reduced), "the refusal is visible"
        assert not followed.ends(node), "asking for less needs no wait"
        await followed.until(131.5)
        assert_followed(followed, node, 128, 131)
        followed.assert_every_slot_delivered(128, 131)


@pytest.mark.parametrize("style", [*REFUSALS, "silent", "open"])
async def test_a_node_that_ignores_unknown_topics_or_refuses_them_needs_no_reduction_twice(
    style: UnknownTopics,
) -> None:
    """H10: what a node refused is remembered over its reconnects; a node that ignores topics is asked for all again."""
    chain = SimulatedChain(start_slot=128)
    known = [topic for topic in TOPICS if topic != "head_v2"]
    async with (
        SimulatedNode(chain, name="bn1", topics=known, unknown_topics=style) as node,
        monitor([node]) as followed,
    ):
        await followed.until(129.5)
        opens = len(node.opens)
        await node.cut_connections()
        await followed.until(131.5)
        assert len(node.opens) == opens + 1
        assert asked(node)[-1] == (ALL if style in {"silent", "open"} else ("head", "chain_reorg"))
        assert_followed(followed, node, 128, 131)


async def test_refusals_are_forgotten_with_another_version() -> None:
    """H10: remembered for as long as the version string is the same: an upgraded node is asked for everything again."""
    chain = SimulatedChain(start_slot=128)
    old = [topic for topic in TOPICS if topic != "head_v2"]
    async with (
        SimulatedNode(chain, name="bn1", topics=old, unknown_topics="nimbus") as node,
        monitor([node]) as followed,
    ):
        await followed.until(129.5)
        for _ in range(3):
            await node.cut_connections()
            await followed.wait_slots(1)
            assert asked(node)[-1] == ("head", "chain_reorg")
        node.state.version = "Nimbus/v27.0.0"
        node.broadcast.topics.add("head_v2")
        await node.cut_connections()
        await followed.wait_slots(1)
        assert asked(node)[-1] == ALL
        assert followed.state(node) is StreamState.FRESH


async def test_a_node_that_does_not_tell_its_version_keeps_its_reduction() -> None:
    """H10: no version, or none for the moment, is no other version."""
    chain = SimulatedChain(start_slot=128)
    old = [topic for topic in TOPICS if topic != "head_v2"]
    async with SimulatedNode(chain, name="bn1", topics=old, unknown_topics="spec") as node, monitor([node]) as followed:
        await followed.until(129.5)
        node.answer(VERSION, 500)
        await node.cut_connections()
        await followed.until(131.5)
        node.heal()
        node.answer(VERSION, 200, '{"data":{"version":""}}')
        await node.cut_connections()
        await followed.until(133.5)
        node.heal()
        await node.cut_connections()
        await followed.until(135.5)
        assert set(asked(node)[1:]) == {("head", "chain_reorg")}
        assert_followed(followed, node, 134, 135)


@pytest.mark.parametrize("style", ["nimbus", "prysm", "spec"])
async def test_head_is_never_given_up_and_asked_for_with_backoff(style: UnknownTopics) -> None:
    """Scenario 17, H10, rule 6: a node that refuses everything costs a few requests, and then those of the backoff."""
    chain = SimulatedChain(start_slot=128)
    async with (
        SimulatedNode(chain, name="bn1", topics=[], unknown_topics=style) as node,
        SimulatedNode(chain, name="bn2") as other,
        monitor([node, other]) as followed,
    ):
        await anyio.sleep(60)
        assert all("head" in topics for topics in asked(node))
        assert asked(node)[-1] == ("head",)
        # Four sets at most without a wait, then 1, 2, 4, 8, 16, 16 s.
        assert len(node.opens) <= 4 + 8
        assert followed.ends(node)[0].reason.value == "refused"
        node.broadcast.topics.update(TOPICS)
        await anyio.sleep(36)
        assert followed.state(node) is StreamState.FRESH
        followed.assert_every_slot_delivered(128, 135)


@pytest.mark.parametrize("body", ["", "<html>Bad Request</html>", '{"code":400,"message":null}'])
async def test_a_400_without_words_is_taken_as_a_refusal_of_topics(body: str) -> None:
    """H10: whatever is in the body; a node that says 400 to everything is asked with backoff."""
    async with simulated_devnet(1) as net:
        net[0].answer(EVENTS, 400, body)
        async with monitor(net) as followed:
            await anyio.sleep(30)
            assert asked(net[0])[-1] == ("head",)
            assert len(net[0].opens) <= 4 + 6
            net[0].heal()
            await anyio.sleep(36)
            assert followed.state(net[0]) is StreamState.FRESH


async def test_a_topic_refused_in_band_is_given_up_too() -> None:
    """Case 4: Prysm's gateway answered 200 and said 400 as the only event of the stream."""
    error = 'event: error\ndata: {"status_code":400,"message":"Topic head_v2 not allowed for event subscriptions"}\n\n'
    async with simulated_devnet(1) as net:
        net[0].answer(EVENTS, 200, error, content_type="text/event-stream", times=1)
        async with monitor(net) as followed:
            await followed.until(129.5)
            assert asked(net[0]) == [ALL, ("head", "chain_reorg")]
            assert not followed.ends(net[0])
            assert followed.state(net[0]) is StreamState.FRESH


async def test_other_statuses_change_no_topics() -> None:
    """H10: only a 400 is about the topics."""
    async with simulated_devnet(4) as net:
        for node, status in zip(net, (404, 422, 500, 503), strict=True):
            node.answer(EVENTS, status, '{"code":400,"message":"Invalid topic: head_v2"}', times=2)
        async with monitor(net) as followed:
            await followed.until(130.5)
            for node in net:
                assert asked(node) == [ALL] * 3
                assert followed.state(node) is StreamState.FRESH


# H11: two forms of one head.


@pytest.mark.parametrize("framing", ["lighthouse", "lodestar", "nimbus"])
async def test_both_forms_of_a_head_are_one_head(framing: FramingName) -> None:
    """H11: `head` and `head_v2` of one block are delivered once; before Gloas the payload is there with its block."""
    async with simulated_devnet(2, framings=[framing]) as net, monitor(net) as followed:
        await followed.until(135.5)
        # The first block after a connect may be told by `head` before it is known that `head_v2` comes as well.
        told = [head.slot for head in followed.deliveries(since=129)]
        assert told == list(range(129, 136))
        assert {head.payload_status for head in followed.deliveries(since=129)} == {PayloadStatus.FULL}


async def test_a_mixed_fleet_feeds_one_cache() -> None:
    """H11, cases 7 and 52: one node has `head` only, one both; they vote for the same head, with the same roots."""
    chain = SimulatedChain(start_slot=128)
    old = [topic for topic in TOPICS if topic != "head_v2"]
    async with (
        SimulatedNode(chain, name="bn1", topics=old, unknown_topics="nimbus", framing="nimbus") as first,
        SimulatedNode(chain, name="bn2") as second,
        monitor([first, second]) as followed,
    ):
        await followed.until(134.5)
        followed.assert_every_slot_delivered(128, 134)
        latest = followed.monitor.latest.value
        assert latest is not None
        assert set(latest.seen_by) == {"bn1", "bn2"}
        assert latest.head.payload_status is PayloadStatus.FULL
        entries = [followed.entry(node) for node in (first, second)]
        roots = {(entry.current_epoch_dependent_root, entry.next_epoch_dependent_root) for entry in entries if entry}
        assert len(roots) == 1
        assert None not in roots.pop()


async def test_a_node_whose_second_form_is_broken_is_followed_by_its_first() -> None:
    """H11, rule 4: malformed `head_v2` events cost themselves; `head` is taken in their place."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        node = net[0]
        await followed.until(130.5)
        node.broadcast.topics.discard("head_v2")
        original = node.broadcast.say

        def say(topic: str, data: object) -> None:
            original(topic, '{"version":"fulu"}' if topic == "head_v2" else data)  # type: ignore[arg-type]

        node.broadcast.say = say  # type: ignore[method-assign]
        await followed.until(134.5)
        # One head may be lost with the first broken event, whose `head` had been taken for its double.
        slots = {seen.slot for seen in followed.told(NodeHeadSeen, node) if seen.source.value == "stream"}
        assert {132, 133, 134} <= slots
        assert len(node.opens) == 1


async def test_the_payload_status_rises_and_each_rise_is_news() -> None:
    """H11: unknown → empty → full of one block: each is delivered once, as the same block, not as a reorg."""
    async with simulated_devnet(2, gloas_epoch=0) as net, monitor(net) as followed:
        await followed.until(132.9)
        for slot in range(129, 133):
            heads = [head for head in followed.deliveries() if head.slot == slot]
            assert [head.payload_status for head in heads] == [PayloadStatus.EMPTY, PayloadStatus.FULL]
            assert [head.reorg for head in heads] == [False, False]
            assert heads[1].at - heads[0].at == pytest.approx(5.0), "the payload comes at half of the slot"
        followed.assert_every_slot_delivered(128, 132)


async def test_a_withheld_payload_stays_empty() -> None:
    """H11: a block whose payload never comes is delivered once."""
    async with simulated_devnet(2, gloas_epoch=0) as net:
        net.chain.withhold_payload(130)
        async with monitor(net) as followed:
            await followed.until(131.5)
            heads = [head.payload_status for head in followed.deliveries() if head.slot == 130]
            assert heads == [PayloadStatus.EMPTY]


async def test_a_slower_nodes_empty_after_anothers_full_is_no_news() -> None:
    """H11: the status falls only when every node that said full says empty."""
    async with simulated_devnet(3, gloas_epoch=0) as net, monitor(net) as followed:
        first, second, slow = net
        slow.state.head_delay = 8.0
        await followed.until(131.99)
        for slot in (130, 131):
            heads = [head.payload_status for head in followed.deliveries() if head.slot == slot]
            assert heads == [PayloadStatus.EMPTY, PayloadStatus.FULL]
        assert set(followed.monitor.latest.value.seen_by if followed.monitor.latest.value else ()) == {
            "bn1",
            "bn2",
            "bn3",
        }
        # Both that said full say empty: only the second of them makes it news.
        block = first.head
        since = followed.now
        first.show(block)
        await anyio.sleep(0.01)
        assert not followed.deliveries(since=since)
        second.show(block)
        slow.show(block)
        await anyio.sleep(0.01)
        assert [head.payload_status for head in followed.deliveries(since=since)] == [PayloadStatus.EMPTY]
