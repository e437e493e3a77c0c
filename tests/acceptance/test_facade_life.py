"""The life of a facade in a program: entering, leaving, errors, and calls from everywhere (design, "Public face")."""

import logging
from collections.abc import Callable

import anyio
import pytest

from tests.acceptance.embedding import OwnError, OwnStop, config_of, nothing_left
from tests.acceptance.facade import CALLS, VERSION, A, B, holding, listed, version
from vc_fallback.base.signals import HeadDelivered, Signal
from vc_fallback.config import FallbackConfig
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.failures import Closed
from vc_fallback.node.values.preparations import ProposerPreparation
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("error", [OwnError("mine"), OwnStop(), KeyboardInterrupt(), ExceptionGroup("g", [OwnError()])])
async def test_what_the_block_raises_leaves_unchanged(error: BaseException) -> None:
    """Never wrapped, whatever is under way; nothing is left."""
    async with simulated_devnet(2) as net, nothing_left(net):
        for node in net:
            node.hang("/eth/v1/validator/*")
        with pytest.raises(type(error)) as caught:  # noqa: PT012 - the block is the point
            async with BeaconNodeFallback(config_of(net), clock=net.clock) as nodes:
                await nodes.wait_ready(2, timeout=30)
                await nodes.prepare_beacon_proposer([ProposerPreparation(1, bytes(20))])
                raise error
        assert caught.value is error
        assert caught.value.__cause__ is None


async def test_every_call_before_entering_and_after_leaving_says_so() -> None:
    """A clear error at once, and no request."""
    async with simulated_devnet(2) as net, nothing_left(net):
        nodes = BeaconNodeFallback(config_of(net), clock=net.clock)
        synchronous: list[Callable[[], object]] = [
            nodes.status,
            nodes.plan,
            lambda: nodes.scoped(A),
            lambda: nodes.drain(A, 1.0),
            lambda: nodes.explain(A),
            lambda: nodes.clock,
            lambda: nodes.slots,
        ]
        for call in CALLS.values():
            with pytest.raises(RuntimeError, match="the nodes have not been entered"):
                await call(nodes)
        for ask in synchronous:
            with pytest.raises(RuntimeError, match="not been entered"):
                ask()
        async with nodes:
            await nodes.wait_ready(2, timeout=30)
            scoped = nodes.scoped(A)
        before = anyio.current_time()
        for call in CALLS.values():
            with pytest.raises(RuntimeError, match="the nodes were left"):
                await call(nodes)
        for ask in synchronous[:3]:
            with pytest.raises(RuntimeError, match="the nodes were left"):
                ask()
        with pytest.raises(Closed):
            await scoped.version()
        assert anyio.current_time() == before


async def test_it_is_entered_once() -> None:
    """Twice at the same time, and again after it was left: an error that costs the first one nothing."""
    async with simulated_devnet(2) as net, holding(net) as held:
        with pytest.raises(RuntimeError, match="entered once"):
            async with held.calls:
                raise AssertionError
        assert await held.version() in (A, B)
    with pytest.raises(RuntimeError, match="entered once"):
        await held.calls.__aenter__()


async def test_a_list_can_be_given_before_entering() -> None:
    """`update_candidates` needs no event loop."""
    nodes = BeaconNodeFallback(FallbackConfig())
    async with simulated_devnet(1) as net, nothing_left(net):
        nodes.update_candidates(listed(net[0]))
        async with nodes:
            # The chain of simulated nodes is not where the system's clock is: only what they are is asked for.
            while not nodes.heads.heads():  # noqa: ASYNC110
                await anyio.sleep(0.1)
            assert nodes.status().generation == 2


async def test_a_bug_in_a_background_task_costs_the_program_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged with its traceback, the task begins anew with backoff; the block is not cancelled, calls go on."""
    async with simulated_devnet(2) as net, nothing_left(net):
        broken = 0

        async def bug(*_: object) -> None:
            nonlocal broken
            broken += 1
            if broken < 3:
                raise ZeroDivisionError("a bug of ours")
            await anyio.sleep_forever()

        async with BeaconNodeFallback(config_of(net), clock=net.clock) as nodes:
            await nodes.wait_ready(2, timeout=30)
            monkeypatch.setattr("vc_fallback.health.checker.Checker._check", bug)
            monkeypatch.setattr("vc_fallback.routing.returns.Returns._look", _raise)
            await anyio.sleep(36)
            assert (await nodes.attestation_data(nodes.slots.slot_at(anyio.current_time()))).node_id  # type: ignore[union-attr]
            await nodes.prepare_beacon_proposer([ProposerPreparation(1, bytes(20))])
        assert broken >= 2
        errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert errors
        assert all(record.exc_info for record in errors)


async def test_a_bug_in_the_task_that_watches_the_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It begins anew; what was under way then ends, and hedges work again from then on."""
    async with simulated_devnet(2) as net, nothing_left(net):
        async with BeaconNodeFallback(config_of(net), clock=net.clock) as nodes:
            await nodes.wait_ready(2, timeout=30)
            net[0].hang(VERSION)
            with monkeypatch.context() as broken:
                broken.setattr("vc_fallback.routing.runner.Runner._call_due", _raise)
                with anyio.fail_after(7):
                    assert (await nodes.first_success(version, prefer=A, next_after=0.1)).node_id == B
            await anyio.sleep(5)
            began = anyio.current_time()
            assert (await nodes.first_success(version, prefer=A, next_after=0.1)).node_id == B
            assert anyio.current_time() == pytest.approx(began + 0.1)
        errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert errors
        assert all("background task" in record.getMessage() for record in errors)


def _raise(*_: object) -> None:
    raise ZeroDivisionError("a bug of ours")


async def test_an_observer_that_raises_costs_nobody() -> None:
    """Rule 4, design: observers are the caller's own."""

    def bad(signal: Signal) -> None:
        if isinstance(signal, HeadDelivered):
            raise OwnError

    async with simulated_devnet(2) as net, holding(net, observers=[bad], mistakes_of_others=True) as held:
        await held.until(133.5)
        assert (await held.calls.attestation_data(held.slot)).node_id
        held.assert_every_slot_delivered(130, 133)


async def test_an_observer_may_call_the_facade() -> None:
    """An observer is called at once, in the middle of things: it may read everything, and change the list."""
    seen: list[int] = []

    async with simulated_devnet(3) as net:
        calls: list[BeaconNodeFallback] = []

        def curious(signal: Signal) -> None:
            if calls and isinstance(signal, HeadDelivered):
                nodes = calls[0]
                seen.append(nodes.status().generation)
                nodes.plan().reason(nodes.plan().nodes[0])
                if len(seen) < 4:
                    nodes.update_candidates(listed(*net.nodes[: 1 + len(seen) % 3]))

        async with holding(net, observers=[curious]) as held:
            calls.append(held.calls)
            await held.until(140.5)
            assert await held.version()
        assert len(seen) > 4


async def test_scoped_calls_count_for_the_health_of_their_node() -> None:
    """`scoped` is the same client that requests use."""

    async def broken(node: BeaconNode) -> object:
        return await node.version()

    async with simulated_devnet(2) as net, holding(net) as held:
        await held.until(130.2)
        net[0].answer(VERSION, 500)
        for _ in range(5):
            with pytest.raises(Exception, match="500"):
                await broken(held.calls.scoped(A))
            await anyio.sleep(0.1)
        assert held.health(net[0]).state == "unhealthy"
        assert held.calls.plan().nodes[0] == B
