"""Nodes on branches, on simulated nodes: who is on which, who is blamed, and that it is over (N3, case 43).

Blocks come a twelfth into a slot, and slots are looked back on when they are over.
"""

import json
from collections.abc import Sequence

import anyio
import pytest

from tests.acceptance.harness import Followed, announce, monitor
from vc_fallback.base.health_signals import BranchesDiffer, ClockDoubted
from vc_fallback.base.types import Slot, root_hex
from vc_fallback.testing import SimulatedDevnet, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

FORK = 129
"""The last slot that the branches share."""


def fork(net: SimulatedDevnet, until: int, *, other: int = 2) -> None:
    """Part the chain after slot 129: one slot in `other` has its block on the other branch, all the others on this.

    So it is in a fork: each slot has one proposer, who builds on the branch that its node is on.
    """
    net.chain.branch("other", above=FORK)
    there = set(range(FORK + 1, until, other))
    net.chain.miss(*there)
    net.chain.miss(*(set(range(FORK + 1, until)) - there), branch="other")


def splits(followed: Followed) -> list[BranchesDiffer]:
    """What was told of nodes that differ, and that they do so no more, nobody being blamed."""
    return [told for told in followed.told(BranchesDiffer) if told.blamed is None]


def verdicts(followed: Followed) -> list[tuple[str | None, bool]]:
    """Who was blamed, and whose blame was over."""
    return [(told.blamed, bool(told.reason)) for told in followed.told(BranchesDiffer) if told.blamed is not None]


def headers_asked(nodes: Sequence[SimulatedNode]) -> int:
    """How often nodes were asked for the header of a root."""
    return sum("/beacon/headers/0x" in request.path for node in nodes for request in node.requests)


async def test_a_fork_of_two_nodes_is_told_slot_by_slot_and_so_is_its_end() -> None:
    """Case 43, N3: both are shown, nobody is blamed, duties stay; their heads are never at one slot."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        fork(net, 160)
        await followed.until(FORK + 0.5)
        net[1].switch("other")
        await followed.until(140.5)
        told = splits(followed)
        assert [one.slot for one in told] == list(range(130, 139))
        for one in told:
            assert one.slot is not None
            assert list(one.roots.values()) in ([("bn1",), ("bn2",)], [("bn2",), ("bn1",)])
            there = followed.chain.head_at(one.slot, "other").root
            assert one.roots[there] == ("bn2",)
            assert one.roots[followed.chain.head_at(one.slot).root] == ("bn1",)
            assert list(one.roots) == sorted(one.roots)
            # As soon as the slot after it is over: then the heads of both are known.
            assert followed.position(one.at) == pytest.approx(one.slot + 2, abs=0.01)
        assert followed.moves() == []
        assert headers_asked(net.nodes) <= 2 * 12, "one a branch and slot, but for the way back at the beginning"
        net[1].switch("main")
        await followed.until(145.5)
        over = splits(followed)[-1]
        assert (over.slot, over.reason, over.roots) == (140, "", {})
        assert followed.position(over.at) == pytest.approx(141, abs=0.01)
        assert sum(not one.roots for one in splits(followed)) == 1
        assert verdicts(followed) == []


@pytest.mark.parametrize("odd", [0, 2])
async def test_one_of_three_on_a_branch_whose_blocks_take_turns_is_blamed(odd: int) -> None:
    """N3: wherever it stands in the list; lowered within its tier, and cleared when it is with the others again."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        alone = net[odd]
        fork(net, 150)
        await followed.until(FORK + 0.5)
        alone.switch("other")
        await followed.until(138.5)
        assert followed.monitor.ranking()[-1] == alone.name
        assert verdicts(followed) == [(alone.name, True)]
        assert followed.moves() == ([("failover", "bn1", "bn2")] if odd == 0 else [])
        alone.switch("main")
        await followed.until(146.5)
        assert verdicts(followed) == [(alone.name, True), (alone.name, False)]
        assert followed.monitor.ranking() == ("bn1", "bn2", "bn3")
        assert not splits(followed)[-1].roots
        assert not followed.health_turns()


