"""Topics across tiers: primaries while one is up, without a gap, and an error where nobody is (T2–T4, T7)."""

import anyio
import pytest

from tests.acceptance.facade import holding, listed
from tests.acceptance.subscribed import carried, exit_of, lose, opens, reading
from vc_fallback.base.health import HealthState
from vc_fallback.testing import SimulatedChain, SimulatedNode, simulated_devnet
from vc_fallback.testing.events import TOPICS
from vc_fallback.topics.event import TopicUnavailable

pytestmark = pytest.mark.anyio

EVENTS = "/eth/v1/events"


async def test_a_topic_that_both_primaries_lose_is_carried_by_the_fallback() -> None:
    """Scenarios 24 and 28, T2–T4: the fallback carries it, once; primaries go on to try; as soon as one has it live the
    fallback lets go of it, not before; no event is lost."""
    async with simulated_devnet(3) as net:
        first, second, fallback = net
        async with holding(net, fallbacks=[fallback]) as held, reading(held, "block", "voluntary_exit") as reader:
            await held.until(129.5)
            assert not opens(fallback), "nothing is asked of it while a primary has everything live"
            lose(first, "voluntary_exit")
            await held.until(130.5)
            assert not opens(fallback)
            assert (carried(first), carried(second)) == ({"block"}, {"block", "voluntary_exit"})
            lose(second, "voluntary_exit")
            await held.until(131.5)
            assert opens(fallback) == [("voluntary_exit",)]
            assert carried(first) == carried(second) == {"block"}
            fallback.publish("voluntary_exit", exit_of(1))
            await held.until(136.5)
            for primary in (first, second):
                refused = [record for record in primary.opens if record.status == 400]
                assert 5 <= len(refused) <= 8, "1, 2, 4, 8, 16, 30 s"
            assert opens(fallback) == [("voluntary_exit",)]
            second.broadcast.topics.add("voluntary_exit")
            with anyio.fail_after(40):
                while "voluntary_exit" not in carried(second):
                    await anyio.sleep(0.01)
                    assert "voluntary_exit" in carried(fallback) or "voluntary_exit" in carried(second)
            await anyio.sleep(0.5)
            assert carried(fallback) == set()
            second.publish("voluntary_exit", exit_of(2))
            await held.until(int(held.now) + 1.5)
            assert [value.message.validator_index for value in reader.of("voluntary_exit")] == [1, 2]
            assert reader.slots() == [*range(128, int(held.now) + 1)]
            assert reader.sources() <= {"bn1", "bn2"}
            assert not reader.errors
        assert not [end for node in net for end in held.ends(node)], "no head stream was touched"


async def test_the_fallback_takes_over_from_a_primary_that_dies_and_hands_back() -> None:
    """T2, T3: every block is told while the only primary is away."""
    async with simulated_devnet(2) as net:
        primary, fallback = net
        async with holding(net, fallbacks=[fallback]) as held, reading(held, "block") as reader:
            await held.until(129.5)
            await primary.kill()
            await held.until(134.5)
            assert carried(fallback) == {"block"}
            primary.restart()
            await held.until(140.5)
            assert (carried(primary), carried(fallback)) == ({"block"}, set())
            assert reader.slots() == [*range(128, 141)]
            sources = {event.value.slot: event.node_id for event in reader.events}  # type: ignore[union-attr]
            assert sources[132] == "bn2"
            assert sources[140] == "bn1"


@pytest.mark.parametrize("how", ["stopped", "streams"])
async def test_the_fallback_takes_over_from_a_primary_that_is_silent(how: str) -> None:
    """T2, C5, scenario 10: a stopped process, and one whose streams alone say nothing, keep their connections; their
    topics count no more once the head stream is known to be stalled."""
    async with simulated_devnet(2) as net:
        primary, fallback = net
        async with holding(net, fallbacks=[fallback]) as held, reading(held, "block") as reader:
            await held.until(130.5)
            if how == "stopped":
                primary.freeze()
            else:
                primary.silence()
            await held.until(136.5)
            assert carried(fallback) == {"block"}
            assert {134, 135, 136} <= set(reader.slots())
            assert (held.health(primary).state is HealthState.HEALTHY) == (how == "streams")
            primary.heal()
            await held.until(146.5)
            assert (carried(primary), carried(fallback)) == ({"block"}, set())
            assert reader.slots()[-8:] == [*range(139, 147)]


