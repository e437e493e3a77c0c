"""Cases from the field that concern health, on simulated nodes (cases of kind c: 27–33, 36, 38–41, 43; 34)."""

import asyncio
import gc
import json
import time
from contextlib import suppress
from typing import Any

import anyio
import pytest

from tests.acceptance.generations import listed
from tests.acceptance.harness import Followed, announce, known, monitor
from vc_fallback.base.errors import NodeError
from vc_fallback.base.health import HealthReason, HealthState
from vc_fallback.base.health_signals import BranchesDiffer, ClockDoubted, FinalityDiffers, HealthChanged
from vc_fallback.base.signals import DependentRootChanged, NodeQuarantined
from vc_fallback.base.types import Epoch, NodeId, Root, Slot, root_hex
from vc_fallback.testing import REMOVED, Delay, Hang, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

SYNCING = "/eth/v1/node/syncing"
SPEC = "/eth/v1/config/spec"
FINALITY = "/eth/v1/beacon/states/head/finality_checkpoints"
DUTIES = "/eth/v1/validator/duties/sync/4"


async def ask(followed: Followed, node: SimulatedNode, times: int = 1, *, apart: float = 0.0) -> None:
    """Ask a node for something that is a duty's, whatever becomes of it."""
    for _ in range(times):
        with suppress(NodeError):
            await followed.client(node).sync_committee_duties(Epoch(4), [1], timeout=1.0)
        await anyio.sleep(apart)


# A node that is not there, or slow (27, 28).


@pytest.mark.parametrize("fault", ["refuses", "accepts and is silent"])
async def test_a_node_that_is_known_to_be_offline_is_tried_last(fault: str) -> None:
    """Case 27: after any other that answers, be that far behind or optimistic, and be the first a mere fallback."""
    async with simulated_devnet(3) as net, monitor(net, fallbacks=[net[2]]) as followed:
        first, second, third = net
        await followed.until(130.5)
        if fault == "refuses":
            await first.kill()
        else:
            first.freeze()
        second.cut_off()
        third.state.optimistic = True
        await followed.until(150.5)
        assert followed.monitor.ranking()[-1] == "bn1"
        words = followed.monitor.explain(NodeId("bn1"))
        assert "a primary that does not answer" in words
        assert words.endswith("it recovers at the first check that it answers")


