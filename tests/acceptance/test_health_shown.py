"""What lines, log and table say of health while a real monitor follows simulated nodes (N1, N9, N10, O4)."""

import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from tests.json_schema import check_line
from vc_fallback import FailureLog, FallbackConfig, HeadMonitor, JsonLines, Observer, PlainLines
from vc_fallback.base.types import NodeId
from vc_fallback.observe import log as log_module
from vc_fallback.observe.board import Board
from vc_fallback.observe.view import View
from vc_fallback.observe.vitals import vitals
from vc_fallback.testing import SimulatedDevnet, simulated_devnet

pytestmark = pytest.mark.anyio

SLOT = 12.0


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


@dataclass
class Shown:
    """Everything that was shown since the start, or since it was cleared."""

    net: SimulatedDevnet
    board: Board
    monitor: HeadMonitor | None = None
    json: list[str] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)

    def clear(self) -> None:
        self.json.clear()
        self.plain.clear()

    def lines(self, *kinds: str) -> list[dict[str, Any]]:
        return [line for line in map(check_line, self.json) if line["type"] in kinds]

    def told(self, *kinds: str) -> list[str]:
        """The texts of plain lines of some kinds."""
        return [line[22:] for line in self.plain if line[14:].split()[0] in kinds]

    def view(self) -> View:
        assert self.monitor is not None
        now = self.monitor.clock.now()
        listed = [(member.node_id, member.tier) for member in self.monitor.candidates.current.members.values()]
        return self.board.view(now, self.monitor.slots, listed, vitals(self.monitor.cache.book, now))


@asynccontextmanager
async def followed(nodes: int = 3) -> AsyncIterator[Shown]:
    """Nodes named `bn1`, `bn2`, … that have been followed for five slots."""
    async with simulated_devnet(nodes, slot_duration=SLOT) as net:
        shown = Shown(net, Board(net.clock.unix))
        observers: list[Observer] = [
            shown.board,
            JsonLines(net.clock.unix, shown.json.append),
            PlainLines(net.clock.unix, shown.plain.append),
            FailureLog(),
        ]
        config = FallbackConfig.of({"candidates": [{"name": node.name, "url": node.url} for node in net]})
        async with HeadMonitor(config, observers=observers, clock=net.clock) as shown.monitor:
            await anyio.sleep(5 * SLOT)
            yield shown


