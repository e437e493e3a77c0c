"""Changes of the candidate list while a monitor runs (G1–G6, scenarios 48–52)."""

import logging
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from tests.acceptance.generations import all_streams_closed_before_the_next, assert_only, drain, listed, opened
from tests.acceptance.harness import monitor
from vc_fallback.base.errors import ConfigurationError
from vc_fallback.base.signals import GenerationChanged, HeadDelivered, HeadOutcome, NodeHeadSeen, Signal, StreamState
from vc_fallback.base.types import NodeId, Role, Tier
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import Candidate, TLSSettings
from vc_fallback.heads.supervisor import Supervisor
from vc_fallback.node.client import BeaconNode
from vc_fallback.observe.log import FailureLog
from vc_fallback.testing import Delay, SimulatedDevnet, simulated_devnet

pytestmark = pytest.mark.anyio

GENESIS = "/eth/v1/beacon/genesis"


async def test_node_that_leaves_is_silent_and_the_others_keep_what_they_have() -> None:
    """Scenario 48, G2, G3: no head of A after the bump; B keeps id, health, connection, stamped anew; D is verified."""
    async with simulated_devnet(4) as net, monitor(net, listed=list(net)[:3]) as followed:
        a, b, c, d = net
        async with followed.monitor.subscribe() as heads:
            await followed.until(131.5)
            before = {node: (followed.entry(node), opened(node), node.accepted) for node in (b, c)}
            drain(heads)
            change = followed.monitor.update_candidates(listed([b, c, d]))
            assert (change.added, change.removed, change.changed, change.kept) == (
                ("bn4",),
                ("bn1",),
                (),
                ("bn2", "bn3"),
            )
            assert followed.monitor.candidates.generation == 2
            for node, (entry, opens, accepted) in before.items():
                assert entry is not None
                assert followed.healthy(node) is True
                assert followed.entry(node) == replace(entry, generation=2)
                assert (opened(node), node.accepted) == (opens, accepted)
            with pytest.raises(KeyError):
                followed.monitor.subscription_healthy(NodeId("bn1"))
            await followed.until(135.5)
            assert a.streams == ()
            assert [opened(node) for node in (b, c, d)] == [1, 1, 1]
            assert d.request_counts[GENESIS] == 1
            assert_only(followed, {"bn2", "bn3", "bn4"}, 2, since=131.5)
            followed.assert_every_slot_delivered(128, 135)
            read = drain(heads)
            assert [head.slot for head in read] == [132, 133, 134, 135]
            assert {head.generation for head in read} == {2}
            assert set(followed.monitor.heads()) == {"bn2", "bn3", "bn4"}


@pytest.mark.parametrize("told", [HeadDelivered, NodeHeadSeen])
@pytest.mark.parametrize("role_only", [False, True], ids=["left", "without role"])
async def test_change_in_the_middle_of_eight_heads_at_one_instant(told: type[Signal], role_only: bool) -> None:
    """G3: the list changes while heads of nodes that leave are in their sockets already: none is taken any more.

    It is an observer that changes it, in the middle of telling, when the first of the eight heads comes.
    """
    async with simulated_devnet(8) as net:
        keep = list(net)[6:]
        changed: list[int] = []

        def change_list(signal: Signal) -> None:
            if isinstance(signal, told) and getattr(signal, "slot", 0) == 131 and not changed:
                left = listed(list(net)[:6], roles=["duties"]) if role_only else []
                changed.append(len(followed.signals))
                followed.monitor.update_candidates([*left, *listed(keep)])

        async with monitor(net, observers=[change_list]) as followed:
            await followed.until(133.5)
            after = followed.signals[changed[0] :]
            heads = [signal for signal in after if isinstance(signal, NodeHeadSeen | HeadDelivered)]
            assert {head.node_id for head in heads} == {"bn7", "bn8"}
            assert {head.generation for head in heads} == {2}
            assert [len(node.streams) for node in net] == [0] * 6 + [1, 1]
            latest = followed.monitor.latest.value
            assert latest is not None
            assert (latest.head.slot, set(latest.seen_by)) == (133, {"bn7", "bn8"})


