"""Which chain it is, whose clock counts, and who is on another chain (I1–I3, N7, H15)."""

import anyio
import pytest

from tests.acceptance.generations import drain, listed
from tests.acceptance.harness import candidate, known, monitor
from tests.conformance.scripted import following
from vc_fallback.base.clock import Clock
from vc_fallback.base.signals import HeadOutcome, NodeHeadSeen, NodeQuarantined, Started, StreamReason
from vc_fallback.base.types import HeadSource, NodeId, Slot
from vc_fallback.config import FallbackConfig
from vc_fallback.testing import REMOVED, Answer, Delay, Hang, SimulatedChain, SimulatedNode, simulated_devnet
from vc_fallback.testing.faults import Fault

pytestmark = pytest.mark.anyio

GENESIS = "/eth/v1/beacon/genesis"
SPEC = "/eth/v1/config/spec"


def other_chain(chain: SimulatedChain) -> SimulatedChain:
    """Return another network with slots at the same times."""
    return SimulatedChain(seed=99, clock=chain.clock, start_slot=chain.slots.slot_at(anyio.current_time()))


async def test_wrong_network_answers_first_and_three_right_ones_rule() -> None:
    """Scenario 7a, I1: the three rule, the one is quarantined with its reason, told once, and never delivered."""
    async with (
        simulated_devnet(3) as net,
        SimulatedNode(other_chain(net.chain), name="wrong") as wrong,
        monitor([wrong, *net]) as followed,
    ):
        for node in net:
            node.inject(GENESIS, Delay(1.2))
        await followed.until(131.5)
        (quarantined,) = followed.told(NodeQuarantined)
        assert quarantined.node_id == "wrong"
        assert quarantined.mismatch.startswith("genesis_validators_root differs")
        assert StreamReason.QUARANTINED in followed.reasons(wrong)
        assert followed.entry(wrong) is None
        assert {outcome for _, outcome in followed.outcomes(wrong, since=129)} == {HeadOutcome.WRONG_CHAIN}
        delivered = {head.slot: head.root for head in followed.deliveries()}
        assert {128, 129, 130, 131} <= set(delivered)
        for slot, root in delivered.items():
            block = net.chain.block_at(slot)
            assert block is not None
            assert root == block.root
        assert [started.genesis_time for started in followed.told(Started)] == [None, net.chain.identity.genesis_time]
        assert len(wrong.opens) == 1


async def test_fallbacks_have_no_say_in_which_chain_it_is() -> None:
    """I1: two fallbacks of another network answer at once, the primary ten seconds later: the primary rules."""
    async with simulated_devnet(1) as net:
        (primary,) = net
        wrong = other_chain(net.chain)
        primary.inject(GENESIS, Answer(503), times=4)
        async with (
            SimulatedNode(wrong, name="f1") as first,
            SimulatedNode(wrong, name="f2") as second,
            monitor([primary, first, second], fallbacks=[first, second]) as followed,
        ):
            await followed.until(128.5)
            assert followed.monitor.slots is None
            assert not followed.deliveries()
            await followed.until(131.5)
            assert {signal.node_id for signal in followed.told(NodeQuarantined)} == {"f1", "f2"}
            assert {head.node_id for head in followed.deliveries()} == {"bn1"}
            assert followed.delivered_slots()[-1] == 131


async def test_change_of_the_list_may_decide_the_chain() -> None:
    """I1, G2: the only primary never answered; when it leaves, the fallback that did is asked no second time."""
    async with simulated_devnet(2) as net:
        primary, fallback = net
        primary.refuse()
        async with monitor(net, fallbacks=[fallback]) as followed:
            await followed.until(130.5)
            assert [started.slot_duration for started in followed.told(Started)] == [None]
            assert not followed.deliveries()
            followed.monitor.update_candidates(listed([fallback], tier="fallback"))
            assert followed.monitor.slots is not None
            await followed.until(131.5)
            assert [head.slot for head in followed.deliveries()] == [130, 131]
            assert fallback.request_counts[GENESIS] == 1


@pytest.mark.parametrize("slot", [1.0, 12.0])
async def test_nodes_that_are_there_decide_after_half_a_slot(slot: float) -> None:
    """I1, G6: where others are down and no majority can be had, those that answered decide, and heads flow."""
    async with simulated_devnet(3, slot_duration=slot) as net:
        net[0].refuse()
        net[1].refuse()
        async with monitor(net) as followed:
            await anyio.sleep(0.45 * slot)
            assert not followed.deliveries()
            await anyio.sleep(0.1 * slot)
            assert followed.delivered_slots()[-1] == 128
            assert followed.monitor.slots is not None