async def test_a_connection_that_falls_silent_for_ever_is_replaced_with_the_head_stream() -> None:
    """H5, rule 2: nothing is closed, new connections work, and a rare topic says nothing of its own."""
    async with simulated_devnet(2, framings=["nimbus"]) as net:
        async with holding(net) as held, reading(held, "block", "voluntary_exit") as reader:
            await held.until(130.5)
            net[0].vanish()
            await held.until(135.5)
            net[0].publish("voluntary_exit", exit_of(1))
            await held.until(136.5)
            assert len(reader.of("voluntary_exit")) == 1
            assert reader.slots() == [*range(128, 137)]
        net[0].heal()


async def test_headers_that_come_with_the_first_event_are_no_refusal() -> None:
    """T1, H2: the topic is live 2½ slots after the request on a healthy node, and the fallback is let go then; nothing
    is opened anew however long nothing comes."""
    chain = SimulatedChain(start_slot=128)
    async with (
        SimulatedNode(chain, name="bn1", framing="lodestar") as primary,
        SimulatedNode(chain, name="bn2") as fallback,
        holding([primary, fallback], fallbacks=[fallback]) as held,
        reading(held, "voluntary_exit") as reader,
    ):
        await held.until(130)
        assert carried(fallback) == {"voluntary_exit"}
        assert held.calls.status().topics["voluntary_exit"].live == ("bn2",)
        await held.until(131)
        assert carried(fallback) == set()
        assert held.calls.status().topics["voluntary_exit"].live == ("bn1",)
        await held.until(150)
        assert opens(primary) == [("voluntary_exit",)]
        primary.publish("voluntary_exit", exit_of(1))
        await anyio.sleep(0.1)
        assert len(reader.of("voluntary_exit")) == 1
        assert not reader.errors


