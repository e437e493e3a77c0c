"""Acceptance tests run in virtual time, once on asyncio and once on trio, unless a module says otherwise."""

from typing import Any

import pytest

pytest.register_assert_rewrite("tests.acceptance.harness")


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend
