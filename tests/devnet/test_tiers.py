"""Two primaries and one fallback, real nodes with slots of 1 s: when the fallback's heads are delivered.

The fallback is node 1, because the validators' node stays linked with it when each node is cut off from the others.
"""

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.lodestar.devnet import Devnet
from tests.devnet.following import Following, assert_no_head_missed, patient_config
from tests.devnet.recorder import Recorder

FALLBACK, PRIMARIES = 1, (2, 3)

FAULTS: dict[str, tuple[Callable[[Devnet, int], None], Callable[[Devnet, int], None], str]] = {
    "killed": (Devnet.kill, Devnet.restart, "stream backoff"),
    # Its stream is stalled, or its head two slots old before a poll of it has timed out.
    "frozen": (Devnet.freeze, Devnet.thaw, "stream|behind the tip"),
    "cut off": (Devnet.isolate, Devnet.rejoin, "behind the other nodes|behind the tip"),
    "optimistic": (
        lambda devnet, number: devnet.execution(number, "syncing"),
        lambda devnet, number: devnet.execution(number, "ok"),
        "no usable head|behind the tip",
    ),
}
"""How to break a node, how to mend it, and a pattern of what the gate says of the last primary that breaks so."""


@pytest.mark.parametrize("fault", FAULTS)
def test_heads_of_the_fallback_only_while_both_primaries_are_out(
    healthy_devnet: Devnet, tmp_path: Path, fault: str
) -> None:
    """C5: none with one primary left, all while both are out, none from the moment on at which one is back."""
    breaking, mending, reason = FAULTS[fault]
    config = patient_config(tmp_path / "tiers.toml", healthy_devnet, PRIMARIES, (FALLBACK,))
    with (
        Recorder(healthy_devnet.url(FALLBACK)) as recorder,
        Following(healthy_devnet, "--config", str(config)) as monitor,
    ):
        monitor.wait_until_fresh(1, 2, 3)
        shut = monitor.wait("gate", open=False)["time"]
        monitor.wait_for_slots(1)
        breaking(healthy_devnet, 2)
        monitor.wait("gate", since=shut, open=False, holder=monitor.id(3))
        monitor.wait_for_slots(2)
        broken = time.time()
        breaking(healthy_devnet, 3)
        opened = monitor.wait("gate", since=broken, open=True)
        monitor.wait("head", FALLBACK, since=opened["time"], count=4)
        mended = time.time()
        mending(healthy_devnet, 2)
        closed = monitor.wait("gate", since=mended, open=False)
        monitor.wait("head", 2, since=closed["time"], count=3)
        monitor.stop()
    assert re.fullmatch(f"{monitor.id(3)}: .*({reason}).*", opened["reason"])
    assert closed["holder"] == monitor.id(2)
    # It opens once, while both are out, and closes once.
    gates = monitor.lines("gate", since=shut)
    assert [gate["time"] for gate in gates if gate["open"]] == [opened["time"]]
    assert gates[-1] == closed
    of_fallback = monitor.lines("head", FALLBACK, since=shut)
    assert [head for head in of_fallback if not opened["time"] <= head["time"] <= closed["time"]] == []
    assert {head["tier"] for head in of_fallback} == {"fallback"}
    # While both are out, every head of it is delivered.
    assert_no_head_missed(recorder.heads, monitor.delivered, opened["time"], mended)
    monitor.assert_each_block_delivered_once()
    # While one was there, they were held back and said so, or came after a primary's.
    held = {line["slot"] for line in monitor.lines("held", FALLBACK, since=shut, until=opened["time"])}
    assert held
