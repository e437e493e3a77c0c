"""In which turn nodes are told what they are to be ready for: fee recipients first, and nothing holds up what is signed
(Q2, Q5, Q14)."""

from typing import Any

import anyio
import pytest

from tests.acceptance.held import held, messages, node_id, slot_of, to_next_slot
from tests.acceptance.preparations import (
    COMMITTEES,
    PROPOSERS,
    REGISTRATIONS,
    committee,
    forget,
    preparation,
    recipients,
    registration,
    told,
)
from vc_fallback import Encodings
from vc_fallback.routing.calls.preparing import Overtaken
from vc_fallback.routing.preparations import PROPOSERS as KIND
from vc_fallback.routing.preparations import Kind
from vc_fallback.testing import Delay, simulated_devnet

pytestmark = pytest.mark.anyio

SLOT = 12.0


@pytest.mark.parametrize("fault", ["not ready", "hung"])
async def test_a_node_that_came_back_knows_whom_to_pay_whatever_its_relays_do(fault: str) -> None:
    """Q14: the rest is told in its fixed order, and only what failed is told again, more and more seldom."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        net[0].manners.checks = net[1].manners.checks = "none"
        await to_next_slot(nodes)
        await (await nodes.register_validators([registration(1)])).settled()
        await (await nodes.subscribe_beacon_committees([committee(1, slot_of(nodes) + 100)])).settled()
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        await net[1].kill()
        forget(net[1])
        await anyio.sleep(20)
        if fault == "hung":
            net[1].hang(REGISTRATIONS)
        else:
            net[1].answer(REGISTRATIONS, 503)
        since = len(net[1].requests)
        net[1].restart()
        await anyio.sleep(2 * SLOT)
        assert recipients(net[1]) == {1: 1}
        await anyio.sleep(28 * SLOT)
        paths = [one.path for one in [*net[1].requests][since:] if one.path in (PROPOSERS, COMMITTEES, REGISTRATIONS)]
        assert paths[:3] == [PROPOSERS, COMMITTEES, REGISTRATIONS]
        assert 5 <= paths.count(REGISTRATIONS) <= 9
        assert paths.count(PROPOSERS) <= 3
        net[1].heal()
        await anyio.sleep(10 * SLOT)
        assert len(told(net[1], REGISTRATIONS)) >= 2


async def test_a_list_that_no_request_can_be_made_of_is_the_callers_alone() -> None:
    """Q2a, Q14: it is not kept, and whom to pay is told again all the same."""
    async with simulated_devnet(1) as net, held(net) as nodes:
        mixed = [Encodings(json=b"{}"), Encodings(ssz=b"x")]
        with pytest.raises(ValueError, match="some as JSON alone"):
            await nodes.register_validators(mixed)
        with pytest.raises(ValueError, match="some as JSON alone"):
            await nodes.submit_proposer_preferences(mixed, "gloas")
        with pytest.raises(ValueError, match="name of a fork"):
            await nodes.submit_proposer_preferences([Encodings(ssz=b"x")], " ")
        assert nodes.status().remembered == {}
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        forget(net[0])
        net[0].end_streams()
        await anyio.sleep(SLOT)
        assert recipients(net[0]) == {1: 1}


@pytest.mark.parametrize("error", [ValueError, LookupError])
async def test_what_proves_wrong_when_it_is_told_again_keeps_the_rest_from_nobody(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Q14: of what no request can be made that is left out; after any other mistake the node is told again."""
    async with simulated_devnet(1) as net, held(net, mistakes=True) as nodes:
        net[0].manners.checks = "none"
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        await (await nodes.register_validators([registration(1)])).settled()
        requests = nodes._preparations.requests
        faults = 1

        def faulty(kind: Kind) -> list[Any]:
            nonlocal faults
            if faults and kind == KIND:
                faults -= 1

                async def fail(*_: object) -> object:
                    raise error("wrong")

                return [(fail, [1])]
            return requests(kind)

        monkeypatch.setattr(nodes._preparations, "requests", faulty)
        net[0].end_streams()
        await anyio.sleep(2 * SLOT)
        assert faults == 0
        assert len(told(net[0], REGISTRATIONS)) == 2
        assert len(told(net[0])) == (1 if error is ValueError else 2)


async def test_slow_relays_take_no_turn_from_signed_messages() -> None:
    """Q2, Q5, case 28: nor do they count as messages that are still under way."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        for node in net:
            node.inject(REGISTRATIONS, Delay(20.0))
        await to_next_slot(nodes)
        for index in range(100):
            await nodes.register_validators([registration(index)])
        await anyio.sleep(0.1)
        for node in net:
            assert len([one for one in node.requests if one.path == REGISTRATIONS]) == 1
        result = await nodes.publish_sync_committee_messages(messages(nodes, net.chain))
        await result.settled()
        assert {*result.accepted} == {*map(node_id, net)}
        assert [status.stragglers for status in nodes.status().nodes] == [0, 0]
        await (await nodes.prepare_beacon_proposer([preparation(1)])).settled()
        assert [recipients(node) for node in net] == [{1: 1}] * 2
        await anyio.sleep(2 * SLOT)


async def test_of_two_calls_in_a_row_a_node_ends_with_the_newer() -> None:
    """Q14: whichever is longer under way; what is overtaken before its turn is not sent any more."""
    async with simulated_devnet(1) as net, held(net) as nodes:
        await to_next_slot(nodes)
        net[0].inject(PROPOSERS, Delay(2.0), times=1)
        results = []
        for fee in (1, 2, 3):
            results.append(await nodes.prepare_beacon_proposer([preparation(1, fee)]))
            await anyio.sleep(0.5)
        other = await nodes.prepare_beacon_proposer([preparation(2, 4)])
        for result in (*results, other):
            await result.settled()
        assert recipients(net[0]) == {1: 3, 2: 4}
        assert [result.accepted != () for result in (*results, other)] == [True, False, True, True]
        assert isinstance(results[1].deliveries[node_id(net[0])].error, Overtaken)
        await anyio.sleep(3 * SLOT)
        assert len(told(net[0])) == 3
