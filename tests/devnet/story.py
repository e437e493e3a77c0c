"""A fault of one real node and then of a second one, followed at the same time by all that have to live with it.

The first node of the list, which has the duties, is broken; after some slots the last one is too; then the first one
is mended. The other one has no fault. It is node 1, because the validators' node stays linked with it when each node is
cut off from the others.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from scripts.lodestar.devnet import Devnet
from scripts.lodestar.recorder import Recorder
from scripts.lodestar.rest import RestError
from tests.devnet.asking import Asking, Keeping
from tests.devnet.asking import asking as asking_all
from tests.devnet.following import Following, Line, patient_config
from vc_fallback import LivenessUnknown

FIRST, WELL, LAST = 2, 1, 3
"""The nodes in the order of the list: the one that fails first, the one that does not, and the one that fails later."""

ALONE = 4
"""Whole slots for which the first node at least is the only one that has a fault."""

Fault = Callable[[Devnet, int], None]


@dataclass(frozen=True)
class Breaking:
    """How to break a node and how to mend it, and on which event loop requests are made meanwhile."""

    start: Fault
    end: Fault
    backend: str


FAULTS: Mapping[str, Breaking] = {
    "optimistic": Breaking(
        lambda devnet, number: devnet.execution(number, "syncing"),
        lambda devnet, number: devnet.execution(number, "ok"),
        "asyncio",
    ),
    "cut off": Breaking(Devnet.isolate, lambda devnet, number: devnet.peer(number, WELL), "trio"),
    "frozen": Breaking(Devnet.freeze, Devnet.thaw, "asyncio"),
    "killed": Breaking(Devnet.kill, Devnet.restart, "trio"),
}
"""What takes longest to mend comes last: nothing waits for the second node."""


@dataclass
class Story:
    """What was seen of a fault. Moments are Unix times in seconds.

    :param monitor: the command over three primaries.
    :param tiers: the command over two primaries, the first node and the last one, and the other one as a fallback.
    :param recorder: of the node that is well; `of_first` of the one that is broken first.
    :param well: from then on everything was as it should be.
    :param broken: when the first node was about to be broken; `second` when the last one was, `mended` when the first
        was about to be mended, and `end` a second before the end.
    """

    fault: str
    devnet: Devnet
    monitor: Following
    tiers: Following
    recorder: Recorder
    of_first: Recorder
    shut: float = 0.0
    well: float = 0.0
    broken: float = 0.0
    second: float = 0.0
    mended: float = 0.0
    end: float = 0.0
    seen: dict[str, Line] = field(default_factory=dict)
    summary: Line = field(default_factory=dict)
    asked: Asking | None = None
    liveness: LivenessUnknown | None = None
    answered_frozen: bool = False

    def assert_answered(self) -> None:
        """As of `Asking`, while this fault was there."""
        assert self.asked is not None
        slot = self.monitor.slot_at
        self.asked.assert_answered(
            {
                FIRST: range(slot(self.broken) + 1, slot(self.mended)),
                LAST: range(slot(self.second) + 1, slot(self.end)),
            }
        )


def told(devnet: Devnet, fault: str, folder: Path) -> Story:
    """Let it happen from beginning to end."""
    devnet.heal()
    breaking = FAULTS[fault]
    # The hard clock speaks at 8½ slots, whatever the cause.
    streams = ["hard_clock = false"] if fault == "cut off" else []
    three = patient_config(folder / "three.toml", devnet, (FIRST, WELL, LAST), streams=streams)
    two = patient_config(folder / "tiers.toml", devnet, (FIRST, LAST), (WELL,))
    with ExitStack() as stack:
        story = Story(
            fault,
            devnet,
            stack.enter_context(Following(devnet, "--config", str(three))),
            stack.enter_context(Following(devnet, "--config", str(two))),
            stack.enter_context(Recorder(devnet.url(WELL))),
            stack.enter_context(Recorder(devnet.url(FIRST))),
        )
        portal = stack.enter_context(start_blocking_portal(breaking.backend))
        asked = stack.enter_context(portal.wrap_async_context_manager(asking_all(devnet, (FIRST, WELL, LAST))))
        story.asked = asked
        keeping = Keeping(asked, FIRST) if fault == "killed" else None
        monitor, tiers, seen = story.monitor, story.tiers, story.seen

        tiers.wait_until_fresh(FIRST, WELL, LAST)
        story.shut = tiers.wait("gate", open=False)["time"]
        portal.call(asked.until_active, FIRST)
        story.well = monitor.wait_until_well(FIRST, WELL, LAST)
        if keeping is not None:
            portal.call(keeping.tell)
        portal.call(asked.pass_slots, 1)

        story.broken = time.time()
        breaking.start(devnet, FIRST)
        if fault == "frozen":
            story.answered_frozen = answers(devnet, FIRST)
        if keeping is not None:
            story.liveness = portal.call(keeping.go_on)
        tiers.wait("gate", since=story.shut, open=False, holder=tiers.id(LAST))
        portal.call(asked.until_slot_is_over, monitor.slot_at(story.broken) + ALONE)
        # How far a node is behind is known as long as two others agree on the tip.
        seen.update(symptoms(monitor, fault, story.broken))
        seen["over"] = monitor.wait_until_moved("failover", FIRST, WELL, since=story.broken)

        story.second = time.time()
        breaking.start(devnet, LAST)
        tiers.wait("head", WELL, since=story.second, count=3)

        story.mended = time.time()
        breaking.end(devnet, FIRST)
        seen["closed"] = closed = tiers.wait("gate", since=story.mended, open=False)
        tiers.wait("head", FIRST, since=closed["time"], count=3)
        tiers.wait("node_head", WELL, since=closed["time"], source="stream")
        seen.update(recovery(monitor, fault, story.mended))
        seen["back"] = monitor.wait_until_moved("failback", WELL, FIRST, since=story.mended)
        monitor.wait(
            "node_head",
            FIRST,
            since=story.mended,
            source="stream",
            that=lambda line: line["outcome"] in ("delivered", "duplicate"),
        )
        if keeping is not None:
            portal.call(keeping.see_it_told_again)
        portal.call(asked.pass_slots, 2)
        story.end = time.time() - 1
        story.summary = monitor.stop()
        tiers.stop()
    return story


def symptoms(monitor: Following, fault: str, since: float) -> dict[str, Line]:
    """Wait for all that the monitor has to say of the fault of the first node."""
    match fault:
        case "optimistic":
            return {
                "down": monitor.wait("health", FIRST, since=since, optimistic=True),
                "first": monitor.wait("node_head", FIRST, since=since, outcome="optimistic"),
                "heard": monitor.wait("node_head", FIRST, since=since, outcome="optimistic", source="stream"),
            }
        case "cut off":
            return {
                "down": monitor.wait("health", FIRST, since=since, rank=3),
                # The monitor asks a node that has missed what others announced for its head.
                "lagging": monitor.wait(
                    "node_head",
                    FIRST,
                    since=since,
                    source="poll",
                    outcome="behind",
                    that=lambda line: line["slot"] <= monitor.slot_at(line["time"]) - 5,
                ),
                "dead": monitor.wait("health", FIRST, since=since, state="unhealthy"),
            }
        case "frozen":
            silent = monitor.wait("stream", FIRST, since=since)
            return {
                "silent": silent,
                # From its request on, a new connection to it stands: the system takes what a frozen process does not.
                "requested": monitor.wait("stream", FIRST, since=silent["time"], state="requested"),
                "dead": monitor.wait("health", FIRST, since=since, state="unhealthy"),
            }
        case _:
            return {
                "broken": monitor.wait("stream", FIRST, since=since, state="backoff", reason="broken"),
                "suspect": monitor.wait("health", FIRST, since=since, suspect=True),
                "dead": monitor.wait("health", FIRST, since=since, state="unhealthy"),
            }


def recovery(monitor: Following, fault: str, since: float) -> dict[str, Line]:
    """Wait until the first node is well, and first in rank."""
    if fault == "optimistic":
        return {"up": monitor.wait("health", FIRST, since=since, optimistic=False, rank=1)}
    recovering = monitor.wait("health", FIRST, since=since, state="recovering")
    up = monitor.wait("health", FIRST, since=recovering["time"], state="healthy")
    monitor.wait("health", FIRST, since=up["time"], state="healthy", rank=1)
    return {"recovering": recovering, "up": up}


def answers(devnet: Devnet, number: int) -> bool:
    """Whether a node says what its head is."""
    try:
        devnet.head(number, timeout=1)
    except RestError:
        return False
    return True