@pytest.mark.parametrize("moved", [False, True], ids=["stays", "moved"])
async def test_change_between_a_decision_and_its_delivery(moved: bool) -> None:
    """G3: what was decided of a node before the bump goes out with the new generation, or not if its URL changed."""
    async with simulated_devnet(2) as net:
        node, other = net
        changed: list[int] = []

        def change_list(signal: Signal) -> None:
            if isinstance(signal, NodeHeadSeen) and signal.slot == 131 and not changed:
                assert signal.outcome is HeadOutcome.DELIVERED
                changed.append(len(followed.signals))
                followed.monitor.update_candidates(listed([other if moved else node], name="bn1"))

        async with (
            monitor(net, observers=[change_list], listed=[node]) as followed,
            followed.monitor.subscribe() as heads,
        ):
            await followed.until(131.05)
            drain(heads)
            await followed.until(132.5)
            after = followed.signals[changed[0] :]
            told = [signal for signal in after if isinstance(signal, HeadDelivered)]
            assert {signal.generation for signal in told} == {2}
            assert {head.generation for head in drain(heads)} == {2}
            first = [signal for signal in told if signal.slot == 131]
            assert len(first) == 1 or moved
            assert len(other.opens) == moved


async def test_change_of_the_list_by_whoever_is_told_of_one() -> None:
    """G1, G2: an observer undoes every change at once: what it makes of it rules, and nobody is left half known."""
    async with simulated_devnet(3) as net:

        def undo(signal: Signal) -> None:
            if isinstance(signal, GenerationChanged) and signal.generation % 2 == 0:
                followed.monitor.update_candidates(listed(list(net)))

        async with monitor(net, observers=[undo]) as followed:
            for position in (129.5, 131.5, 133.5):
                await followed.until(position)
                followed.monitor.update_candidates(listed([net[2]]))
                assert followed.monitor.candidates.generation % 2 == 1
                assert list(followed.monitor.candidates.current.members) == ["bn1", "bn2", "bn3"]
            await followed.until(136.5)
            assert [len(node.streams) for node in net] == [1, 1, 1]
            assert opened(net[2]) == 1
            assert {followed.healthy(node) for node in net} == {True}
            latest = followed.monitor.latest.value
            assert latest is not None
            assert set(latest.seen_by) == {"bn1", "bn2", "bn3"}
            followed.assert_every_slot_delivered(128, 136)


async def test_head_that_waits_for_its_burst_is_not_told_of_a_node_that_left() -> None:
    """G3, H13: the node leaves while an old head of it waits to be delivered."""
    async with simulated_devnet(2) as net:
        node, other = net
        async with monitor(net, listed=[node]) as followed:
            await followed.until(130.5)
            node.cut_off()
            await followed.until(134.5)
            node.rejoin(interval=0.1)
            await anyio.sleep(0.05)
            followed.monitor.update_candidates(listed([other]))
            assert not [head for head in followed.told(NodeHeadSeen, node) if head.generation == 2]
            await followed.until(136.5)
            assert not [head for head in followed.told(NodeHeadSeen, node) if head.generation == 2]
            assert followed.delivered_slots()[-1] == 136


