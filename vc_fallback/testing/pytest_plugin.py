"""Fixtures for pytest, loaded by its entry point wherever this package is installed; imports little until used."""

import inspect
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from vc_fallback.testing.devnet import SimulatedDevnet


@pytest.fixture(params=["asyncio", "trio"])
def virtual_time_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Run the test in virtual time, once on asyncio and once on trio (skipped where trio is not installed).

    Make it the backend of anyio's pytest plugin in a module, a class or a `conftest.py`::

        pytestmark = pytest.mark.anyio

        @pytest.fixture
        def anyio_backend(virtual_time_backend):
            return virtual_time_backend

    A test that waits for what never comes fails after a day of virtual time (at once where no timer is left).
    """
    from vc_fallback.testing import virtual_time

    if request.param == "trio":
        pytest.importorskip("trio")
    return virtual_time.virtual_time_backend(request.param)


@pytest.fixture
def simulated_devnet() -> "Callable[..., AbstractAsyncContextManager[SimulatedDevnet]]":
    """Make simulated devnets: :func:`vc_fallback.testing.simulated_devnet`, with its parameters::

    async def test_follows_the_head(simulated_devnet):
        async with simulated_devnet(3, slot_duration=12) as net:
            ...
    """
    from vc_fallback.testing import devnet

    return devnet.simulated_devnet


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Limit the virtual time of tests that use :func:`virtual_time_backend`."""
    test = pyfuncitem.obj
    if "virtual_time_backend" not in pyfuncitem.funcargs or not inspect.iscoroutinefunction(test):
        return (yield)
    from vc_fallback.testing import virtual_time

    pyfuncitem.obj = virtual_time.time_limited(test)
    try:
        return (yield)
    finally:
        pyfuncitem.obj = test
