"""The devnet itself does what its faults promise; the library has no part in these tests."""

import itertools
import time
from collections.abc import Callable

import pytest

from scripts.lodestar.devnet import Devnet
from scripts.lodestar.recorder import Recorder
from tests.devnet.calm import Calm
from tests.devnet.story import Story


def eventually(holds: Callable[[], bool], limit: float) -> bool:
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.1)
    return False


def lag(devnet: Devnet, number: int) -> int:
    return devnet.slot_now() - devnet.head(number).slot


def longest_gap(recorder: Recorder) -> int:
    """Slots without a head in succession."""
    slots = sorted(set(recorder.slots))
    return max(later - earlier - 1 for earlier, later in itertools.pairwise(slots))


def test_the_nodes_share_one_chain_with_heads_in_its_slots(calm: Calm) -> None:
    """Ground of scenario 55. Not every slot of 1 s has its block when the machine is busy."""
    of_nodes = [{head.slot: head.root for head in recorder.heads} for recorder in calm.recorders]
    start = min(of_nodes[0]) + 2
    common = {slot for slot in of_nodes[0] if start <= slot < start + 8 and all(slot in heads for heads in of_nodes)}
    assert len(common) >= 3
    for slot in common:
        assert len({heads[slot] for heads in of_nodes}) == 1


def test_the_chain_goes_on_while_a_node_is_dead_and_another_frozen_and_both_return(healthy_devnet: Devnet) -> None:
    """Ground of scenarios 56 and 57; both faults last for more than two epochs, after which a node leaves gossip."""
    with Recorder(healthy_devnet.url(3)) as recorder:
        recorder.wait_for_slot(healthy_devnet.slot_now(), 5)
        healthy_devnet.kill(1)
        assert healthy_devnet.condition(1) == "dead"
        healthy_devnet.freeze(2)
        assert healthy_devnet.condition(2) == "frozen"
        recorder.wait_for_slot(recorder.slots[-1] + 18, 30)
        healthy_devnet.thaw(2)
        healthy_devnet.await_common_head([2, 3], timeout=20)
        healthy_devnet.restart(1)
        healthy_devnet.await_common_head(timeout=60)
    # On an idle machine there is no gap at all; on a busy one the proposer itself misses slots of 1 s.
    assert longest_gap(recorder) <= 4


@pytest.mark.parametrize("story", ["frozen"], indirect=True)
def test_a_frozen_node_answers_nothing_and_sends_its_missed_heads_when_thawed(story: Story) -> None:
    """Ground of scenario 57."""
    assert not story.answered_frozen
    frozen = [head for head in story.of_first.heads if story.broken + 1 <= head.time]
    assert min(head.time for head in frozen) >= story.mended
    missed = {head.slot for head in story.recorder.heads if story.broken + 1 <= head.time < story.mended - 1}
    assert len(missed) >= 3
    assert missed <= {head.slot for head in frozen}


def test_a_broken_execution_engine_makes_heads_optimistic_until_it_is_mended(healthy_devnet: Devnet) -> None:
    """Ground of scenario 58."""
    healthy_devnet.execution(3, "syncing")
    assert eventually(lambda: healthy_devnet.head(3).optimistic, 5)
    assert not healthy_devnet.head(1).optimistic
    healthy_devnet.execution(3, "ok")
    assert eventually(lambda: not healthy_devnet.head(3).optimistic, 10)


def test_nodes_without_an_execution_engine_or_links_fall_behind_until_they_are_mended(healthy_devnet: Devnet) -> None:
    """Ground of scenarios 58 and 59: one keeps its head without an engine that can be reached, one without a peer."""
    healthy_devnet.execution(3, "error")
    healthy_devnet.unpeer(1, 2)
    healthy_devnet.unpeer(1, 3)
    assert eventually(lambda: lag(healthy_devnet, 3) >= 3, 10)
    assert eventually(lambda: lag(healthy_devnet, 1) >= 4, 15)
    assert lag(healthy_devnet, 2) <= 1
    healthy_devnet.execution(3, "ok")
    healthy_devnet.peer(1, 2)
    healthy_devnet.peer(1, 3)
    healthy_devnet.await_common_head(timeout=40)