async def test_node_that_comes_back_on_another_chain_is_purged_and_may_return() -> None:
    """H15, N7: checked again after each reconnect; its entry, its vote and its unread heads go, and so back again."""
    async with simulated_devnet(2) as net:
        turncoat, other = net
        async with monitor(net) as followed, followed.monitor.subscribe() as heads:
            other.state.head_delay = 0.5
            await followed.until(131.5)
            assert {head.node_id for head in followed.deliveries(since=129)} == {"bn1"}
            turncoat.override(GENESIS, genesis_validators_root="0x" + "ee" * 32)
            turncoat.end_streams()
            await followed.until(133.5)
            (told,) = followed.told(NodeQuarantined)
            assert told.mismatch.startswith("genesis_validators_root differs")
            assert followed.entry(turncoat) is None
            latest = followed.monitor.latest.value
            assert latest is not None
            assert latest.seen_by == ("bn2",)
            assert {head.node_id for head in followed.deliveries(since=131.6)} == {"bn2"}
            assert {head.node_id for head in drain(heads)} == {"bn2"}
            assert heads.statistics().purged >= 3

            turncoat.override(GENESIS)
            turncoat.end_streams()
            await followed.until(136.5)
            assert followed.told(NodeQuarantined)[-1].mismatch == ""
            latest = followed.monitor.latest.value
            assert latest is not None
            assert set(latest.seen_by) == {"bn1", "bn2"}
            followed.assert_every_slot_delivered(129, 136, within=0.5)


async def test_before_genesis_nothing_runs_and_nothing_is_wrong() -> None:
    """H2, N7, case 36: nodes answer 404 until genesis: no verdict, no mismatch, and heads from the first slot on."""
    async with simulated_devnet(2, start_slot=-5) as net:
        for node in net:
            node.answer(GENESIS, 404, '{"code":404,"message":"Beacon chain genesis has not yet been observed."}')
        async with monitor(net) as followed:
            await followed.until(-0.5)
            for node in net:
                node.heal()
                assert followed.healthy(node) is None
            await followed.until(3.5)
            assert followed.delivered_slots()[-3:] == [1, 2, 3]
            assert not followed.told(NodeQuarantined)
            for node in net:
                assert len(node.opens) == 1
                assert followed.healthy(node) is True
                assert "stalled" not in followed.states(node)


async def test_configured_chain_is_known_at_once() -> None:
    """I1: slots are there on entering; heads are delivered as soon as their own node has said that it fits."""
    async with (
        simulated_devnet(2) as net,
        SimulatedNode(other_chain(net.chain), name="wrong") as wrong,
        monitor([wrong, *net], chain=known(net.chain)) as followed,
    ):
        assert followed.monitor.slots is not None
        assert followed.monitor.slots.slot_at(anyio.current_time()) == 128
        net[0].inject(GENESIS, Hang())
        await followed.until(130.5)
        assert followed.delivered_slots()[-2:] == [129, 130]
        assert {head.node_id for head in followed.deliveries()} == {"bn2"}
        assert {signal.node_id for signal in followed.told(NodeQuarantined)} == {"wrong"}


async def test_named_network_is_not_that_of_these_nodes() -> None:
    """I1, N7: all nodes are on another chain than the configured one: quarantined, none delivered, streams go on."""
    async with simulated_devnet(2) as net, monitor(net, network="mainnet") as followed:
        await followed.until(131.5)
        assert {signal.node_id for signal in followed.told(NodeQuarantined)} == {"bn1", "bn2"}
        assert not followed.deliveries()
        assert [len(node.streams) for node in net] == [1, 1]


ODD: dict[str, dict[str, object]] = {
    "other due times": {"PAYLOAD_DUE_BPS": "7500", "ATTESTATION_DUE_BPS": "many"},
    "values that are no strings": {"BLOB_SCHEDULE": [{"EPOCH": 512}], "GAS_LIMIT_SCHEDULE": [], "DEPOSIT_CHAIN_ID": {}},
    "other limits": {"MAX_BLOBS_PER_BLOCK": "2", "CONFIG_NAME": None},
    "an unscheduled fork": {"GLOAS_FORK_EPOCH": "18446744073709551615", "GLOAS_FORK_VERSION": "0x70000038"},
    "a fork to come": {"GLOAS_FORK_EPOCH": "9999", "HEZE_FORK_EPOCH": "soon", "HEZE_FORK_VERSION": "0x08"},
    "no fork after Fulu": {"GLOAS_FORK_EPOCH": REMOVED, "GLOAS_FORK_VERSION": REMOVED},
    "numbers": {"SECONDS_PER_SLOT": 12, "SLOT_DURATION_MS": 12000, "SLOTS_PER_EPOCH": 32, "FULU_FORK_EPOCH": 0},
    "no slot in milliseconds": {"SLOT_DURATION_MS": REMOVED},
    "no preset and no genesis fork": {"PRESET_BASE": REMOVED, "GENESIS_FORK_VERSION": REMOVED},
    "no slots per epoch": {"SLOTS_PER_EPOCH": REMOVED},
}