async def test_another_url_under_the_same_name() -> None:
    """Scenario 49, G2: the old stream has ended before the new one begins; nothing of the old node is left."""
    async with simulated_devnet(3) as net, monitor(net, listed=list(net)[:2]) as followed:
        old, other, new = net
        await followed.until(130.5)
        followed.monitor.update_candidates([*listed([new], name="bn1"), *listed([other])])
        assert followed.entry(old) is None
        assert followed.healthy(old) is None
        await followed.until(132.5)
        (before,), (after,) = old.opens, new.opens
        assert before.closed is not None
        assert before.closed <= after.opened
        assert before.closed_by == "client"
        assert followed.healthy(old) is True
        assert new.request_counts[GENESIS] == 1
        followed.assert_every_slot_delivered(128, 132)
        assert_only(followed, {"bn1", "bn2"}, 2, since=130.5)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"headers": {"X-Token": "new"}}, id="headers"),
        pytest.param({"user": "user:password@"}, id="credentials"),
        pytest.param({"path": "/"}, id="same address"),
    ],
)
async def test_other_credentials_are_a_new_connection(change: dict[str, object]) -> None:
    """G2: user-info and headers belong to the connection; another spelling of the address does not."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        node, other = net
        await followed.until(130.5)
        url = node.url.replace("http://", f"http://{change.pop('user', '')}") + str(change.pop("path", ""))
        (same,) = listed([node])
        (changed,) = listed([node], url=url, **change)
        followed.monitor.update_candidates([changed, *listed([other])])
        await followed.until(132.5)
        followed.assert_every_slot_delivered(128, 132)
        all_streams_closed_before_the_next(node)
        assert opened(other) == 1
        if changed.connection == same.connection:
            assert opened(node) == 1
        else:
            headers = node.opens[-1].headers
            assert opened(node) == 2
            assert headers.get("x-token") == "new" or headers.get("authorization", "").startswith("Basic ")


async def test_tier_priority_and_roles_are_no_matter_of_the_connection() -> None:
    """G2: a node that changes nothing else keeps connection, head and health, with the new generation."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        await followed.until(130.5)
        first, second, third = listed(list(net))
        entries = followed.monitor.heads()
        change = followed.monitor.update_candidates(
            [
                replace(second, priority=-5),
                replace(first, tier=Tier.FALLBACK),
                replace(third, roles=frozenset({Role.EVENTS})),
            ]
        )
        assert set(change.kept) == {"bn1", "bn2", "bn3"}
        assert followed.monitor.heads() == {key: replace(head, generation=2) for key, head in entries.items()}
        assert [followed.healthy(node) for node in net] == [True, True, True]
        await followed.until(133.5)
        assert [opened(node) for node in net] == [1, 1, 1]
        assert [node.request_counts[GENESIS] for node in net] == [1, 1, 1]
        followed.assert_every_slot_delivered(128, 133)
        assert_only(followed, {"bn1", "bn2", "bn3"}, 2, since=130.5)
        # As a fallback it is held back while a primary serves.
        assert {head.node_id for head in followed.deliveries(since=130.5)} <= {"bn2", "bn3"}


async def test_role_events_taken_away_and_given_back() -> None:
    """G2, H1: without the role the stream ends and the node has no head and no vote; with it again it begins anew."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        node, other = net
        await followed.until(130.5)
        (candidate,) = listed([node])
        change = followed.monitor.update_candidates(
            [replace(candidate, roles=frozenset({Role.DUTIES})), *listed([other])]
        )
        assert change.kept == ("bn1", "bn2")
        assert followed.entry(node) is None
        assert followed.healthy(node) is None
        await followed.until(135.5)
        assert node.streams == ()
        assert opened(node) == 1
        assert_only(followed, {"bn2"}, 2, since=130.5)
        assert [change.state for change in followed.changes(node, since=130.5)] == [StreamState.STOPPED]

        followed.monitor.update_candidates(listed(list(net)))
        assert followed.healthy(node) is None
        await followed.until(138.5)
        assert followed.healthy(node) is True
        assert opened(node) == 2
        assert opened(other) == 1
        followed.assert_every_slot_delivered(128, 138)


async def test_restart_of_all_gives_every_stream_a_new_start() -> None:
    """G2: `restart="all"` with the same list: each old stream has ended before its new one begins."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        await followed.until(130.5)
        followed.monitor.update_candidates(listed(list(net)), restart="all")
        await followed.until(133.5)
        for node in net:
            assert [record.status for record in node.opens] == [200, 200]
            all_streams_closed_before_the_next(node)
            assert followed.healthy(node) is True
        followed.assert_every_slot_delivered(128, 133)
        # The next change restarts nobody.
        followed.monitor.update_candidates(listed(list(net)))
        await followed.until(135.5)
        assert [opened(node) for node in net] == [2, 2, 2]


