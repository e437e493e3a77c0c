"""The tier gate on nodes: when heads that only fallbacks have reach consumers (C5, C6).

Blocks come a twelfth into their slot. A frozen node is found stalled when a verification at the end of the slot that it
missed has timed out: 1.5 s of 12 s, an eighth of a slot later.
"""

from collections.abc import Sequence

import anyio
import pytest

from tests.acceptance.generations import drain
from tests.acceptance.harness import Followed, candidate, known, monitor
from vc_fallback.base.signals import GateChanged, HeadHeld, HeadOutcome, StreamState
from vc_fallback.base.types import Slot
from vc_fallback.candidates import Candidate
from vc_fallback.config import CandidateSettings
from vc_fallback.testing import SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

EVENTS = "/eth/v1/events"
SYNCING = "/eth/v1/node/syncing"

COMES = 1 / 12
"""When a block comes, in slots."""
FOUND = 1 / 8
"""When the verification of a frozen node has timed out, in slots from its beginning."""


def gates(followed: Followed, *, since: float = 0.0) -> list[tuple[object, str | None]]:
    """Return when the gate changed, in slots, and who held it then; nobody: it opened."""
    changes = followed.told(GateChanged, since=since)
    for change in changes:
        assert change.open is (change.holder is None)
        assert change.reason
    return [(round(followed.position(change.at), 3), change.holder) for change in changes]


def opened(followed: Followed) -> GateChanged:
    """Return the last change of the gate, which opened it."""
    change = followed.told(GateChanged)[-1]
    assert change.open
    return change


def sources(followed: Followed, *, since: float = 0.0) -> list[tuple[int, str]]:
    """Return the delivered blocks by slot and the node that each came from."""
    return [(head.slot, head.node_id) for head in followed.blocks(since=since)]


def held(followed: Followed, node: SimulatedNode, *, since: float = 0.0) -> list[int]:
    """Return the slots of a fallback's heads that were held back; both signals say so."""
    slots = [head.slot for head in followed.told(HeadHeld, node, since=since)]
    outcomes = followed.outcomes(node, since=since)
    assert slots == [slot for slot, outcome in outcomes if outcome is HeadOutcome.TIER]
    return list(dict.fromkeys(slots))


def latest(followed: Followed) -> int | None:
    """Return the slot of the delivered head, as its watch has it."""
    delivered = followed.monitor.latest.value
    return None if delivered is None else delivered.slot


def tiers(primaries: Sequence[SimulatedNode], fallbacks: Sequence[SimulatedNode]) -> list[Candidate]:
    """Return a list for `update_candidates`."""
    settings = [candidate(node) for node in primaries] + [candidate(node, fallback=True) for node in fallbacks]
    return [CandidateSettings.model_validate(one).candidate() for one in settings]


# Held.


async def test_one_fresh_primary_holds_the_head_of_a_fallback_back_until_it_has_it_itself() -> None:
    """Scenario 19, C5: the fallback's entry moves, the delivered head does not; the primary's is delivered, once."""
    async with simulated_devnet(3) as net:
        first, second, fallback = net
        second.state.head_delay = 3.0
        async with monitor(net, fallbacks=[fallback]) as followed, followed.monitor.subscribe() as heads:
            await followed.until(129.5)
            await first.kill()
            await followed.until(130.2)
            drain(heads)
            for slot in range(130, 134):
                await followed.until(slot + 0.2)
                entry = followed.entry(fallback)
                assert entry is not None
                assert entry.slot == slot
                assert latest(followed) == slot - 1
                assert not drain(heads)
                assert not followed.monitor.votes(Slot(slot))
                assert followed.monitor.is_latest(Slot(slot - 1)), "a head that is held back makes no other old"
                await followed.until(slot + 0.5)
                assert latest(followed) == slot
                assert [(head.slot, head.node_id) for head in drain(heads)] == [(slot, "bn2")]
            assert held(followed, fallback, since=129.6) == [130, 131, 132, 133]
            followed.assert_every_slot_delivered(129, 133, within=3.0)


