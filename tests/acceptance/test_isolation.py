"""One node's trouble never delays another's heads (rules 4 and 6, H1): shown for each fault, in virtual time."""

from collections.abc import Callable, Coroutine

import anyio
import pytest

from tests.acceptance.harness import Followed, monitor
from vc_fallback.testing import Answer, Cut, Delay, SimulatedNode, StreamHeaders, redirect, simulated_devnet
from vc_fallback.testing import events as said

pytestmark = pytest.mark.anyio

EVENTS = "/eth/v1/events"

Fault = Callable[[Followed, SimulatedNode], Coroutine[object, object, None]]

BAD = 131
"""The fault begins in the middle of this slot."""

GOOD = BAD + 5


async def frozen(followed: Followed, node: SimulatedNode) -> None:
    node.freeze()


async def hanging(followed: Followed, node: SimulatedNode) -> None:
    node.hang()
    await node.cut_connections()


async def hanging_after_headers(followed: Followed, node: SimulatedNode) -> None:
    node.hang(after_headers=True)
    await node.cut_connections()


async def dead(followed: Followed, node: SimulatedNode) -> None:
    await node.kill(reset=True)


async def vanished(followed: Followed, node: SimulatedNode) -> None:
    node.vanish()


async def flapping(followed: Followed, node: SimulatedNode) -> None:
    while followed.now < GOOD:
        await node.kill()
        await followed.wait_slots(0.13)
        node.restart()
        await followed.wait_slots(0.13)


async def erring(followed: Followed, node: SimulatedNode) -> None:
    node.answer("*", 500, "x" * 100_000)
    node.end_streams()


async def limiting(followed: Followed, node: SimulatedNode) -> None:
    node.answer("*", 429, headers={"Retry-After": "30"})
    node.end_streams()


async def redirecting(followed: Followed, node: SimulatedNode) -> None:
    node.inject("*", redirect("/elsewhere"))
    node.end_streams()


async def cutting(followed: Followed, node: SimulatedNode) -> None:
    node.inject("/eth/v1/[!e]*", Cut(after=150))
    while followed.now < GOOD:
        await node.cut_connections()
        await followed.wait_slots(0.2)


async def slow(followed: Followed, node: SimulatedNode) -> None:
    node.inject("*", Delay(6.0))
    node.end_streams()


async def wrong_media_type(followed: Followed, node: SimulatedNode) -> None:
    node.inject(EVENTS, StreamHeaders(content_type="text/html"))
    node.end_streams()


async def unknown_coding(followed: Followed, node: SimulatedNode) -> None:
    node.inject("*", Answer(200, b"\x00" * 1000, {"Content-Encoding": "zstd"}, "text/event-stream"))
    node.end_streams()


async def flooding_with_comments(followed: Followed, node: SimulatedNode) -> None:
    await _flood(followed, node, b":" + b"." * 60 + b"\n\n")


async def flooding_with_nonsense(followed: Followed, node: SimulatedNode) -> None:
    await _flood(followed, node, b"event: head\ndata: {nonsense}\n\n")


async def flooding_with_unknown_events(followed: Followed, node: SimulatedNode) -> None:
    await _flood(followed, node, b'event: attestation\ndata: {"aggregation_bits":"0x01","signature":"0x02"}\n\n')


async def flooding_with_heads(followed: Followed, node: SimulatedNode) -> None:
    head = said.dumps(said.head(node.chain, node.chain.head_at(BAD - 20)))
    await _flood(followed, node, f"event: head\ndata: {head}\n\n".encode())


async def flooding_with_dropped_messages(followed: Followed, node: SimulatedNode) -> None:
    await _flood(followed, node, b": error - dropped 9 messages\n\n")


async def an_endless_line(followed: Followed, node: SimulatedNode) -> None:
    node.broadcast.silence(comments=False)
    node.send_raw(b"data: ")
    await _flood(followed, node, b"x")
    node.resume()


