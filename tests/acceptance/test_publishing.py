"""Publishing through the facade, on simulated nodes: what is sent, and what becomes of it (Q2a, Q5, Q10, Q12)."""

import json
import logging
from typing import Any

import anyio
import pytest

from tests.acceptance.held import SYNC_MESSAGES, held, messages, node_id, sent, to_next_slot
from vc_fallback import DeadlineExceeded, Encodings, NotPublished, Outcome
from vc_fallback.base.health import HealthState
from vc_fallback.node import failures
from vc_fallback.testing import Cut, Delay, Refusal, simulated_devnet

pytestmark = pytest.mark.anyio

SLOT = 12.0


async def test_it_returns_on_the_first_accept_and_the_report_fills_in() -> None:
    """Scenario 47: one takes it in 20 ms, one takes 5 s, one is down."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        fast, slow, dead = net
        await to_next_slot(nodes)
        fast.inject(SYNC_MESSAGES, Delay(0.02))
        slow.inject(SYNC_MESSAGES, Delay(5.0))
        await dead.kill()
        began = anyio.current_time()
        result = await nodes.publish_sync_committee_messages(messages(nodes, net.chain))
        assert anyio.current_time() - began == pytest.approx(0.02)
        assert result.accepted == (node_id(fast),)
        assert result.pending == (node_id(slow),)
        assert isinstance(result.deliveries[node_id(dead)].error, failures.ConnectError)
        await result.settled()
        assert anyio.current_time() - began == pytest.approx(5.0)
        assert {*result.accepted} == {node_id(fast), node_id(slow)}
        assert nodes.status().nodes[1].stragglers == 0


async def test_who_never_answers_is_given_up_at_the_end_of_the_slot() -> None:
    """Scenario 47, Q2: it may have taken it, which is said."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        slot = await to_next_slot(nodes)
        net[1].hang(SYNC_MESSAGES)
        result = await nodes.publish_sync_committee_messages(messages(nodes, net.chain))
        assert result.pending == (node_id(net[1]),)
        await result.settled()
        assert nodes.slots is not None
        assert anyio.current_time() == pytest.approx(nodes.slots.start_of(slot) + SLOT, abs=0.01)
        late = result.deliveries[node_id(net[1])]
        assert isinstance(late.error, failures.RequestTimeout)
        assert (late.begun, late.attempts) == (True, 1)


async def test_stragglers_end_with_the_facade() -> None:
    """Q5, rule 5: at that moment, and their result says so."""
    async with simulated_devnet(2) as net:
        async with held(net) as nodes:
            await to_next_slot(nodes)
            net[1].hang(SYNC_MESSAGES)
            result = await nodes.publish_sync_committee_messages(messages(nodes, net.chain))
            left = anyio.current_time()
        assert anyio.current_time() - left < 1.0
        assert result.pending == ()
        assert "as the program ends; it may have been taken" in result.words


async def test_all_nodes_get_the_same_bytes_in_the_form_that_they_take() -> None:
    """Q2a, Q10, case 56: 415 on SSZ is followed by JSON on the same node, which is reported and remembered."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        net[1].manners.ssz = False
        for node in net:
            node.manners.checks = "none"
        values = [Encodings(ssz=bytes([n]) * 240, json=json.dumps({"n": n}).encode()) for n in range(3)]
        path = "/eth/v2/beacon/pool/attestations"
        for turn in (1, 2):
            result = await nodes.publish_attestations(values, "fulu")
            await result.settled()
            assert {*result.accepted} == {*map(node_id, net)}
            attempts = [result.deliveries[node_id(node)].attempts for node in net]
            assert attempts == ([1, 2, 1] if turn == 1 else [1, 1, 1])
        in_ssz, in_json = b"".join(value.ssz or b"" for value in values), b'[{"n": 0},{"n": 1},{"n": 2}]'
        assert sent(net[0], path) == sent(net[2], path) == [in_ssz, in_ssz]
        assert sent(net[1], path) == [in_ssz, in_json, in_json]


async def test_who_takes_only_the_form_that_was_not_given_costs_nobody_else() -> None:
    """Q2a: that node answers `UnsupportedMediaType`, which is no failure of it."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        net[0].manners.ssz = False
        net[1].manners.checks = "none"
        result = await nodes.publish_attestations([Encodings(ssz=bytes(240))], "fulu")
        await result.settled()
        assert (result.accepted, result.refused) == ((node_id(net[1]),), (node_id(net[0]),))
        assert isinstance(result.deliveries[node_id(net[0])].error, failures.UnsupportedMediaType)
        assert nodes.heads.health(node_id(net[0])).state is HealthState.HEALTHY