async def test_a_fallback_that_runs_ahead_of_the_clock_changes_nothing() -> None:
    """Scenario 19: its heads of the next slot are its own affair; the primaries' delivered head stays theirs."""
    async with simulated_devnet(3) as net:
        fallback = net[2]
        fallback.state.head_delay = -3.0
        async with monitor(net, fallbacks=[fallback]) as followed:
            await followed.until(129.9)
            begun = followed.now
            await followed.until(133.9)
            entry = followed.entry(fallback)
            assert entry is not None
            assert entry.slot == 134
            assert {node for _, node in sources(followed, since=begun)} <= {"bn1", "bn2"}
            followed.assert_every_slot_delivered(129, 133)
            assert held(followed, fallback, since=begun) == [131, 132, 133, 134]
            assert not gates(followed, since=begun)


async def test_a_head_held_back_on_another_branch_is_not_delivered() -> None:
    """C4, C5: what only the fallback has at that slot does not count; once the gate opens, C4 alone decides."""
    async with simulated_devnet(2) as net:
        primary, fallback = net
        primary.state.head_delay = 2.0
        net.chain.branch("other", above=129)
        async with monitor(net, fallbacks=[fallback]) as followed:
            await followed.until(129.5)
            fallback.switch("other")
            await followed.until(130.9)
            assert held(followed, fallback, since=129.6) == [130]
            assert sources(followed, since=129.6) == [(130, "bn1")]
            assert followed.delivered_roots()[-1] == followed.block(130).root
            await primary.kill()
            await followed.until(130.95)
            assert opened(followed).reason.startswith("bn1: stream")
            # Nobody stands behind the other block any more.
            (head,) = followed.blocks(since=130.8)
            assert (head.slot, head.root, head.reorg) == (130, followed.block(130, "other").root, True)


# Opened: what a primary lacks.


@pytest.mark.parametrize("slot_duration", [2.0, 12.0])
async def test_primaries_that_freeze_hold_heads_back_until_they_are_found_stalled_and_no_longer(
    slot_duration: float,
) -> None:
    """Scenario 20, C5, C6: then the newest that was held back is delivered at once, and all from there on."""
    async with simulated_devnet(3, slot_duration=slot_duration) as net, monitor(net, fallbacks=[net[2]]) as followed:
        first, second, fallback = net
        # Just after the slot's checks: three that fail would take them the gate by health before.
        await followed.until(130.9)
        begun = followed.now
        first.freeze()
        second.freeze()
        await followed.until(131.99)
        assert sources(followed, since=begun) == []
        assert held(followed, fallback, since=begun) == [131]
        await followed.until(135.5)
        assert gates(followed, since=begun)[-1] == (pytest.approx(132 + FOUND, abs=0.002), None)
        assert "bn2: stream stalled" in opened(followed).reason
        heads = followed.blocks(since=begun)
        assert [(head.slot, head.node_id) for head in heads] == [(slot, "bn3") for slot in (132, 133, 134, 135)]
        assert followed.position(heads[0].at) == pytest.approx(132 + FOUND, abs=0.002)
        for head in heads[1:]:
            assert followed.position(head.at) == pytest.approx(head.slot + COMES, abs=0.002)
        # Awake again, the burst of what they missed opens nothing; the first current head takes the gate.
        first.thaw()
        await followed.until(140.5)
        assert gates(followed, since=135.4)[0][1] == "bn1"
        assert followed.delivered_slots(since=begun) == list(range(132, 141))


async def test_primaries_that_freeze_are_excluded_by_health_where_that_is_sooner() -> None:
    """Scenario 21, C5, N2, N4: frozen before the slot's checks, three of them fail before the slot after is over."""
    async with simulated_devnet(3) as net, monitor(net, fallbacks=[net[2]]) as followed:
        first, second, _ = net
        await followed.until(130.5)
        begun = followed.now
        first.freeze()
        second.freeze()
        await followed.until(131.9)
        assert opened(followed).reason.endswith("no answer within 1.5 s")
        (head,) = followed.blocks(since=begun)
        assert (head.slot, head.node_id) == (131, "bn3")
        # Asked at 130 5/6, and twice more 2 s after that was over, 1.5 s each time.
        assert followed.position(head.at) == pytest.approx(130 + 5 / 6 + 8.5 / 12, abs=4 * 0.2 / 12 + 0.01)


