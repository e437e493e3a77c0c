"""The head monitor as the author of a validator client uses it: its block, its waits, and what it leaves behind."""

import anyio
import anyio.abc
import pytest

from tests.acceptance.embedding import OwnError, OwnStop, close_slowly, config_of, nothing_left
from tests.acceptance.generations import drain, listed
from tests.acceptance.harness import known, monitor
from vc_fallback.base.errors import SubscriptionClosed
from vc_fallback.base.signals import StreamState
from vc_fallback.base.types import Slot
from vc_fallback.base.watch import WatchClosed
from vc_fallback.heads.monitor import HeadMonitor
from vc_fallback.testing import Delay, SimulatedChain, SimulatedDevnet, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio


async def raise_within(net: SimulatedDevnet, error: BaseException, scope: anyio.CancelScope | None = None) -> None:
    """Raise an error within the block, after cancelling a scope."""
    async with HeadMonitor(config_of(net), clock=net.clock):
        await anyio.sleep(20)
        if scope is not None:
            scope.cancel()
        raise error


@pytest.mark.parametrize(
    "error", [OwnError("mine"), OwnStop(), KeyError("k"), ExceptionGroup("mine", [OwnError()]), TimeoutError()]
)
async def test_error_of_the_block_leaves_unchanged(error: BaseException) -> None:
    """The very object, with no group around it, no cause and no context, and nothing of the monitor is left."""
    error.__context__ = error.__cause__ = None
    async with simulated_devnet(2) as net, nothing_left(net):
        with pytest.raises(type(error)) as caught:
            await raise_within(net, error)
        assert caught.value is error
        assert error.__cause__ is None
        assert error.__context__ is None


