"""`BeaconNodeFallback` over simulated nodes, and what it told; what is left of it is seen at the end."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel

from tests.acceptance.harness import Followed, Nodes, _all_closed, _check, _Mistakes, candidate, known
from vc_fallback.base.signals import Observer
from vc_fallback.base.types import Epoch, NodeId, Slot
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import Candidate
from vc_fallback.config import FallbackConfig
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.preparations import ProposerPreparation
from vc_fallback.testing import SimulatedNode

A, B, C, D = (NodeId(f"bn{number}") for number in (1, 2, 3, 4))
"""The nodes of a simulated devnet."""

VERSION = "/eth/v1/node/version"
"""What no check asks for: requests of this path are those of the test."""

SLOT = Slot(131)

CALLS: dict[str, Callable[[BeaconNodeFallback], Awaitable[Any]]] = {
    "hedge": lambda nodes: nodes.attestation_data(SLOT),
    "quorum": lambda nodes: nodes.attestation_data_by_quorum(SLOT),
    "best": lambda nodes: nodes.produce_block(SLOT, bytes(96)),
    "first": lambda nodes: nodes.genesis(),
    "everyone": lambda nodes: nodes.liveness(Epoch(3), [1]),
    "broadcast": lambda nodes: nodes.publish_attestations([Encodings(json=b"{}")], "fulu"),
    "preparation": lambda nodes: nodes.prepare_beacon_proposer([ProposerPreparation(1, bytes(20))]),
    "own": lambda nodes: nodes.first_success(version),
    "wait_ready": lambda nodes: nodes.wait_ready(99),
}
"""One call of each way to send."""


class Held(Followed):
    """A running facade and what it told."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(nodes)
        self.calls: BeaconNodeFallback

    async def version(self, **more: Any) -> NodeId:
        """Ask for a version by first success, and return who answered."""
        return (await self.calls.first_success(version, **more)).node_id

    def asked(self, node: SimulatedNode, path: str = VERSION) -> int:
        """Return how many requests of a path have come to a node."""
        return node.request_counts[path]

    def tasks(self) -> int:
        """Return how many tasks requests have under way."""
        return len(self.calls._runner._running)

    def timers(self) -> int:
        """Return how many timers of requests are set."""
        return len([timer for _, _, timer in self.calls._runner._timers if timer.callback is not None])

    async def assert_idle(self) -> None:
        """No request has left anything behind: a task, a timer, a slot of a client, or somebody who waits for news."""
        assert (self.tasks(), self.timers()) == (0, 0)
        assert not self.calls._changed._listeners
        for node in self.calls.heads.pool:
            with anyio.move_on_after(2):  # a check may be under way
                while node.http.statistics().in_use:  # noqa: ASYNC110 - it tells nobody
                    await anyio.sleep(0.01)
            numbers = node.http.statistics()
            assert (numbers.in_use, numbers.waiting) == (0, 0), node.node_id


async def version(node: BeaconNode) -> Any:
    """The operation of most tests."""
    return await node.version()


def listed(*nodes: SimulatedNode, fallbacks: Collection[SimulatedNode] = (), **more: Any) -> list[Candidate]:
    """Return candidates for `update_candidates`."""
    config = FallbackConfig.of({"candidates": [candidate(node, fallback=node in fallbacks, **more) for node in nodes]})
    return config.candidate_list()


def moved(node: SimulatedNode, name: str, **more: Any) -> Candidate:
    """Return a candidate that has the name of one node and the address of another."""
    return Candidate(BaseURL.parse(node.url), name, **more)


@asynccontextmanager
async def holding(
    nodes: Nodes,
    *,
    ready: int | None = None,
    fallbacks: Collection[SimulatedNode] = (),
    listed: Iterable[SimulatedNode] | None = None,
    extra: Iterable[dict[str, object]] = (),
    each: dict[str, object] | None = None,
    observers: Iterable[Observer] = (),
    mistakes_of_others: bool = False,
    **settings: Any,
) -> AsyncIterator[Held]:
    """Hold simulated nodes until the body ends; then see that nothing is left, and that nothing went wrong.

    :param ready: how many nodes are waited for, by default all that are listed.
    :param each: settings of all candidates.
    The others are those of :func:`tests.acceptance.harness.monitor`; the chain is configured.
    """
    held = Held(nodes)
    members = [*(nodes if listed is None else listed)]
    candidates = [candidate(node, fallback=node in fallbacks, **(each or {})) for node in members]
    config = FallbackConfig.of(
        {"candidates": [*candidates, *extra], "chain": known(held.chain), **settings}  # the settings go before
    )
    mistakes = _Mistakes()
    package = logging.getLogger("vc_fallback")
    package.addHandler(mistakes)
    try:
        held.calls = BeaconNodeFallback(config, observers=[held.signals.append, *observers], clock=held.chain.clock)
        held.monitor = held.calls.heads
        async with held.calls:
            wanted = len(members) if ready is None else ready
            if wanted:
                await held.calls.wait_ready(wanted, timeout=60)
            yield held
            await anyio.lowlevel.checkpoint()
    finally:
        package.removeHandler(mistakes)
    assert mistakes_of_others or not mistakes.texts, mistakes.texts
    assert (held.tasks(), held.timers()) == (0, 0)
    _check(held)
    for node in nodes:
        await _all_closed(node)


async def during(call: Callable[[], Awaitable[Any]], change: Callable[[], object], *, after: float = 0.5) -> Any:
    """Make a call, change something while it is under way, and return what the call returns."""
    found = None

    async def make() -> None:
        nonlocal found
        try:
            found = await call()
        except Exception as error:  # noqa: BLE001 - it is looked at
            found = error

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(make)
        await anyio.sleep(after)
        assert found is None
        change()
    return found