async def test_a_topic_that_everybody_refuses_is_an_error_and_the_next_attempt_works(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Scenarios 17 and 27, T7, T4: said at once, with every node's words; asked for with backoff; the same subscription
    has its events when a node takes it."""
    chain = SimulatedChain(start_slot=128)
    async with (
        SimulatedNode(chain, name="bn1") as first,
        SimulatedNode(chain, name="bn2", framing="nimbus") as second,
        holding([first, second], fallbacks=[second]) as held,
        reading(held, "block", "brand_new") as reader,
    ):
        await held.until(129.5)
        ((at, error),) = reader.errors
        assert held.position(at) < 128.1
        assert error.topic == "brand_new"
        assert error.reasons == {"bn1": "400 Invalid topic: brand_new", "bn2": "400 Invalid topics value"}
        assert str(error).startswith("brand_new: no node carries it: bn1: 400 Invalid topic: brand_new; bn2: ")
        await held.until(138.5)
        # It is said again after two slots and an attempt, as long as nobody has it.
        assert [round((one - at) / 12, 2) for one, _ in reader.errors] == [0, 3.25, 6.5, 9.75]
        assert reader.slots() == [*range(128, 139)], "the other topic is not touched"
        assert all(len([r for r in node.opens if r.status == 400]) <= 9 for node in (first, second))
        refusals = [len([record for record in node.opens if record.status == 400]) - 1 for node in (first, second)]
        warned = [record for record in caplog.records if "does not carry brand_new" in record.getMessage()]
        assert 2 * 3 <= len(warned) <= sum(count.bit_length() + 1 for count in refusals), "number 1, 2, 4, 8 (H9)"
        second.broadcast.topics.add("brand_new")
        await held.until(142.5)
        second.publish("brand_new", "{}")
        await anyio.sleep(0.1)
        assert reader.of("brand_new") == [{}]


async def test_who_subscribes_anew_has_an_attempt_of_its_own() -> None:
    """T7: a refusal from before is none of the new one; and no loop of subscribers is a loop of requests (rule 6)."""
    chain = SimulatedChain(start_slot=128)
    async with SimulatedNode(chain, name="bn1") as node, holding([node]) as held:
        began = anyio.current_time()
        for _ in range(5):
            async with held.calls.subscribe("brand_new") as events:
                with pytest.raises(TopicUnavailable):
                    await events.receive()
            await anyio.sleep(0.01)
        assert anyio.current_time() - began >= 0.8 * (1 + 2 + 4 + 8)
        assert len(opens(node)) == 5
        node.broadcast.topics.add("brand_new")
        async with held.calls.subscribe("brand_new") as events:
            await held.wait_slots(3)
            node.publish("brand_new", "{}")
            assert (await events.receive()).value == {}


@pytest.mark.parametrize("how", ["refused", "hangs", "errors", "page", "nobody"])
async def test_a_topic_that_nobody_serves_is_an_error_in_bounded_time(how: str) -> None:
    """T7: two slots and an attempt at most, whatever is wrong, with a reason of each node."""
    async with simulated_devnet(2) as net, holding(net, fallbacks=[net[1]]) as held:
        await held.until(129.5)
        for node in net:
            if how == "refused":
                await node.kill()
            elif how == "hangs":
                node.freeze()
            elif how == "errors":
                node.answer(EVENTS, 500, "{}")
            elif how == "page":
                node.answer(EVENTS, 200, "<html>", content_type="text/html")
            else:
                held.calls.update_candidates([])
        began = anyio.current_time()
        async with held.calls.subscribe("voluntary_exit") as events:
            with pytest.raises(TopicUnavailable) as caught:
                await events.receive()
            # A frozen node is first found to be so by the watchdog of its head stream.
            assert 39 <= anyio.current_time() - began <= (39 if how != "hangs" else 39 + 4 * 12) + 0.1
            assert set(caught.value.reasons) == (set() if how == "nobody" else {"bn1", "bn2"})
            for node in net:
                node.heal()
            held.calls.update_candidates(listed(*net))
            await held.wait_slots(4)
            net[0].publish("voluntary_exit", exit_of(1))
            await events.receive()


@pytest.mark.parametrize("framing", ["lighthouse", "prysm", "lodestar", "nimbus", "teku"])
async def test_a_node_that_does_not_know_a_topic_keeps_the_others(framing: str) -> None:
    """Cases 4 to 7, H10: however it refuses, in whatever words, the other topics of it are carried, and the fallback
    carries the one."""
    chain = SimulatedChain(start_slot=128)
    old = [topic for topic in TOPICS if topic != "proposer_preferences"]
    topics = ("attester_slashing", "block", "payload_attributes", "proposer_preferences", "voluntary_exit")
    async with (
        SimulatedNode(chain, name="bn1", framing=framing, topics=old) as primary,  # type: ignore[arg-type]
        SimulatedNode(chain, name="bn2") as fallback,
        holding([primary, fallback], fallbacks=[fallback]) as held,
        reading(held, *topics) as reader,
    ):
        await held.until(131.5)
        assert carried(primary) >= set(topics) - {"proposer_preferences"}
        # One that ignores what it does not know beside what it knows cannot be told from one that knows it (case 5).
        assert carried(fallback) == (set() if framing == "lodestar" else {"proposer_preferences"})
        assert reader.slots() == [128, 129, 130, 131]
        assert len([record for record in primary.opens if record.status == 400]) <= 10
        assert not reader.errors


async def test_a_topic_refused_within_a_stream_costs_that_topic() -> None:
    """Case 4: 200, and 400 as the only event: the connection from before carries the others meanwhile."""
    error = (
        'event: error\ndata: {"status_code":400,"message":"Topic brand_new not allowed for event subscriptions"}\n\n'
    )
    async with simulated_devnet(1) as net, holding(net) as held, reading(held, "block") as reader:
        await held.until(129.5)
        net[0].answer(EVENTS, 200, error, content_type="text/event-stream", times=1)
        async with reading(held, "brand_new") as other:
            await held.until(130.5)
            assert [error.topic for _, error in other.errors] == ["brand_new"]
        assert carried(net[0]) == {"block"}
        assert len(opens(net[0])) <= 6
        await held.until(132.5)
        assert reader.slots() == [128, 129, 130, 131, 132]


async def test_the_old_connection_goes_only_when_the_new_one_is_surely_taken() -> None:
    """Case 4, T1: the refusal comes a moment after the answer."""
    chain = SimulatedChain(start_slot=128)
    async with (
        SimulatedNode(chain, name="bn1", topics=[*TOPICS, "brand_new"]) as node,
        holding([node]) as held,
        reading(held, "block"),
    ):
        await held.until(129.5)
        async with reading(held, "brand_new") as other:
            # Connections take no virtual time, and a new one counts as taken 0.1 s after its answer.
            await anyio.sleep(0.05)
            refused = node.broadcast.framing.event("error", '{"code":400,"message":"not brand_new"}')
            (stream,) = (stream for stream in node.streams if "brand_new" in stream.topics)
            stream.body(refused)
            await anyio.sleep(0.5)
            assert other.errors
        assert [record.closed for record in node.opens if record.topics == ("block",)] == [None]


async def test_the_heads_topics_are_an_error_too_where_nobody_serves() -> None:
    """T7: a subscriber to heads alone is told as well, and has its heads when a node is back."""
    async with simulated_devnet(1) as net, holding(net) as held, reading(held, "head") as reader:
        await held.until(129.5)
        await net[0].kill()
        await held.until(133)
        ((at, error),) = reader.errors
        assert 39 <= at - 18 <= 39.1
        assert error.reasons == {"bn1": "head stream backoff"}
        net[0].restart()
        await held.until(138.5)
        assert [value.slot for value in reader.of("head")][-2:] == [137, 138]
        assert len(reader.errors) == 1
