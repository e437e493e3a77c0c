"""The benchmark of routing runs and finds what it looks for; how fast is measured by `scripts/bench`, not by tests."""

from collections.abc import Iterator
from statistics import median

import anyio
import pytest

from scripts.benchmarks import routing_calls, routing_faults, routing_load
from scripts.benchmarks.routing_server import Nodes, nodes

SLOT = 2.0


@pytest.fixture(scope="module")
def served() -> Iterator[Nodes]:
    """Three nodes in another process."""
    with nodes(3, SLOT) as found:
        yield found


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_calls_are_made_bare_and_through_the_facade(served: Nodes, backend: str) -> None:
    """Each way has its turns."""
    for measure in (routing_calls.overhead, routing_calls.strategy):
        found = anyio.run(measure, served, 2, backend=backend)
        assert all(
            len(turns) == 2 and all(len(turn) == routing_calls.BLOCK for turn in turns) for turns in found.values()
        )


def test_three_nodes_agree_here_and_there(served: Nodes) -> None:
    """Both ways come to an answer, and to a publish that all took."""
    for measure in (routing_calls.together, routing_calls.broadcasts):
        assert all(taken > 0 for turns in anyio.run(measure, served, 1).values() for turn in turns for taken in turn)


def test_a_dead_node_is_met_and_passed_by(served: Nodes) -> None:
    """The first call finds it dead; then others are asked."""
    found = anyio.run(lambda: routing_faults.strikes(served, "dead", "first_success", known=True))
    assert set(found) == set(routing_faults.STAGES)
    always = anyio.run(routing_faults.always_dead, served, 1)
    assert median(always["with"][0]) > median(always["without"][0])


def test_a_hung_node_costs_the_hedge_delay(served: Nodes) -> None:
    """Until it is known; and whoever asks all at once does not notice."""
    found = anyio.run(lambda: routing_faults.strikes(served, "hung", "attestation_data", known=False))
    assert found["first"] >= 0.05
    assert anyio.run(routing_faults.theirs, served, "hung", 1)[0] > 0


@pytest.mark.timeout(240)  # it starts a process that imports everything, and traces what that allocates
@pytest.mark.parametrize("sockets", [False, True], ids=["in the process", "over sockets"])
def test_a_load_is_counted(served: Nodes, sockets: bool) -> None:
    """Calls, memory, tasks and what stays allocated."""
    found = routing_load.load(served, rate=500.0, duration=1.0, interval=0.5, traced=20, sockets=sockets)
    assert found.samples[-1].calls > 100
    assert found.samples[-1].memory > 1
    assert len(found.traced) == 3
    assert sum(found.failures.values()) < found.samples[-1].calls
