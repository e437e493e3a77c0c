"""Simulated devnets: the example of the docs, the demo's scenes, a devnet as a program, the pytest fixtures."""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

import vc_fallback.testing
from tests.acceptance.raw_client import Listener, fetch, listening
from vc_fallback.base.clock import Clock
from vc_fallback.base.health_signals import DutiesMoved
from vc_fallback.base.signals import Signal
from vc_fallback.base.types import Slot
from vc_fallback.config import FallbackConfig
from vc_fallback.heads.monitor import HeadMonitor
from vc_fallback.testing import SimulatedDevnet, demo_devnet, run_in_virtual_time, serve_devnet, virtual_clock
from vc_fallback.testing.demo import CYCLE, DIE, FREEZE, RETURN, SPEAK, STALL, THAW
from vc_fallback.testing.virtual_time import Backend, VirtualTimeError

pytestmark = pytest.mark.anyio

Devnets = Callable[..., AbstractAsyncContextManager[SimulatedDevnet]]


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_example_of_the_docs_runs(backend: str) -> None:
    """The docstring of `vc_fallback.testing`, as it stands."""
    document = vc_fallback.testing.__doc__ or ""
    example = textwrap.dedent(document.split("::\n", 1)[1].split("\nCode under test", 1)[0])
    names: dict[str, Any] = {}
    program = example.replace("run_in_virtual_time(scenario", "result = run_in_virtual_time(scenario")
    assert program != example
    exec(program.replace('backend="trio"', f"backend={backend!r}"), names)  # noqa: S102
    urls, head, opens, requests = names["result"]
    assert len(urls) == 3
    assert head.slot == 137  # frozen before 138, and just thawed
    assert (opens, list(requests)) == ((), [])


