"""Health and duties over real nodes, as the command says them: who is well, who is asked first, and why."""

import time
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from scripts.lodestar.devnet import Devnet
from tests.devnet.following import Following, patient_config
from tests.devnet.story import FIRST, LAST, WELL, Story

DWELL = 4.0
"""Seconds for which a node that took over keeps its place: four slots (N9)."""

SOON = 0.2
"""Seconds between two lines that one event makes."""


def moves(monitor: Following, since: float) -> list[tuple[str, str]]:
    """The kind and the target of each move."""
    return [(line["kind"], line["to"]) for line in monitor.lines("failover", since=since)]


def walk(monitor: Following, number: int, since: float, until: float = float("inf")) -> list[tuple[str, bool]]:
    """The states of a node in turn, with the mark of a suspect one."""
    lines = monitor.lines("health", number, since=since, until=until)
    return [state for state, _ in groupby((line["state"], line["suspect"]) for line in lines)]


def assert_recovered(states: list[tuple[str, bool]]) -> None:
    """Unhealthy, recovering, healthy; a node may fall back on the way while it fetches what it has missed (N4)."""
    assert ("unhealthy", False) in states
    assert states[-2:] == [("recovering", False), ("healthy", False)]
    for before, after in pairwise(states):
        assert (before, after) != (("unhealthy", False), ("healthy", False))


def assert_duties_moved_there_and_back(story: Story) -> None:
    """From the first node to the next one, and back when it was mended: whatever the last one has matters to nobody."""
    wanted = [("failover", story.monitor.id(WELL)), ("failback", story.monitor.id(FIRST))]
    assert moves(story.monitor, story.well) == wanted


def places(monitor: Following, until: float) -> dict[int, int]:
    """The place of each node, as it was told last before a moment."""
    return {number: monitor.lines("health", number, until=until)[-1]["rank"] for number in (1, 2, 3)}


@pytest.mark.parametrize("story", ["optimistic"], indirect=True)
def test_an_optimistic_node_is_ranked_last_until_it_is_verified(story: Story) -> None:
    """Scenario 58: no execution layer: at its first optimistic head duties leave the node; mended, they come back."""
    monitor, down, over, back = story.monitor, story.seen["down"], story.seen["over"], story.seen["back"]
    # It answers, and nothing but its place speaks of it: no failure, and no stream that ends.
    assert (down["state"], down["suspect"], down["rank"]) == ("healthy", False, 3)
    assert "optimistic" in down["explanation"]
    assert walk(monitor, FIRST, story.well) == [("healthy", False)]
    assert monitor.lines("stream", FIRST, since=story.well, until=story.end) == []
    # A failover waits for nothing, a failback for four slots and three good checks.
    assert over["reason"] == f"{monitor.id(FIRST)}: optimistic"
    assert abs(over["time"] - story.seen["first"]["time"]) <= SOON
    assert story.seen["up"]["time"] <= back["time"]
    assert back["time"] - over["time"] >= DWELL
    assert_duties_moved_there_and_back(story)


@pytest.mark.parametrize("story", ["cut off"], indirect=True)
def test_a_node_without_peers_falls_in_rank_and_then_out_of_health(story: Story) -> None:
    """Scenario 59: behind, not stalled: two slots behind it has no duties, nine behind it is not synced (N5)."""
    monitor, down, over, dead = story.monitor, story.seen["down"], story.seen["over"], story.seen["dead"]
    assert (down["state"], down["suspect"]) == ("healthy", False)
    assert down["sync_distance"] >= 2
    assert "slots behind the tip" in down["explanation"]
    assert over["reason"].startswith(f"{monitor.id(FIRST)}: ")
    assert over["reason"].endswith(" slots behind the tip")
    assert abs(over["time"] - down["time"]) <= SOON
    assert (dead["reason"], dead["rank"]) == ("behind", 3)
    assert dead["sync_distance"] >= 9
    assert story.seen["up"]["time"] <= story.seen["back"]["time"]
    assert walk(monitor, FIRST, story.well, story.mended) == [("healthy", False), ("unhealthy", False)]
    assert_recovered(walk(monitor, FIRST, story.well))
    assert_duties_moved_there_and_back(story)
    # It announced nothing and kept its stream, on which its heads come again.
    assert monitor.lines("stream", FIRST, since=story.well, until=story.mended) == []
    assert monitor.lines("stream", FIRST, since=story.well, until=story.end, state="connecting") == []
    counts = story.summary["nodes"][0]
    assert (counts["node"], counts["stalls"], counts["reconnects"]) == (monitor.id(FIRST), 0, 0)


