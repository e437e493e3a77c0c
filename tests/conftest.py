"""Every asynchronous test runs on asyncio and on trio; hypothesis gives the same examples at every run."""

import gc

import hypothesis
import pytest

hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.load_profile("repeatable")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Spare every collection of garbage the look at thousands of collected tests, which stay until the end anyway."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    return backend
