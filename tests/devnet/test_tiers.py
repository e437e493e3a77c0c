"""Two primaries and one fallback, real nodes with slots of 1 s: when the fallback's heads are delivered.

The fallback is node 1, because the validators' node stays linked with it when each node is cut off from the others.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.lodestar.devnet import Devnet
from scripts.lodestar.recorder import Recorder
from tests.devnet.following import Following, Line, assert_no_head_missed, patient_config

FALLBACK, PRIMARIES = 1, (2, 3)

FAULTS: dict[str, tuple[Callable[[Devnet, int], None], Callable[[Devnet, int], None]]] = {
    "frozen": (Devnet.freeze, Devnet.thaw),
    "cut off": (Devnet.isolate, lambda devnet, number: devnet.peer(number, FALLBACK)),
    "optimistic": (
        lambda devnet, number: devnet.execution(number, "syncing"),
        lambda devnet, number: devnet.execution(number, "ok"),
    ),
    "killed": (Devnet.kill, Devnet.restart),
}
"""How to break a node, and how to mend it. What takes longest to mend comes last: nothing waits for the other one."""


@pytest.mark.parametrize("fault", FAULTS)
def test_heads_of_the_fallback_only_while_both_primaries_are_out(
    healthy_devnet: Devnet, tmp_path: Path, fault: str
) -> None:
    """C5: none with one primary left, all while both are out, none from the moment on at which one is back."""
    break_, mend = FAULTS[fault]
    config = patient_config(tmp_path / "tiers.toml", healthy_devnet, PRIMARIES, (FALLBACK,))
    with (
        Recorder(healthy_devnet.url(FALLBACK)) as recorder,
        Following(healthy_devnet, "--config", str(config)) as monitor,
    ):
        monitor.wait_until_fresh(1, 2, 3)
        shut = monitor.wait("gate", open=False)["time"]
        monitor.wait_for_slots(1)
        break_(healthy_devnet, 2)
        monitor.wait("gate", since=shut, open=False, holder=monitor.id(3))
        monitor.wait_for_slots(2)
        broken = time.time()
        break_(healthy_devnet, 3)
        monitor.wait("head", FALLBACK, since=broken, count=4)
        mended = time.time()
        opened = monitor.lines("gate", since=shut, until=mended)[-1]
        mend(healthy_devnet, 2)
        closed = monitor.wait("gate", since=mended, open=False)
        monitor.wait("head", 2, since=closed["time"], count=3)
        monitor.stop()

    assert opened["open"]
    assert opened["reason"].startswith(f"{monitor.id(3)}: ")
    assert closed["holder"] == monitor.id(2)
    # While both are out, every head of the fallback is delivered.
    assert_no_head_missed(recorder.heads, monitor.delivered, max(broken, opened["time"]), mended)
    monitor.assert_each_block_delivered_once()
    # Before and after, none is: what it has first is held back, and said to be.
    others = [
        head
        for head in monitor.lines("head", FALLBACK, since=shut)
        if not opened["time"] <= head["time"] <= closed["time"] and not not_yet_shown(monitor, head)
    ]
    assert others == []
    for since, until in ((shut, broken), (closed["time"], float("inf"))):
        assert monitor.lines("node_head", FALLBACK, since=since, until=until, source="stream")
    held = [(line["slot"], line["block"]) for line in monitor.lines("held", FALLBACK)]
    assert held == [(line["slot"], line["block"]) for line in monitor.lines("node_head", FALLBACK, outcome="tier")]
    assert fault != "frozen" or held


def not_yet_shown(monitor: Following, head: Line) -> bool:
    """Whether no primary was to be relied on for a head (C5, H5): its slot was over, or the one before had no block.

    After a slot without a block whoever is first with the next one is two slots ahead. On a machine with nothing else
    to do there is a block in every slot and each node has it in time.
    """
    shown = [line for number in PRIMARIES for line in monitor.lines("node_head", number, until=head["time"])]
    newest: int = max(line["slot"] for line in shown if line["outcome"] != "optimistic")
    slot: int = head["slot"]
    return newest < slot - 1 or newest < slot < monitor.slot_at(head["time"])
