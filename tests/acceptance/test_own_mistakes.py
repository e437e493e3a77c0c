"""Mistakes of our own, and of an observer: logged with their traceback, and nobody else pays (rule 4, rule 5)."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from tests.acceptance.generations import listed
from tests.acceptance.harness import Followed, candidate
from tests.conformance.scripted import following
from vc_fallback.base.signals import HeadDelivered, Signal, StreamReason
from vc_fallback.decide.delivery import Delivery
from vc_fallback.heads.cache import HeadCache
from vc_fallback.heads.connection import HeadConnection
from vc_fallback.heads.polls import NodePolls
from vc_fallback.heads.stream import HeadStream
from vc_fallback.heads.supervisor import Supervisor
from vc_fallback.heads.watchdog import Watchdog
from vc_fallback.node.client import BeaconNode
from vc_fallback.testing import SimulatedDevnet, simulated_devnet

pytestmark = pytest.mark.anyio


class Mistake(Exception):
    """Something that we did not think of."""


def failing(original: Callable[..., Any], met: Callable[[Any], bool], times: int) -> Callable[..., Any]:
    """Return a method that fails the first times it meets the object."""
    left = times

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal left
        if left and met(self):
            left -= 1
            raise Mistake
        return original(self, *args, **kwargs)

    return method


def of_first_node(thing: Any) -> bool:
    """Whether a stream, a connection, polls or a node is of bn1."""
    node = thing if isinstance(thing, BeaconNode) else getattr(thing, "_node", None) or thing.node
    return bool(node.node_id == "bn1")


def assert_logged(caplog: pytest.LogCaptureFixture, times: int) -> None:
    """So many mistakes were logged as errors, each with its traceback; nothing else was."""
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == times
    for record in errors:
        assert record.name.startswith(("vc_fallback.heads.", "vc_fallback.streams.", "vc_fallback.base.background"))
        assert record.exc_info is not None
        assert "Mistake" in str(record.exc_info[1]) + repr(record.exc_info[1])


def candidates_of(net: SimulatedDevnet) -> list[dict[str, object]]:
    return [candidate(node) for node in net]


@pytest.mark.parametrize(
    ("owner", "method"),
    [
        pytest.param(HeadConnection, "data", id="in the socket's callback"),
        pytest.param(HeadStream, "on_head", id="when a head is taken"),
        pytest.param(HeadStream, "_wait", id="between two connections"),
        pytest.param(HeadStream, "_new_connection", id="before a connection"),
        pytest.param(NodePolls, "_identify", id="in a poll beside the stream"),
        pytest.param(NodePolls, "baseline", id="in another poll"),
        pytest.param(BeaconNode, "events", id="in the node's client"),
    ],
)
async def test_mistake_in_one_stream(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, owner: type, method: str
) -> None:
    """That stream starts again with backoff; the others go on, and the block never hears of it."""
    monkeypatch.setattr(owner, method, failing(getattr(owner, method), of_first_node, 3))
    async with simulated_devnet(3) as net, following(list(net), candidates=candidates_of(net)) as followed:
        bad = net[0]
        if method == "_wait":
            await followed.until(128.5)
            for _ in range(3):
                bad.end_streams()
                await followed.wait_slots(1)
        await followed.until(136.5)
        assert_logged(caplog, 3)
        assert StreamReason.INTERNAL in followed.reasons(bad)
        waits = [end.retry_in for end in followed.ends(bad) if end.reason is StreamReason.INTERNAL]
        assert len(waits) == 3
        assert all(wait is not None and 0.8 <= wait <= 4.8 for wait in waits)
        assert followed.healthy(bad) is True
        assert [len(node.opens) for node in net][1:] == [1, 1]
        assert {head.slot for head in followed.deliveries()} >= set(range(128, 137))


BACKGROUND: dict[str, tuple[type, str]] = {
    "supervisor": (Supervisor, "_reconcile"),
    "watchdog": (Watchdog, "_look_at_all"),
    "verification": (Watchdog, "_find_out"),
    "deciding the chain": (HeadCache, "resolve"),
}


@pytest.mark.parametrize(("owner", "method"), BACKGROUND.values(), ids=list(BACKGROUND))
async def test_mistake_in_a_task_for_all_nodes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, owner: type, method: str
) -> None:
    """It is logged, its task starts again with backoff, and the monitor does what it is for."""
    monkeypatch.setattr(owner, method, failing(getattr(owner, method), lambda _: True, 1))
    async with simulated_devnet(3) as net, following(list(net), candidates=candidates_of(net)) as followed:
        quiet = net[0]
        await followed.until(130.5)
        quiet.silence()
        await followed.until(136.5)
        quiet.resume()
        await followed.until(141.5)
        assert_logged(caplog, 1)
        assert "stalled" in followed.states(quiet)
        assert followed.healthy(quiet) is True
        assert {head.slot for head in followed.deliveries()} >= set(range(130, 142))


async def test_mistake_while_an_optimistic_head_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The poll is given up, and the next optimistic head is asked for again."""
    async with simulated_devnet(1) as net, following(list(net), candidates=candidates_of(net)) as followed:
        await followed.until(130.5)
        net[0].state.optimistic = True
        head = NodePolls.head
        monkeypatch.setattr(NodePolls, "head", failing(head, lambda _: True, 1))
        await followed.until(131.5)
        assert_logged(caplog, 1)
        await followed.until(132.3)
        net[0].state.optimistic = False
        await followed.until(132.5)
        assert 132 in followed.delivered_slots()


