"""What a caller may easily get wrong is refused in words that say what is right."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.acceptance.facade import A, B, holding, version
from vc_fallback.base.types import Epoch, Role, Slot
from vc_fallback.fallback import BeaconNodeFallback, NotReadyInTime
from vc_fallback.heads.monitor import HeadMonitor
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.routing.outcomes import DeadlineExceeded
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio

NO_ROLE = r"no role 'duty'; roles are events, duties, attestation, proposal, submission"
NO_NODE = "no node is named 'nobody'; nodes are bn1, bn2"
ENCODINGS = "list of .*Encodings|Encodings.*list of them"

MISTAKES: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda nodes: nodes.plan("duty"), ValueError, NO_ROLE),
    (lambda nodes: nodes.scoped("nobody"), KeyError, NO_NODE),
    (lambda nodes: nodes.drain("nobody", 5), KeyError, NO_NODE),
    (lambda nodes: nodes.explain("nobody"), KeyError, NO_NODE),
    (lambda nodes: nodes.heads.health("nobody"), KeyError, NO_NODE),
    (lambda nodes: nodes.subscribe(["block", "head"]), TypeError, "one by one"),
    (lambda nodes: nodes.subscribe("block", 7), TypeError, "one by one"),
]
ASKED: list[tuple[Callable[[Any], Awaitable[Any]], type[Exception], str]] = [
    (lambda nodes: nodes.first_success(version, role="duty"), ValueError, NO_ROLE),
    (lambda nodes: nodes.attester_duties(Epoch(4), 3), TypeError, "list of the indices"),
    (lambda nodes: nodes.sync_committee_duties(Epoch(4), 3), TypeError, "list of the indices"),
    (lambda nodes: nodes.liveness(Epoch(4), 3), TypeError, "list of the indices"),
    (lambda nodes: nodes.publish_attestations([b"{}"], "fulu"), TypeError, ENCODINGS),
    (lambda nodes: nodes.publish_attestations(Encodings(json=b"{}"), "fulu"), TypeError, ENCODINGS),
    (lambda nodes: nodes.publish_block(b"block", "fulu"), TypeError, ENCODINGS),
    (lambda nodes: nodes.scoped(A).publish_aggregates([b"{}"], "fulu"), TypeError, ENCODINGS),
]
"""Of any type to a type checker: it would find them."""


async def test_mistakes_are_refused_in_words_that_say_what_is_right() -> None:
    """And nothing is sent."""
    async with simulated_devnet(2) as net, holding(net) as held:
        for wrong, kind, words in MISTAKES:
            with pytest.raises(kind, match=words):
                wrong(held.calls)
        for asking, kind, words in ASKED:
            with pytest.raises(kind, match=words):
                await asking(held.calls)
        assert not any(node.published for node in net)


@pytest.mark.parametrize("kind", [BeaconNodeFallback, HeadMonitor])
async def test_a_list_of_urls_in_the_place_of_a_configuration(kind: Callable[[Any], object]) -> None:
    """It is said what makes one of them."""
    with pytest.raises(TypeError, match=r"FallbackConfig\.from_urls"):
        kind(["http://127.0.0.1:5052"])


async def test_the_name_of_a_role_stands_for_it() -> None:
    """`"duties"` is `Role.DUTIES`."""
    async with simulated_devnet(2) as net, holding(net) as held:
        assert held.calls.plan("duties") == held.calls.plan(Role.DUTIES)
        assert held.calls.plan("duties").role is Role.DUTIES
        assert (await held.calls.first_success(version, role="duties")).node_id in (A, B)


async def test_more_nodes_than_there_are_never_get_ready() -> None:
    """The list is not said to be empty, and what its nodes lack is said after it."""
    async with simulated_devnet(2) as net, holding(net) as held:
        with pytest.raises(NotReadyInTime, match=r"^2 of 5 nodes are usable after 3 s: the list has only 2$"):
            await held.calls.wait_ready(5, 3)
        held.calls.drain(B, 100)
        with pytest.raises(NotReadyInTime, match=r"^1 of 5 nodes .*: the list has only 2; bn2: drained"):
            await held.calls.wait_ready(5, 3)


async def test_seconds_in_the_place_of_a_moment() -> None:
    """A deadline long past that looks like a time from now is said to be a moment; one that passed just now is not."""
    async with simulated_devnet(2) as net, holding(net) as held:
        await held.until(140)
        slot, now = Slot(140), held.calls.clock.now()
        assert now > 120
        with pytest.raises(DeadlineExceeded, match=r"moment in loop time: nodes\.clock\.now\(\) \+ seconds$"):
            await held.calls.attestation_data(slot, deadline=2)
        with pytest.raises(DeadlineExceeded, match=r"no node was asked$"):
            await held.calls.attestation_data(slot, deadline=now - 1)
        before = anyio.current_time()
        assert await held.calls.heads.wait_for_slot(Slot(slot + 1), 2) is None
        assert anyio.current_time() == before
