"""A simulated devnet as a program of its own: what `vc-fallback devnet` runs."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import anyio

from vc_fallback.base.clock import Clock
from vc_fallback.testing.devnet import SimulatedDevnet, simulated_devnet
from vc_fallback.testing.framings import FramingName
from vc_fallback.testing.tasks import background_tasks

Script = Callable[[SimulatedDevnet, Callable[[str], None]], Coroutine[Any, Any, None]]
"""Does things to the nodes of a devnet and notes them in a few words; :func:`vc_fallback.testing.demo.play` is one."""


async def serve_devnet(
    count: int,
    *,
    slot_duration: float,
    host: str = "127.0.0.1",
    ports: Sequence[int] | None = None,
    framings: Sequence[FramingName] = ("lighthouse",),
    announce: Callable[[str], None],
    script: Script | None = None,
) -> None:
    """Serve nodes on one chain, on the system's clock, until cancelled.

    :param ports: one for each node; by default free ones.
    :param announce: is given the URL of each node as soon as all of them listen, then what the script notes.
    :param script: is run beside them.
    :raises ValueError: where the ports are not as many as the nodes.
    :raises OSError: where a port cannot be had.
    """
    async with (
        simulated_devnet(
            count,
            slot_duration=slot_duration,
            slots_per_epoch=8,
            clock=Clock(),
            framings=framings,
            host=host,
            ports=ports,
        ) as net,
        background_tasks() as tasks,
    ):
        for url in net.urls:
            announce(url)
        if script is not None:
            tasks.start_soon(script, net, announce)
        await anyio.sleep_forever()
