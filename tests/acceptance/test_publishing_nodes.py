"""Publishing to nodes of many kinds: old ones, strict ones, slow ones, through the facade (Q1, Q10, Q13; rule 10)."""

import anyio
import pytest

from tests.acceptance.held import BLOCKS, SYNC_MESSAGES, held, messages, node_id, sent, to_next_slot
from vc_fallback import Encodings, NotPublished
from vc_fallback.base.health import HealthState
from vc_fallback.node import failures
from vc_fallback.testing import MISSING_IN_LODESTAR_1_5, Delay, Refusal, simulated_devnet

pytestmark = pytest.mark.anyio

V1, V2 = "/eth/v1/beacon/pool/attestations", "/eth/v2/beacon/pool/attestations"
VOTE = Encodings(ssz=bytes(240), json=b'{"vote":1}')


async def test_an_older_node_gets_the_older_route_and_the_others_the_newer() -> None:
    """Q13, Q10: on the same node, reported as an attempt; from Electra on there is no older form to send."""
    async with simulated_devnet(2, forks={"deneb": 0}) as net, held(net) as nodes:
        net[1].manners.routes_missing = MISSING_IN_LODESTAR_1_5
        for node in net:
            node.manners.checks = "none"
        for attempts in (2, 1):
            result = await nodes.publish_attestations([VOTE], "deneb")
            await result.settled()
            assert {*result.accepted} == {*map(node_id, net)}
            assert result.deliveries[node_id(net[1])].attempts == attempts
        assert [len(sent(node, V2)) for node in net] == [2, 1]
        assert [len(sent(node, V1)) for node in net] == [0, 2]
        result = await nodes.publish_attestations([VOTE], "fulu")
        await result.settled()
        assert result.accepted == (node_id(net[0]),)
        assert isinstance(result.deliveries[node_id(net[1])].error, failures.UnsupportedEndpoint)
        assert nodes.status().nodes[1].state is HealthState.HEALTHY


@pytest.mark.parametrize("client", ["lighthouse", "prysm", "teku", "nimbus", "lodestar"])
async def test_a_duplicate_is_known_in_the_words_of_every_client(client: str) -> None:
    """Rule 8, case 55: an accept beside it makes it a success, and it says nothing of the node."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        await to_next_slot(nodes)
        net[1].manners.client = client  # type: ignore[assignment]
        net[1].manners.duplicates = "lodestar" if client == "lodestar" else "failures"
        values = messages(nodes, net.chain, 2)
        await nodes.scoped(node_id(net[1])).publish_sync_committee_messages(values)
        for _ in range(6):
            net[0].state.pool.known.clear()
            result = await nodes.publish_sync_committee_messages(values)
            await result.settled()
            assert (result.complete, result.accepted) == (True, (node_id(net[0]),))
        status = nodes.status().nodes[1]
        assert (status.state, status.suspect) == (HealthState.HEALTHY, "")


async def test_a_node_that_fails_at_publishes_loses_its_health_and_one_that_refuses_does_not() -> None:
    """Rule 10, N3: five errors in a minute."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        await to_next_slot(nodes)
        net[1].answer(SYNC_MESSAGES, 500, b'{"message":"database is locked"}')
        net[2].inject(SYNC_MESSAGES, Refusal("invalid signature"))
        for _ in range(6):
            await (await nodes.publish_sync_committee_messages(messages(nodes, net.chain))).settled()
            await anyio.sleep(1)
        states = {status.node: status.state for status in nodes.status().nodes}
        assert states == {
            node_id(net[0]): HealthState.HEALTHY,
            node_id(net[1]): HealthState.UNHEALTHY,
            node_id(net[2]): HealthState.HEALTHY,
        }


async def test_a_slow_secondary_costs_a_proposer_nothing() -> None:
    """Case 28: over an hour of slots every call is as fast as the node that is well, and nothing is left."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        for node in net:
            node.manners.checks = "none"
        net[1].inject(SYNC_MESSAGES, Delay(9.0))
        net[1].inject(BLOCKS, Delay(5.0))
        for _ in range(100):
            await to_next_slot(nodes, into=0.1)
            began = anyio.current_time()
            for _ in range(3):
                assert (await nodes.publish_sync_committee_messages([Encodings(json=b"{}")])).complete
            assert (await nodes.publish_block(Encodings(ssz=b"block"), "fulu")).complete
            assert anyio.current_time() - began < 0.05
            assert nodes.status().nodes[1].stragglers <= 4
        await anyio.sleep(12)
        assert len(sent(net[1])) == 300
        assert not nodes._runner._running


async def test_what_a_caller_does_with_an_error_is_all_in_it() -> None:
    """Rule 8: who said what, who is pending, and what still comes of it."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        await to_next_slot(nodes)
        net[0].inject(SYNC_MESSAGES, Refusal("invalid signature"))
        await net[1].kill()
        net[2].inject(SYNC_MESSAGES, Delay(3.0))
        with pytest.raises(NotPublished) as caught:
            await nodes.publish_sync_committee_messages(messages(nodes, net.chain), deadline=anyio.current_time() + 1)
        error = caught.value
        assert {name: type(problem) for name, problem in error.errors.items()} == {
            node_id(net[0]): failures.BadRequest,
            node_id(net[1]): failures.ConnectError,
        }
        assert error.result.pending == (node_id(net[2]),)
        await error.result.settled()
        assert error.result.accepted == (node_id(net[2]),)
