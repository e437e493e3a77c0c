"""One clock pairs the loop's time with Unix time: a stepped system clock moves slots, never time-outs (I2)."""

from typing import Any

import anyio
import pytest

from vc_fallback.base.clock import Clock, loop_time
from vc_fallback.base.types import Root, Slot
from vc_fallback.chain import ChainIdentity, SlotClock

pytestmark = pytest.mark.anyio

CHAIN = ChainIdentity(genesis_time=1_000_000.0, genesis_validators_root=Root(b"g" * 32), slot_duration=12.0)


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


class System:
    """A system clock that can be stepped; it advances with the loop."""

    def __init__(self, unix: float) -> None:
        self._ahead = unix - anyio.current_time()

    def step(self, seconds: float) -> None:
        self._ahead += seconds

    def __call__(self) -> float:
        return anyio.current_time() + self._ahead


async def test_the_pair_converts_both_ways() -> None:
    """I2."""
    await anyio.sleep(5)
    clock = Clock(wall=System(1_000_100.0))
    assert clock.now() == 5
    assert clock.unix() == 1_000_100.0
    assert clock.unix(at=4) == 1_000_099.0
    assert clock.at(1_000_107.0) == 12
    assert clock.offset == 1_000_095.0


@pytest.mark.parametrize("seconds", [-3600.0, -0.4, 0.0, 0.7, 86400.0])
async def test_a_stepped_system_clock_moves_slots_at_the_next_anchor_and_no_timeout(seconds: float) -> None:
    """I2: the wait takes 30 s of the loop's time, whatever the system clock does meanwhile."""
    system = System(CHAIN.genesis_time + 100_000 * 12)
    clock = Clock(wall=system)

    def slot() -> Slot:
        return SlotClock(CHAIN, clock.offset).slot_at(clock.now())

    began = clock.now()
    deadline = began + 30
    assert slot() == 100_000
    with anyio.CancelScope(deadline=deadline):
        await anyio.sleep(6)
        system.step(seconds)
        assert slot() == 100_000
        assert clock.reanchor() == pytest.approx(seconds, abs=1e-6)
        assert slot() == (100_000 * 12 + 6 + seconds) // 12
        await anyio.sleep_forever()
    assert clock.now() == deadline
    assert clock.reanchor() == pytest.approx(0, abs=1e-6)


async def test_a_fixed_pair_stays_fixed() -> None:
    """I2: what virtual time needs."""
    clock = Clock(wall=None, unix=1_000_000.0)
    await anyio.sleep(3600)
    assert clock.reanchor() == 0
    assert clock.unix() == 1_003_600.0


async def test_a_fixed_pair_without_a_unix_time_takes_the_loops() -> None:
    """I2: a documented default."""
    await anyio.sleep(7)
    clock = Clock(wall=None)
    assert (clock.offset, clock.unix()) == (0, 7)


async def test_a_given_unix_time_holds_until_the_system_clock_is_asked() -> None:
    """I2: `unix` is the first anchor, `wall` every later one."""
    clock = Clock(wall=System(500.0), unix=400.0)
    assert clock.unix() == 400.0
    assert clock.reanchor() == 100.0
    assert clock.unix() == 500.0


async def test_the_time_of_the_loop_is_the_same_without_looking_for_the_loop() -> None:
    """I2: what is asked at every request is bound to the loop that runs."""
    tell = loop_time()
    assert tell() == anyio.current_time()
    await anyio.sleep(2.5)
    assert tell() == anyio.current_time() == Clock(wall=None).now()