def logged(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[tuple[int, str]]:
    return [
        (record.levelno, record.getMessage())
        for record in caplog.records
        if record.name == log_module.__name__ and record.levelno >= level
    ]


async def test_the_start_tells_each_node_and_who_has_the_duties() -> None:
    """The last line of each node has its place; then nothing is told as long as nothing changes.

    The nodes say in any order which chain they are on: one that ranks higher may take the duties soon after the first.
    """
    async with followed() as shown:
        places = {line["node"]: line["rank"] for line in shown.lines("health")}
        assert places == {"bn1": 1, "bn2": 2, "bn3": 3}
        assert {line["node"]: line["reason"] for line in shown.lines("health")} == dict.fromkeys(places, "check_passed")
        moves = shown.lines("failover")
        assert {line["kind"] for line in moves} == {"start"}
        assert (moves[0]["from"], moves[-1]["to"]) == (None, "bn1")
        assert shown.told("health", "duties")[-1].startswith("bn1 has the duties: ")
        assert len(shown.told("health", "duties")) == len(moves) <= 3
        shown.clear()
        await anyio.sleep(20 * SLOT)
        assert shown.lines("head")
        assert shown.lines("health", "failover", "all_unhealthy", "branches", "finality", "clock") == []
        assert shown.told("health", "duties", "alarm", "branch", "clock") == []


async def test_a_node_that_is_killed_and_restarted_is_told_step_by_step(caplog: pytest.LogCaptureFixture) -> None:
    """N1, N4, N9: suspect, unhealthy, failover, recovering, healthy, failback, each once, with its reason."""
    caplog.set_level(logging.DEBUG)
    async with followed() as shown:
        shown.clear()
        caplog.clear()
        await shown.net[0].kill()
        await anyio.sleep(2 * SLOT)
        down = shown.view()
        shown.net[0].restart()
        await anyio.sleep(8 * SLOT)
        up = shown.view()

        walk = [
            (line["state"], line["suspect"], line["rank"]) for line in shown.lines("health") if line["node"] == "bn1"
        ]
        assert walk == [
            ("healthy", True, 3),
            ("unhealthy", False, 3),
            ("recovering", False, 3),
            ("healthy", False, 1),
        ]
        assert [(line["kind"], line["from"], line["to"]) for line in shown.lines("failover")] == [
            ("failover", "bn1", "bn2"),
            ("failback", "bn2", "bn1"),
        ]
        assert shown.lines("failover")[0]["reason"].startswith("bn1: 3 failed checks in a row: ")
        # Of the others nothing but their places has changed: twice, as it went and came back.
        for name in ("bn2", "bn3"):
            assert len([line for line in shown.lines("health") if line["node"] == name]) == 2

        suspect, dead, over, recovering, back = shown.told("health", "duties")[:5]
        assert suspect.startswith("bn1  suspect: 1 failed check in a row: ")
        assert dead.startswith("bn1  unhealthy: 3 failed checks in a row: ")
        assert over.startswith("failover from bn1 to bn2: bn1: 3 failed checks in a row: ")
        assert recovering == "bn1  recovering: 1 of 3 good checks in a row"
        assert back.startswith("bn1  healthy again after ")
        assert shown.told("health", "duties")[5:] == ["failback from bn2 to bn1: bn1 ranks higher and is steady"]

        health = [item for item in logged(caplog) if "stream" not in item[1] and "fresh" not in item[1]]
        assert [level for level, _ in health] == [
            logging.WARNING,
            logging.WARNING,
            logging.INFO,
            logging.INFO,
            logging.INFO,
        ]
        assert [text.split(":")[0].split()[0] for _, text in health] == ["bn1", "bn1", "failover", "bn1", "failback"]

        assert [(row.health, row.rank, row.duties) for row in down.rows] == [
            ("unhealthy", 3, False),
            ("healthy", 1, True),
            ("healthy", 2, False),
        ]
        assert "failed checks in a row" in down.rows[0].reason
        assert [(row.health, row.rank, row.duties) for row in up.rows] == [
            ("healthy", 1, True),
            ("healthy", 2, False),
            ("healthy", 3, False),
        ]
        assert up.duties is not None
        assert (up.duties.failovers, up.duties.failbacks) == (1, 1)
        assert all(row.latency is not None and row.peers is not None for row in up.rows)


async def test_no_node_healthy_is_one_error_line_and_its_end_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """N10."""
    caplog.set_level(logging.INFO)
    async with followed() as shown:
        for node in shown.net:
            await node.kill()
        await anyio.sleep(4 * SLOT)
        errors = [text for level, text in logged(caplog) if level == logging.ERROR]
        assert errors == ["no node is healthy any more: requests are still tried, in order of rank"]
        assert [line["begins"] for line in shown.lines("all_unhealthy")] == [True]
        alarm = shown.view().duties
        assert alarm is not None
        assert alarm.all_unhealthy
        for node in shown.net:
            node.restart()
        await anyio.sleep(6 * SLOT)
        assert [line["begins"] for line in shown.lines("all_unhealthy")] == [True, False]
        assert len([text for level, text in logged(caplog) if level == logging.ERROR]) == 1
        over = shown.view().duties
        assert over is not None
        assert not over.all_unhealthy


async def test_a_node_that_flips_is_no_chatter_for_people(caplog: pytest.LogCaptureFixture) -> None:
    """Case 31, H9: sixty flips within five minutes are told at 1, 2, 4, 8, … and move the duties once."""
    caplog.set_level(logging.INFO)
    async with followed() as shown:
        shown.clear()
        caplog.clear()
        for number in range(60):
            shown.net[0].state.optimistic = number % 2 == 0
            await anyio.sleep(5.0)
        flips = [line["optimistic"] for line in shown.lines("health") if line["node"] == "bn1"]
        assert flips.count(True) >= 16
        assert len([text for text in shown.told("health") if "optimistic: " in text]) <= 6
        assert len(logged(caplog, logging.WARNING)) <= 6
        assert [line["kind"] for line in shown.lines("failover")] == ["failover"]


async def test_a_branch_of_its_own_is_told_and_who_is_blamed_and_that_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """N3: in each slot for programs, at slots 1, 2, 4, 8 for people."""
    caplog.set_level(logging.INFO)
    async with followed() as shown:
        slots = shown.net.chain.slots
        shown.net.chain.branch("other", above=slots.slot_at(shown.net.clock.now()) - 1)
        shown.net[2].switch("other")
        await anyio.sleep(10 * SLOT)
        splits = [line for line in shown.lines("branches") if line["blamed"] is None and line["roots"]]
        assert len(splits) >= 9
        assert sorted(sorted(found["nodes"]) for found in splits[0]["roots"]) == [["bn1", "bn2"], ["bn3"]]
        (blamed,) = [line for line in shown.lines("branches") if line["blamed"] is not None]
        assert blamed["blamed"] == "bn3"
        assert len([text for text in shown.told("branch") if text.startswith("the nodes are on")]) == 4
        assert len([text for text in shown.told("branch") if text.startswith("bn3 is on another branch")]) == 1
        assert re.match("2 of 3 nodes have 0x[0-9a-f]{8} at slot", blamed["reason"])
        assert re.match("2 of 3 nodes have 0x[0-9a-f]{8} at slot", shown.view().rows[2].reason)
        await anyio.sleep(SLOT / 2)
        shown.clear()
        caplog.clear()
        shown.net[2].switch("main")
        await anyio.sleep(4 * SLOT)
        over, acquitted = shown.lines("branches")
        assert (over["blamed"], over["reason"], over["roots"]) == (None, "", [])
        assert (acquitted["blamed"], acquitted["reason"]) == ("bn3", "")
        said = ["the nodes are on one branch again", "bn3 is on the branch of the others again"]
        assert shown.told("branch") == said
        assert [found for found in logged(caplog) if "branch" in found[1]] == [(logging.INFO, text) for text in said]
        assert shown.view().rows[2].reason == "current head"


async def test_a_clock_in_doubt_is_told_and_that_it_is_so_no_more(caplog: pytest.LogCaptureFixture) -> None:
    """N8: our own slots are in the future by the word of both nodes, once."""
    caplog.set_level(logging.INFO)
    async with followed(2) as shown:
        assert shown.monitor is not None
        for node_id in ("bn1", "bn2"):
            shown.monitor.cache.book.future_slot(NodeId(node_id))
        await anyio.sleep(20 * SLOT)
        lines = [(line["node"], bool(line["warning"])) for line in shown.lines("clock")]
        assert lines == [(node, odd) for odd in (True, False) for node in (None, "bn1", "bn2")]
        said = [
            "our own clock is in doubt: 2 nodes say that our slots are in the future: our clock is fast",
            *(f"the clock of {name} is in doubt: says that our slots are in the future" for name in ("bn1", "bn2")),
            "our own clock is in doubt no more",
            *(f"the clock of {name} is in doubt no more" for name in ("bn1", "bn2")),
        ]
        assert shown.told("clock") == said
        levels = [logging.WARNING] * 3 + [logging.INFO] * 3
        assert [found for found in logged(caplog) if "in doubt" in found[1]] == list(zip(levels, said, strict=True))


async def test_twenty_nodes_that_all_move_up_are_told_once_each() -> None:
    async with followed(20) as shown:
        shown.clear()
        await shown.net[0].kill()
        await anyio.sleep(2 * SLOT)
        places = [(line["node"], line["rank"]) for line in shown.lines("health") if line["node"] != "bn1"]
        assert sorted(places) == sorted((f"bn{number}", number - 1) for number in range(2, 21))
        assert len(shown.told("health")) == 2


async def test_the_summary_of_the_lines_counts_the_moves() -> None:
    lines: list[str] = []
    async with simulated_devnet(2, slot_duration=SLOT) as net:
        observer = JsonLines(net.clock.unix, lines.append)
        async with HeadMonitor(FallbackConfig.from_urls(net.urls), observers=[observer], clock=net.clock):
            await anyio.sleep(5 * SLOT)
            await net[0].kill()
            await anyio.sleep(3 * SLOT)
        summary = json.loads(observer.summary(net.clock.now()))
    assert (summary["failovers"], summary["failbacks"]) == (1, 0)