async def test_error_of_the_block_goes_before_a_cancellation_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block raises its own error while the scope around it is cancelled: that error comes out."""
    close_slowly(monkeypatch)
    async with simulated_devnet(2) as net, nothing_left(net):
        error, caught = OwnError(), list[OwnError]()
        with anyio.CancelScope() as scope:
            try:
                await raise_within(net, error, scope)
            except OwnError as raised:
                caught.append(raised)
        assert caught == [error]


@pytest.mark.parametrize("state", ["fresh", "frozen", "refusing", "hanging"])
async def test_leaving_the_block_leaves_nothing(state: str) -> None:
    """Rule 5: no task, socket or descriptor, in whatever state the nodes are; leaving takes no time."""
    async with simulated_devnet(3) as net, nothing_left(net):
        for turn in range(3):
            async with HeadMonitor(config_of(net), clock=net.clock) as heads, heads.subscribe():
                await anyio.sleep(14 + turn)
                match state:
                    case "frozen":
                        net[0].freeze()
                    case "refusing":
                        await net[0].kill()
                    case "hanging":
                        net[0].hang("*")
                        net[0].end_streams()
                await anyio.sleep(turn * 20)
                left = anyio.current_time()
            assert anyio.current_time() - left < 0.1
            net[0].thaw()
            net[0].heal()


async def test_leaving_at_any_moment_leaves_nothing() -> None:
    """Rule 5: cancelled in the middle of connecting, asking, reading or reconciling."""
    async with simulated_devnet(3, latency=0.01) as net, nothing_left(net):
        for turn in range(20):
            with anyio.move_on_after(turn * 0.0033):
                async with HeadMonitor(config_of(net), clock=net.clock) as heads:
                    await anyio.sleep(0.02)
                    heads.update_candidates(listed([net[turn % 3]]), restart="all")
                    await anyio.sleep(1)
        await anyio.sleep(1)


async def test_entering_twice_and_using_it_outside_of_its_block() -> None:
    """Each is an error with words of its own; the list may be changed before entering."""
    async with simulated_devnet(2) as net:
        heads = HeadMonitor(config_of(net), clock=net.clock)
        for use in (
            heads.subscribe,
            heads.heads,
            lambda: heads.latest,
            lambda: heads.slots,
            lambda: heads.clock,
            lambda: heads.is_latest(Slot(1)),
            lambda: heads.votes(Slot(1)),
        ):
            with pytest.raises(RuntimeError, match="has not been entered"):
                use()
        with pytest.raises(RuntimeError, match="has not been entered"):
            await heads.wait_for_slot(Slot(1), deadline=anyio.current_time() + 1)
        heads.update_candidates(listed([net[1]]))
        async with heads:
            with pytest.raises(RuntimeError, match="entered once"):
                await heads.__aenter__()
            await anyio.sleep(14)
            assert heads.latest.value is not None
            assert heads.latest.value.head.node_id == "bn2"
            assert net[0].accepted == 0
        with pytest.raises(RuntimeError, match="has ended"):
            heads.subscribe()
        with pytest.raises(RuntimeError, match="entered once"):
            async with heads:
                pass


async def test_scopes_around_the_monitor_and_around_its_waits() -> None:
    """A wait that is cancelled costs nothing; the scope around the block ends it and nothing else."""
    async with simulated_devnet(2) as net, nothing_left(net):
        with anyio.move_on_after(40) as around:
            async with HeadMonitor(config_of(net), clock=net.clock) as heads, heads.subscribe() as subscription:
                await anyio.sleep(20)
                drain(subscription)
                with anyio.move_on_after(1) as within:
                    await subscription.receive()
                assert within.cancelled_caught
                with pytest.raises(TimeoutError), anyio.fail_after(1):
                    await heads.latest.watcher().wait()
                with anyio.move_on_after(1) as within:
                    await heads.wait_for_slot(Slot(1000), deadline=anyio.current_time() + 3600)
                assert within.cancelled_caught
                assert (await subscription.receive()).head.slot == 130
                await anyio.sleep_forever()
        assert around.cancelled_caught
        assert anyio.current_time() == pytest.approx(40.1, abs=0.1)


async def test_cancelled_receive_loses_no_head() -> None:
    """C8: whoever waits in short pieces reads every head, each once, in order."""
    async with simulated_devnet(3) as net, monitor(net) as followed, followed.monitor.subscribe() as heads:
        read: list[int] = []
        await followed.until(128.5)
        drain(heads)
        while followed.now < 140.5:
            with anyio.move_on_after(0.37):
                while True:
                    read.append((await heads.receive()).head.slot)
        assert list(dict.fromkeys(read)) == list(range(129, 141))
        assert len(read) == len(followed.deliveries(since=128.6))


async def test_waiting_for_a_slot() -> None:
    """C10: the head at once where it is there, when it comes, or `None` at the deadline; a later one says so."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        net.chain.miss(131)
        wait = followed.monitor.wait_for_slot
        await followed.until(129.5)
        now = anyio.current_time()

        there = await wait(Slot(129), deadline=now)
        assert there is not None
        assert (there.head.head.slot, there.later) == (129, False)
        past = await wait(Slot(129), deadline=now - 100)
        assert past is not None
        later = await wait(Slot(128), deadline=now)
        assert later is not None
        assert (later.head.head.slot, later.later) == (129, True)
        assert await wait(Slot(130), deadline=now - 1) is None
        assert anyio.current_time() == now

        assert await wait(Slot(130), deadline=now + 3) is None
        assert anyio.current_time() == now + 3
        comes = await wait(Slot(130), deadline=now + 3600)
        assert comes is not None
        assert (comes.head.head.slot, comes.later) == (130, False)
        assert followed.now == pytest.approx(130 + 1 / 12, abs=0.01)
        # Slot 131 has no block: the head of 132 answers.
        missed = await wait(Slot(131), deadline=now + 3600)
        assert missed is not None
        assert (missed.head.head.slot, missed.later) == (132, True)


async def test_waiting_for_a_slot_on_several_nodes() -> None:
    """C10: `min_nodes` counts those that have shown the delivered head, also one that is verified after it did."""
    chain = SimulatedChain()
    async with (
        SimulatedNode(chain, name="bn1") as first,
        SimulatedNode(chain, name="bn2", head_delay=1) as second,
        SimulatedNode(chain, name="bn3") as third,
    ):
        third.inject("/eth/v1/beacon/genesis", Delay(1.4), times=1)
        async with monitor([first, second, third], chain=known(chain)) as followed:
            wait = followed.monitor.wait_for_slot
            deadline = anyio.current_time() + 100
            # The third one shows its head as soon as the first and says only after 1.4 s which chain it is on.
            verified = await wait(Slot(128), deadline, min_nodes=2)
            assert verified is not None
            assert verified.head.seen_by == ("bn1", "bn3")
            assert followed.now == pytest.approx(128 + 1.4 / 12, abs=0.01)
            await followed.until(128.9)
            two = await wait(Slot(129), deadline, min_nodes=2)
            assert two is not None
            assert followed.now == pytest.approx(129 + 1 / 12, abs=0.01)
            three = await wait(Slot(129), deadline, min_nodes=3)
            assert three is not None
            assert followed.now == pytest.approx(129 + 2 / 12, abs=0.01)
            assert await wait(Slot(130), anyio.current_time() + 20, min_nodes=4) is None