async def test_ten_changes_in_one_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenario 52, G2: at most one reconcile at a time, no stream left over, the last list rules."""
    running = most = 0
    reconcile = Supervisor._reconcile

    async def counted(self: Supervisor, tasks: anyio.abc.TaskGroup) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await reconcile(self, tasks)
        running -= 1

    monkeypatch.setattr(Supervisor, "_reconcile", counted)
    async with simulated_devnet(6) as net, monitor(net, listed=list(net)[:3]) as followed:
        nodes = list(net)
        await followed.until(130.5)
        for turn in range(10):
            chosen = [nodes[(turn + step) % 6] for step in range(3)]
            followed.monitor.update_candidates(listed(chosen), restart="all" if turn % 3 == 0 else "changed")
            await anyio.sleep(0.1)
        await followed.until(134.5)
        assert most == 1
        last = {node.name for node in chosen}
        assert {node.name for node in net if node.streams} == last
        assert set(followed.monitor.statistics()) == last
        for node in net:
            all_streams_closed_before_the_next(node)
        assert_only(followed, last, 11, since=130.6)
        followed.assert_every_slot_delivered(132, 134)
        assert [change.generation for change in followed.told(GenerationChanged)] == list(range(2, 12))


async def test_ten_changes_at_once_are_one() -> None:
    """Scenario 52, G2: changes that come faster than reconciling are coalesced, and leave no half-known node."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        a, b, c = net
        await followed.until(130.5)
        for turn in range(10):
            followed.monitor.update_candidates(listed([a, b] if turn % 2 else [b, c]))
        await followed.until(133.5)
        assert [len(node.streams) for node in net] == [1, 1, 0]
        # A left and came again in one moment: it was verified anew, and counts.
        assert a.request_counts[GENESIS] == 2
        assert b.request_counts[GENESIS] == 1
        latest = followed.monitor.latest.value
        assert latest is not None
        assert set(latest.seen_by) == {"bn1", "bn2"}
        assert followed.healthy(a) is True
        for node in net:
            all_streams_closed_before_the_next(node)
        followed.assert_every_slot_delivered(128, 133)


def unusable(net: SimulatedDevnet) -> dict[str, tuple[list[Candidate], str]]:
    """Return lists that cannot be used, each with the field that is wrong."""
    first, second, third = listed(list(net))
    return {
        "one name twice": ([first, replace(second, name="bn1")], "candidates[1].name"),
        "one URL in both tiers": ([first, replace(first, name="x", tier=Tier.FALLBACK)], "candidates[1].url"),
        "no role": ([first, replace(second, roles=frozenset())], "candidates[1].roles"),
        "a name that is a URL": ([replace(first, name="http://u:p@h")], "candidates[0].name"),
        "a header with a line break": (
            [first, second, replace(third, headers=(("X", "a\r\nb"),))],
            "candidates[2].headers",
        ),
        "a header with a blank": ([replace(first, headers=(("X Y", "a"),))], "candidates[0].headers"),
        "a header of the framing": ([replace(first, headers=(("Content-Length", "5"),))], "candidates[0].headers"),
        "no such CA": (
            [replace(first, url=BaseURL.parse("https://h"), tls=TLSSettings(ca=Path("/nowhere")))],
            "candidates[0].ca",
        ),
    }


