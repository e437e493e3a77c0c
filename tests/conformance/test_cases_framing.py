"""Cases from the field: how nodes put their events on the wire, sent over sockets to a head monitor (1–3, 14)."""

from typing import Any

import anyio
import pytest

from tests.acceptance.harness import monitor
from tests.conformance.scripted import AA, BB, CC, DD, event, head, root, say_head, scripted
from vc_fallback.testing import FramingName, SimulatedChain, attester_slashing
from vc_fallback.testing.events import dumps

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


LIGHTHOUSE_2022 = (
    b'event:head\ndata:{"slot":"876797","block":"' + AA.encode() + b'","state":"' + BB.encode() + b'",'
    b'"current_duty_dependent_root":"' + CC.encode() + b'","previous_duty_dependent_root":"' + DD.encode() + b'",'
    b'"epoch_transition":false}\n\n'
)


async def test_no_space_after_the_colon_and_no_optimistic_flag() -> None:
    """Case 1: a missing flag is unknown, a bare colon is no event, a jump over a missed slot is normal."""
    chain = SimulatedChain(start_slot=876797, into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        node.send_raw(LIGHTHOUSE_2022)
        await anyio.sleep(15)
        node.send_raw(b":\n\n")
        await followed.until(876799.2)
        node.send_raw(LIGHTHOUSE_2022.replace(b"876797", b"876799").replace(b"aaaa", b"eeee"))
        await anyio.sleep(1)

        first, second = followed.deliveries()
        assert (first.slot, first.root, first.optimistic) == (876797, root("a"), None)
        assert (second.slot, second.root, second.optimistic) == (876799, root("e"), None)
        entry = followed.entry(node)
        assert entry is not None
        assert (entry.current_epoch_dependent_root, entry.next_epoch_dependent_root) == (root("d"), root("c"))
        numbers = followed.monitor.statistics()[followed.id(node)]
        assert (numbers.opens, numbers.heads, numbers.malformed, numbers.comments) == (1, 2, 0, 1)


async def test_flag_as_a_line_of_its_own_is_passed_over() -> None:
    """Case 1, variant: unknown SSE fields are ignored, so the flag is unknown."""
    chain = SimulatedChain(start_slot=876797, into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        node.send_raw(LIGHTHOUSE_2022.replace(b"\n\n", b"\nexecution_optimistic: true\n\n"))
        await anyio.sleep(1)
        assert [(head.slot, head.optimistic) for head in followed.deliveries()] == [(876797, None)]


TEKU = (
    f': ready\nevent: head\ndata: {{"slot":"6071990","block":"{AA}","state":"{BB}","epoch_transition":false,'
    f'"previous_duty_dependent_root":"{DD}","current_duty_dependent_root":"{CC}","execution_optimistic":false}}\n\n'
    f'event: block\ndata: {{"slot":"6071990","block":"{AA}","execution_optimistic":false}}\n\n: \n'
)


async def test_comment_glued_to_the_first_event_and_head_before_block() -> None:
    """Case 2: neither the comment before the event nor the block after it costs the head."""
    chain = SimulatedChain(start_slot=6071990, into=1)
    async with scripted(chain, framing="teku") as node, monitor([node]) as followed:
        await anyio.sleep(1)
        node.send_raw(TEKU.encode())
        await anyio.sleep(30)
        node.send_raw(b": \n")
        await anyio.sleep(1)
        assert [(head.slot, head.root) for head in followed.deliveries()] == [(6071990, root("a"))]
        numbers = followed.monitor.statistics()[followed.id(node)]
        assert (numbers.opens, numbers.heads, numbers.malformed, numbers.comments) == (1, 1, 0, 3)
        (request,) = node.opens
        assert request.headers["accept"] == "text/event-stream"


HEAD = head(6071990)
FRAMINGS: dict[FramingName, bytes] = {
    "lighthouse": f"event:head\ndata:{HEAD}\n\n:\n\n".encode(),
    "prysm": f":\n\nevent: head\ndata: {HEAD}\n\n".encode(),
    "lodestar": f"event: head\ndata: {HEAD}\n\n".encode(),
    "nimbus": f"event: head\r\ndata: {HEAD}\r\n\r\n".encode(),
    "teku": f": ready\nid: 1\nevent: head\ndata: {HEAD}\n\n".encode(),
}
ODD = {
    "CR alone": f"event: head\rdata: {HEAD}\r\r".encode(),
    "byte order mark": f"\N{BYTE ORDER MARK}event: head\ndata: {HEAD}\n\n".encode(),
    "two data lines": "event: head\ndata: {}\n\n".format(HEAD.replace('"state"', '\ndata: "state"')).encode(),
}


@pytest.mark.parametrize("drip", [False, True], ids=["whole", "byte by byte"])
@pytest.mark.parametrize(
    ("framing", "data"),
    [*FRAMINGS.items(), *(("nimbus", data) for data in ODD.values())],
    ids=[*FRAMINGS, *ODD],
)
async def test_one_head_out_of_every_framing(framing: FramingName, data: bytes, drip: bool) -> None:
    """Case 3: LF, CRLF and CR, chunked and until close, one segment and one byte at a time: the same head.

    Teku answers with a stream only where `Accept` is `text/event-stream` exactly, and names a charset beside its media
    type; Lodestar sends its response headers with the first event.
    """
    chain = SimulatedChain(start_slot=6071990, into=1)
    async with scripted(chain, framing=framing) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        if drip:
            for byte in data:
                node.send_raw(bytes([byte]))
                await anyio.sleep(0.005)
        else:
            node.send_raw(data)
        await anyio.sleep(1)
        entry = followed.entry(node)
        assert entry is not None
        assert (entry.slot, entry.root, entry.optimistic) == (6071990, root("a"), False)
        assert (entry.current_epoch_dependent_root, entry.next_epoch_dependent_root) == (root("d"), root("c"))
        assert followed.delivered_slots() == [6071990]
        assert followed.healthy(node)
        numbers = followed.monitor.statistics()[followed.id(node)]
        assert (numbers.opens, numbers.heads, numbers.malformed) == (1, 1, 0)


async def test_slashing_of_300_kilobytes_is_passed_over() -> None:
    """Case 14, scenario 39: one line of 20,000 indices beyond any reader's default buffer, and heads go on."""
    chain = SimulatedChain(into=1)
    async with scripted(chain) as node, monitor([node]) as followed:
        await anyio.sleep(1)
        slashing = event("attester_slashing", dumps(attester_slashing()))
        assert len(slashing) > 250_000
        node.send_raw(slashing)
        say_head(node, 128)
        await anyio.sleep(1)
        assert followed.delivered_slots() == [128]
        numbers = followed.monitor.statistics()[followed.id(node)]
        assert (numbers.opens, numbers.malformed, numbers.oversized) == (1, 0, 0)


async def test_event_over_the_bound_costs_that_event() -> None:
    """Case 14: a head of more bytes than the bound is dropped and counted, the next one counts."""
    chain = SimulatedChain(into=1)
    async with scripted(chain) as node, monitor([node], wire={"event": 65536}) as followed:
        await anyio.sleep(1)
        node.send_raw(event("head", head(128).replace("{", '{"padding":"' + "x" * 70_000 + '",')))
        say_head(node, 128, BB)
        await anyio.sleep(1)
        assert followed.delivered_roots() == [root("b")]
        numbers = followed.monitor.statistics()[followed.id(node)]
        assert (numbers.opens, numbers.heads, numbers.oversized) == (1, 1, 1)


async def test_line_without_an_end_costs_no_memory_and_no_other_node() -> None:
    """Case 14: bytes without a line end for ever: one event is given up, heads come after it and from other nodes."""
    chain = SimulatedChain(into=1)
    async with (
        scripted(chain) as endless,
        scripted(chain, name="bn2") as other,
        monitor([endless, other], wire={"event": 65536}) as followed,
    ):
        await anyio.sleep(1)
        endless.send_raw(b"data: ")
        for _ in range(100):
            endless.send_raw(b"x" * 65536)
            await anyio.sleep(0.01)
        say_head(other, 128)
        await anyio.sleep(1)
        assert followed.delivered_slots() == [128]
        endless.send_raw(b"\n\n")
        say_head(endless, 128)
        await anyio.sleep(1)
        assert followed.delivered_slots() == [128]
        assert followed.healthy(endless)
        numbers = followed.monitor.statistics()[followed.id(endless)]
        assert (numbers.opens, numbers.heads, numbers.oversized) == (1, 1, 1)