async def test_a_node_that_is_stuck_on_a_branch_that_died_is_blamed_while_it_falls_behind() -> None:
    """N3, N5: one block of its own, and then nothing; the headers of the others tell that it is not theirs."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        stuck = net[2]
        net.chain.branch("other", above=FORK)
        await followed.until(130.5)
        stuck.switch("other")
        stuck.cut_off()
        await followed.until(133.5)
        assert verdicts(followed) == [("bn3", True)]
        assert "at slot 130" in followed.health(stuck).inconsistent
        stuck.switch("main")
        stuck.rejoin()
        await followed.until(137.5)
        assert verdicts(followed) == [("bn3", True), ("bn3", False)]


async def test_a_node_that_stopped_on_a_branch_long_ago_is_found_out_within_some_slots() -> None:
    """N3: twenty slots before anyone looked; several headers are asked for in a slot, one after the other."""
    async with simulated_devnet(3) as net:
        stopped = net[2]
        fork(net, 190, other=7)
        await anyio.sleep_until(net.chain.slots.start_of(Slot(137)) + 6.0)
        stopped.switch("other")
        stopped.cut_off()
        await anyio.sleep_until(net.chain.slots.start_of(Slot(158)) + 6.0)
        async with monitor(net) as followed:
            await followed.until(158 + 6)
            assert verdicts(followed) == [("bn3", True)]
            assert headers_asked(net.nodes) <= 21 + 6 + 3
            (split, *_) = splits(followed)
            assert (split.slot, set(split.roots.values())) == (137, {("bn1", "bn2"), ("bn3",)})


async def test_a_node_that_is_only_behind_is_on_no_branch_and_costs_no_header() -> None:
    """N3: it shows what the others showed at that slot, however far they are by now."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        await followed.until(130.5)
        net[2].cut_off()
        await followed.until(137.5)
        assert followed.told(BranchesDiffer) == []
        assert headers_asked(net.nodes) == 0


async def test_headers_that_nobody_has_leave_it_open_and_are_asked_for_once_a_slot() -> None:
    """N3, rule 6: neither a split nor its end is told by what is not known."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        fork(net, 160)
        await followed.until(FORK + 0.5)
        for node in net:
            node.answer("/eth/v1/beacon/headers/0x*", 404, '{"code":404,"message":"NOT_FOUND"}')
        net[1].switch("other")
        await followed.until(140.5)
        assert followed.told(BranchesDiffer) == []
        # And once for each time that the delivered chain changed from one of them to the other.
        assert 8 <= headers_asked(net.nodes) <= 12 + len(followed.blocks(since=FORK + 0.5))
        assert not followed.health_turns()


async def test_a_header_that_is_not_the_one_asked_for_ties_nothing_together() -> None:
    """N3, bad input: a link is believed because it hashes to the root it is listed under."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        alone = net[2]
        fork(net, 160)
        await followed.until(FORK + 0.5)
        alone.switch("other")
        # It would have every block of the others follow its own.
        for node in net:
            message = {
                "slot": "132",
                "proposer_index": "1",
                "parent_root": root_hex(followed.chain.head_at(FORK).root),
                "state_root": "0x" + "22" * 32,
                "body_root": "0x" + "33" * 32,
            }
            body = {
                "root": "0x" + "11" * 32,
                "canonical": True,
                "header": {"message": message, "signature": "0x" + "00" * 96},
            }
            node.answer(
                "/eth/v1/beacon/headers/0x*",
                200,
                json.dumps({"data": body, "finalized": False, "execution_optimistic": False}),
            )
        await followed.until(140.5)
        assert headers_asked(net.nodes) >= 8
        assert followed.told(BranchesDiffer) == []
        assert followed.monitor.ranking() == ("bn1", "bn2", "bn3")


async def test_a_node_that_goes_down_on_its_branch_is_compared_no_more() -> None:
    """N3: its blame is over, and the split; not because it had come round."""
    async with simulated_devnet(4) as net, monitor(net) as followed:
        alone = net[3]
        net.chain.branch("other", above=FORK)
        await followed.until(FORK + 0.5)
        alone.switch("other")
        await followed.until(133.5)
        await alone.kill()
        await followed.until(135.5)
        end, over = followed.told(BranchesDiffer)[-2:]
        assert (end.slot, end.blamed, end.reason) == (None, "bn4", "")
        assert (over.blamed, over.roots) == (None, {})
        assert over.slot in (133, 134)


async def test_a_clock_in_doubt_is_told_and_sixteen_slots_later_its_end() -> None:
    """N8: one early head of a node, and all others in time."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        early = net[0]
        await followed.until(131 - 0.6 / 12)
        announce(early, followed.block(131))
        await followed.until(131.5)
        assert followed.monitor.ranking() == ("bn1", "bn2", "bn3"), "a slot is looked back on when it is over"
        await followed.until(132.05)
        assert followed.monitor.ranking() == ("bn2", "bn3", "bn1")
        await followed.until(150.5)
        begin, end = followed.told(ClockDoubted)
        assert (begin.node_id, begin.warning) == ("bn1", "a head came 0.60 s before its slot")
        assert (end.node_id, end.warning) == ("bn1", "")
        assert followed.position(end.at) - followed.position(begin.at) == pytest.approx(16, abs=0.01)
        assert followed.monitor.ranking() == ("bn1", "bn2", "bn3")
        assert followed.health(early).clock == ""
        assert Slot(131) in {head.slot for head in followed.deliveries()}
