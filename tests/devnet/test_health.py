"""Health and duties over real nodes, as the command says them: who is well, who is asked first, and why."""

import time
from itertools import groupby, pairwise
from pathlib import Path

from scripts.lodestar.devnet import Devnet
from scripts.lodestar.recorder import Recorder
from tests.devnet.following import Following, Line, assert_no_head_missed, patient_config

DWELL = 4.0
"""Seconds for which a node that took over keeps its place: four slots (N9)."""

SOON = 0.2
"""Seconds between two lines that one event makes."""


def moved(monitor: Following, kind: str, source: int, target: int, since: float) -> Line:
    """Wait until duties have moved from one node to another."""
    wanted = kind, monitor.id(source), monitor.id(target)
    return monitor.wait("failover", since=since, that=lambda line: (line["kind"], line["from"], line["to"]) == wanted)


def moves(monitor: Following, since: float) -> list[tuple[str, str]]:
    """The kind and the target of each move."""
    return [(line["kind"], line["to"]) for line in monitor.lines("failover", since=since)]


def wait_until_well(monitor: Following) -> float:
    """Wait until all nodes stream, have passed a check, and rank by the list, and the first has the duties; say when.

    What is told of that is told before the moment that is returned.
    """
    monitor.wait_until_fresh(1, 2, 3)
    for number in (1, 2, 3):
        monitor.wait("health", number, rank=number, suspect=False, reason="check_passed")
    monitor.wait("failover", to=monitor.id(1))
    return time.time()


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


def places(monitor: Following, until: float) -> dict[int, int]:
    """The place of each node, as it was told last before a moment."""
    return {number: monitor.lines("health", number, until=until)[-1]["rank"] for number in (1, 2, 3)}


def test_an_optimistic_node_is_ranked_last_until_it_is_verified(healthy_devnet: Devnet, tmp_path: Path) -> None:
    """Scenario 58: no execution layer: at its first optimistic head duties leave the node; mended, they come back."""
    config = patient_config(tmp_path / "three.toml", healthy_devnet, (1, 2, 3))
    with (
        Recorder(healthy_devnet.url(3)) as recorder,
        Following(healthy_devnet, "--config", str(config)) as monitor,
    ):
        well = wait_until_well(monitor)
        broken = time.time()
        healthy_devnet.execution(1, "syncing")
        down = monitor.wait("health", 1, since=broken, optimistic=True)
        over = moved(monitor, "failover", 1, 2, since=broken)
        first = monitor.wait("node_head", 1, since=broken, outcome="optimistic")
        monitor.wait_for_slots(2)
        mended = time.time()
        healthy_devnet.execution(1, "ok")
        up = monitor.wait("health", 1, since=mended, optimistic=False, rank=1)
        back = moved(monitor, "failback", 2, 1, since=mended)
        monitor.wait_for_slots(1)
        end = time.time() - 1
        monitor.stop()

    # It answers, and nothing but its place speaks of it: no failure, and no stream that ends.
    assert (down["state"], down["suspect"], down["rank"]) == ("healthy", False, 3)
    assert "optimistic" in down["explanation"]
    assert walk(monitor, 1, well) == [("healthy", False)]
    assert monitor.lines("stream", 1, since=well, until=end) == []
    # A failover waits for nothing, a failback for four slots and three good checks.
    assert over["reason"] == f"{monitor.id(1)}: optimistic"
    assert abs(over["time"] - first["time"]) <= SOON
    assert up["time"] <= back["time"]
    assert back["time"] - over["time"] >= DWELL
    assert moves(monitor, well) == [("failover", monitor.id(2)), ("failback", monitor.id(1))]
    assert_no_head_missed(recorder.heads, monitor.delivered, well, end)
    monitor.assert_each_block_delivered_once()


