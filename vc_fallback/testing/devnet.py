"""Several simulated nodes on one chain."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from vc_fallback.base.clock import Clock
from vc_fallback.testing.blocks import SimulatedChain
from vc_fallback.testing.framings import FramingName
from vc_fallback.testing.node import SimulatedNode


@dataclass(frozen=True, slots=True)
class SimulatedDevnet:
    """Nodes on one chain: `net[0]`, `for node in net`, `net.urls`."""

    chain: SimulatedChain
    nodes: tuple[SimulatedNode, ...]

    @property
    def clock(self) -> Clock:
        """The chain's clock, to be given to the code under test."""
        return self.chain.clock

    @property
    def urls(self) -> tuple[str, ...]:
        """Where the nodes listen."""
        return tuple(node.url for node in self.nodes)

    def __getitem__(self, index: int) -> SimulatedNode:
        return self.nodes[index]

    def __iter__(self) -> Iterator[SimulatedNode]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)


@asynccontextmanager
async def simulated_devnet(
    count: int = 3,
    *,
    slot_duration: float = 12.0,
    slots_per_epoch: int = 32,
    seed: int = 0,
    start_slot: int | None = None,
    into: float = 0.0,
    clock: Clock | None = None,
    gloas_epoch: int | None = None,
    forks: Mapping[str, int] | None = None,
    validators: int = 64,
    blobs: int = 0,
    framings: Sequence[FramingName] = ("lighthouse",),
    latency: float = 0.0,
    host: str = "127.0.0.1",
    ports: Sequence[int] | None = None,
    follow: bool = True,
) -> AsyncIterator[SimulatedDevnet]:
    """Serve nodes named `bn1`, `bn2`, … on one chain until the body ends.

    :param framings: of the nodes in turn.
    :param ports: one for each node; by default free ones.

    The other parameters are those of :class:`SimulatedChain` and :class:`SimulatedNode`.

    :raises ValueError: where the ports are not as many as the nodes.
    :raises OSError: where a port cannot be had.
    """
    if ports is not None and len(ports) != count:
        raise ValueError("ports: one for each node")
    chain = SimulatedChain(
        slot_duration=slot_duration,
        slots_per_epoch=slots_per_epoch,
        seed=seed,
        start_slot=start_slot,
        into=into,
        clock=clock,
        gloas_epoch=gloas_epoch,
        forks=forks,
        validators=validators,
        blobs=blobs,
    )
    async with AsyncExitStack() as running:
        nodes = tuple(
            SimulatedNode(
                chain,
                name=f"bn{index + 1}",
                framing=framings[index % len(framings)],
                latency=latency,
                host=host,
                port=0 if ports is None else ports[index],
                follow=follow,
            )
            for index in range(count)
        )
        for node in nodes:
            await running.enter_async_context(node)
        yield SimulatedDevnet(chain, nodes)