@pytest.mark.parametrize("story", ["killed"], indirect=True)
def test_a_killed_node_recovers_and_takes_its_duties_back(story: Story) -> None:
    """Scenario 56, its health: suspect, unhealthy, recovering, healthy; duties leave it and come back (N4, N9)."""
    monitor, seen = story.monitor, story.seen
    suspect, dead, over, back = seen["suspect"], seen["dead"], seen["over"], seen["back"]
    recovering, up = seen["recovering"], seen["up"]
    assert (suspect["state"], suspect["rank"]) == ("healthy", 3)
    assert suspect["reason"] in ("checks_failed", "request_failed")
    assert (dead["reason"], dead["rank"]) == ("checks_failed", 3)
    assert dead["detail"].startswith("3 failed checks in a row: ")
    assert "does not answer" in dead["explanation"]
    assert over["reason"] == f"{monitor.id(FIRST)}: {dead['detail']}"
    assert abs(over["time"] - dead["time"]) <= SOON
    assert recovering["detail"] == "1 of 3 good checks in a row"
    assert (up["reason"], up["detail"]) == ("recovered", "3 good checks in a row")
    assert up["time"] <= back["time"]
    assert back["time"] - over["time"] >= DWELL
    assert walk(monitor, FIRST, story.well, recovering["time"]) == [("healthy", True), ("unhealthy", False)]
    assert_recovered(walk(monitor, FIRST, story.well))
    assert_duties_moved_there_and_back(story)
    assert walk(monitor, WELL, story.well) == [("healthy", False)]
    assert walk(monitor, LAST, story.well, story.second) == [("healthy", False)]


def test_all_nodes_freeze_and_come_back(healthy_devnet: Devnet, tmp_path: Path) -> None:
    """N10: one alarm, nobody's place changes while nobody is healthy, and all recover. Node 0 keeps the chain going.

    The first one is frozen for longer, so that there is a failover before there is nobody left.
    """
    config = patient_config(tmp_path / "three.toml", healthy_devnet, (1, 2, 3), check_timeout=1.0)
    with Following(healthy_devnet, "--config", str(config)) as monitor:
        well = monitor.wait_until_well(1, 2, 3)
        frozen = time.time()
        healthy_devnet.freeze(1)
        over = monitor.wait_until_moved("failover", 1, 2, since=frozen)
        others = time.time()
        for number in (2, 3):
            healthy_devnet.freeze(number)
        alarm = monitor.wait("all_unhealthy", since=others, begins=True)
        # Each is checked once more at least, and nothing comes of it.
        time.sleep(2)
        thawed = time.time()
        healthy_devnet.heal()
        for number in (1, 2, 3):
            monitor.wait("health", number, since=thawed, state="healthy", rank=number)
        monitor.wait("failover", since=thawed, to=monitor.id(1))
        monitor.wait_for_slots(1)
        monitor.stop()

    dead = monitor.lines("health", 1, since=frozen, state="unhealthy")[0]
    assert dead["detail"] == "3 failed checks in a row: no answer within 1 s"
    assert over["reason"] == f"{monitor.id(1)}: {dead['detail']}"
    order = places(monitor, until=alarm["time"] + SOON)
    assert sorted(order.values()) == [1, 2, 3]
    assert places(monitor, until=thawed) == order
    assert monitor.lines("failover", since=alarm["time"] + SOON, until=thawed) == []
    # Once, though whoever recovers first may be far behind when the others are back.
    assert [line["begins"] for line in monitor.lines("all_unhealthy", since=well, until=thawed)] == [True]
    assert monitor.lines("all_unhealthy")[-1]["begins"] is False
    for number in (1, 2, 3):
        assert walk(monitor, number, well, thawed)[-2:] == [("healthy", True), ("unhealthy", False)]
        assert_recovered(walk(monitor, number, well))
    monitor.assert_each_block_delivered_once()
