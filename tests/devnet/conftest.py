"""One devnet of three real beacon nodes with 1 s slots for the whole run."""

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from scripts.lodestar.devnet import Devnet
from scripts.lodestar.modules import missing_tools
from scripts.lodestar.tether import tethered
from tests.devnet.calm import Calm, calm_of
from tests.devnet.story import Story, told

HERE = Path(__file__).parent
# Seconds for a test, without its fixtures: installing, starting and healing the devnet have limits of their own.
TEST_LIMIT = 180


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.devnet)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TEST_LIMIT, func_only=True))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    """What starts nodes of its own comes before those that all others share are up.

    Of the others those come first that kill nodes: such a node fetches the chain from genesis, 40 slots in a second.
    """
    if "devnet" not in getattr(item, "fixturenames", ()):
        return 0
    callspec = getattr(item, "callspec", None)
    return 1 if callspec is not None and callspec.params.get("story") == "killed" else 2


@pytest.fixture(scope="session")
def node_tools() -> None:
    """Node.js and npm are there; in continuous integration they have to be."""
    missing = missing_tools()
    if missing:
        reason = f"real beacon nodes need {' and '.join(missing)}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def devnet(node_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    """The devnet as the test before left it."""
    with tethered(Devnet(tmp_path_factory.mktemp("devnet"), nodes=3, slot_duration=1)) as devnet:
        devnet.up()
        yield devnet


@pytest.fixture(scope="session")
def stories(devnet: Devnet, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Story]:
    """What was seen of each fault; it happens once for all tests of it, also where that goes wrong."""
    begun: set[str] = set()

    @cache
    def story_of(fault: str) -> Story:
        if fault in begun:
            pytest.fail("the first test of this fault says what went wrong")
        begun.add(fault)
        return told(devnet, fault, tmp_path_factory.mktemp("story"))

    return story_of


@pytest.fixture(scope="session")
def calm(devnet: Devnet) -> Calm:
    """What was seen of nodes without faults."""
    return calm_of(devnet)


@pytest.fixture
def story(request: pytest.FixtureRequest, stories: Callable[[str], Story]) -> Story:
    """The story of the fault that is the parameter."""
    return stories(request.param)


@pytest.fixture
def healthy_devnet(devnet: Devnet) -> Devnet:
    """The devnet with all faults of earlier tests undone: three nodes on the same new head."""
    devnet.heal()
    return devnet
