"""A name whose lookup hangs costs itself, and no other name (rule 4): the real threads of both backends."""

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from vc_fallback.wire.dial import MOST_QUESTIONS, SystemResolver

pytestmark = pytest.mark.anyio


class Names:
    """Answers in the place of the system: one name hangs until it is let go."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.let_go = threading.Event()

    def __call__(self, host: str, port: int, **_: Any) -> list[Any]:
        self.asked[host] += 1
        if host == "hangs.test":
            self.let_go.wait(20)
            raise socket.gaierror(socket.EAI_AGAIN, "try again")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    """The names, which all are let go at the end."""
    found = Names()
    monkeypatch.setattr(socket, "getaddrinfo", found)
    yield found
    found.let_go.set()


async def test_a_name_that_hangs_is_asked_for_twice_at_most_and_others_are_found(names: Names) -> None:
    """Whoever waited for it has gone long ago; its threads stay until the system has answered."""
    resolve = SystemResolver()
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(resolve, "hangs.test", 1)
        while names.asked["hangs.test"] < MOST_QUESTIONS:  # noqa: ASYNC110 - a thread asks
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    for _ in range(20):
        with pytest.raises(OSError, match="still being looked up"):
            await resolve("hangs.test", 1)
    assert names.asked["hangs.test"] == MOST_QUESTIONS
    with anyio.fail_after(5):
        assert await resolve("well.test", 2) == [(socket.AF_INET, ("127.0.0.1", 2))]


async def test_when_it_has_been_answered_it_is_asked_for_again(names: Names) -> None:
    """The node may have come to be known."""
    resolve = SystemResolver()
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(resolve, "hangs.test", 1)
        while names.asked["hangs.test"] < MOST_QUESTIONS:  # noqa: ASYNC110 - a thread asks
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    names.let_go.set()
    with anyio.fail_after(5):
        while True:
            try:
                await resolve("hangs.test", 1)
            except socket.gaierror:
                break
            except TimeoutError:
                await anyio.sleep(0.01)
    assert names.asked["hangs.test"] == MOST_QUESTIONS + 1


async def test_who_gives_up_before_it_was_asked_leaves_no_question(names: Names) -> None:
    """Or a name would be "still being looked up" for ever, though nobody has asked the system."""
    resolve = SystemResolver()
    names.let_go.set()
    for _ in range(2 * MOST_QUESTIONS):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await resolve("well.test", 1)
    assert names.asked["well.test"] == 0
    with anyio.fail_after(5):
        assert await resolve("well.test", 2) == [(socket.AF_INET, ("127.0.0.1", 2))]
