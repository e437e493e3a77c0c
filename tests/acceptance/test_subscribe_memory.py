"""What is remembered of events so that each is told once: for some slots, and never more than so many (T6)."""

import anyio
import pytest

from tests.acceptance.facade import holding
from tests.acceptance.subscribed import exit_of, reading
from vc_fallback.testing import simulated_devnet
from vc_fallback.topics import hub

pytestmark = pytest.mark.anyio


async def test_a_copy_is_told_once_for_64_slots_and_then_again() -> None:
    """A node that is an hour late is not taken for one that is a slot late; memory is of slots."""
    async with simulated_devnet(2) as net, holding(net) as held, reading(held, "voluntary_exit") as reader:
        first, second = net
        await held.until(129.5)
        first.publish("voluntary_exit", exit_of(7))
        await held.until(129.5 + hub.MEMORY - 1)
        second.publish("voluntary_exit", exit_of(7))
        await anyio.sleep(0.1)
        assert len(reader.of("voluntary_exit")) == 1
        await held.until(129.5 + 2 * hub.MEMORY)
        second.publish("voluntary_exit", exit_of(7))
        await anyio.sleep(0.1)
        assert len(reader.of("voluntary_exit")) == 2


async def test_a_flood_is_told_and_what_is_forgotten_for_it_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 6: of more events than are remembered each is told, and copies of the forgotten ones are too."""
    monkeypatch.setattr(hub, "CEILING", 8)
    async with simulated_devnet(2) as net, holding(net) as held, reading(held, "voluntary_exit") as reader:
        first, second = net
        await held.until(129.5)
        for index in range(20):
            first.publish("voluntary_exit", exit_of(index))
        await anyio.sleep(0.1)
        for index in (19, 0):
            second.publish("voluntary_exit", exit_of(index))
        await anyio.sleep(0.1)
        told = [value.message.validator_index for value in reader.of("voluntary_exit")]
        assert told == [*range(20), 0]
        assert held.calls.status().topics["voluntary_exit"].forgotten == 16
