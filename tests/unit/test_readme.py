"""The code in the README runs as it stands there."""

import re
from collections import Counter
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
def test_the_validator_client_of_the_readme_attests_once_an_epoch_and_after_a_reorg_by_the_new_duties(
    backend: Literal["asyncio", "trio"], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """One line for each of its validators in each epoch; all nodes take what was signed. Late in the fifth epoch (slots
    32 to 39) they go to a branch that fixes the duties of the sixth otherwise: these are asked for again (Q14b).
    """
    names: dict[str, Any] = {}
    exec(block("attester_duties(epoch, VALIDATORS)").replace("anyio.run(main)", ""), names)  # noqa: S102 - our own text
    asked: list[int] = []

    async def scenario() -> None:
        async with simulated_devnet(3, slots_per_epoch=8, start_slot=29) as net:
            net.chain.branch("other", above=30)
            names["URLS"][:] = net.urls
            names["BeaconNodeFallback"] = partial(BeaconNodeFallback, clock=net.clock)

            def requests() -> int:
                return sum("duties/attester" in one.target for node in net for one in node.requests)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(names["main"])
                await anyio.sleep(12 * (40.5 - 29))
                asked.append(requests())
                for node in net:
                    node.switch("other")
                await anyio.sleep(12)
                asked.append(requests())
                await anyio.sleep(12 * (47.9 - 41.5))
                asked.append(requests())
                tasks.cancel_scope.cancel()

    run_in_virtual_time(scenario, backend=backend)
    lines = [line.split(" ", 3) for line in capsys.readouterr().out.splitlines()]
    epochs = Counter(int(slot) // 8 for slot, *_ in lines)
    assert (epochs[4], epochs[5]) == (3, 3)
    assert all(re.fullmatch(r"\(('127[^']*'(, )?){3}\) \(\) \(\)", taken) for *_, taken in lines)
    before, after, at_the_end = asked
    assert (after, at_the_end) == (before + 1, before + 1)
    assert caplog.text == ""


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


@pytest.mark.parametrize("word", ["net[0].freeze()", "second.silence()"])
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_scenarios_of_the_readme_run(word: str, backend: Literal["asyncio", "trio"]) -> None:
    """Simulated nodes do what the README says, by themselves and below the facade."""
    ran: list[str] = []

    def run(scenario: Callable[[], Any], **_: str) -> None:
        run_in_virtual_time(scenario, backend=backend)
        ran.append(backend)

    imported = "from vc_fallback.testing import run_in_virtual_time, simulated_devnet"
    code = block(word).replace(imported, "from vc_fallback.testing import simulated_devnet")
    exec(code, {"run_in_virtual_time": run})  # noqa: S102 - our own text
    assert ran == [backend]
