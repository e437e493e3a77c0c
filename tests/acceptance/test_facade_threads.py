"""A program without an event loop: the facade is held in one that has a thread of its own (`anyio.from_thread`).

In real time, as threads are outside the sight of virtual time; the simulated nodes are in the same event loop.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from tests.acceptance.embedding import OwnError, config_of
from tests.acceptance.facade import VERSION, A, B, listed, version
from vc_fallback.base.types import Epoch, Slot
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.values.preparations import ProposerPreparation
from vc_fallback.routing.outcomes import AllNodesFailed, DeadlineExceeded
from vc_fallback.testing import SimulatedDevnet, simulated_devnet

BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@contextmanager
def held(backend: str, count: int = 2) -> Iterator[tuple[BlockingPortal, BeaconNodeFallback, SimulatedDevnet]]:
    """Hold simulated nodes as the docstring of the facade says, and see that no thread is left."""
    before = threading.active_count()
    with (
        start_blocking_portal(backend=backend) as portal,
        portal.wrap_async_context_manager(simulated_devnet(count, slot_duration=60.0)) as net,
        portal.wrap_async_context_manager(BeaconNodeFallback(config_of(net), clock=net.clock)) as nodes,
    ):
        portal.call(nodes.wait_ready, count, 30)
        yield portal, nodes, net
    assert threading.active_count() == before


def slot(portal: BlockingPortal, nodes: BeaconNodeFallback) -> Slot:
    def now() -> Slot:
        assert nodes.slots is not None
        return nodes.slots.slot_at(nodes.clock.now())

    return portal.call(now)


@BACKENDS
def test_one_thread_calls_everything(backend: str) -> None:
    """The lines of the docstring: calls, plain functions, the list; answers and exceptions come out as they are."""
    with held(backend) as (portal, nodes, net):
        data = portal.call(nodes.attestation_data, slot(portal, nodes))
        assert data.node_id in (A, B)
        assert portal.call(partial(nodes.first_success, version, prefer=B)).node_id == B
        result = portal.call(nodes.prepare_beacon_proposer, [ProposerPreparation(1, bytes(20))])
        portal.call(result.settled)
        assert set(result.accepted) == {A, B}
        assert portal.call(nodes.status).ready
        portal.call(nodes.drain, A, 60.0)
        assert portal.call(nodes.plan).nodes == (B, A)
        portal.call(nodes.update_candidates, listed(net[0]))
        assert portal.call(nodes.status).generation == 2

        error = OwnError("mine")

        async def op(_: BeaconNode) -> object:
            raise error

        with pytest.raises(OwnError) as caught:
            portal.call(nodes.first_success, op)
        assert caught.value is error
        portal.call(partial(net[0].answer, VERSION, 500))
        with pytest.raises(AllNodesFailed):
            portal.call(nodes.first_success, version)


@BACKENDS
def test_many_threads_call_at_once(backend: str) -> None:
    """Each gets its own answer; calls of one thread do not wait for those of another."""
    with held(backend, 3) as (portal, nodes, net):
        portal.call(partial(net[0].hang, VERSION))

        def duty(number: int) -> tuple[int, Any]:
            kind = number % 4
            if kind == 0:
                return number, portal.call(nodes.attestation_data, slot(portal, nodes)).node_id
            if kind == 1:
                return number, len(portal.call(nodes.attester_duties, Epoch(4), [number % 64]).value.data)
            if kind == 2:
                ask = partial(nodes.first_success, version, prefer=A, next_after=0.05)
                return number, portal.call(ask).node_id
            return number, portal.call(nodes.block_root, "head").node_id

        began = time.monotonic()
        with ThreadPoolExecutor(16) as threads:
            answers = dict(threads.map(duty, range(160)))
        assert answers.keys() == set(range(160))
        kinds = Counter(bool(answer) for answer in answers.values())
        assert kinds[True] == 160
        assert time.monotonic() - began < 60
        assert portal.call(lambda: len(nodes._runner._running)) == 0


@BACKENDS
def test_a_thread_gives_up_a_call(backend: str) -> None:
    """By a deadline of its own, or by cancelling the future; nothing of the call is left."""
    with held(backend) as (portal, nodes, net):
        for node in net:
            portal.call(partial(node.hang, VERSION))
        deadline = portal.call(nodes.clock.now) + 0.2
        with pytest.raises(DeadlineExceeded):
            portal.call(partial(nodes.first_success, version, deadline=deadline))
        future: Future[Any] = portal.start_task_soon(nodes.first_success, version)
        time.sleep(0.1)
        assert future.cancel()
        with pytest.raises(CancelledError):
            future.result(5)

        def slots_in_use() -> int:
            return sum(nodes.scoped(node_id).http.statistics().in_use for node_id in (A, B))

        until = time.monotonic() + 5
        while portal.call(slots_in_use) and time.monotonic() < until:
            time.sleep(0.05)
        assert portal.call(slots_in_use) == 0


@BACKENDS
def test_it_is_left_while_threads_are_within_calls(backend: str) -> None:
    """Each of them gets an error, promptly; none hangs, and later calls say that it was left."""
    ends: list[object] = []
    with (
        start_blocking_portal(backend=backend) as portal,
        portal.wrap_async_context_manager(simulated_devnet(2, slot_duration=60.0)) as net,
    ):
        with portal.wrap_async_context_manager(BeaconNodeFallback(config_of(net), clock=net.clock)) as nodes:
            portal.call(nodes.wait_ready, 2, 30)
            for node in net:
                portal.call(partial(node.hang, VERSION))

            def ask() -> None:
                try:
                    ends.append(portal.call(nodes.first_success, version))
                except Exception as error:  # noqa: BLE001 - it is looked at
                    ends.append(error)

            asking = [threading.Thread(target=ask) for _ in range(8)]
            for thread in asking:
                thread.start()
            time.sleep(0.3)
        left = time.monotonic()
        for thread in asking:
            thread.join(5)
        assert time.monotonic() - left < 5
        assert len(ends) == 8
        assert all(isinstance(end, AllNodesFailed) and "the nodes were left" in str(end) for end in ends), ends
        with pytest.raises(RuntimeError, match="the nodes were left"):
            portal.call(nodes.first_success, version)


@BACKENDS
def test_what_the_block_of_a_thread_raises_leaves_unchanged(backend: str) -> None:
    """As in a program with an event loop."""
    error = OwnError("mine")
    with pytest.raises(OwnError) as caught, held(backend):
        raise error
    assert caught.value is error


def test_it_is_made_without_an_event_loop() -> None:
    """The thread that makes it has none; a mistake in its settings is told at once."""
    with pytest.raises(anyio.NoEventLoopError):
        anyio.get_current_task()
    assert BeaconNodeFallback(config_of([])).heads.candidates.generation == 1  # type: ignore[arg-type]