async def test_a_sole_primary_that_freezes_holds_heads_back_until_it_is_found_stalled() -> None:
    """C5, H5: nothing newer comes that would put it two slots behind, so only the watchdog can speak."""
    async with simulated_devnet(2) as net, monitor(net, fallbacks=[net[1]]) as followed:
        primary, fallback = net
        net.chain.miss(132, 133)
        await followed.until(130.9)
        begun = followed.now
        primary.freeze()
        await followed.until(133.5)
        assert held(followed, fallback, since=begun) == [131]
        (head,) = followed.blocks(since=begun)
        assert (head.slot, head.node_id) == (131, "bn2")
        assert followed.position(head.at) == pytest.approx(132 + FOUND, abs=0.002)
        assert gates(followed, since=begun) == [(pytest.approx(132 + FOUND, abs=0.002), None)]


async def test_a_sole_primary_that_falls_two_slots_behind_holds_nothing() -> None:
    """C5: its last usable head is more than one slot behind the tip, whatever its stream is thought to be."""
    streams = {"head_silence": None, "hard_clock": None, "transport_silence": None}
    async with simulated_devnet(2) as net, monitor(net, fallbacks=[net[1]], streams=streams) as followed:
        primary, fallback = net
        await followed.until(130.5)
        begun = followed.now
        primary.silence()
        await followed.until(131.9)
        assert held(followed, fallback, since=begun) == [131]
        assert sources(followed, since=begun) == []
        await followed.until(133.5)
        assert opened(followed).reason == "bn1: 2 slots behind the tip"
        heads = followed.blocks(since=begun)
        assert [(head.slot, head.node_id) for head in heads] == [(132, "bn2"), (133, "bn2")]
        assert followed.position(heads[0].at) == pytest.approx(132 + COMES, abs=0.001)


async def test_streams_that_are_silent_while_their_nodes_go_on() -> None:
    """Scenarios 10, 16: consumers follow the fallback; the primaries stay healthy and hold nothing until they speak."""
    async with simulated_devnet(3) as net, monitor(net, fallbacks=[net[2]]) as followed:
        first, second, fallback = net
        await followed.until(130.5)
        begun = followed.now
        first.silence()
        second.silence()
        await followed.until(138.5)
        assert not followed.health_turns()
        # Slot 131 is what the primaries' own polls show at the verification (H14).
        assert followed.delivered_slots(since=begun) == list(range(131, 139))
        assert {node for slot, node in sources(followed, since=begun) if slot > 132} == {"bn3"}
        for head in followed.blocks(since=132.5):
            assert followed.position(head.at) == pytest.approx(head.slot + COMES, abs=0.001)
        assert followed.healthy(first) is followed.healthy(second) is False
        assert followed.healthy(fallback) is True
        first.resume()
        await followed.until(139.5)
        assert gates(followed, since=138.5) == [(pytest.approx(139 + COMES, abs=0.001), "bn1")]


async def test_primaries_that_are_behind_by_their_own_word_hold_nothing() -> None:
    """C5, C6, H5: the gate opens with that verdict, not only with the next head; no stream is reconnected."""
    async with simulated_devnet(3) as net, monitor(net, fallbacks=[net[2]]) as followed:
        first, second, fallback = net
        net.chain.miss(132)
        await followed.until(130.5)
        begun = followed.now
        first.cut_off()
        second.cut_off()
        await followed.until(132.2)
        assert opened(followed).reason == "bn2: behind the other nodes"
        (head,) = followed.blocks(since=begun)
        assert (head.slot, head.node_id) == (131, "bn3")
        assert followed.position(head.at) == pytest.approx(132, abs=0.002)
        assert held(followed, fallback, since=begun) == [131]
        await followed.until(135.5)
        assert sources(followed, since=begun) == [(slot, "bn3") for slot in (131, 133, 134, 135)]
        assert not followed.ends(first)
        assert not followed.ends(second)
        # With peers again their burst is not fresh; the first current head of one takes the gate.
        second.rejoin()
        await followed.until(136.5)
        assert gates(followed, since=135.5)[0][1] == "bn2"
        assert followed.delivered_slots(since=begun) == [131, 133, 134, 135, 136]


