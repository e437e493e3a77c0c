"""Beacon nodes of which a test writes the event stream itself, byte for byte."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from tests.acceptance.harness import Followed
from vc_fallback.base.clock import Clock
from vc_fallback.base.signals import Observer, StreamChanged, StreamState
from vc_fallback.config import FallbackConfig
from vc_fallback.heads.monitor import HeadMonitor
from vc_fallback.testing import FramingName, SimulatedChain, SimulatedNode
from vc_fallback.wire.dial import Resolver

HEAD_HEADER = "/eth/v1/beacon/headers/head"

AA, BB, CC, DD = ("0x" + digit * 64 for digit in "abcd")
"""Roots as the cases are quoted: block, state, and two dependent roots."""


def root(digit: str) -> bytes:
    """Return the root that is one hexadecimal digit 64 times over."""
    return bytes.fromhex(digit * 64)


def head(slot: int, block: str = AA, *, optimistic: bool | None = False, current: str = CC, previous: str = DD) -> str:
    """Return the data of a `head` event as Lighthouse orders it; `None` leaves the flag out."""
    flag = "" if optimistic is None else f',"execution_optimistic":{str(optimistic).lower()}'
    return (
        f'{{"slot":"{slot}","block":"{block}","state":"{BB}","current_duty_dependent_root":"{current}",'
        f'"previous_duty_dependent_root":"{previous}","epoch_transition":false{flag}}}'
    )


def head_v2(slot: int, block: str = AA, *, status: str = "full", bare: bool = False) -> str:
    """Return the data of a `head_v2` event, `bare` without the wrapper."""
    data = (
        f'{{"slot":"{slot}","block":"{block}","state":"{BB}","payload_status":"{status}","epoch_transition":false,'
        f'"current_epoch_dependent_root":"{DD}","next_epoch_dependent_root":"{CC}","execution_optimistic":false}}'
    )
    return data if bare else f'{{"version":"gloas","data":{data}}}'


def event(topic: str, data: str) -> bytes:
    """Return an event with the line ends of most nodes."""
    return f"event: {topic}\ndata: {data}\n\n".encode()


def say_head(node: SimulatedNode, slot: int, block: str = AA) -> None:
    """Announce a head on a node's streams."""
    node.send_raw(event("head", head(slot, block)))


@asynccontextmanager
async def scripted(
    chain: SimulatedChain, *, name: str = "bn1", framing: FramingName = "lighthouse", opening: bytes = b""
) -> AsyncIterator[SimulatedNode]:
    """Serve a node that says nothing by itself: no head, no comment, and 404 when it is asked for its head.

    :param opening: bytes sent on each stream as it opens.
    """
    node = SimulatedNode(chain, name=name, framing=framing, follow=False)
    node.broadcast.framing = replace(node.broadcast.framing, opening=opening)
    node.broadcast.comments = False
    node.answer(HEAD_HEADER, 404, '{"code":404,"message":"Block header data not found"}')
    async with node:
        yield node


def stalls(followed: Followed, node: SimulatedNode) -> list[StreamChanged]:
    """Return how often a stream was found stalled: the changes to that state."""
    return [change for change in followed.changes(node) if change.state is StreamState.STALLED]


def know(node: SimulatedNode, slot: int, block: str) -> None:
    """Let a node answer with this head when it is asked."""
    node.answer(
        HEAD_HEADER,
        200,
        f'{{"execution_optimistic":false,"finalized":false,"data":{{"root":"{block}","canonical":true,"header":'
        f'{{"message":{{"slot":"{slot}","proposer_index":"1","parent_root":"{AA}","state_root":"{BB}",'
        f'"body_root":"{CC}"}},"signature":"0x{"00" * 96}"}}}}}}',
    )


@asynccontextmanager
async def following(
    nodes: Sequence[SimulatedNode],
    *,
    resolver: Resolver | None = None,
    clock: Clock | None = None,
    observers: Sequence[Observer] = (),
    **settings: Any,
) -> AsyncIterator[Followed]:
    """Follow candidates that are no simulated nodes, or not under their own addresses, or with mistakes of our own.

    :param nodes: simulated nodes that are looked at; the first one's chain gives the time.
    :param settings: fields of `FallbackConfig`, the candidates among them.
    """
    followed = Followed(nodes)
    followed.monitor = HeadMonitor(
        FallbackConfig.of(settings),
        observers=[followed.signals.append, *observers],
        clock=clock or followed.chain.clock,
        resolver=resolver,
    )
    async with followed.monitor:
        yield followed