async def a_byte_at_a_time(followed: Followed, node: SimulatedNode) -> None:
    event = node.broadcast.framing.event("head", said.dumps(said.head(node.chain, node.head)))
    while followed.now < GOOD:
        for byte in event:
            node.send_raw(bytes((byte,)))
            await anyio.sleep(0.1)


async def optimistic(followed: Followed, node: SimulatedNode) -> None:
    while followed.now < GOOD:
        node.state.optimistic = not node.state.optimistic
        await followed.wait_slots(0.3)


async def buffered(followed: Followed, node: SimulatedNode) -> None:
    node.hold()


async def silent(followed: Followed, node: SimulatedNode) -> None:
    node.silence()


async def behind(followed: Followed, node: SimulatedNode) -> None:
    node.cut_off()


async def from_the_future(followed: Followed, node: SimulatedNode) -> None:
    while followed.now < GOOD:
        head = {**said.head(node.chain, node.head), "slot": str(followed.slot + 5)}
        node.publish("head", head)
        node.publish("head_v2", {"version": "fulu", "data": head})
        await followed.wait_slots(0.1)


async def _flood(followed: Followed, node: SimulatedNode, piece: bytes, *, of: int = 10_000) -> None:
    """Send so many bytes ten times a slot."""
    block = piece * (of // len(piece))
    while followed.now < GOOD:
        node.send_raw(block)
        await followed.wait_slots(0.1)


FAULTS: tuple[Fault, ...] = (
    frozen,
    hanging,
    hanging_after_headers,
    dead,
    vanished,
    flapping,
    erring,
    limiting,
    redirecting,
    cutting,
    slow,
    wrong_media_type,
    unknown_coding,
    flooding_with_comments,
    flooding_with_nonsense,
    flooding_with_unknown_events,
    flooding_with_heads,
    flooding_with_dropped_messages,
    an_endless_line,
    a_byte_at_a_time,
    optimistic,
    buffered,
    silent,
    behind,
    from_the_future,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
async def test_a_nodes_trouble_delays_no_head_of_the_others(fault: Fault) -> None:
    """H1, rules 4, 6: two of three nodes have it; each head is delivered at the instant the third shows it."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        *bad, good = net
        good.state.head_delay = 0.25
        await followed.until(BAD + 0.5)
        async with anyio.create_task_group() as tasks:
            for node in bad:
                tasks.start_soon(fault, followed, node)
            await followed.until(GOOD + 0.15)
            opens = [len(node.opens) for node in bad]
            for node in bad:
                node.heal()
                if not node.broadcast.comments:
                    node.resume()
        followed.assert_every_slot_delivered(128, GOOD, within=0.25)
        assert [record.closed for record in good.opens] == [None]
        # Five slots: a stall each two slots at most, or waits of 1, 2, 4, 8 … s, or checks each 2 s.
        assert max(opens) <= 33
        await followed.until(GOOD + 4.5)
        followed.assert_every_slot_delivered(128, GOOD + 4, within=0.25)
        assert [followed.healthy(node) for node in net] == [True] * 3


async def test_trouble_piles_nothing_up() -> None:
    """Rules 5, 6: after forty slots in which two nodes flap there are as many tasks and connections as before."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        await followed.until(BAD + 0.5)
        tasks = len(anyio.get_running_tasks())
        connections = [node.connections for node in net]
        # A head stream, what was asked beside it at the same time, and the checks.
        assert connections == [4] * 3
        for number in range(40):
            node = net[number % 2]
            if number % 3 == 0:
                node.freeze()
            elif number % 3 == 1:
                node.vanish()
            else:
                await node.kill()
            await followed.wait_slots(0.5)
            node.heal()
            await followed.wait_slots(0.5)
        for node in (net[0], net[1]):
            node.heal()
        await followed.wait_slots(12)
        assert [followed.healthy(node) for node in net] == [True] * 3
        assert len(anyio.get_running_tasks()) <= tasks
        for node, before in zip(net, connections, strict=True):
            assert node.connections <= before
        followed.assert_every_slot_delivered(128, followed.slot)
