"""The head monitor on three real beacon nodes with slots of 1 s, all primaries, while they fail and come back."""

import pytest

from tests.devnet.calm import Calm
from tests.devnet.following import Block, assert_no_head_missed, node_id
from tests.devnet.story import FAULTS, FIRST, WELL, Story
from vc_fallback.base.signals import HeadDelivered, NodeHeadSeen, StreamChanged
from vc_fallback.base.types import HeadSource, NodeId, root_hex


def test_heads_of_three_nodes_are_delivered_once(calm: Calm) -> None:
    """Scenario 55: heads from all three, one delivery for each slot, generation 1."""
    monitor = calm.monitor
    assert_no_head_missed(calm.recorders[0].heads, monitor.delivered, calm.fresh, calm.end)
    monitor.assert_each_block_delivered_once()
    start = monitor.lines("start")[-1]
    assert (start["genesis_time"], start["slot_duration"]) == (calm.devnet.genesis_time, 1)
    heads = monitor.lines("head", since=calm.fresh)
    for head in heads:
        assert head["generation"] == 1
        assert head["optimistic"] is False
        in_slot = head["received"] - calm.devnet.genesis_time - head["slot"]
        assert head["delay"] == pytest.approx(in_slot, abs=0.01)
    slots = {head["slot"] for head in heads}
    for number in calm.devnet.numbers:
        # Each is the first one, or stands behind the first one.
        shown = {line["slot"] for line in monitor.lines("node_head", number, generation=1, source="stream")}
        assert len(slots & shown) >= 6


def test_heads_of_real_nodes_on_trio(calm: Calm) -> None:
    """Scenario 55 on trio, as the author of a validator client reads heads."""
    read = calm.read
    assert read.repeated == []
    assert read.nodes == set(map(node_id, calm.devnet.urls))
    assert_no_head_missed(calm.recorders[0].heads, read.times, read.fresh, read.end)


def test_a_node_joins_at_run_time_without_a_gap(calm: Calm) -> None:
    """Scenario 60: from two nodes to three. The two keep their connections, the subscriber its subscription."""
    joined, change, changed = calm.joined, calm.joined.change, calm.joined.changed
    first, second, third = (NodeId(node_id(url)) for url in calm.devnet.urls)
    assert (change.kept, change.added, change.removed, change.changed) == ((first, second), (third,), (), ())
    delivered = [signal for signal in joined.signals if isinstance(signal, HeadDelivered)]
    times: dict[Block, float] = {(head.slot, root_hex(head.root)): joined.unix(head.at) for head in reversed(delivered)}
    assert_no_head_missed(calm.recorders[0].heads, times, joined.fresh, joined.end)
    assert joined.read == [head.slot for head in delivered] == sorted({head.slot for head in delivered})
    assert [head.generation for head in delivered] == [1 if head.at < changed else 2 for head in delivered]
    seen = [signal for signal in joined.signals if isinstance(signal, NodeHeadSeen) and signal.at >= changed]
    assert {head.generation for head in seen} == {2}
    assert {head.node_id for head in seen if head.source is HeadSource.STREAM} == {first, second, third}
    streams = [signal for signal in joined.signals if isinstance(signal, StreamChanged)]
    # Until it is left, no stream but the new one's changes.
    later = [signal for signal in streams if signal.at >= changed and signal.reason != "closed"]
    assert {signal.node_id for signal in later} == {third}
    assert [joined.statistics[node].opens for node in (first, second, third)] == [1, 1, 1]


@pytest.mark.parametrize("story", FAULTS, indirect=True)
def test_no_head_is_missed_while_two_of_three_nodes_fail(story: Story) -> None:
    """Scenarios 56–59: every head of the node that is well is delivered in time, once, and no older one after it."""
    assert_no_head_missed(story.recorder.heads, story.monitor.delivered, story.well, story.end)
    story.monitor.assert_each_block_delivered_once()
    assert {head["generation"] for head in story.monitor.lines("head")} == {1}


@pytest.mark.parametrize("story", ["killed"], indirect=True)
def test_the_stream_of_a_killed_node_is_opened_again_when_it_is_back(story: Story) -> None:
    """Scenario 56, its stream: broken, and by itself fresh again; that of a node that is well has nothing of it."""
    monitor, counts = story.monitor, {line["node"]: line for line in story.summary["nodes"]}
    assert monitor.lines("stream", FIRST, since=story.mended, state="fresh")
    assert counts[monitor.id(FIRST)]["reconnects"] > 0
    assert counts[monitor.id(WELL)]["reconnects"] == counts[monitor.id(WELL)]["stalls"] == 0


@pytest.mark.parametrize("story", ["frozen"], indirect=True)
def test_a_frozen_node_is_silent_and_what_it_sends_when_thawed_is_not_delivered(story: Story) -> None:
    """Scenario 57: its stream has stalled until it is thawed; then comes a burst of what is old."""
    monitor, silent = story.monitor, story.seen["silent"]
    assert (silent["state"], silent["reason"]) == ("stalled", "head_silence")
    until = {"since": silent["time"], "until": story.mended}
    assert monitor.lines("stream", FIRST, **until, reason="connect_failed") == []
    assert {line["subscription_healthy"] for line in monitor.lines("stream", FIRST, **until)} == {False}
    assert monitor.lines("stream", FIRST, since=story.mended, state="fresh")
    # Its burst is there, and nothing of it is delivered.
    now = monitor.slot_at(story.mended)
    burst = [head.slot for head in story.of_first.heads if story.mended <= head.time and head.slot < now]
    assert len(burst) >= 4
    assert not [head for head in monitor.lines("head", FIRST, since=story.mended) if head["slot"] < now]
    counts = {line["node"]: line for line in story.summary["nodes"]}
    assert counts[monitor.id(FIRST)]["stalls"] >= 1
    assert counts[monitor.id(FIRST)]["reconnects"] > 0
    assert counts[monitor.id(WELL)]["reconnects"] == counts[monitor.id(WELL)]["stalls"] == 0


@pytest.mark.parametrize("story", ["optimistic"], indirect=True)
def test_optimistic_heads_are_not_delivered_until_they_are_valid(story: Story) -> None:
    """Scenario 58: one node's execution layer breaks; the others serve every slot, and mended its heads count again."""
    monitor, broken = story.monitor, story.seen["heard"]["time"]
    optimistic = monitor.lines("node_head", FIRST, since=broken, until=story.mended, source="stream")
    assert len({line["slot"] for line in optimistic}) >= 3
    assert {line["outcome"] for line in optimistic} == {"optimistic"}
    for head in monitor.lines("head", since=broken, until=story.mended):
        assert head["optimistic"] is False
        assert monitor.id(FIRST) not in head["seen_by"]
    # They end no stream.
    assert monitor.lines("stream", FIRST, since=broken, until=story.mended) == []


@pytest.mark.parametrize("story", ["cut off"], indirect=True)
def test_a_node_without_peers_is_behind_and_keeps_its_stream(story: Story) -> None:
    """Scenario 59, its stream: behind is not stalled. Its lag shows, nothing reconnects, and with peers it returns."""
    lagging = story.seen["lagging"]["time"]
    assert story.monitor.lines("stream", FIRST, since=story.broken, until=lagging) == []
    counts = story.summary["nodes"][0]
    assert (counts["node"], counts["stalls"]) == (story.monitor.id(FIRST), 0)