def test_every_public_name_is_there() -> None:
    assert set(vc_fallback.testing.__all__) == {name for names in vc_fallback.testing._HOMES.values() for name in names}
    for name in vc_fallback.testing.__all__:
        assert getattr(vc_fallback.testing, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        vc_fallback.testing.nothing  # noqa: B018


def test_the_kit_is_imported_only_when_it_is_used() -> None:
    """`import vc_fallback` never imports it, and pytest's plugin imports none of its parts."""
    parts = {name for name in modules_of("import vc_fallback") if name.startswith("vc_fallback.testing")}
    assert parts == set()
    plain = modules_of("import pytest, vc_fallback")
    plugin = modules_of("import pytest, vc_fallback, vc_fallback.testing.pytest_plugin")
    assert plugin - plain == {"vc_fallback.testing", "vc_fallback.testing.pytest_plugin"}


def modules_of(program: str) -> set[str]:
    """Return the modules that a program imports."""
    program = f"{program}; import sys; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())  # noqa: S603


async def test_the_fixture_makes_devnets(simulated_devnet: Devnets) -> None:
    async with simulated_devnet(3, slot_duration=2, framings=("teku", "nimbus")) as net:
        assert len(net) == len(set(net.urls)) == 3
        assert [node.name for node in net] == ["bn1", "bn2", "bn3"]
        assert [node.broadcast.framing.name for node in net] == ["teku", "nimbus", "teku"]
        assert net[0].chain is net[2].chain
        assert net.chain.slots.slot_at(net.clock.now()) == 128
        for url in net.urls:
            assert (await fetch(url, "/eth/v1/node/syncing")).status == 200


async def test_ports_are_one_for_each_node(simulated_devnet: Devnets, free_tcp_port_factory: Callable[[], int]) -> None:
    ports = [free_tcp_port_factory(), free_tcp_port_factory()]
    async with simulated_devnet(2, ports=ports) as net:
        assert [node.port for node in net] == ports

    async def taken(**options: Any) -> None:
        async with simulated_devnet(2, **options):
            pass

    with pytest.raises(ValueError, match="one for each node"):
        await taken(ports=[0])
    async with simulated_devnet(1, ports=ports[:1]):
        with pytest.raises(OSError, match="in use"):
            await taken(ports=ports)


async def test_the_demo_shows_a_stall_a_death_a_freeze_and_all_recoveries() -> None:
    """With 2 s slots all of it within 42 s: silent while REST goes on, refused and back on the same port, frozen."""
    notes: list[tuple[float, str]] = []
    began = anyio.current_time()
    clock = Clock(wall=None, unix=1_800_000_000.0)

    def note(text: str) -> None:
        notes.append((anyio.current_time() - began, text))

    async with demo_devnet(clock=clock, note=note) as net:
        first, second, third = net
        begin = net.chain.slots.slot_at(anyio.current_time()) + 1
        start = net.chain.slots.start_of

        async def until(slot: float) -> None:
            await anyio.sleep_until(start(Slot(0)) + 2.0 * (begin + slot))

        async with listening(first.url) as all_along, listening(second.url) as stalling, listening(third.url) as dying:
            await until(STALL + 3.5)
            assert stalling.slots()[-1] == begin + STALL - 1
            syncing = (await fetch(second.url, "/eth/v1/node/syncing")).json["data"]
            assert syncing["head_slot"] == str(begin + STALL + 3)
            assert stalling.ended is None
            await until(SPEAK + 0.5)
            assert stalling.slots()[-1] == begin + SPEAK
            await until(DIE + 0.5)
            assert dying.how == "cut off"
            with pytest.raises(OSError, match="connection attempts failed"):
                await anyio.connect_tcp("127.0.0.1", third.port)
            await until(RETURN + 0.5)
            async with listening(third.url) as back:
                await until(RETURN + 1.5)
            assert back.slots() == [begin + RETURN + 1]
            await until(THAW - 0.5)
            with anyio.move_on_after(0.5) as hung:
                await fetch(first.url, "/eth/v1/node/syncing")
            assert hung.cancelled_caught
            assert all_along.slots()[-1] == begin + FREEZE - 1
            assert all_along.ended is None
            await until(CYCLE + STALL + 0.5)
            assert all_along.slots()[-1] == begin + CYCLE + STALL
    assert [text.split(" ")[0] for _, text in notes] == ["bn2", "bn2", "bn3", "bn3", "bn1", "bn1", "bn2"]
    assert all(at < 42 for at, _ in notes[:6])


async def test_the_demo_shows_a_failover_and_a_failback() -> None:
    """N9: duties leave the first node within two slots of its freeze, and go back when it is well and four are over."""
    clock = Clock(wall=None, unix=1_800_000_000.0)
    moves: list[tuple[float, str, str | None]] = []
    async with demo_devnet(clock=clock) as net:
        begin = net.chain.slots.slot_at(clock.now()) + 1

        def observe(signal: Signal) -> None:
            if isinstance(signal, DutiesMoved):
                moves.append((net.chain.slots.into_slot(signal.at, Slot(begin)) / 2.0, signal.kind, signal.target))

        config = FallbackConfig.of({"candidates": [{"name": node.name, "url": node.url} for node in net]})
        async with HeadMonitor(config, observers=[observe], clock=clock):
            await anyio.sleep(2.0 * (CYCLE + 2))
    # Whoever says first which chain it is on has the duties for a moment.
    start, over, back = [move for move in moves if move[1:] != ("start", "bn2") and move[1:] != ("start", "bn3")]
    assert start[1:] == ("start", "bn1")
    assert over[1:] == ("failover", "bn2")
    assert FREEZE < over[0] < FREEZE + 2
    assert back[1:] == ("failback", "bn1")
    assert over[0] + 4 <= back[0] < CYCLE


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_devnet_as_a_program_announces_its_nodes_and_runs_until_cancelled(backend: Backend) -> None:
    """What `vc-fallback devnet` runs; with a script that does things to it."""
    told: list[str] = []
    heard = Listener()

    async def script(net: SimulatedDevnet, note: Callable[[str], None]) -> None:
        note("killing bn2")
        await net[1].kill()

    async def run() -> None:
        async with anyio.create_task_group() as tasks:

            async def serve() -> None:
                await serve_devnet(2, slot_duration=0.5, announce=told.append, script=script, framings=("prysm",))

            tasks.start_soon(serve)
            await anyio.sleep(1)
            async with listening(told[0]) as first:
                await anyio.sleep(2)
                heard.heard = first.heard
            with pytest.raises(OSError, match="connection attempts failed"):
                await fetch(told[1], "/eth/v1/node/syncing")
            tasks.cancel_scope.cancel()

    run_in_virtual_time(run, backend=backend)
    assert [text.split(":")[0] for text in told] == ["http", "http", "killing bn2"]
    assert len(heard.heard) == 4


@pytest.mark.parametrize(("backend", "options"), [("asyncio", {}), ("asyncio", {"use_uvloop": True}), ("trio", {})])
def test_nodes_run_in_real_time_too(backend: str, options: dict[str, Any]) -> None:
    """The same nodes on an ordinary loop, uvloop among them, on the system's clock."""

    async def run() -> list[int]:
        async with vc_fallback.testing.simulated_devnet(1, slot_duration=0.1, clock=Clock()) as net:
            async with listening(net[0].url) as heard:
                await anyio.sleep(1)
            return heard.slots()

    slots = anyio.run(run, backend=backend, backend_options=options)
    assert slots == list(range(slots[0], slots[0] + len(slots)))
    assert len(slots) in {9, 10, 11}


def test_a_clock_at_a_point_of_a_slot_works_in_real_time() -> None:
    async def run() -> float:
        async with vc_fallback.testing.simulated_devnet(1, follow=False) as net:
            clock = virtual_clock(net.chain.identity, slot=7, into=3.0)
            return clock.unix() - net.chain.identity.genesis_time

    assert anyio.run(run) == pytest.approx(7 * 12 + 3, abs=0.5)


def test_a_scenario_that_hangs_says_so() -> None:
    async def run() -> None:
        async with vc_fallback.testing.simulated_devnet(1) as net, listening(net[0].url):
            await anyio.Event().wait()

    with pytest.raises(VirtualTimeError, match="3600 s"):
        run_in_virtual_time(run, limit=3600)
