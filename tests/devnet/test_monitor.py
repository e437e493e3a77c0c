"""The head monitor on three real beacon nodes with slots of 1 s, all primaries, while they fail and come back."""

import time
from pathlib import Path

import anyio
import pytest

from scripts.lodestar.devnet import Devnet
from scripts.lodestar.recorder import Recorder
from tests.devnet.following import Block, Following, assert_no_head_missed, node_id, patient_config
from vc_fallback.base.signals import HeadDelivered, NodeHeadSeen, Signal, StreamChanged
from vc_fallback.base.types import HeadSource, NodeId, Slot, root_hex
from vc_fallback.config import FallbackConfig
from vc_fallback.heads.monitor import HeadMonitor


def test_heads_of_three_nodes_are_delivered_once(healthy_devnet: Devnet) -> None:
    """Scenario 55: heads from all three, one delivery for each slot, generation 1."""
    with Recorder(healthy_devnet.url(1)) as recorder, Following(healthy_devnet, *healthy_devnet.urls) as monitor:
        fresh = monitor.wait_until_fresh(1, 2, 3)
        monitor.wait_for_slots(8)
        end = time.time() - 1
        monitor.stop()
    assert_no_head_missed(recorder.heads, monitor.delivered, fresh, end)
    monitor.assert_each_block_delivered_once()
    start = monitor.lines("start")[-1]
    assert (start["genesis_time"], start["slot_duration"]) == (healthy_devnet.genesis_time, 1)
    heads = monitor.lines("head", since=fresh)
    for head in heads:
        assert head["generation"] == 1
        assert head["optimistic"] is False
        in_slot = head["received"] - healthy_devnet.genesis_time - head["slot"]
        assert head["delay"] == pytest.approx(in_slot, abs=0.01)
    slots = {head["slot"] for head in heads}
    for number in healthy_devnet.numbers:
        # Each is the first one, or stands behind the first one.
        shown = {line["slot"] for line in monitor.lines("node_head", number, generation=1, source="stream")}
        assert len(slots & shown) >= 6


def test_a_node_dies_and_another_freezes_and_no_head_is_missed(healthy_devnet: Devnet) -> None:
    """Scenarios 56 and 57: every head of the third node is delivered in time, and the two come back by themselves."""
    urls = healthy_devnet.urls
    with (
        Recorder(urls[1]) as of_frozen,
        Recorder(urls[2]) as recorder,
        Following(healthy_devnet, *urls) as monitor,
    ):
        fresh = monitor.wait_until_fresh(1, 2, 3)
        monitor.wait_for_slots(2)

        killed = time.time()
        healthy_devnet.kill(1)
        monitor.wait("stream", 1, since=killed, state="backoff", reason="broken")
        monitor.wait_for_slots(3)
        healthy_devnet.restart(1)
        monitor.wait_until_fresh(1, since=killed + 0.5)
        monitor.wait("node_head", 1, since=time.time(), source="stream", outcome="duplicate")

        frozen = time.time()
        healthy_devnet.freeze(2)
        silent = monitor.wait("stream", 2, since=frozen)
        assert (silent["state"], silent["reason"]) == ("stalled", "head_silence")
        assert silent["subscription_healthy"] is False
        # From its request on, a new connection to it stands: the system takes what a frozen process does not.
        monitor.wait("stream", 2, since=silent["time"], state="requested")
        monitor.wait_for_slots(6)
        thawed = time.time()
        assert monitor.lines("stream", 2, since=silent["time"], until=thawed, reason="connect_failed") == []
        assert {line["subscription_healthy"] for line in monitor.lines("stream", 2, since=silent["time"])} == {False}
        healthy_devnet.thaw(2)
        monitor.wait_until_fresh(2, since=thawed)
        monitor.wait("node_head", 2, since=time.time(), source="stream", outcome="duplicate")

        monitor.wait_for_slots(2)
        end = time.time() - 1
        summary = monitor.stop()
    assert_no_head_missed(recorder.heads, monitor.delivered, fresh, end)
    monitor.assert_each_block_delivered_once()
    assert {head["generation"] for head in monitor.lines("head")} == {1}
    # Its burst is there, and nothing of it is delivered.
    burst = [head.slot for head in of_frozen.heads if thawed <= head.time and head.slot < monitor.slot_at(thawed)]
    assert len(burst) >= 4
    assert not [head for head in monitor.lines("head", 2, since=thawed) if head["slot"] < monitor.slot_at(thawed)]
    counts = {line["node"]: line for line in summary["nodes"]}
    assert [counts[monitor.id(number)]["reconnects"] > 0 for number in (1, 2, 3)] == [True, True, False]
    assert counts[monitor.id(2)]["stalls"] >= 1
    assert counts[monitor.id(3)]["stalls"] == 0


def test_optimistic_heads_are_not_delivered_until_they_are_valid(healthy_devnet: Devnet, tmp_path: Path) -> None:
    """Scenario 58: one node's execution layer breaks; the others serve every slot, and mended its heads count again."""
    config = patient_config(tmp_path / "three.toml", healthy_devnet, (1, 2, 3))
    with (
        Recorder(healthy_devnet.url(3)) as recorder,
        Following(healthy_devnet, "--config", str(config)) as monitor,
    ):
        fresh = monitor.wait_until_fresh(1, 2, 3)
        healthy_devnet.execution(1, "syncing")
        broken = monitor.wait("node_head", 1, since=fresh, outcome="optimistic", source="stream")["time"]
        monitor.wait_for_slots(4)
        mended = time.time()
        healthy_devnet.execution(1, "ok")
        monitor.wait(
            "node_head",
            1,
            since=mended,
            source="stream",
            that=lambda line: line["outcome"] in ("delivered", "duplicate"),
        )
        monitor.wait_for_slots(2)
        end = time.time() - 1
        monitor.stop()
    assert_no_head_missed(recorder.heads, monitor.delivered, fresh, end)
    monitor.assert_each_block_delivered_once()
    optimistic = monitor.lines("node_head", 1, since=broken, until=mended, source="stream")
    assert len({line["slot"] for line in optimistic}) >= 3
    assert {line["outcome"] for line in optimistic} == {"optimistic"}
    for head in monitor.lines("head", since=broken, until=mended):
        assert head["optimistic"] is False
        assert monitor.id(1) not in head["seen_by"]
    # They end no stream.
    assert monitor.lines("stream", 1, since=broken, until=mended) == []