@pytest.mark.parametrize("fault", ["killed", "ended", "hangs before its response"])
async def test_a_primary_without_an_open_response_holds_nothing(fault: str) -> None:
    """C5, C6: connecting, backoff and waiting for the response; what was held back is delivered at that moment."""
    async with simulated_devnet(2) as net:
        primary, fallback = net
        primary.state.head_delay = 6.0
        async with monitor(net, fallbacks=[fallback]) as followed:
            await followed.until(130.3)
            assert latest(followed) == 129
            assert gates(followed)[-1][1] == "bn1"
            begun = followed.now
            if fault == "killed":
                await primary.kill()
            elif fault == "ended":
                primary.refuse()
                primary.end_streams()
            else:
                primary.hang(EVENTS)
                primary.end_streams()
            await anyio.sleep(0.05)
            assert sources(followed, since=begun - 0.001) == [(130, "bn2")]
            assert gates(followed, since=begun - 0.001) == [(pytest.approx(begun, abs=0.005), None)]
            assert opened(followed).reason.startswith("bn1: stream")
            await followed.until(131.9)
            assert followed.healthy(primary) is True, "fresh by time: a short absence"
            assert sources(followed, since=begun - 0.001) == [(130, "bn2"), (131, "bn2")]
            assert len(gates(followed, since=begun - 0.001)) == 1


async def test_a_primary_that_has_not_shown_a_head_yet_holds_nothing() -> None:
    """C5, H6: within its start-up grace a stream is unknown, which is not fresh."""
    async with simulated_devnet(2, into=6) as net:
        primary, fallback = net
        primary.silence()
        mute = primary.answer("/eth/v1/beacon/headers/head", 500)
        async with monitor(net, fallbacks=[fallback], chain=known(net.chain)) as followed:
            await followed.until(129.5)
            assert followed.state(primary) is StreamState.OPEN
            assert followed.healthy(primary) is None
            assert sources(followed)[-1] == (129, "bn2")
            assert not gates(followed)
            mute.remove()
            primary.resume()
            await followed.until(130.5)
            assert gates(followed) == [(pytest.approx(130 + COMES, abs=0.001), "bn1")]


async def test_primaries_that_health_excludes_hold_nothing() -> None:
    """Scenario 21, C5: their streams are open and fresh, and the fallback's heads are delivered all the same."""
    async with simulated_devnet(3) as net:
        first, second, fallback = net
        first.state.head_delay = second.state.head_delay = 2.0
        async with monitor(net, fallbacks=[fallback]) as followed:
            await followed.until(130.5)
            first.answer(SYNCING, 503)
            second.answer(SYNCING, 503)
            await followed.until(132.8)
            begun = followed.now
            await followed.until(135.8)
            assert {turn.node_id for turn in followed.health_turns()} == {"bn1", "bn2"}
            assert opened(followed).reason == "bn2: 3 failed checks in a row: 503"
            assert followed.healthy(first) is followed.healthy(second) is True
            assert sources(followed, since=begun) == [(133, "bn3"), (134, "bn3"), (135, "bn3")]
            assert (135, HeadOutcome.DUPLICATE) in followed.outcomes(first)
            second.heal()
            await followed.until(142.8)
            assert followed.health_states(second) == "unhealthy recovering healthy"
            well = followed.health_turns(second)[-1].at
            assert gates(followed, since=begun) == [(round(followed.position(well), 3), "bn2")]
            assert sources(followed)[-1][0] == 142
            assert sources(followed)[-1][1] != "bn3"


async def test_primaries_whose_heads_are_optimistic_give_way_within_a_slot() -> None:
    """Scenario 38a, C5: one valid primary holds the gate, none does not; valid again, they take it back."""
    async with simulated_devnet(3) as net, monitor(net, fallbacks=[net[2]]) as followed:
        first, second, fallback = net
        await followed.until(131.5)
        first.state.optimistic = True
        await followed.until(134.5)
        assert {node for _, node in sources(followed, since=131.5)} == {"bn2"}
        begun = followed.now
        second.state.optimistic = True
        await followed.until(138.5)
        # The last valid head is one slot behind at 135, and two at 136: within a slot of the first optimistic one.
        assert gates(followed, since=begun) == [(pytest.approx(136 + COMES, abs=0.001), None)]
        # Where the primaries' own heads of 136 open it, the one held back goes before the fallback's 136.
        assert sources(followed, since=begun)[-3:] == [(136, "bn3"), (137, "bn3"), (138, "bn3")]
        assert held(followed, fallback, since=begun)[0] == 135
        first.state.optimistic = second.state.optimistic = False
        await followed.until(141.5)
        assert {node for slot, node in sources(followed, since=begun) if slot > 139} <= {"bn1", "bn2"}
        assert followed.delivered_slots(since=136.5) == list(range(137, 142))