async def test_checks_of_a_node_that_hangs_for_an_hour_do_not_pile_up() -> None:
    """Case 28, rule 6: one at a time, ever less often; connections and tasks are as many as before."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        hung = net[0]
        await followed.until(130.5)
        tasks = len(anyio.get_running_tasks())
        before = hung.request_counts[SYNCING]
        hung.hang(SYNCING)
        most = 0
        for slot in range(131, 431):
            await followed.until(slot + 0.95)
            most = max(most, len(anyio.get_running_tasks()))
        assert most <= tasks + 4
        assert hung.connections <= 5
        # 3600 s: 2, 2, 2, 4, 8, 16, 32 s, and then one a minute.
        assert hung.request_counts[SYNCING] - before <= 8 + 3600 / 48
        assert {turn.node_id for turn in followed.health_turns()} == {"bn1"}


@pytest.mark.parametrize("path", ["/eth/v1/node/peer_count", FINALITY])
async def test_what_checks_ask_besides_costs_a_node_nothing(path: str) -> None:
    """N9, N3: it never answers that; it is not suspect for it, nor less steady, nor checked later."""
    async with simulated_devnet(2) as net:
        first = net[0]
        first.hang(path)
        async with monitor(net) as followed:
            await followed.until(145.5)
            assert not any(change.suspect for change in followed.told(HealthChanged))
            assert followed.monitor.order() == ("bn1", "bn2")
            assert first.request_counts[SYNCING] == 2 + 17
            assert first.request_counts[path] == pytest.approx(5, abs=1)


ANSWERS_BESIDE = {
    "peers as a negative number": ("/eth/v1/node/peer_count", 200, '{"data":{"connected":"-1"}}'),
    "peers as a list": ("/eth/v1/node/peer_count", 200, '{"data":[]}'),
    "peers of 65 bits": ("/eth/v1/node/peer_count", 200, '{"data":{"connected":"18446744073709551616"}}'),
    "peers 500": ("/eth/v1/node/peer_count", 500, ""),
    "finality without epochs": (FINALITY, 200, '{"data":{"finalized":{"root":"0x00"}}}'),
    "finality as a text": (FINALITY, 200, '{"data":"none"}'),
    "finality 404": (FINALITY, 404, '{"code":404,"message":"NOT_FOUND"}'),
    "finality 503": (FINALITY, 503, ""),
}


@pytest.mark.parametrize("name", ANSWERS_BESIDE)
async def test_nonsense_beside_a_check_is_nothing_known(name: str) -> None:
    """Bad input; N9, N3: it is unknown then, and neither health nor rank speaks of it."""
    path, status, body = ANSWERS_BESIDE[name]
    async with simulated_devnet(2) as net:
        first = net[0]
        first.answer(path, status, body)
        async with monitor(net) as followed:
            await followed.until(140.5)
            verdict = followed.health(first)
            assert (verdict.finalized if path == FINALITY else verdict.peers) is None
            assert not any(change.suspect for change in followed.told(HealthChanged))
            assert followed.monitor.order() == ("bn1", "bn2")


# How far it is, by whose word (29, 30).


async def test_the_first_in_the_list_is_not_synced_by_its_own_word() -> None:
    """Case 29: as it is quoted there; the worse of its word and our reckoning counts."""
    async with simulated_devnet(2) as net:
        first = net[0]
        body = '{"data":{"head_slot":"128","sync_distance":"178","is_syncing":true,"is_optimistic":false}}'
        first.answer(SYNCING, 200, body)
        first.silence()
        async with monitor(net) as followed:
            await followed.until(128.9)
            assert followed.monitor.order() == ("bn2", "bn1")
            assert "178 slots behind by its own word" in followed.monitor.explain(NodeId("bn1"))
            assert not followed.health_turns(), "by the tip it is not behind, and it answers"


async def test_a_node_that_calls_itself_synced_is_as_far_behind_as_the_others_show() -> None:
    """Case 29 (it reports synced for eight epochs): the worse of its word and our reckoning counts."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        first.override(SYNCING, sync_distance="0", is_syncing=False)
        first.cut_off()
        await followed.until(132.95)
        verdict = followed.health(first)
        assert (verdict.state, verdict.lag, verdict.sync_distance) == (HealthState.HEALTHY, 2, 2)
        assert followed.monitor.order() == ("bn2", "bn3", "bn1")
        assert "2 slots behind the tip" in followed.monitor.explain(NodeId("bn1"))
        await followed.until(139.95)
        assert followed.health(first).reason is HealthReason.BEHIND


async def test_nodes_that_lag_stand_by_how_far_and_those_alike_by_the_list() -> None:
    """Case 29, N6: synced, a little behind, behind, far behind; user order inside each of them."""
    async with simulated_devnet(7) as net, monitor(net, health={"max_lag": 1000}) as followed:
        for node, distance in zip(net, (70, 17, 9, 64, 16, 0, 0), strict=True):
            if distance:
                node.cut_off()
                node.override(SYNCING, head_slot="128", sync_distance=str(distance), is_syncing=True)
        await followed.until(128.95)
        assert followed.monitor.ranking() == ("bn6", "bn7", "bn3", "bn5", "bn2", "bn4", "bn1")
        assert not followed.health_turns()


async def test_an_execution_layer_that_is_said_to_be_offline_excludes_nobody() -> None:
    """Case 30, N6: last of its tier; where all say so the first is the first; a missing key is unknown."""
    async with simulated_devnet(3) as net:
        first, second, third = net
        second.state.el_offline = None
        async with monitor(net, fallbacks=[third]) as followed:
            await followed.until(130.5)
            first.state.el_offline = True
            await followed.until(131.9)
            assert followed.monitor.ranking() == ("bn2", "bn1", "bn3")
            assert followed.health(second).el_offline is None
            second.state.el_offline = third.state.el_offline = True
            await followed.until(132.9)
            assert followed.monitor.ranking() == ("bn1", "bn2", "bn3")
            assert not followed.health_turns()
            assert followed.monitor.cache.book.usable(NodeId("bn1"))


async def test_duties_that_fail_for_an_optimistic_head_count_against_a_node_that_calls_itself_well() -> None:
    """Case 30: real duty failures feed back into the rank, in the words of the client that said them."""
    text = "UNHANDLED_ERROR: HeadBlockNotFullyVerified { beacon_block_root: 0xaa, execution_status: Optimistic(0xbb) }"
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        first.answer(DUTIES, 500, json.dumps({"code": 500, "message": text, "stacktraces": []}))
        await ask(followed, first, 5, apart=3.0)
        (turn,) = followed.health_turns()
        assert (turn.node_id, turn.reason) == ("bn1", HealthReason.ERRORS)
        assert followed.monitor.order() == ("bn2", "bn1")