def test_a_node_without_peers_is_behind_and_keeps_its_stream(healthy_devnet: Devnet, tmp_path: Path) -> None:
    """Scenario 59, its stream: behind is not stalled. Its lag shows, nothing reconnects, and with peers it returns."""
    config = patient_config(tmp_path / "three.toml", healthy_devnet, (1, 2, 3))
    with (
        Recorder(healthy_devnet.url(3)) as recorder,
        Following(healthy_devnet, "--config", str(config)) as monitor,
    ):
        fresh = monitor.wait_until_fresh(1, 2, 3)
        cut = time.time()
        healthy_devnet.isolate(1)
        # The monitor asks a node that has missed what others announced for its head; the hard clock is at 8½ slots.
        lagging = monitor.wait(
            "node_head",
            1,
            since=cut,
            source="poll",
            outcome="behind",
            that=lambda line: line["slot"] <= monitor.slot_at(line["time"]) - 5,
        )
        assert monitor.lines("stream", 1, since=cut, until=lagging["time"]) == []
        joined = time.time()
        healthy_devnet.rejoin(1)
        healthy_devnet.await_common_head()
        monitor.wait(
            "node_head",
            1,
            since=joined,
            source="stream",
            that=lambda line: line["outcome"] in ("delivered", "duplicate"),
        )
        monitor.wait_for_slots(2)
        end = time.time() - 1
        summary = monitor.stop()
    assert_no_head_missed(recorder.heads, monitor.delivered, fresh, end)
    monitor.assert_each_block_delivered_once()
    assert summary["nodes"][0]["stalls"] == 0


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_node_joins_at_run_time_without_a_gap(healthy_devnet: Devnet) -> None:
    """Scenario 60: from two nodes to three. The two keep their connections, the subscriber its subscription."""
    urls = healthy_devnet.urls
    first, second, third = (NodeId(node_id(url)) for url in urls)
    signals: list[Signal] = []
    read: list[int] = []
    with Recorder(urls[0]) as recorder:
        async with HeadMonitor(FallbackConfig.from_urls(urls[:2]), observers=[signals.append]) as heads:
            async with anyio.create_task_group() as tasks:

                async def reader() -> None:
                    async with heads.subscribe() as subscription:
                        async for delivered in subscription:
                            read.append(delivered.head.slot)  # noqa: PERF401 - read one by one

                tasks.start_soon(reader)
                begun = healthy_devnet.slot_now()
                assert await heads.wait_for_slot(Slot(begun + 1), heads.clock.now() + 60, min_nodes=2) is not None
                fresh = time.time()
                assert await heads.wait_for_slot(Slot(begun + 5), heads.clock.now() + 60) is not None
                changed = heads.clock.now()
                change = heads.update_candidates(FallbackConfig.from_urls(urls).candidate_list())
                assert await heads.wait_for_slot(Slot(begun + 10), heads.clock.now() + 60, min_nodes=3) is not None
                end = time.time() - 1
                tasks.cancel_scope.cancel()
            statistics = heads.statistics()
            unix = heads.clock.unix
    assert (change.kept, change.added, change.removed, change.changed) == ((first, second), (third,), (), ())
    delivered = [signal for signal in signals if isinstance(signal, HeadDelivered)]
    times: dict[Block, float] = {(head.slot, root_hex(head.root)): unix(head.at) for head in reversed(delivered)}
    assert_no_head_missed(recorder.heads, times, fresh, end)
    assert read == [head.slot for head in delivered] == sorted({head.slot for head in delivered})
    assert [head.generation for head in delivered] == [1 if head.at < changed else 2 for head in delivered]
    seen = [signal for signal in signals if isinstance(signal, NodeHeadSeen) and signal.at >= changed]
    assert {head.generation for head in seen} == {2}
    assert {head.node_id for head in seen if head.source is HeadSource.STREAM} == {first, second, third}
    streams = [signal for signal in signals if isinstance(signal, StreamChanged)]
    assert {change.node_id for change in streams if change.at >= changed and change.reason != "closed"} == {third}
    assert [statistics[node].opens for node in (first, second, third)] == [1, 1, 1]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_heads_of_real_nodes_on_trio(healthy_devnet: Devnet) -> None:
    """Scenario 55 on trio, as the author of a validator client reads heads."""
    urls = healthy_devnet.urls
    times: dict[Block, float] = {}
    with Recorder(urls[0]) as recorder:
        async with HeadMonitor(FallbackConfig.from_urls(urls)) as heads, heads.subscribe() as subscription:
            with anyio.fail_after(60):
                async for delivered in subscription:
                    block = delivered.head.slot, root_hex(delivered.head.root)
                    assert block not in times
                    times[block] = time.time()
                    if len(times) == 1:
                        fresh = time.time()
                    if len(times) == 7:
                        break
            assert set(heads.heads()) == set(map(node_id, urls))
    assert_no_head_missed(recorder.heads, times, fresh, time.time() - 1)