async def test_a_burst_of_old_heads_of_a_resyncing_primary_does_not_take_the_gate() -> None:
    """Scenario 38b, C5, H6, H13: 50 old heads are not fresh, the gate stays open; its first current head is fresh."""
    async with simulated_devnet(2) as net:
        primary, fallback = net
        primary.state.lag = 52
        primary.show(net.chain.head_at(128 - 52))
        primary.cut_off()
        async with monitor(net, fallbacks=[fallback]) as followed:
            await followed.until(131.5)
            primary.state.lag = 1_000
            begun = followed.now
            for slot in range(77, 127):
                primary.show(net.chain.head_at(slot))
            await followed.until(132.5)
            assert len(followed.outcomes(primary, since=begun)) >= 50
            assert followed.healthy(primary) is False
            assert not gates(followed)
            assert sources(followed, since=begun) == [(132, "bn2")]
            primary.show(net.chain.head_at(132))
            await anyio.sleep(0.01)
            assert followed.healthy(primary) is True
            assert gates(followed) == [(pytest.approx(132.5, abs=0.002), "bn1")]
            assert sources(followed, since=begun) == [(132, "bn2")]
            await followed.until(133.2)
            assert held(followed, fallback, since=begun) == [133]
            followed.assert_every_slot_delivered(129, 132)


async def test_a_quarantined_primary_holds_nothing() -> None:
    """C5, N7: nor does one that has not said which chain it is on."""
    async with simulated_devnet(2) as net:
        primary, fallback = net
        primary.answer("/eth/v1/beacon/genesis", 500, times=1_000)
        async with monitor(net, fallbacks=[fallback], chain=known(net.chain)) as followed:
            await followed.until(130.5)
            assert followed.healthy(primary) is True
            assert sources(followed)[-1] == (130, "bn2")
            assert not gates(followed)
            primary.heal()
            primary.override("/eth/v1/beacon/genesis", genesis_validators_root="0x" + "ee" * 32)
            await followed.until(133.5)
            assert sources(followed)[-1] == (133, "bn2")
            assert not gates(followed)


async def test_without_a_primary_for_events_fallbacks_are_delivered() -> None:
    """C5: a primary for other roles holds nothing."""
    async with simulated_devnet(2) as net:
        primary, fallback = net
        extra = [candidate(primary, roles=["duties", "attestation"])]
        async with monitor(net, listed=[fallback], fallbacks=[fallback], extra=extra) as followed:
            await followed.until(131.5)
            assert not followed.told(GateChanged)
            assert not followed.told(HeadHeld)
            assert {node for _, node in sources(followed)} == {"bn2"}
            followed.assert_every_slot_delivered(129, 131)
            assert not primary.opens


async def test_with_the_gate_off_the_first_to_show_a_head_is_delivered() -> None:
    """Scenario 22, C5."""
    async with simulated_devnet(3) as net:
        first, second, fallback = net
        first.state.head_delay = second.state.head_delay = 1.0
        async with monitor(net, fallbacks=[fallback], heads={"tier_gate": False}) as followed:
            await followed.until(132.5)
            assert sources(followed, since=128.5) == [(slot, "bn3") for slot in range(129, 133)]
            assert not followed.told(GateChanged)
            assert not followed.told(HeadHeld)
            assert (132, HeadOutcome.DUPLICATE) in followed.outcomes(first)


async def test_with_the_watchdog_off_an_open_primary_holds_the_gate() -> None:
    """Scenario 13, C5: there is no verdict then, and its absence gates nothing."""
    async with simulated_devnet(2) as net:
        primary, fallback = net
        primary.state.head_delay = 1.0
        async with monitor(net, fallbacks=[fallback], streams={"head_silence": None}) as followed:
            await followed.until(132.5)
            assert followed.healthy(primary) is None
            assert sources(followed, since=129.5) == [(130, "bn1"), (131, "bn1"), (132, "bn1")]
            assert held(followed, fallback, since=129.5) == [130, 131, 132]


# Who holds it.


