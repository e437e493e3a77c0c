"""Nodes that ask to be left alone, or refuse us (Q11, case 24)."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import anyio
import pytest

from tests.acceptance.facade import VERSION, A, B, C, Held, holding, listed, moved, version
from vc_fallback.base.signals import StreamReason
from vc_fallback.base.types import NodeId, Role, Slot
from vc_fallback.node import routes
from vc_fallback.node.failures import RateLimited, Unauthorized
from vc_fallback.routing.outcomes import AllNodesFailed
from vc_fallback.testing import Delay, simulated_devnet

pytestmark = pytest.mark.anyio

ATTESTATION_DATA = "/eth/v1/validator/attestation_data"
EVENTS = "/eth/v1/events"


def in_seconds(held: Held, seconds: float) -> str:
    """Return the HTTP date of a moment."""
    return format_datetime(
        datetime.fromtimestamp(held.calls.clock.unix(), UTC) + timedelta(seconds=seconds), usegmt=True
    )


@pytest.mark.parametrize("form", ["seconds", "date", "absent", "unreadable", "past", "long"])
async def test_a_node_that_says_429_is_left_alone_for_as_long_as_it_asks(form: str) -> None:
    """Q11, case 24: `Retry-After` in seconds, as a date, not at all; the next node is asked at once."""
    async with simulated_devnet(2) as net, holding(net) as held:
        first, second = net
        await held.until(130)
        value, rest = {
            "seconds": ("7", 7.0),
            "date": (in_seconds(held, 7), 7.0),
            "absent": (None, 2.0),
            "unreadable": ("soon", 2.0),
            "past": (in_seconds(held, -100), 0.0),
            "long": ("31536000", 600.0),
        }[form]
        first.answer(VERSION, 429, headers={} if value is None else {"Retry-After": value}, times=1)
        began = anyio.current_time()
        assert await held.version() == B
        assert anyio.current_time() == began, "at once"
        assert held.calls.status().nodes[0].cooling == pytest.approx(rest)
        if rest:
            assert "bn1 comes after its equals: it is to be left alone for" in held.calls.plan().reason(A)
            await anyio.sleep_until(began + rest - 0.01)
            assert await held.version() == B
        assert (held.asked(first), held.asked(second)) == (1, 2 if rest else 1)
        await anyio.sleep_until(began + rest + 0.01)
        assert await held.version() == A
        assert held.calls.plan().cooling == {}


@pytest.mark.parametrize("status", [401, 402, 403])
async def test_a_node_that_refuses_us_is_left_alone_for_long(status: int) -> None:
    """Q11, case 24: 402 when the daily quota is gone, as a provider words it; 401 and 403."""
    words = '{"jsonrpc":"2.0","id":1,"error":{"code":402,"event":-33000,"message":"Payment Required"}}'
    async with simulated_devnet(2) as net, holding(net, requests={"refused_cooldown": 100.0}) as held:
        first = net[0]
        await held.until(130)
        first.answer(VERSION, status, words, times=1)
        began = anyio.current_time()
        assert await held.version() == B
        await anyio.sleep_until(began + 99)
        assert await held.version() == B
        assert held.asked(first) == 1
        await anyio.sleep_until(began + 101)
        assert await held.version() == A
        # Its stream was let alone: that it refuses a request says nothing of the events.
        assert held.waits(first) == []


async def test_all_nodes_say_429() -> None:
    """Q11: the error has each node's reason; nothing is lost: the next call asks all of them again, cooling or not."""
    async with simulated_devnet(3) as net, holding(net) as held:
        await held.until(130)
        for node, rest in zip(net, ("30", "20", None), strict=True):
            node.answer(VERSION, 429, "slow down", headers={} if rest is None else {"Retry-After": rest})
        began = anyio.current_time()
        with pytest.raises(AllNodesFailed) as caught:
            await held.version()
        assert anyio.current_time() == began
        assert str(caught.value) == "request: all 3 nodes failed: " + "; ".join(
            f"{node.name}: 429 slow down" for node in net
        )
        assert all(isinstance(error, RateLimited) for error in caught.value.errors.values())
        assert [caught.value.errors[n].retry_after for n in (A, B)] == [30, 20]  # type: ignore[attr-defined]
        for node in net:
            node.heal()
        assert held.calls.plan().cooling.keys() == {A, B, C}
        assert await held.version() == A
        assert [held.asked(node) for node in net] == [2, 1, 1]


async def test_who_cools_down_is_asked_when_nobody_else_is_left() -> None:
    """Q11: the rest is no verdict; it comes before giving up, within the request that needs it."""
    async with simulated_devnet(3) as net, holding(net) as held:
        first, second, third = net
        await held.until(130)
        first.answer(VERSION, 429, headers={"Retry-After": "60"}, times=1)
        assert await held.version() == B
        second.answer(VERSION, 500)
        third.answer(VERSION, 404)
        assert await held.version() == A
        assert [held.asked(node) for node in net] == [2, 2, 1]
        # As well, where the others are silent.
        second.hang(VERSION)
        third.hang(VERSION)
        began = anyio.current_time()
        assert await held.version() == A
        assert anyio.current_time() == pytest.approx(began + 2 * 12 / 8)


async def test_a_sole_node_is_asked_all_the_same() -> None:
    """Q11: there is nobody else; the caller hears what the node says."""
    async with simulated_devnet(1) as net, holding(net) as held:
        net[0].answer(VERSION, 429, headers={"Retry-After": "60"}, times=2)
        for _ in range(2):
            with pytest.raises(AllNodesFailed, match="the only node failed: bn1: 429"):
                await held.version()
        assert await held.version() == A