@pytest.mark.parametrize("method", ["aclose", "__init__"])
async def test_mistake_while_a_stream_ends_or_begins(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    """The list changes all the same, and the other nodes keep their connections."""
    async with simulated_devnet(3) as net, following(list(net), candidates=candidates_of(net)[:2]) as followed:
        await followed.until(129.5)
        # Two clients are made of a node: one for its stream, one for its checks and other requests.
        left = expected = 2 if method == "__init__" else 1

        def makes(*args: Any, **kwargs: Any) -> None:
            nonlocal left
            left -= 1
            if left >= 0:
                raise Mistake
            make(*args, **kwargs)

        async def closes(self: BeaconNode) -> None:
            nonlocal left
            left -= 1
            await close(self)
            if left >= 0:
                raise Mistake

        make, close = BeaconNode.__init__, BeaconNode.aclose
        monkeypatch.setattr(BeaconNode, method, makes if method == "__init__" else closes)
        followed.monitor.update_candidates(listed([net[1], net[2]]))
        await followed.until(131.5)
        assert_logged(caplog, expected)
        assert len(net[1].opens) == 1
        assert net[0].streams == ()
        assert len(net[2].streams) == (1 if method == "aclose" else 0)
        # What could not begin begins with the next change.
        followed.monitor.update_candidates(listed([net[1], net[2]]))
        await followed.until(133.5)
        assert len(net[2].streams) == 1
        assert {head.slot for head in followed.deliveries()} >= set(range(128, 134))


async def test_observer_that_raises_costs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Each of its errors is logged; the other observers are told everything, and heads flow."""

    def broken(signal: Signal) -> None:
        raise Mistake

    told: list[Signal] = []
    async with (
        simulated_devnet(2) as net,
        following(list(net), observers=[broken, told.append], candidates=candidates_of(net)) as followed,
    ):
        await followed.until(131.5)
        followed.assert_every_slot_delivered(128, 131)
        assert [signal for signal in told if isinstance(signal, HeadDelivered)] == followed.deliveries()
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == len(told)
    assert {record.name for record in errors} == {"vc_fallback.base.signals"}
    assert all(record.exc_info is not None for record in errors)


async def test_mistake_in_a_decision_costs_one_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An error out of the shared decisions ends the connection it came by, and not the others."""
    offer = Delivery.offer
    left = 1

    def fails_once(self: Delivery, head: Any, *args: Any) -> Any:
        nonlocal left
        if left and head.node_id == "bn1" and head.slot == 130:
            left -= 1
            raise Mistake
        return offer(self, head, *args)

    monkeypatch.setattr(Delivery, "offer", fails_once)
    async with simulated_devnet(3) as net, following(list(net), candidates=candidates_of(net)) as followed:
        await followed.until(133.5)
        assert_logged(caplog, 1)
        assert [len(node.opens) for node in net] == [2, 1, 1]
        assert {head.slot for head in followed.deliveries()} >= {129, 130, 131, 132, 133}
        _all_fresh(followed)


def _all_fresh(followed: Followed) -> None:
    assert {followed.healthy(node) for node in followed.nodes.values()} == {True}
