"""Two primaries and one fallback, real nodes with slots of 1 s: when the fallback's heads are delivered."""

import pytest

from tests.devnet.following import Following, Line, assert_no_head_missed
from tests.devnet.story import FAULTS, FIRST, LAST, WELL, Story

FALLBACK, PRIMARIES = WELL, (FIRST, LAST)


@pytest.mark.parametrize("story", FAULTS, indirect=True)
def test_heads_of_the_fallback_only_while_both_primaries_are_out(story: Story) -> None:
    """C5: none with one primary left, all while both are out, none from the moment on at which one is back."""
    monitor, closed = story.tiers, story.seen["closed"]
    opened = monitor.lines("gate", since=story.shut, until=story.mended)[-1]
    assert opened["open"]
    assert opened["reason"].startswith(f"{monitor.id(LAST)}: ")
    assert closed["holder"] == monitor.id(FIRST)
    # While both are out, every head of the fallback is delivered.
    assert_no_head_missed(story.recorder.heads, monitor.delivered, max(story.second, opened["time"]), story.mended)
    monitor.assert_each_block_delivered_once()
    # Before and after, none is: what it has first is held back, and said to be.
    others = [
        head
        for head in monitor.lines("head", FALLBACK, since=story.shut)
        if not opened["time"] <= head["time"] <= closed["time"] and not not_yet_shown(monitor, head)
    ]
    assert others == []
    for since, until in ((story.shut, story.second), (closed["time"], float("inf"))):
        assert monitor.lines("node_head", FALLBACK, since=since, until=until, source="stream")
    held = [(line["slot"], line["block"]) for line in monitor.lines("held", FALLBACK)]
    assert held == [(line["slot"], line["block"]) for line in monitor.lines("node_head", FALLBACK, outcome="tier")]
    assert story.fault != "frozen" or held


def not_yet_shown(monitor: Following, head: Line) -> bool:
    """Whether no primary was to be relied on for a head (C5, H5): its slot was over, or the one before had no block.

    After a slot without a block whoever is first with the next one is two slots ahead. On a machine with nothing else
    to do there is a block in every slot and each node has it in time.
    """
    shown = [line for number in PRIMARIES for line in monitor.lines("node_head", number, until=head["time"])]
    newest: int = max(line["slot"] for line in shown if line["outcome"] != "optimistic")
    slot: int = head["slot"]
    return newest < slot - 1 or newest < slot < monitor.slot_at(head["time"])
