"""First success while the list changes, for any schedule of who joins, leaves and answers (G1–G3, G6, Q3, rule 5)."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.routing_script import sourced
from vc_fallback.base.types import NodeId, Sourced
from vc_fallback.base.watch import Watch
from vc_fallback.node.failures import Closed, ConnectError, NotFound
from vc_fallback.routing.first_success import first_success
from vc_fallback.routing.joining import Joining
from vc_fallback.routing.outcomes import AllNodesFailed, DeadlineExceeded
from vc_fallback.routing.runner import Runner
from vc_fallback.testing.virtual_time import Backend, run_in_virtual_time

GOOD, ABSENT, DOWN, NEVER = "good", "absent", "down", "never"
NAMES = "abcde"
END = 6.0 + 2.0**-9


@pytest.fixture(params=["asyncio", "trio"], scope="module")
def backend(request: pytest.FixtureRequest) -> Backend:
    name: Backend = request.param
    return name


@dataclass(frozen=True)
class Happening:
    """The list becomes another one; who is new in it says a moment later which chain it is on, or never."""

    at: float
    listed: str
    verified_after: float | None


class World(Joining):
    """Nodes that come and go, and what each of them gives, after so many seconds."""

    __slots__ = ("answered", "asked", "gives", "leaves", "listed", "number", "said", "stays", "verified", "watch")

    def __init__(self, first: str, gives: dict[str, tuple[float, str]]) -> None:
        self.number = 0
        self.gives = gives
        self.watch: Watch[None] = Watch(None)
        self.listed = first
        self.verified = set(first)
        self.stays = Counter(first)
        self.leaves = {name: anyio.Event() for name in first}
        self.asked: list[tuple[str, int, float]] = []
        self.answered: list[tuple[str, float]] = []
        self.said: set[str] = set()
        """Who has said something, which holds over a time away."""

    @property
    def generation(self) -> int:
        return self.number

    @property
    def changed(self) -> bool:
        return self.number > 0

    @property
    def expected(self) -> bool:
        return self.changed and any(name not in self.verified for name in self.listed)

    def listen(self, callback: Callable[[], None]) -> Callable[[], None]:
        return self.watch.listen(callback)

    def nodes(self) -> Sequence[NodeId]:
        return [NodeId(name) for name in self.listed if name in self.verified] if self.changed else []

    async def happen(self, happenings: list[Happening]) -> None:
        async with anyio.create_task_group() as tasks:
            for happening in happenings:
                await anyio.sleep_until(happening.at)
                self.number += 1
                for name in set(self.listed) - set(happening.listed):
                    self.verified.discard(name)
                    self.leaves.pop(name).set()
                new = set(happening.listed) - set(self.listed)
                self.listed = happening.listed
                for name in new:
                    self.stays[name] += 1
                    self.leaves[name] = anyio.Event()
                    if happening.verified_after is not None:
                        tasks.start_soon(self.verify, name, self.stays[name], happening.verified_after)
                self.watch.set(None)

    async def verify(self, name: str, stay: int, after: float) -> None:
        await anyio.sleep(after)
        if name in self.listed and self.stays[name] == stay:
            self.verified.add(name)
            self.watch.set(None)

    async def op(self, node_id: NodeId) -> Sourced[Any]:
        name = str(node_id)
        self.asked.append((name, self.stays[name], anyio.current_time()))
        if name not in self.listed:
            raise Closed(node_id, "x", "node removed from the list")
        after, gives = self.gives[name]
        with anyio.move_on_after(1000.0 if gives == NEVER else after):
            await self.leaves[name].wait()
            raise Closed(node_id, "x", "node removed from the list")
        self.said.add(name)
        if gives == GOOD:
            self.answered.append((name, anyio.current_time()))
            return sourced(node_id, GOOD)
        raise (NotFound if gives == ABSENT else ConnectError)(node_id, "x", gives)


@st.composite
def situations(draw: st.DrawFn) -> tuple[str, dict[str, tuple[float, str]], list[Happening], float]:
    """Times are eighths of a second and parts of their own, so that no two things happen at one moment."""
    gives = {
        name: (
            draw(st.integers(0, 24)) / 8 + 2.0 ** -(11 + number),
            draw(st.sampled_from([GOOD, GOOD, ABSENT, DOWN, DOWN, NEVER])),
        )
        for number, name in enumerate(NAMES)
    }
    lists = st.lists(st.sampled_from(NAMES), min_size=0, max_size=4, unique=True).map("".join)
    moments = sorted(draw(st.lists(st.integers(1, 40), max_size=6, unique=True)))
    happenings = [
        Happening(
            moment / 8 + 2.0**-17,
            draw(lists),
            draw(st.sampled_from([0.0, 2.0**-18, 0.25 + 2.0**-19, 1.0 + 2.0**-19, None])),
        )
        for moment in moments
    ]
    first = draw(lists.filter(bool))
    return first, gives, happenings, draw(st.sampled_from([0.25, 0.5, 1.5, 100.0]))


@settings(max_examples=150, deadline=None)
@given(situations())
def test_nothing_is_lost_while_the_list_changes(
    backend: Backend, situation: tuple[str, dict[str, tuple[float, str]], list[Happening], float]
) -> None:
    """A call that fails has lost no answer; it ends early only where nobody is left to be asked, or about to come; no
    node is asked twice while it stays, and none that is not in the list while others are."""
    first, gives, happenings, delay = situation

    async def main() -> None:
        world = World(first, gives)
        problem: Exception | None = None
        async with anyio.create_task_group() as tasks:
            runner = Runner()
            await tasks.start(lambda *, task_status: runner.run(task_status=task_status))
            tasks.start_soon(world.happen, happenings)
            nodes = [NodeId(name) for name in first]
            try:
                answer = await first_success(
                    world.op, nodes, end=END, delay=lambda _: delay, runner=runner, joining=world
                )
                assert (str(answer.node_id), anyio.current_time()) == world.answered[0]
            except (AllNodesFailed, DeadlineExceeded, NotFound) as error:
                problem = error
            ended = anyio.current_time()
            assert ended <= END
            assert not runner._running
            assert not [timer for _, _, timer in runner._timers if timer.callback is not None]
            assert not world.watch._listeners
            of_stays = Counter((name, stay) for name, stay, _ in world.asked if stay)
            if problem is not None:
                assert world.answered == [], "an answer was lost"
            if problem is not None and ended < END:
                there = {(name, world.stays[name]) for name in world.listed if name in world.verified - world.said}
                assert there <= of_stays.keys(), "somebody was not asked"
                said_no = any(gives[name][1] == ABSENT for name, _, _ in world.asked)
                assert said_no or not world.expected, "somebody was about to come"
            # Who is on the list of the call when it leaves, and asked then, is refused at once; never while it stays.
            stayed = {name for name in NAMES if all(name in happening.listed for happening in happenings)}
            assert all(count == 1 for (name, _), count in of_stays.items() if name in stayed)
            tasks.cancel_scope.cancel()

    run_in_virtual_time(main, backend=backend)