async def test_each_change_of_the_gate_is_told_once() -> None:
    """C6: it starts open, closes with the first primary, passes to another, opens with the last and closes again."""
    async with simulated_devnet(3) as net:
        first, second, _ = net
        second.state.head_delay = 0.5
        async with monitor(net, fallbacks=[net[2]]) as followed:
            await followed.until(131.5)
            # The chain is known and the heads are polled right at the start, but only the next one is current.
            assert [holder for _, holder in gates(followed)] == ["bn1"]
            await first.kill()
            await followed.until(132.5)
            await second.kill()
            await followed.until(134.5)
            second.restart()
            await followed.until(136.9)
            first.restart()
            await followed.until(150.5)
            changes = gates(followed, since=131.4)
            assert [holder for _, holder in changes] == ["bn2", None, "bn2", "bn1"]
            assert [at for at, _ in changes[:2]] == [pytest.approx(131.5, abs=0.002), pytest.approx(132.5, abs=0.002)]
            assert opened_reasons(followed) == ["bn2: stream backoff"]
            # Not a slot was lost on the way.
            assert set(followed.delivered_slots(since=129)) == set(range(129, 151))


def opened_reasons(followed: Followed) -> list[str]:
    """Return why the gate opened, every time."""
    return [change.reason for change in followed.told(GateChanged) if change.open]


# Changes of the list.


async def test_a_primary_becomes_a_fallback_and_a_primary_again() -> None:
    """C5, G2: its connection and its last head go on; what it shows is held back from the change on and flows again."""
    async with simulated_devnet(2) as net:
        first, second = net
        second.state.head_delay = 2.0
        async with monitor(net) as followed:
            await followed.until(130.5)
            assert sources(followed, since=129.5) == [(130, "bn1")]
            followed.monitor.update_candidates(tiers([second], [first]))
            assert gates(followed) == [(130.5, "bn2")]
            await followed.until(132.5)
            assert sources(followed, since=130.5) == [(131, "bn2"), (132, "bn2")]
            assert held(followed, first) == [131, 132]
            await followed.until(133.1)
            assert latest(followed) == 132
            # Held back until now, delivered by the change itself, with the new generation.
            followed.monitor.update_candidates(tiers([first], [second]))
            head = followed.deliveries()[-1]
            assert (head.slot, head.node_id, head.generation, head.tier.value) == (133, "bn1", 3, "primary")
            assert followed.position(head.at) == pytest.approx(133.1, abs=0.001)
            assert gates(followed)[-1] == (133.1, "bn1")
            await followed.until(135.5)
            assert sources(followed, since=133.2) == [(134, "bn1"), (135, "bn1")]
            assert [len(node.opens) for node in net] == [1, 1]


async def test_the_last_primary_leaves_the_list() -> None:
    """C5, C6, G2: what was held back is delivered by the change; a primary that joins takes the gate once fresh."""
    async with simulated_devnet(2) as net:
        primary, fallback = net
        primary.state.head_delay = 2.0
        async with monitor(net, fallbacks=[fallback]) as followed:
            await followed.until(130.1)
            assert latest(followed) == 129
            followed.monitor.update_candidates(tiers([], [fallback]))
            assert latest(followed) == 130
            assert opened(followed).reason == "no primary"
            head = followed.deliveries()[-1]
            assert (head.node_id, head.generation) == ("bn2", 2)
            await followed.until(131.5)
            followed.monitor.update_candidates(tiers([primary], [fallback]))
            await followed.until(133.5)
            assert sources(followed, since=130.2) == [(131, "bn2"), (132, "bn2"), (133, "bn1")]
            assert gates(followed, since=130.2) == [(pytest.approx(132 + 3 / 12, abs=0.001), "bn1")]


async def test_fallbacks_come_and_go() -> None:
    """C5: the gate is nobody's matter without them, and holds those that join from their first head on."""
    async with simulated_devnet(2) as net:
        primary, fallback = net
        primary.state.head_delay = 2.0
        async with monitor(net, listed=[primary]) as followed:
            await followed.until(129.5)
            assert not followed.told(GateChanged)
            followed.monitor.update_candidates(tiers([primary], [fallback]))
            assert gates(followed) == [(129.5, "bn1")]
            await followed.until(131.5)
            assert sources(followed, since=129.5) == [(130, "bn1"), (131, "bn1")]
            followed.monitor.update_candidates(tiers([primary], []))
            await followed.until(132.5)
            followed.monitor.update_candidates(tiers([primary], [fallback]))
            await followed.until(134.5)
            assert {node for _, node in sources(followed)} == {"bn1"}
            assert followed.delivered_slots(since=129.5) == list(range(130, 135))
            assert len(gates(followed)) == 1
