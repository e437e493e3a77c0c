"""The benchmark of topics runs and finds what it looks for; how fast is measured by `scripts/bench`, not by tests."""

import pytest

from scripts.benchmarks.topics_clients import SAMPLED, measure
from scripts.benchmarks.topics_server import NODES, Plan


@pytest.mark.parametrize("client", ["facade", "aiohttp"])
def test_each_client_has_every_attestation_once_and_heads(client: str) -> None:
    """Three nodes tell of them, each in its own spelling."""
    found = measure(client, Plan(1, 1.0, 64, 0.5, together=client == "facade"))
    assert (found.sent, found.received, found.told, found.dropped) == (64, NODES * 64, 64, 0)
    assert len(found.votes) == 64 // SAMPLED
    assert found.heads
    assert all(0 < delay < 5e6 for delay in (*found.heads, *found.votes))
    assert len(found.memory) == 2
    assert 0 < found.busy < 1
