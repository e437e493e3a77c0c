"""Three nodes: one stalls, one dies, the first one freezes and loses the duties; all come back, again and again."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from vc_fallback.base.clock import Clock
from vc_fallback.base.types import Slot
from vc_fallback.testing.devnet import SimulatedDevnet, simulated_devnet
from vc_fallback.testing.tasks import background_tasks

STALL, SPEAK, DIE, RETURN, FREEZE, THAW, CYCLE = 2, 6, 8, 11, 13, 16, 21
"""Slots after the start of a cycle: with 2 s slots all of it is seen within 42 s. A stream that misses one slot while
others have it is found out at the end of that slot (H5), so four silent slots show it well. A node that answers nothing
has lost the duties within two slots, by three checks (N4), and four slots later, when it answers again, they go back to
it (N9)."""


@asynccontextmanager
async def demo_devnet(
    *, slot_duration: float = 2.0, clock: Clock | None = None, note: Callable[[str], None] | None = None
) -> AsyncIterator[SimulatedDevnet]:
    """Serve the demo's three nodes, each in another node's framing, until the body ends.

    `bn2` stalls (its event stream is open and silent while its REST goes on), `bn3` dies (connections end, connects are
    refused), `bn1` freezes (connections stand, nothing is answered); all come back.

    :param clock: by default the system's.
    :param note: is told in a few words what is done to which node.
    """
    clock = Clock() if clock is None else clock
    async with (
        simulated_devnet(
            3, slot_duration=slot_duration, slots_per_epoch=8, clock=clock, framings=("lighthouse", "nimbus", "prysm")
        ) as net,
        background_tasks() as tasks,
    ):
        tasks.start_soon(play, net, note or _nobody)
        yield net


async def play(net: SimulatedDevnet, note: Callable[[str], None]) -> None:
    """Play the demo's scenes on the first three nodes, for ever."""
    slots = net.chain.slots
    start = slots.slot_at(anyio.current_time()) + 1
    freezes, stalls, dies = net[0], net[1], net[2]
    while True:
        await _until(net, start + STALL)
        note(f"{stalls.name} stalls: its event stream falls silent")
        stalls.silence()
        await _until(net, start + SPEAK)
        note(f"{stalls.name} speaks again")
        stalls.resume()
        await _until(net, start + DIE)
        note(f"{dies.name} dies: connections end, connects are refused")
        await dies.kill()
        await _until(net, start + RETURN)
        note(f"{dies.name} is back")
        dies.restart()
        await _until(net, start + FREEZE)
        note(f"{freezes.name} freezes: connects succeed, nothing is answered")
        freezes.freeze()
        await _until(net, start + THAW)
        note(f"{freezes.name} goes on")
        freezes.thaw()
        start += CYCLE


async def _until(net: SimulatedDevnet, slot: int) -> None:
    await anyio.sleep_until(net.chain.slots.start_of(Slot(slot)))


def _nobody(_: str) -> None:
    pass