@pytest.mark.parametrize("configured", [False, True], ids=["asked", "configured"])
async def test_differences_that_are_not_identity(configured: bool) -> None:
    """Cases 33 and 34, N7: keys that are not used may hold anything; forks to come may differ; the nodes count."""
    async with simulated_devnet(len(ODD)) as net:
        for node, fields in zip(net, ODD.values(), strict=True):
            node.override(SPEC, **fields)
        async with monitor(net, chain=known(net.chain) if configured else None) as followed:
            await followed.until(130.5)
            odd = {node.name: what for node, what in zip(net, ODD, strict=True)}
            assert {odd[signal.node_id]: signal.mismatch for signal in followed.told(NodeQuarantined)} == {}
            latest = followed.monitor.latest.value
            assert latest is not None
            assert [what for name, what in odd.items() if name not in latest.seen_by] == []
            assert {node.request_counts[SPEC] for node in net} == {1}


async def test_differences_that_are() -> None:
    """N7: the fork that holds, preset and slots are identity."""
    different: list[tuple[dict[str, object], str]] = [
        ({"FULU_FORK_VERSION": "0x06ffffff"}, "current fork differs"),
        ({"PRESET_BASE": "minimal"}, "preset differs"),
        ({"SLOTS_PER_EPOCH": "8"}, "slots per epoch differ"),
        ({"SLOT_DURATION_MS": "6000", "SECONDS_PER_SLOT": "6"}, "slot duration differs"),
    ]
    async with simulated_devnet(9) as net:
        for node, (fields, _) in zip(net, different, strict=False):
            node.override(SPEC, **fields)
        async with monitor(net) as followed:
            await followed.until(130.5)
            told = followed.told(NodeQuarantined)
            assert {signal.node_id: signal.mismatch.partition(":")[0] for signal in told} == {
                node.name: mismatch for node, (_, mismatch) in zip(net, different, strict=False)
            }
            assert {head.node_id for head in followed.deliveries()} <= {node.name for node in list(net)[4:]}


TROUBLE: dict[str, Fault] = {
    "500": Answer(500, "{}"),
    "hangs": Hang(),
    "not JSON": Answer(200, "<html>"),
    "null": Answer(200, "null"),
    "no data": Answer(200, '{"data":null}'),
    "nonsense": Answer(200, '{"data":{"genesis_time":"-1","genesis_validators_root":"0x"}}'),
}


@pytest.mark.parametrize("path", [GENESIS, SPEC])
async def test_nodes_whose_identity_is_not_to_be_had_for_a_while(path: str) -> None:
    """G6, I1: their heads are kept and count for nothing until they say so; nobody waits for them, streams go on."""
    async with simulated_devnet(2 + len(TROUBLE)) as net:
        good, bad = list(net)[:2], list(net)[2:]
        injected = [node.inject(path, fault) for node, fault in zip(bad, TROUBLE.values(), strict=True)]
        async with monitor(net) as followed:
            await followed.until(131.5)
            followed.assert_every_slot_delivered(129, 131)
            assert {head.node_id for head in followed.deliveries()} <= {node.name for node in good}
            for node, injection in zip(bad, injected, strict=True):
                assert {outcome for _, outcome in followed.outcomes(node)} == {HeadOutcome.BEHIND}
                entry = followed.entry(node)
                assert entry is not None
                assert entry.slot == 131
                assert injection.met <= 10
                injection.remove()
            await followed.until(133.5)
            latest = followed.monitor.latest.value
            assert latest is not None
            assert set(latest.seen_by) == {node.name for node in net}
            assert {len(node.opens) for node in net} == {1}


async def test_identity_that_is_never_known() -> None:
    """I1: streams run and heads are kept, none is delivered, nothing is judged; asking goes on with backoff."""
    async with simulated_devnet(2) as net:
        for node in net:
            node.answer(GENESIS, 500, '{"code":500,"message":"database is locked"}')
        async with monitor(net) as followed:
            await followed.until(148.5)
            assert followed.monitor.slots is None
            assert not followed.deliveries()
            assert followed.monitor.latest.value is None
            assert {head.slot for head in followed.monitor.heads().values()} == {148}
            for node in net:
                assert followed.healthy(node) is None
                assert len(node.opens) == 1
                assert node.request_counts[GENESIS] <= 5 + 20 * 12 / 12.8
            assert [started.slot_duration for started in followed.told(Started)] == [None]
            for node in net:
                node.heal()
            # What was kept is delivered as soon as the chain is known.
            await followed.until(150.5)
            assert followed.delivered_slots()[-1] == 150