def test_a_node_without_peers_falls_in_rank_and_then_out_of_health(healthy_devnet: Devnet, tmp_path: Path) -> None:
    """Scenario 59: behind, not stalled: two slots behind it has no duties, nine behind it is not synced (N5)."""
    # The hard clock speaks at 8½ slots, whatever the cause.
    config = patient_config(tmp_path / "three.toml", healthy_devnet, (1, 2, 3), streams=["hard_clock = false"])
    with (
        Recorder(healthy_devnet.url(3)) as recorder,
        Following(healthy_devnet, "--config", str(config)) as monitor,
    ):
        well = wait_until_well(monitor)
        cut = time.time()
        healthy_devnet.isolate(1)
        down = monitor.wait("health", 1, since=cut, rank=3)
        over = moved(monitor, "failover", 1, 2, since=cut)
        out = monitor.wait("health", 1, since=cut, state="unhealthy")
        joined = time.time()
        healthy_devnet.rejoin(1)
        monitor.wait("health", 1, since=joined, state="recovering")
        up = monitor.wait("health", 1, since=joined, state="healthy")
        back = moved(monitor, "failback", 2, 1, since=joined)
        monitor.wait("node_head", 1, since=joined, source="stream", outcome="duplicate")
        monitor.wait_for_slots(1)
        end = time.time() - 1
        summary = monitor.stop()

    assert (down["state"], down["suspect"]) == ("healthy", False)
    assert down["sync_distance"] >= 2
    assert "slots behind the tip" in down["explanation"]
    assert over["reason"].startswith(f"{monitor.id(1)}: ")
    assert over["reason"].endswith(" slots behind the tip")
    assert abs(over["time"] - down["time"]) <= SOON
    assert (out["reason"], out["rank"]) == ("behind", 3)
    assert out["sync_distance"] >= 9
    assert up["time"] <= back["time"]
    assert walk(monitor, 1, well, joined) == [("healthy", False), ("unhealthy", False)]
    assert_recovered(walk(monitor, 1, well))
    assert moves(monitor, well) == [("failover", monitor.id(2)), ("failback", monitor.id(1))]
    # It announced nothing and kept its stream, on which its heads come again.
    assert monitor.lines("stream", 1, since=well, until=joined) == []
    assert monitor.lines("stream", 1, since=well, until=end, state="connecting") == []
    assert summary["nodes"][0]["stalls"] == summary["nodes"][0]["reconnects"] == 0
    assert_no_head_missed(recorder.heads, monitor.delivered, well, end)
    monitor.assert_each_block_delivered_once()


def test_a_killed_node_recovers_and_takes_its_duties_back(healthy_devnet: Devnet, tmp_path: Path) -> None:
    """Scenario 56, its health: suspect, unhealthy, recovering, healthy; duties leave it and come back (N4, N9)."""
    config = patient_config(tmp_path / "three.toml", healthy_devnet, (1, 2, 3))
    with (
        Recorder(healthy_devnet.url(3)) as recorder,
        Following(healthy_devnet, "--config", str(config)) as monitor,
    ):
        well = wait_until_well(monitor)
        killed = time.time()
        healthy_devnet.kill(1)
        suspect = monitor.wait("health", 1, since=killed, suspect=True)
        dead = monitor.wait("health", 1, since=killed, state="unhealthy")
        over = moved(monitor, "failover", 1, 2, since=killed)
        restarted = time.time()
        healthy_devnet.restart(1)
        recovering = monitor.wait("health", 1, since=restarted, state="recovering")
        up = monitor.wait("health", 1, since=recovering["time"], state="healthy")
        monitor.wait("health", 1, since=up["time"], state="healthy", rank=1)
        back = moved(monitor, "failback", 2, 1, since=restarted)
        monitor.wait_for_slots(1)
        end = time.time() - 1
        monitor.stop()

    assert (suspect["state"], suspect["rank"]) == ("healthy", 3)
    assert suspect["reason"] in ("checks_failed", "request_failed")
    assert (dead["reason"], dead["rank"]) == ("checks_failed", 3)
    assert dead["detail"].startswith("3 failed checks in a row: ")
    assert "does not answer" in dead["explanation"]
    assert over["reason"] == f"{monitor.id(1)}: {dead['detail']}"
    assert abs(over["time"] - dead["time"]) <= SOON
    assert recovering["detail"] == "1 of 3 good checks in a row"
    assert (up["reason"], up["detail"]) == ("recovered", "3 good checks in a row")
    assert up["time"] <= back["time"]
    assert back["time"] - over["time"] >= DWELL
    assert walk(monitor, 1, well, recovering["time"]) == [("healthy", True), ("unhealthy", False)]
    assert_recovered(walk(monitor, 1, well))
    assert moves(monitor, well) == [("failover", monitor.id(2)), ("failback", monitor.id(1))]
    for number in (2, 3):
        assert walk(monitor, number, well) == [("healthy", False)]
    assert_no_head_missed(recorder.heads, monitor.delivered, well, end)
    monitor.assert_each_block_delivered_once()


def test_all_nodes_freeze_and_come_back(healthy_devnet: Devnet, tmp_path: Path) -> None:
    """N10: one alarm, nobody's place changes while nobody is healthy, and all recover. Node 0 keeps the chain going.

    The first one is frozen for longer, so that there is a failover before there is nobody left.
    """
    config = patient_config(tmp_path / "three.toml", healthy_devnet, (1, 2, 3), check_timeout=1.0)
    with Following(healthy_devnet, "--config", str(config)) as monitor:
        well = wait_until_well(monitor)
        frozen = time.time()
        healthy_devnet.freeze(1)
        over = moved(monitor, "failover", 1, 2, since=frozen)
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