async def test_what_a_node_asked_for_ends_with_its_address() -> None:
    """Q11, G3: under another address it is asked at once, and what the old one says late does not hold it up."""
    async with simulated_devnet(3) as net, holding(net, listed=net.nodes[:2]) as held:
        first, second, third = net
        await held.until(130)
        first.answer(VERSION, 429, headers={"Retry-After": "60"}, times=1)
        assert await held.version() == B
        held.calls.update_candidates([moved(third, "bn1"), *listed(second)])
        assert held.calls.plan().cooling == {}
        await anyio.sleep(1)
        assert await held.version(prefer=A) == A
        assert held.asked(third) == 1
        # Only its place in the list is another: the rest goes on.
        second.answer(VERSION, 429, headers={"Retry-After": "60"}, times=1)
        await held.calls.scoped(A).version()
        with pytest.raises(RateLimited):
            await held.calls.scoped(B).version()
        held.calls.update_candidates([*listed(second), moved(third, "bn1")])
        assert [*held.calls.plan().nodes] == [A, B]
        assert held.calls.plan().cooling[B] > 50


async def test_an_answer_of_the_address_before_says_nothing_of_the_new_one() -> None:
    """G3: a 429 that was read as the list changed is not the new server's."""
    async with simulated_devnet(2) as net, holding(net, listed=net.nodes[:1]) as held:
        first, second = net
        ended = held.calls._outcomes_of(A)
        held.calls.update_candidates([moved(second, "bn1")])
        now = anyio.current_time()
        ended(routes.VERSION, now, now, RateLimited(A, VERSION, "late", status=429, retry_after=60.0))
        assert held.calls.heads.cache.cooldowns.left(A, now) == 0
        ended = held.calls._outcomes_of(A)
        ended(routes.VERSION, now, now, RateLimited(A, VERSION, "its own", status=429, retry_after=60.0))
        assert held.calls.heads.cache.cooldowns.left(A, now) == 60.0
        assert first.name == "bn1"


async def test_a_rest_is_one_budget_for_requests_and_for_the_stream() -> None:
    """Case 24: a stream that ends meanwhile is opened when the rest is over, whatever checks say."""
    async with simulated_devnet(2) as net, holding(net) as held:
        first, second = net
        await held.until(130.5)
        first.answer(VERSION, 429, headers={"Retry-After": "40"}, times=1)
        assert await held.version() == B
        opens = len(first.opens)
        began = anyio.current_time()
        await first.cut_connections()
        await second.cut_connections()
        await anyio.sleep_until(began + 39)
        assert len(first.opens) == opens
        (wait,) = held.waits(first)
        assert wait == pytest.approx(40)
        assert held.waits(second) != [wait]
        await anyio.sleep_until(began + 42)
        assert len(first.opens) == opens + 1
        assert held.healthy(second)


@pytest.mark.parametrize("rest", [None, "20"])
async def test_a_stream_that_is_refused_with_429_rests_the_node(rest: str | None) -> None:
    """Case 24: requests go to another node for as long, or for two seconds where the node does not say."""
    async with simulated_devnet(2) as net, holding(net) as held:
        first = net[0]
        await held.until(130.5)
        refusal = first.answer(EVENTS, 429, headers={} if rest is None else {"Retry-After": rest})
        first.end_streams()
        while not [end for end in held.ends(first) if end.reason is StreamReason.REFUSED]:  # noqa: ASYNC110
            await anyio.sleep(0.1)
        refusal.remove()
        began = anyio.current_time()
        assert await held.version() == B
        await anyio.sleep_until(began + (1.5 if rest is None else 19))
        assert await held.version() == B
        await anyio.sleep_until(began + (2.5 if rest is None else 21))
        assert await held.version() == A
        assert held.asked(first) == 1


async def test_duties_go_on_while_every_node_is_limited_in_turn() -> None:
    """Q11, case 24: whoever would be asked first answers 429; no call of a duty is lost, and nobody is asked twice."""
    async with simulated_devnet(3) as net, holding(net) as held:
        await held.until(130.5)
        gave: list[NodeId] = []
        met = 0
        for _ in range(12):
            latest = held.monitor.latest.value
            assert latest is not None
            first = held.calls.plan(Role.ATTESTATION, prefer=latest.head.node_id).nodes[0]
            limit = held.nodes[first].answer(ATTESTATION_DATA, 429, headers={"Retry-After": "3"}, times=1)
            with limit:
                began = anyio.current_time()
                gave.append((await held.calls.attestation_data(Slot(held.slot))).node_id)
                assert anyio.current_time() == began
            met += limit.met
            await anyio.sleep(2)
        assert met > 6
        assert len(set(gave)) > 1
        assert sum(held.asked(node, ATTESTATION_DATA) for node in net) == 12 + met


async def test_refusals_of_a_hedge_that_lost_count_too() -> None:
    """Q11: whoever sent the request; a node says 401 while another one wins."""
    async with simulated_devnet(2) as net, holding(net) as held:
        first, second = net
        await held.until(130.5)
        first.answer(VERSION, 401)
        second.inject(VERSION, Delay(1.0))
        assert await held.version() == B
        await held.calls.first_success(version, prefer=A)
        assert held.asked(first) == 1
        with pytest.raises(Unauthorized):
            await held.calls.scoped(A).version()
