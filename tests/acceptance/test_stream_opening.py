"""How head streams open: all at once, for as long as it takes, and before genesis (H1, H2, H8)."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest

from tests.acceptance.harness import candidate, known, monitor
from vc_fallback.base.signals import StreamState
from vc_fallback.testing import Delay, FramingName, simulated_devnet

pytestmark = pytest.mark.anyio

EVENTS = "/eth/v1/events"


@contextmanager
def unanswering_port() -> Iterator[str]:
    """A port on which connects hang: its backlog is full, so that SYNs are dropped."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fill = [socket.socket() for _ in range(4)]
        try:
            for taken in fill:
                taken.setblocking(False)
                taken.connect_ex(listener.getsockname())
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            for taken in fill:
                taken.close()


async def test_every_node_has_one_stream_at_once_however_the_others_answer() -> None:
    """H1: started all at once; a node that hangs or refuses delays nobody."""
    async with simulated_devnet(5) as net:
        hanging, refusing, erring, fourth, fifth = net
        hanging.hang()
        refusing.refuse()
        erring.answer("*", 500)
        async with monitor(net) as followed:
            await followed.until(132.5)
            for node in (hanging, erring, fourth, fifth):
                assert node.opens[0].opened == 0
            assert len(fourth.opens) == len(fifth.opens) == 1
            # Two of five are no majority, so the chain is known, and 128 delivered, six seconds later (I1).
            followed.assert_every_slot_delivered(129, 132)


async def test_only_nodes_with_the_role_have_a_stream() -> None:
    """H1: one head stream per candidate with role `events`."""
    async with simulated_devnet(2) as net:
        second = candidate(net[1], roles=["duties", "attestation"])
        async with monitor(net, listed=[net[0]], extra=[second]) as followed:
            await followed.until(130.5)
            assert [len(node.opens) for node in net] == [1, 0]
            followed.assert_every_slot_delivered(128, 130)


@pytest.mark.parametrize("end", ["kill", "reset", "clean", "refusal", "nonsense"])
async def test_one_nodes_end_touches_no_other_stream_and_no_other_entry(end: str) -> None:
    """H1, H8: the others' connections, entries and deliveries go on; the node's own entry goes at once."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        first, *others = net
        await followed.until(130.5)
        if end in {"kill", "reset"}:
            await first.kill(reset=end == "reset")
        elif end == "clean":
            first.end_streams()
        elif end == "refusal":
            first.publish("error", {"status_code": 500, "message": "broken"})
            first.send_raw(b'event: error\ndata: {"status_code":500,"message":"broken"}\n\n')
        else:
            first.send_raw(b"\x00\xff not a chunk\r\n", below_http=True)
        await anyio.sleep(0.1)
        assert followed.state(first) is StreamState.BACKOFF
        assert followed.entry(first) is None
        for node in others:
            entry = followed.entry(node)
            assert entry is not None
            assert entry.slot == 130
        await followed.until(136.5)
        assert [len(node.opens) for node in others] == [1, 1]
        assert [node.max_streams for node in others] == [1, 1]
        followed.assert_every_slot_delivered(128, 136)


async def test_a_connect_that_hangs_is_given_up_after_three_seconds() -> None:
    """H2: TCP connect is bounded by 3 s for streams; then backoff, as after any end."""
    async with simulated_devnet(1) as net:
        with unanswering_port() as url:
            async with monitor(net, extra=[{"url": url, "name": "far"}], chain=known(net.chain)) as followed:
                await anyio.sleep(60)
                first = followed.ends("far")[0]
                assert first.at == pytest.approx(3.0)
                assert (first.reason.value, first.detail) == (
                    "connect_failed",
                    "ConnectTimeout: no connection within 3 s",
                )
                followed.assert_every_slot_delivered(128, 132)


@pytest.mark.parametrize("slot_duration", [0.25, 2.0, 12.0])
async def test_headers_that_come_with_the_first_event_only_are_waited_for(slot_duration: float) -> None:
    """H2: from the request on only the clocks of H5 run; missing headers are no refusal."""
    async with simulated_devnet(1, framings=["lodestar"], slot_duration=slot_duration, into=slot_duration / 2) as net:
        net.chain.miss(129, 130, 131, 132, 133)
        async with monitor(net) as followed:
            await followed.until(133.9)
            assert followed.states(net[0]) == ["connecting", "requested"]
            await followed.until(136.5)
            assert followed.states(net[0]) == ["connecting", "requested", "open", "fresh"]
            assert len(net[0].opens) == 1
            followed.assert_every_slot_delivered(134, 136)


@pytest.mark.parametrize("framing", ["lighthouse", "lodestar"])
async def test_before_genesis_no_clock_runs(framing: FramingName) -> None:
    """H2, H5, H6: forty slots before genesis cost nothing, and the verdict stays unknown until the grace after it."""
    async with simulated_devnet(2, framings=[framing], start_slot=-40) as net, monitor(net) as followed:
        await followed.until(-0.01)
        for node in net:
            assert len(node.opens) == 1
            assert followed.healthy(node) is None
            assert StreamState.STALLED not in followed.states(node)
        assert not followed.deliveries()
        await followed.until(3.5)
        followed.assert_every_slot_delivered(1, 3)
        assert all(followed.healthy(node) for node in net)
        assert [len(node.opens) for node in net] == [1, 1]


async def test_a_chain_that_starts_late_has_its_grace_after_genesis() -> None:
    """H6: the start-up grace of 3 slots runs from genesis where that is later; the verdict is then `false`."""
    async with simulated_devnet(1, start_slot=-4) as net:
        net[0].silence()
        net.chain.miss(*range(1, 12))
        async with monitor(net) as followed:
            await followed.until(2.9)
            assert followed.healthy(net[0]) is None
            await followed.until(3.1)
            assert followed.healthy(net[0]) is False
            assert followed.reasons(net[0])[-1] == "start_grace_over"
            assert len(net[0].opens) == 1


async def test_a_slow_first_answer_is_no_failure() -> None:
    """H2, case 17: there is no time-out on the response of a stream, nor on the stream as a whole."""
    async with simulated_devnet(1) as net:
        net[0].inject(EVENTS, Delay(20), times=1)
        async with monitor(net) as followed:
            await followed.until(160.5)
            assert len(net[0].opens) == 1
            followed.assert_every_slot_delivered(130, 160)