class SteppingClock:
    """A system clock that can be stepped, over the event loop's time."""

    def __init__(self, chain: SimulatedChain) -> None:
        self._offset = chain.clock.offset

    def __call__(self) -> float:
        return anyio.current_time() + self._offset

    def step(self, seconds: float) -> None:
        self._offset += seconds


async def test_stepped_system_clock_moves_slots_and_no_wait() -> None:
    """I2: an hour ahead and back: slots follow at the next anchor; waits, deadlines and connections do not."""
    async with simulated_devnet(2) as net:
        system = SteppingClock(net.chain)
        candidates = [candidate(node) for node in net]
        async with following(list(net), clock=Clock(wall=system), candidates=candidates) as followed:
            await followed.until(130.5)
            ended = anyio.current_time()
            net[0].end_streams()
            system.step(3600)
            await followed.until(130.9)
            (wait,) = followed.waits(net[0])
            assert net[0].opens[1].opened - ended == pytest.approx(wait, abs=0.01)

            await followed.until(131.5)
            slots = followed.monitor.slots
            assert slots is not None
            assert slots.slot_at(anyio.current_time()) == 131 + 300
            before = anyio.current_time()
            assert await followed.monitor.wait_for_slot(Slot(431), deadline=before + 7) is None
            assert anyio.current_time() == before + 7
            await followed.until(141.5)
            # Heads of an hour ago by this clock: kept, never delivered, and no reason to reconnect.
            assert {outcome for _, outcome in followed.outcomes(net[1], since=131.2)} == {HeadOutcome.OLD}
            assert not followed.deliveries(since=131.2)
            assert [len(node.opens) for node in net] == [2, 1]

            system.step(-3600)
            await followed.until(144.5)
            assert followed.delivered_slots(since=142.5) == [143, 144]
            assert [len(node.opens) for node in net] == [2, 1]
            assert not any("stalled" in followed.states(node) for node in net)


@pytest.mark.parametrize(
    ("slots", "outcome"),
    [
        (1, HeadOutcome.DELIVERED),
        (-1, HeadOutcome.DELIVERED),
        (-2, HeadOutcome.FUTURE),
    ],
)
async def test_clock_that_is_off_by_few_slots(slots: int, outcome: HeadOutcome) -> None:
    """I2, H13: a head that is late by the clock is delivered, marked so; one ahead is taken, two ahead are refused."""
    async with simulated_devnet(1) as net:
        system = SteppingClock(net.chain)
        candidates = [candidate(net[0])]
        async with following([net[0]], clock=Clock(wall=system), candidates=candidates) as followed:
            await followed.until(130.5)
            system.step(12 * slots)
            await followed.until(133.5)
            streamed = [head for head in followed.told(NodeHeadSeen, since=132) if head.source is HeadSource.STREAM]
            assert [(head.slot, head.outcome) for head in streamed] == [(132, outcome), (133, outcome)]
            assert {head.late for head in followed.deliveries(since=132)} <= {slots > 0}
            assert len(net[0].opens) == 1


async def test_node_ids_are_names_and_no_places() -> None:
    """I3, rule 1: two nodes on one host are told apart by port and path, and stay who they are wherever they stand."""
    async with simulated_devnet(2) as net:
        urls = [net[0].url, f"{net[1].url}/", f"{net[1].url}/TOKEN"]
        config = FallbackConfig.from_urls(urls)
        async with following(list(net), candidates=[{"url": url} for url in urls]) as followed:
            await followed.until(129.5)
            ids = list(followed.monitor.candidates.current.members)
            assert ids[0] == f"127.0.0.1:{net[0].port}"
            assert all(node_id.startswith(f"127.0.0.1:{net[1].port}-") for node_id in ids[1:])
            assert len(set(ids)) == 3
            assert "TOKEN" not in "".join(ids)
            followed.monitor.update_candidates(reversed(config.candidate_list()))
            assert list(followed.monitor.candidates.current.members) == ids[::-1]
            await followed.until(131.5)
            assert len(net[0].opens) == 1
            assert {head.node_id for head in followed.deliveries()} <= set(ids)
            assert followed.monitor.subscription_healthy(NodeId(ids[0])) is True