async def test_watch_of_the_latest_head() -> None:
    """C9: a slow reader gets the newest head only; a cancelled wait loses nothing; the version counts up."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        latest = followed.monitor.latest
        watcher = latest.watcher(seen=False)
        await followed.until(129.5)
        version = latest.version
        head = await watcher.wait()
        assert head is not None
        assert head.head.slot == 129
        with anyio.move_on_after(1) as scope:
            await watcher.wait()
        assert scope.cancelled_caught
        await followed.until(134.5)
        head = await watcher.wait()
        assert head is not None
        assert head.head.slot == 134
        assert latest.version >= version + 5
        assert not watcher.changed

        woken = 0

        async def wait() -> None:
            nonlocal woken
            await latest.watcher().wait()
            woken += 1

        async with anyio.create_task_group() as tasks:
            for _ in range(300):
                tasks.start_soon(wait)
        assert woken == 300
        assert followed.now == pytest.approx(135 + 1 / 12, abs=0.01)


async def test_tasks_outside_of_its_block() -> None:
    """A task that was there before, and lives on after it, may use it; it is told when it ends."""
    async with simulated_devnet(2) as net, nothing_left(net):
        heads = HeadMonitor(config_of(net), clock=net.clock)
        entered, told = anyio.Event(), dict[str, object]()

        async def read() -> None:
            await entered.wait()
            async with heads.subscribe(replay_latest=True) as subscription:
                told["read"] = [delivered.head.slot async for delivered in subscription]
            with pytest.raises(SubscriptionClosed) as closed:
                await subscription.receive()
            told["reason"] = closed.value.reason

        async def watch() -> None:
            await entered.wait()
            watcher = heads.latest.watcher()
            try:
                while True:
                    told["watched"] = await watcher.wait()
            except WatchClosed:
                told["watch"] = "closed"

        async def wait() -> None:
            await entered.wait()
            with pytest.raises(WatchClosed):
                await heads.wait_for_slot(Slot(1000), deadline=anyio.current_time() + 3600)

        async def change() -> None:
            await entered.wait()
            await anyio.sleep(30)
            told["change"] = heads.update_candidates(listed([net[1]]))
            told["snapshot"] = set(heads.heads())

        async with anyio.create_task_group() as tasks:
            for task in (read, watch, wait, change):
                tasks.start_soon(task)
            await anyio.sleep(1)
            async with heads:
                entered.set()
                await anyio.sleep(54)
        assert told["reason"] == "closed"
        assert isinstance(told["read"], list)
        assert list(dict.fromkeys(told["read"]))[-4:] == [129, 130, 131, 132]
        assert told["watched"] is heads.latest.value
        assert told["watch"] == "closed"
        assert told["snapshot"] == {"bn2"}


async def test_slow_subscriber_hurts_only_itself() -> None:
    """Scenario 38, C8: one that never reads drops its oldest heads and counts them, one is closed; others get all."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        await followed.until(128.5)
        async with (
            followed.monitor.subscribe(buffer=3) as sleepy,
            followed.monitor.subscribe(buffer=3, on_full="close") as strict,
            followed.monitor.subscribe() as eager,
        ):
            await followed.until(138.5)
            delivered = len(followed.deliveries(since=128.6))
            assert len(drain(eager)) == 10
            assert sleepy.statistics().dropped == delivered - 3
            assert drain(sleepy)[-1].slot == 138
            assert strict.close_reason == "buffer full"
            assert drain(strict)[0].slot == 129
            with pytest.raises(SubscriptionClosed, match="buffer full"):
                await strict.receive()
            with pytest.raises(SubscriptionClosed, match="buffer full"):
                async for _ in strict:
                    pass


async def test_a_thousand_subscriptions_come_and_go() -> None:
    """C8: what is closed is forgotten."""
    async with simulated_devnet(1) as net, monitor(net) as followed:
        for _ in range(1000):
            async with followed.monitor.subscribe(replay_latest=True):
                pass
        assert not followed.monitor._subscriptions
        await followed.until(129.5)
        assert followed.state(net[0]) is StreamState.FRESH