# What it says by turns (31, 46).


async def test_dependent_roots_of_a_node_that_flaps_change_nothing() -> None:
    """Case 31, C11: optimistic by turns, it names A, B, A, C for one epoch; the other one is steady at A."""
    async with simulated_devnet(2, slots_per_epoch=8) as net, monitor(net) as followed:
        steady, flapping = net
        await followed.until(41.5)
        wrong = ["0x" + letter * 64 for letter in "bc"]
        count, shown = 0, set[Root | None]()
        while followed.now < 47.4:
            count += 1
            flapping.state.optimistic = count % 2 == 0
            changed = {"current_duty_dependent_root": wrong[count // 2 % 2]} if count % 2 else {}
            announce(flapping, flapping.head, execution_optimistic=flapping.state.optimistic, **changed)
            await anyio.sleep(0.1)
            entry = followed.entry(flapping)
            assert entry is not None
            shown.add(entry.next_epoch_dependent_root)
            await anyio.sleep(2.9)
        assert followed.told(DependentRootChanged) == []
        named = net.chain.duty_roots(steady.head)
        assert {root_hex(root) for root in shown if root} == {root_hex(named.next_epoch), *wrong}
        assert followed.monitor.dependent_root(Epoch(6)) == named.next_epoch


# What it is configured with (32, 33, 34).


async def test_a_fork_to_come_that_a_node_has_not_scheduled(caplog: pytest.LogCaptureFixture) -> None:
    """Case 33, N7: a warning now, and it does not count when the epoch comes; scheduled meanwhile, it stays."""
    fork: dict[str, object] = {"GLOAS_FORK_EPOCH": "6", "GLOAS_FORK_VERSION": "0x70000000"}
    async with simulated_devnet(3, slots_per_epoch=8) as net:
        first, second, third = net
        first.override(SPEC, **fork)
        async with monitor(net) as followed:
            await followed.until(34.5)
            warned = [record.getMessage() for record in caplog.records if "has not scheduled" in record.getMessage()]
            assert sorted(warned) == [
                f"bn{number}: has not scheduled gloas at epoch 6: it does not count from then on" for number in (2, 3)
            ]
            assert not followed.told(NodeQuarantined)
            second.override(SPEC, **fork)
            second.end_streams()
            await followed.until(47.9)
            assert followed.monitor.ranking() == ("bn1", "bn2", "bn3")
            await followed.until(48.2)
            (left,) = followed.told(NodeQuarantined)
            assert (left.node_id, left.mismatch) == ("bn3", "current fork differs")
            assert followed.monitor.ranking() == ("bn1", "bn2")
            # It is updated at last, and asked every four slots.
            third.override(SPEC, **fork)
            await followed.until(55.5)
            assert followed.monitor.ranking() == ("bn1", "bn2", "bn3")


async def test_a_fork_that_all_nodes_learn_of_while_we_run_puts_nobody_out() -> None:
    """Case 33, N7: the chain was pinned before any of them had scheduled it, and two of them follow only afterwards."""
    fork: dict[str, object] = {"GLOAS_FORK_EPOCH": "6", "GLOAS_FORK_VERSION": "0x70000000"}
    async with simulated_devnet(3, slots_per_epoch=8) as net, monitor(net) as followed:
        first, *others = net
        await followed.until(41.5)
        first.override(SPEC, **fork)
        first.end_streams()
        await followed.until(44.5)
        assert followed.monitor.slots is not None
        assert [held.name for held in followed.monitor.slots.chain.forks][-1] == "gloas"
        for node in others:
            node.override(SPEC, **fork)
            node.end_streams()
        await followed.until(60.5)
        assert not followed.told(NodeQuarantined)
        assert followed.monitor.ranking() == ("bn1", "bn2", "bn3")


async def test_a_configured_network_takes_its_forks_from_the_nodes() -> None:
    """I1, N7: a node of another current fork is found out against the majority of the others."""
    async with simulated_devnet(3, slots_per_epoch=8) as net:
        net[0].override(SPEC, FULU_FORK_VERSION="0x06ffffff")
        async with monitor(net, chain=known(net.chain)) as followed:
            await followed.until(34.5)
            assert [(left.node_id, left.mismatch) for left in followed.told(NodeQuarantined)] == [
                ("bn1", "current fork differs")
            ]
            assert followed.monitor.ranking() == ("bn2", "bn3")
            followed.assert_every_slot_delivered(33, 34)


async def test_a_spec_that_holds_anything_changes_no_health() -> None:
    """Cases 33 and 34: lists, missing keys, other values of keys that are not used."""
    async with simulated_devnet(3) as net:
        first, second, third = net
        first.override(SPEC, BLOB_SCHEDULE=[{"EPOCH": "512", "MAX_BLOBS_PER_BLOCK": "12"}], GAS_LIMIT_SCHEDULE=[])
        second.override(SPEC, PAYLOAD_DUE_BPS="7500", DEPOSIT_CONTRACT_ADDRESS=REMOVED, MAX_BLOBS_PER_BLOCK={})
        third.override(SPEC, CONFIG_NAME=None, GLOAS_FORK_EPOCH="18446744073709551615")
        async with monitor(net) as followed:
            await followed.until(135.5)
            assert followed.monitor.ranking() == ("bn1", "bn2", "bn3")
            assert not followed.health_turns()
            assert not followed.told(NodeQuarantined)


# At the start, and when the list changes (36, 38).


async def test_before_genesis_nodes_are_known_to_be_down_or_well_and_no_slot_has_a_turn() -> None:
    """Case 36, N2: 404 for the genesis is no mismatch; a node that is down is found down; then all is as ever."""
    async with simulated_devnet(3, start_slot=-5) as net:
        first, *_, last = net
        last.refuse()
        for node in net:
            node.answer(
                "/eth/v1/beacon/genesis", 404, '{"code":404,"message":"Beacon chain genesis has not yet been."}'
            )
        async with monitor(net) as followed:
            await followed.until(-0.5)
            assert followed.health(last).state is HealthState.UNHEALTHY
            assert followed.health(first).state is HealthState.HEALTHY
            assert followed.monitor.order() == ()
            assert not followed.monitor.cache.book.all_unhealthy
            for node in net:
                node.heal()
            await followed.until(4.95)
            assert followed.monitor.ranking() == ("bn1", "bn2", "bn3")
            assert {turn.node_id for turn in followed.health_turns()} == {"bn3"}


async def test_one_node_under_two_spellings_is_checked_and_ranked_once() -> None:
    """Case 38, G1: `http://bn1:5052` and `http://bn1:5052/`."""
    async with simulated_devnet(2) as net, monitor(net, extra=[{"url": f"{net[0].url}/"}]) as followed:
        await followed.until(131.95)
        assert followed.monitor.ranking() == ("bn1", "bn2")
        turns = [
            request
            for request in net[0].requests
            if request.path == SYNCING and followed.position(request.received) > 129
        ]
        assert len(turns) == 3


# Which errors count (39, 40).


NO: dict[str, tuple[int, str]] = {
    "a known block": (500, "BLOCK_ERROR_ALREADY_KNOWN"),
    "no aggregate": (404, "No aggregate available"),
    "our own mistake": (400, "BAD_REQUEST: invalid query: Invalid query string"),
    "a route that is not there": (405, "Method Not Allowed"),
}


@pytest.mark.parametrize("name", NO)
async def test_a_node_that_says_no_is_well(name: str) -> None:
    """Case 39, rule 10: thirty times in a minute; no gauge flickers."""
    status, text = NO[name]
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        begun = len(followed.signals)
        first.answer(DUTIES, status, json.dumps({"code": status, "message": text}))
        await ask(followed, first, 30, apart=2.0)
        assert first.request_counts[DUTIES] >= 1
        assert not followed.health_turns()
        assert not followed.health(first).suspect
        assert followed.monitor.order() == ("bn1", "bn2")
        assert not followed.told(ClockDoubted)
        assert len(followed.signals) > begun


@pytest.mark.parametrize("status", [500, 502, 401, 402, 403, 429])
async def test_a_node_that_is_not_able_is_left_after_five_errors_in_a_minute(status: int) -> None:
    """Cases 24 and 39, N3: by requests alone, while every check is good; and it comes back when they are old."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        first.answer(DUTIES, status, '{"code":1,"message":"no"}', times=5)
        await ask(followed, first, 4, apart=3.0)
        assert not followed.health_turns()
        await ask(followed, first)
        assert followed.health(first).reason is HealthReason.ERRORS
        assert followed.monitor.order() == ("bn2", "bn1")
        await followed.until(138.5)
        assert followed.health_states(first) == "unhealthy recovering healthy"


async def test_a_slot_that_a_node_says_is_in_the_future_is_a_clock_that_is_off() -> None:
    """N8: it is no error; the node is warned of at the end of the slot."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first = net[0]
        await followed.until(130.5)
        path = "/eth/v1/validator/attestation_data"
        first.answer(
            path,
            400,
            '{"code":400,"message":"BAD_REQUEST: request slot 130 is more than one slot past the current slot 128"}',
        )
        with pytest.raises(NodeError):
            await followed.client(first).attestation_data(Slot(130), timeout=1.0)
        await followed.until(131.5)
        (doubt,) = followed.told(ClockDoubted)
        assert (doubt.node_id, doubt.warning) == ("bn1", "says that our slots are in the future")
        assert followed.health(first).clock == doubt.warning
        assert not followed.health_turns()
        assert followed.monitor.order() == ("bn1", "bn2")


GOOD = {"head_slot": "128", "sync_distance": "0", "is_syncing": False, "is_optimistic": False, "el_offline": False}


def data(**changed: Any) -> str:
    """Return an answer of `node/syncing` with members changed, or left out where they are `REMOVED`."""
    members = {name: value for name, value in (GOOD | changed).items() if value is not REMOVED}
    return json.dumps({"data": members})


READ: dict[str, tuple[int, str]] = {
    "extra members": (200, data(weather="fine", more=[1, {"x": None}])),
    "no flags of later versions": (200, data(is_optimistic=REMOVED, el_offline=REMOVED)),
    "flags that are null": (200, data(is_optimistic=None, el_offline=None)),
    "numbers": (200, data(head_slot=128, sync_distance=0)),
    "206": (206, data()),
}
UNREAD: dict[str, tuple[int, str]] = {
    "no head slot": (200, data(head_slot=REMOVED)),
    "no distance": (200, data(sync_distance=REMOVED)),
    "no is_syncing": (200, data(is_syncing=REMOVED)),
    "flags that are texts": (200, data(is_syncing="false")),
    "flags that are numbers": (200, data(is_optimistic=0)),
    "members that are lists": (200, data(head_slot=["128"])),
    "data that is a list": (200, '{"data":[]}'),
    "data that is a text": (200, '{"data":"synced"}'),
    "a slot below 0": (200, data(head_slot="-1")),
    "a slot of 65 bits": (200, data(head_slot=str(2**64))),
    "a slot that is no number": (200, data(head_slot="1e3")),
    "floats": (200, data(sync_distance=0.5)),
    "nothing": (200, ""),
    "null": (200, "null"),
    "HTML": (200, "<html>welcome</html>"),
    "206 without a body": (206, ""),
    "503": (503, ""),
    "503 with words": (503, '{"code":503,"message":"syncing"}'),
    "500": (500, '{"code":500,"message":"database"}'),
    "500 with a good body": (500, data()),
    "404": (404, '{"code":404,"message":"no such route"}'),
    "204": (204, ""),
}


@pytest.mark.parametrize("name", READ)
async def test_answers_of_node_syncing_that_are_good_enough(name: str) -> None:
    """Case 40: what is not there is unknown; 206 is reachable, and how far it is its body says."""
    status, body = READ[name]
    async with simulated_devnet(2) as net:
        first = net[0]
        first.answer(SYNCING, status, body)
        async with monitor(net) as followed:
            await followed.until(130.5)
            verdict = followed.health(first)
            assert verdict.state is HealthState.HEALTHY
            assert verdict.detail == "answers checks"
            assert not followed.health_turns()


@pytest.mark.parametrize("name", UNREAD)
async def test_answers_of_node_syncing_that_are_none(name: str) -> None:
    """Case 40: any 5xx and any body that nobody can read is a failed check, with a reason, and costs nobody else."""
    status, body = UNREAD[name]
    async with simulated_devnet(2) as net:
        first, second = net
        first.answer(SYNCING, status, body)
        async with monitor(net) as followed:
            await followed.until(130.5)
            verdict = followed.health(first)
            assert (verdict.state, verdict.reason) == (HealthState.UNHEALTHY, HealthReason.CHECKS_FAILED)
            assert "failed checks in a row: " in verdict.detail
            assert len(verdict.detail.partition("row: ")[2]) > 2
            assert followed.health(second).state is HealthState.HEALTHY
            assert followed.monitor.order() == ("bn2", "bn1")
            # Its stream goes on, and so do its heads (rule 3).
            assert followed.healthy(first) is True


@pytest.mark.parametrize("slot", [0, 2**64 - 1, 150])
@pytest.mark.parametrize("distance", [0, 2**64 - 1])
async def test_heights_at_the_ends_of_what_can_be_said(slot: int, distance: int) -> None:
    """N5, N6: the beginning, the largest number, and beyond the clock; nobody else is moved by it."""
    async with simulated_devnet(3) as net:
        first = net[0]
        first.override(SYNCING, head_slot=str(slot), sync_distance=str(distance))
        first.answer("/eth/v1/beacon/headers/head", 500)
        first.silence()
        async with monitor(net, health={"most_errors": 10_000}) as followed:
            await followed.until(131.5)
            assert followed.monitor.ranking() == ("bn2", "bn3", "bn1")
            for node in net.nodes[1:]:
                assert followed.health(node).lag == 0
            verdict = followed.health(first)
            assert verdict.lag in ((130, 131) if slot == 0 else (None,))
            assert verdict.state is (HealthState.UNHEALTHY if slot == 0 else HealthState.HEALTHY)
            assert {turn.node_id for turn in followed.health_turns()} <= {"bn1"}


# When slots are missed (41).


async def test_missed_slots_and_then_a_stream_that_is_really_dead() -> None:
    """Case 41: five slots without a block are nobody's fault; a dead stream is found, and is no matter of health."""
    async with simulated_devnet(3) as net, monitor(net) as followed:
        net.chain.miss(*range(131, 136))
        await followed.until(136.5)
        followed.assert_undisturbed(*net)
        assert not followed.health_turns()
        assert followed.monitor.order() == ("bn1", "bn2", "bn3")
        net[0].vanish()
        await followed.until(142.5)
        assert followed.stalls(net[0]) or followed.ends(net[0])
        assert not followed.health_turns()


# On another branch (43).


async def test_one_of_three_on_a_branch_of_its_own() -> None:
    """Case 43, N3: shown at once, blamed after two slots, lowered within its tier only; finality is an alarm alone."""
    async with simulated_devnet(4, start_slot=40, slots_per_epoch=8) as net:
        alone, second, third, fallback = net
        net.chain.branch("other", above=42)
        for node, letter in ((alone, "a"), (second, "b"), (third, "b"), (fallback, "b")):
            node.override(FINALITY, finalized={"epoch": "3", "root": "0x" + letter * 64})
        async with monitor(net, fallbacks=[fallback]) as followed:
            await followed.until(43.05)
            alone.switch("other")
            await followed.until(44.05)
            assert followed.monitor.order()[0] == "bn1", "one slot is none"
            await followed.until(45.05)
            assert followed.monitor.ranking() == ("bn2", "bn3", "bn1", "bn4")
            assert followed.moves() == [("failover", "bn1", "bn2")]
            differ = followed.told(BranchesDiffer)
            blamed = [one for one in differ if one.blamed is not None]
            assert [(one.blamed, bool(one.reason)) for one in blamed] == [("bn1", True)]
            assert any(one.blamed is None and len(one.roots) == 2 for one in differ), "both are shown"
            assert root_hex(followed.block(44).root)[:10] in followed.health(alone).inconsistent
            assert not followed.health_turns()
            # Each node's own head and finality can be asked for.
            for node, letter, own in ((alone, "a", "other"), (second, "b", "main"), (fallback, "b", "main")):
                assert followed.health(node).finalized == (3, bytes.fromhex(letter * 64))
                entry = followed.entry(node)
                assert entry is not None
                assert entry.root == followed.block(44, own).root
            (alarm,) = followed.told(FinalityDiffers)
            assert alarm.epoch == 3
            assert sorted(map(len, alarm.roots.values())) in ([1, 1], [1, 2], [1, 3])
            # Each slot is delivered from one branch, not by turns.
            branch = [head.root == followed.block(head.slot, "other").root for head in followed.blocks(since=45)]
            assert not any(branch)
            alone.switch("main")
            await followed.until(48.05)
            assert followed.monitor.ranking()[0] == "bn1"
            assert followed.told(BranchesDiffer)[-1].reason == ""


async def test_of_two_on_two_branches_nobody_is_blamed() -> None:
    """Case 43, N3: both are shown, and duties stay where they are."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        net.chain.branch("other", above=129)
        await followed.until(129.5)
        net[1].switch("other")
        await followed.until(140.5)
        differ = followed.told(BranchesDiffer)
        assert differ
        assert {one.blamed for one in differ} == {None}
        assert all(len(one.roots) == 2 for one in differ)
        assert followed.moves() == []


# A hundred nodes.


async def test_a_check_round_of_a_hundred_nodes_of_which_ten_hang_ends_in_its_time_out() -> None:
    """N2: the others are checked on schedule, and no step of the event loop takes 5 ms of processor time."""
    async with simulated_devnet(100) as net, monitor(net, fallbacks=net.nodes[50:]) as followed:
        await followed.until(130.5)
        hanging = net.nodes[::10]
        for node in hanging:
            node.inject(SYNCING, Hang())
        begun = followed.slots.start_of(Slot(130)) + 10.0
        await followed.until(130.83)
        with longest_step() as longest:
            await anyio.sleep_until(begun + 1.5 + 0.2)
        for node in net:
            verdict = followed.health(node)
            assert verdict.checked is not None
            assert begun <= verdict.checked <= begun + (1.51 if node in hanging else 0.2)
            assert bool(verdict.suspect) is (node in hanging)
        order = followed.monitor.ranking()
        assert {*order[45:50], *order[95:]} == {node.name for node in hanging}
        assert longest() < 0.005


class longest_step:  # noqa: N801 - used as a function
    """Measures the longest step of asyncio's event loop by its processor time; of trio's nothing."""

    def __enter__(self) -> Any:
        steps = self._steps = [0]
        run = self._run = asyncio.Handle._run

        def timed(handle: asyncio.Handle) -> None:
            before = time.thread_time_ns()
            run(handle)
            steps[0] = max(steps[0], time.thread_time_ns() - before)

        gc.disable()
        asyncio.Handle._run = timed  # type: ignore[assignment, method-assign]
        return lambda: steps[0] / 1e9

    def __exit__(self, *_: object) -> None:
        asyncio.Handle._run = self._run  # type: ignore[method-assign]
        gc.enable()


async def test_a_mistake_of_our_own_in_one_check_costs_nobody_else_anything(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Rules 4 and 6: logged with its traceback, tried again with the next turn and not at once, and so on for ever."""
    async with simulated_devnet(3) as net, monitor(net, mistakes_of_others=True) as followed:
        first, *others = net
        await followed.until(130.5)
        book = followed.monitor.cache.book
        passed = book.check_passed

        def fails(node_id: NodeId, **answer: Any) -> None:
            if node_id == "bn1":
                raise RuntimeError("a mistake")
            passed(node_id, **answer)

        monkeypatch.setattr(book, "check_passed", fails)
        before = first.request_counts[SYNCING]
        await followed.until(135.5)
        errors = [record for record in caplog.records if record.levelname == "ERROR"]
        assert len(errors) == first.request_counts[SYNCING] - before == 5
        assert all(record.exc_info is not None for record in errors)
        for node in others:
            at = followed.health(node).checked
            assert at is not None
            assert followed.position(at) == pytest.approx(134 + 5 / 6, abs=0.01)
        monkeypatch.setattr(book, "check_passed", passed)
        await followed.until(136.95)
        at = followed.health(first).checked
        assert at is not None
        assert followed.position(at) > 135.5


async def test_a_node_leaves_while_its_check_is_under_way_and_comes_back() -> None:
    """G3: what the old check finds is not the new node's; nor does it hold up its check."""
    async with simulated_devnet(2) as net, monitor(net) as followed:
        first, second = net
        await followed.until(130.5)
        first.inject(SYNCING, Delay(1.0), times=1)
        await followed.until(130.86)
        followed.monitor.update_candidates(listed([second]))
        followed.monitor.update_candidates(listed([first, second]))
        first.answer(SYNCING, 500)
        await anyio.sleep(0.1)
        verdict = followed.health(first)
        assert "failed check" in verdict.detail
        await anyio.sleep(1.0)
        assert followed.health(first).detail == verdict.detail, "the old answer is nobody's"