async def test_a_kept_connection_that_died_is_replaced_once_and_reported() -> None:
    """Q10: byte-identical, on a new connection; nothing else is sent again by itself."""
    async with simulated_devnet(1) as net, held(net) as nodes:
        (node,) = net
        await to_next_slot(nodes)
        values = messages(nodes, net.chain, 2)
        node.inject(SYNC_MESSAGES, Cut(after=0), times=1)
        result = await nodes.publish_sync_committee_messages(values)
        assert [d.attempts for d in result.deliveries.values()] == [2]
        first, second = sent(node)
        assert first == second
        # It had been taken by then, which the node says of the repeat: that is no success by itself.
        node.inject(SYNC_MESSAGES, Refusal("broken", status=500), times=1)
        with pytest.raises(NotPublished):
            await nodes.publish_sync_committee_messages(values)
        assert len(sent(node)) == 3


async def test_what_one_node_refuses_and_another_takes_is_accepted() -> None:
    """Q12, case 60: all nodes get all items at once, so a refused one has gone to the others already, and is not sent
    again; a duplicate counts beside an accept."""
    async with simulated_devnet(3) as net, held(net) as nodes:
        for node in net:
            node.manners.duplicates = "failures"
        await to_next_slot(nodes)
        values = messages(nodes, net.chain, 5)
        net[2].hang(SYNC_MESSAGES)
        with net[1].inject(SYNC_MESSAGES, Refusal("no", items=(0, 1, 2, 4))):
            await nodes.scoped(node_id(net[0])).publish_sync_committee_messages(values[3:4])
            net[0].inject(SYNC_MESSAGES, Refusal("unknown block", items=(0,)))
            result = await nodes.publish_sync_committee_messages(values)
        assert result.by_item == (Outcome.REFUSED, *[Outcome.ACCEPTED] * 4)
        await result.settled()
        assert result.by_item == (Outcome.REFUSED, *[Outcome.ACCEPTED] * 4)
        assert (result.missed, result.complete) == ((0,), False)
        assert [len(sent(node)) for node in net] == [2, 1, 1]


async def test_an_item_that_the_first_refuses_is_accepted_by_the_second() -> None:
    """Q12, case 60: the call waits for it."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        await to_next_slot(nodes)
        net[0].inject(SYNC_MESSAGES, Refusal("unknown block", items=(0, 2)))
        net[1].inject(SYNC_MESSAGES, Delay(1.0))
        began = anyio.current_time()
        result = await nodes.publish_sync_committee_messages(messages(nodes, net.chain, 3))
        assert anyio.current_time() - began == pytest.approx(1.0)
        assert (result.complete, result.missed) == (True, ())
        assert result.partly == (node_id(net[0]),)
        assert result.reasons(0) == {node_id(net[0]): "unknown block"}


async def test_where_no_node_takes_it_an_error_says_what_each_said() -> None:
    """Rule 8; and no health is lost by a refusal (case 39, rule 10)."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        await to_next_slot(nodes)
        for node in net:
            node.inject(SYNC_MESSAGES, Refusal("invalid signature"))
        for _ in range(8):
            with pytest.raises(NotPublished, match=r"bn.: refused: .*invalid signature.*; bn.: refused") as caught:
                await nodes.publish_sync_committee_messages(messages(nodes, net.chain, 2))
        assert {*caught.value.errors} == {*map(node_id, net)}
        assert {status.state for status in nodes.status().nodes} == {HealthState.HEALTHY}
        assert not any(status.suspect for status in nodes.status().nodes)