async def test_list_that_cannot_be_used_changes_nothing() -> None:
    """G1: an error that names the field; list, generation and streams stay as they are."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        await followed.until(129.5)
        before = followed.monitor.candidates.current
        for what, (candidates, field) in unusable(net).items():
            with pytest.raises(ConfigurationError) as caught:
                followed.monitor.update_candidates(candidates, restart="all")
            assert caught.value.field == field, what
            assert followed.monitor.candidates.current is before
        await followed.until(131.5)
        assert [opened(node) for node in net] == [1, 1, 1]
        assert not followed.told(GenerationChanged)
        followed.assert_every_slot_delivered(128, 131)


async def test_empty_list_at_the_start() -> None:
    """G6: the monitor runs without a node; nodes that join are verified, and may leave all together again."""
    async with simulated_devnet(2) as net, monitor(net, listed=[]) as followed, followed.monitor.subscribe() as heads:
        await followed.until(130.5)
        assert followed.monitor.latest.value is None
        followed.monitor.update_candidates(listed(list(net)))
        await followed.until(133.5)
        assert [head.slot for head in drain(heads)] == [130, 131, 132, 133]
        assert [node.request_counts[GENESIS] for node in net] == [1, 1]
        followed.monitor.update_candidates([])
        await followed.until(135.5)
        assert [len(node.streams) for node in net] == [0, 0]
        assert not followed.deliveries(since=133.5)
        assert not followed.monitor.heads()
        followed.monitor.update_candidates(listed([net[1]]))
        await followed.until(137.5)
        assert [head.slot for head in drain(heads)] == [135, 136, 137]


async def test_every_node_down_at_the_start() -> None:
    """G6, H15: nodes that come up later join by themselves, and are verified before their heads count."""
    async with simulated_devnet(3) as net:
        for node in net:
            node.refuse()
            node.inject(GENESIS, Delay(1.2))
        async with monitor(net) as followed:
            await followed.until(132.5)
            assert not followed.deliveries()
            for node in net:
                node.listen()
            await followed.until(136.5)
            # A node's head by its poll or its stream is there before the node has said which chain it is on.
            for node in net:
                unverified = next(outcome for _, outcome in followed.outcomes(node))
                assert unverified is HeadOutcome.BEHIND
            assert followed.delivered_slots()[-3:] == [134, 135, 136]
            latest = followed.monitor.latest.value
            assert latest is not None
            assert set(latest.seen_by) == {"bn1", "bn2", "bn3"}


async def test_stream_that_takes_long_to_end_holds_its_successor_back_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G2, rule 6: its successor waits for it, but not for ever; other nodes' streams go on, the last list rules."""
    close = BeaconNode.aclose

    async def slow(self: BeaconNode) -> None:
        try:
            if self.node_id == "bn1":
                await anyio.sleep(3600)
        finally:
            await close(self)

    monkeypatch.setattr(BeaconNode, "aclose", slow)
    async with simulated_devnet(4) as net, monitor(net, listed=list(net)[:2]) as followed:
        first, second, third, fourth = net
        await followed.until(130.5)
        now = anyio.current_time()
        followed.monitor.update_candidates(listed([second, third]))
        await anyio.sleep(0.5)
        assert opened(third) == 0
        followed.monitor.update_candidates(listed([second, fourth]))
        await followed.until(131.5)
        assert opened(third) == 0
        assert fourth.opens[0].opened == pytest.approx(now + 1.0)
        assert opened(second) == 1
        assert first.streams == ()
        followed.assert_every_slot_delivered(128, 131)


async def test_end_of_a_stream_takes_only_its_own_entry_out() -> None:
    """Scenario 50, H8: the other entries stay, and the delivered head with them."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        await followed.until(130.5)
        latest = followed.monitor.latest.value
        net[0].end_streams()
        await anyio.sleep(0.1)
        assert set(followed.monitor.heads()) == {"bn2", "bn3"}
        assert followed.monitor.latest.value is latest
        await followed.until(131.5)
        assert set(followed.monitor.heads()) == {"bn1", "bn2", "bn3"}
        followed.assert_every_slot_delivered(128, 131)


async def test_nine_failures_are_four_warnings(caplog: pytest.LogCaptureFixture) -> None:
    """Scenario 51, H9: failures 1, 2, 4 and 8 in a row are warnings, the others are not."""
    async with simulated_devnet(1) as net:
        net[0].answer("/eth/v1/events", 503)
        with caplog.at_level(logging.DEBUG, "vc_fallback.observe.log"):
            async with monitor(net, observers=[FailureLog()]) as followed:
                while len(followed.ends(net[0])) < 9:  # noqa: ASYNC110 - waits for what is told
                    await anyio.sleep(1)
    lost = [record for record in caplog.records if "stream lost" in record.getMessage()]
    assert [record.levelno == logging.WARNING for record in lost][:9] == [
        *(True, True, False, True, False, False, False, True, False),
    ]
