"""The code in the README runs as it stands there."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from vc_fallback import BeaconNodeFallback
from vc_fallback.base.clock import Clock
from vc_fallback.testing import run_in_virtual_time, simulated_devnet

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def block(word: str) -> str:
    """Return the block of code with a word in it."""
    found: list[str] = [text for text in BLOCKS if word in text]
    assert len(found) == 1
    return found[0]


def test_the_readme_begins_with_three_sentences_and_two_commands() -> None:
    """The first thing a newcomer needs is there first."""
    assert README.index("scripts/demo") < README.index("scripts/test") < README.index("## ")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_monitor_of_the_readme_prints_heads(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Ten lines are enough to follow two nodes, on asyncio and trio."""
    names: dict[str, Any] = {}
    # The block ends by running for ever on fixed URLs; its coroutine is run here for a moment, on nodes that are there.
    exec(block("HeadMonitor(").replace("anyio.run(main)", ""), names)  # noqa: S102 - our own text

    async def for_a_moment() -> None:
        async with simulated_devnet(2, slot_duration=0.2, clock=Clock()) as net:
            names["URLS"][:] = net.urls
            with anyio.move_on_after(2):
                await names["main"]()

    anyio.run(for_a_moment, backend=backend)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 3
    assert all(re.match(r"\d+ [0-9a-f]{64} 127\.0\.0\.1:\d+ \(", line) for line in lines)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_validator_client_of_the_readme_attests(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each of its validators; a node that was sent the attestation by another way may have it already."""
    names: dict[str, Any] = {}
    exec(block("attester_duties(epoch, VALIDATORS)").replace("anyio.run(main)", ""), names)  # noqa: S102 - our own text

    async def for_an_epoch() -> None:
        async with simulated_devnet(3, slot_duration=0.25, slots_per_epoch=8, clock=Clock()) as net:
            names["URLS"][:] = net.urls
            with anyio.fail_after(30):
                await names["main"]()

    anyio.run(for_an_epoch, backend=backend)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(re.match(r"\d+ 127\.0\.0\.1:\d+ 0\.\d+ \('127", line) for line in lines)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_reorgs_of_the_readme_are_told(
    backend: Literal["asyncio", "trio"], capsys: pytest.CaptureFixture[str]
) -> None:
    """C11: two nodes go to another branch, across the boundary of an epoch."""
    names: dict[str, Any] = {}
    exec(block("nodes.heads.reorgs(").replace("anyio.run(main)", ""), names)  # noqa: S102 - our own text

    async def scenario() -> None:
        async with simulated_devnet(2, slots_per_epoch=8) as net:
            net.chain.branch("other", above=38)
            names["URLS"][:] = net.urls
            names["BeaconNodeFallback"] = partial(BeaconNodeFallback, clock=net.chain.clock)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(names["main"])
                await anyio.sleep(12 * 9.5)
                for node in net:
                    node.switch("other")
                await anyio.sleep(1)
                tasks.cancel_scope.cancel()

    run_in_virtual_time(scenario, backend=backend)
    lines = capsys.readouterr().out.splitlines()
    assert sorted(re.sub(r"by [0-9a-f]{8} |by 127.*", "by … ", line) for line in lines) == [
        "duties of epoch 6 by … are void, by … ",
        "slot 41 left for 41, depth 3, by … ",
    ]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_topics_of_the_readme_are_followed(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    """T1: a block of each slot, once."""
    names: dict[str, Any] = {}
    exec(block("nodes.subscribe(").replace("anyio.run(main)", ""), names)  # noqa: S102 - our own text

    async def for_a_moment() -> None:
        async with simulated_devnet(2, slot_duration=0.2, clock=Clock()) as net:
            names["URLS"][:] = net.urls
            with anyio.move_on_after(2):
                await names["main"]()

    anyio.run(for_a_moment, backend=backend)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 3
    assert len(set(lines)) == len(lines)
    assert all(re.match(r"block 127\.0\.0\.1:\d+ BlockEvent\(slot=\d+, ", line) for line in lines)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_scenario_of_the_readme_runs(backend: Literal["asyncio", "trio"]) -> None:
    """Simulated nodes do what the README says."""
    ran: list[str] = []

    def run(scenario: Callable[[], Any], **_: str) -> None:
        run_in_virtual_time(scenario, backend=backend)
        ran.append(backend)

    code = block("run_in_virtual_time").replace(
        "from vc_fallback.testing import run_in_virtual_time, simulated_devnet",
        "from vc_fallback.testing import simulated_devnet",
    )
    exec(code, {"run_in_virtual_time": run})  # noqa: S102 - our own text
    assert ran == [backend]