async def test_known_everywhere_and_taken_by_nobody_is_uncertain(caplog: pytest.LogCaptureFixture) -> None:
    """Q5, case 62: no success, and a warning."""
    caplog.set_level(logging.WARNING, "vc_fallback.routing")
    async with simulated_devnet(2) as net, held(net) as nodes:
        for node in net:
            node.manners.duplicates = "failures"
        await to_next_slot(nodes)
        values = messages(nodes, net.chain)
        assert (await nodes.publish_sync_committee_messages(values)).complete
        await anyio.sleep(0.1)
        for _ in range(3):
            result = await nodes.publish_sync_committee_messages(values)
            assert (result.outcome, result.complete) == (Outcome.UNCERTAIN, False)
            assert {*result.already_known} == {*map(node_id, net)}
        assert len([text for text in caplog.messages if "none took it" in text]) == 2  # number 1 and 2 in a row


async def test_an_error_beside_a_success_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Case 55: a duplicate hidden behind another text; number 1, 2, 4 … in a row."""
    caplog.set_level(logging.WARNING, "vc_fallback.routing")
    async with simulated_devnet(2) as net, held(net) as nodes:
        path = "/eth/v2/beacon/pool/attestations"
        net[0].manners.checks = "none"
        net[1].answer(path, 400, b'{"code":400,"message":"BAD_REQUEST: Unsupported endpoint version: v1"}')
        for _ in range(6):
            result = await nodes.publish_attestations([Encodings(json=b"{}")], "deneb")
            assert result.complete
            await result.settled()
        warnings = [text for text in caplog.messages if "bn2: refused" in text]
        assert len(warnings) == 3
        assert nodes.heads.health(node_id(net[1])).state is HealthState.HEALTHY


async def test_a_strict_node_takes_publishes() -> None:
    """Case 57: what is published accepts JSON, and one that answers 406 all the same is not marked down."""
    async with simulated_devnet(2, framings=("prysm", "lighthouse")) as net, held(net) as nodes:
        assert net[0].manners.strict_accept
        net[1].inject(SYNC_MESSAGES, Refusal("Not Acceptable", status=406))
        await to_next_slot(nodes)
        result = await nodes.publish_sync_committee_messages(messages(nodes, net.chain))
        await result.settled()
        assert result.accepted == (node_id(net[0]),)
        assert isinstance(result.deliveries[node_id(net[1])].error, failures.NotAcceptable)
        status = nodes.status().nodes[1]
        assert (status.state, status.suspect) == (HealthState.HEALTHY, "")


@pytest.mark.parametrize("stragglers", [8, None])
async def test_a_hung_secondary_never_holds_more_than_its_bound(stragglers: int | None) -> None:
    """Case 28, Q5: hundreds of publishes at the pace of the node that is well, and the hung one still answers reads."""
    settings: dict[str, Any] = {} if stragglers is None else {"requests": {"stragglers": stragglers}}
    async with simulated_devnet(2) as net, held(net, **settings) as nodes:
        well, hung = net
        hung.hang(SYNC_MESSAGES)
        well.inject(SYNC_MESSAGES, Delay(0.01))
        bound = nodes._runner.most_stragglers
        most = 0
        await to_next_slot(nodes)
        began = anyio.current_time()
        for _ in range(300):
            result = await nodes.publish_sync_committee_messages(messages(nodes, net.chain, 1))
            assert result.accepted or result.already_known or result.complete
            most = max(most, nodes.status().nodes[1].stragglers)
            assert hung.connections <= bound + 4
        assert anyio.current_time() - began == pytest.approx(300 * 0.01, rel=0.2)
        assert most == bound // 2
        assert hung.connections <= bound // 2 + 3
        asked = anyio.current_time()
        await nodes.scoped(node_id(hung)).genesis()
        assert anyio.current_time() - asked < 0.1
        await to_next_slot(nodes)
        assert nodes.status().nodes[1].stragglers == 0


@pytest.mark.parametrize("wrong", [[], [Encodings(ssz=b"x"), Encodings(json=b"{}")]])
async def test_what_can_be_seen_to_be_wrong_is_sent_to_nobody(wrong: list[Encodings]) -> None:
    """Q3: a `ValueError`, whoever would have taken it."""
    async with simulated_devnet(2) as net, held(net) as nodes:
        with pytest.raises(ValueError, match=r"empty list|no list"):
            await nodes.publish_attestations(wrong, "fulu")
        with pytest.raises(DeadlineExceeded):
            await nodes.publish_sync_committee_messages(messages(nodes, net.chain), deadline=anyio.current_time() - 1)
        assert not any(node.published for node in net)
