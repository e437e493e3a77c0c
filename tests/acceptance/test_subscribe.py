"""Subscriptions to topics: what comes, from whom, how often, and what a slow reader costs (T1, T5, T6; C8)."""

import json
from typing import Any

import anyio
import pytest

from tests.acceptance.facade import holding
from tests.acceptance.harness import announce
from tests.acceptance.subscribed import HEADS, carried, exit_of, opens, reading, vote_of
from vc_fallback.base.errors import SubscriptionClosed
from vc_fallback.node.events import HeadEvent, ReorgEvent
from vc_fallback.node.values.events import BlockEvent
from vc_fallback.testing import SimulatedChain, SimulatedNode, simulated_devnet
from vc_fallback.testing import events as data_of
from vc_fallback.testing.events import TOPICS
from vc_fallback.testing.http import Answer

pytestmark = pytest.mark.anyio


async def test_each_event_is_told_once_whoever_tells_it_first() -> None:
    """T1, T6: every primary carries the topics, on a second connection, and those of a high rate on a third; copies are
    told once, whatever their spelling."""
    async with simulated_devnet(3) as net, holding(net) as held:
        async with reading(held, "block", "voluntary_exit", "single_attestation") as reader:
            await held.until(130.5)
            for node in net:
                spelled = exit_of(7)
                node.publish("voluntary_exit", {**spelled, "a_word_of": node.name})
                node.publish("single_attestation", vote_of(9))
                await anyio.sleep(0.5)
            await held.until(132.5)
            assert reader.slots() == [128, 129, 130, 131, 132]
            assert len(reader.of("voluntary_exit")) == len(reader.of("single_attestation")) == 1
            assert reader.sources("voluntary_exit") == {"bn1"}
            for node in net:
                assert sorted(opens(node)) == [("block", "voluntary_exit"), ("single_attestation",)]
            (told,) = [event for event in reader.events if event.topic == "voluntary_exit"]
            assert json.loads(told.data) == {**exit_of(7), "a_word_of": "bn1"}
            assert told.provenance.generation == 1
            assert told.version is None
            numbers = held.calls.topic_statistics()
            assert sum(n.told for n in numbers.values()) == len(reader.events)
            assert sum(n.copies for n in numbers.values()) == 2 * len(reader.events)
        held.assert_undisturbed()


async def test_head_topics_are_never_touched_by_other_topics() -> None:
    """T1: subscribing and leaving, often, costs no head and no head stream."""
    async with simulated_devnet(2) as net, holding(net) as held:
        for slot in range(128, 134):
            topics = ("block", "voluntary_exit", "attester_slashing")[: 1 + slot % 3]
            async with reading(held, *topics):
                await held.until(slot + 0.7)
        await anyio.sleep(0.1)
        for node in net:
            assert [record.topics for record in node.opens if record.closed is None] == [HEADS]
        held.assert_every_slot_delivered(128, 133)
        assert not [end for node in net for end in held.ends(node)]


async def test_the_heads_topics_need_no_other_connection() -> None:
    """T1: `head`, `head_v2` and `chain_reorg` come by the head streams; both forms are one (H11)."""
    async with simulated_devnet(2) as net, holding(net) as held:
        async with reading(held, "head", "head_v2", "chain_reorg") as reader, reading(held, "head_v2") as other:
            await held.until(130.5)
            net.chain.branch("side", above=129)
            for node in net:
                node.switch("side")
            await held.until(131.5)
            assert all(isinstance(value, HeadEvent) for value in reader.of("head"))
            heads = [(head.slot, head.root) for head in held.deliveries(since=128.01)]
            assert [(value.slot, value.block) for value in reader.of("head")] == heads
            assert [event.value for event in other.events] == reader.of("head")
            (reorg,) = reader.of("chain_reorg")
            assert isinstance(reorg, ReorgEvent)
            assert reorg.slot == 130
            assert held.calls.status().topics["head"].live == ("bn1", "bn2")
        for node in net:
            assert [record.topics for record in node.opens] == [HEADS]


async def test_a_reorg_of_a_fallback_is_not_told_while_a_primary_serves() -> None:
    """C5: as its heads are not."""
    async with (
        simulated_devnet(2) as net,
        holding(net, fallbacks=[net[1]]) as held,
        reading(held, "chain_reorg", "head") as reader,
    ):
        await held.until(130.5)
        net.chain.branch("side", above=129)
        net[1].switch("side")
        await held.until(131.5)
        assert reader.of("chain_reorg") == []
        assert {event.node_id for event in reader.events if event.value.slot > 129} == {"bn1"}  # type: ignore[union-attr]
        net[0].switch("side")
        await anyio.sleep(0.1)
        assert reader.sources("chain_reorg") == {"bn1"}


async def test_a_topic_that_is_not_known_here_passes_as_it_is() -> None:
    """T1: raw data; JSON as it is, told once, text where it is none."""
    chain = SimulatedChain(start_slot=128)
    async with (
        SimulatedNode(chain, name="bn1", topics=[*TOPICS, "brand_new"]) as first,
        SimulatedNode(chain, name="bn2", topics=[*TOPICS, "brand_new"]) as second,
        holding([first, second]) as held,
        reading(held, "brand_new") as reader,
    ):
        await held.until(128.5)
        first.publish("brand_new", '{"b": [1, "2"], "a": null}')
        await anyio.sleep(0.1)
        second.publish("brand_new", '{"a":null,"b":[1,"2"]}')
        second.publish("brand_new", "no JSON")
        await held.until(129.5)
        assert reader.of("brand_new") == [{"a": None, "b": [1, "2"]}, "no JSON"]
        assert reader.events[0].data == '{"b": [1, "2"], "a": null}'


async def test_the_version_beside_the_data_can_be_read() -> None:
    """Cases 9 and 10: at the beginning or the end of the event."""
    chain = SimulatedChain(start_slot=128)
    async with (
        SimulatedNode(chain, name="bn1", topics=[*TOPICS, "brand_new"]) as node,
        holding([node]) as held,
        reading(held, "brand_new") as reader,
    ):
        await held.until(128.5)
        node.publish("brand_new", '{"version":"Fulu","data":{}}')
        node.publish("brand_new", json.dumps({"data": {"x": "y" * 500}, "version": "gloas"}))
        node.publish("brand_new", json.dumps({"data": {"x": "y" * 500}}))
        await held.until(128.6)
        assert [event.version for event in reader.events] == ["fulu", "gloas", None]


async def test_wrong_shapes_cost_that_event_only(caplog: pytest.LogCaptureFixture) -> None:
    """Rule 4: events that do not follow the API are counted by topic and told at 1, 2, 4, 8 …; a good copy of another
    node is told; the connection lives."""
    async with simulated_devnet(2) as net, holding(net) as held, reading(held, "block", "voluntary_exit") as reader:
        await held.until(128.5)
        for number, (_, text) in enumerate(data_of.malformed_heads(data_of.block(held.block(128)))):
            net[0].publish("block" if number < 9 else "voluntary_exit", text)
        net[0].publish("block", "null")
        net[1].publish("voluntary_exit", exit_of(3))
        await held.until(130.5)
        assert reader.slots() == [128, 129, 130]
        assert len(reader.of("voluntary_exit")) == 1
        malformed = held.calls.topic_statistics()[held.id(net[0])].malformed
        assert set(malformed) == {"block", "voluntary_exit"}
        assert sum(malformed.values()) >= 20
        warned = [r for r in caplog.records if r.levelname == "WARNING" and "malformed event" in r.getMessage()]
        assert len(warned) == sum(count.bit_length() for count in malformed.values())
        assert [len(opens(node)) for node in net] == [1, 1]


async def test_a_topic_of_nothing_but_nonsense_is_given_up_for_a_while() -> None:
    """Rule 4: it costs that topic on that node, and not the others of its connection."""
    async with simulated_devnet(2) as net, holding(net) as held, reading(held, "block", "voluntary_exit") as reader:
        await held.until(128.5)
        for _ in range(64):
            net[0].publish("voluntary_exit", "[]")
        await anyio.sleep(0.5)
        assert (carried(net[0]), carried(net[1])) == ({"block"}, {"block", "voluntary_exit"})
        net[1].publish("voluntary_exit", exit_of(3))
        await held.until(130.5)
        assert carried(net[0]) == {"block", "voluntary_exit"}
        assert len(reader.of("voluntary_exit")) == 1
        assert reader.slots() == [128, 129, 130]
        assert not reader.errors


async def test_a_huge_event_is_an_event() -> None:
    """Case 14, scenario 39: 300 kB on one line."""
    async with simulated_devnet(1) as net, holding(net) as held, reading(held, "attester_slashing") as reader:
        await held.until(128.5)
        net[0].publish("attester_slashing", data_of.attester_slashing())
        await held.until(128.9)
        (slashing,) = reader.of("attester_slashing")
        assert len(slashing.attestation_1.attesting_indices) == 15_000


async def test_a_slow_reader_costs_nobody() -> None:
    """Rule 7, C8, scenario 38: its oldest events go and are counted, or it is closed; all others get all in time."""
    async with simulated_devnet(1) as net, holding(net) as held:
        calls = held.calls
        async with (
            reading(held, "voluntary_exit") as reader,
            calls.subscribe("voluntary_exit", buffer=4) as slow,
            calls.subscribe("voluntary_exit", buffer=4, on_full="close") as closing,
        ):
            await held.until(128.5)
            for number in range(10):
                net[0].publish("voluntary_exit", exit_of(number))
            await anyio.sleep(0.1)
            assert [value.message.validator_index for value in reader.of("voluntary_exit")] == [*range(10)]
            assert slow.statistics().dropped == 6
            first = await slow.receive()
            assert first.value.message.validator_index == 6  # type: ignore[union-attr]
            assert closing.close_reason == "buffer full"
            for _ in range(4):
                await closing.receive()
            with pytest.raises(SubscriptionClosed):
                await closing.receive()


async def test_fifty_subscribers_are_one_to_the_nodes() -> None:
    """T1, rule 7: each gets all; the nodes have one connection for them all, and lose it with the last."""
    async with simulated_devnet(2) as net, holding(net) as held:
        subscriptions = [held.calls.subscribe("block", "voluntary_exit") for _ in range(50)]
        await held.until(130.5)
        for node in net:
            assert opens(node) == [("block", "voluntary_exit")]
        for subscription in subscriptions[:-1]:
            slots = [
                event.value.slot
                for _ in range(3)
                if isinstance((event := await subscription.receive()).value, BlockEvent)
            ]
            assert slots == [128, 129, 130]
            subscription.close()
        await anyio.sleep(0.1)
        assert [carried(node) for node in net] == [{"block", "voluntary_exit"}] * 2
        subscriptions[-1].close()
        await anyio.sleep(0.1)
        assert [carried(node) for node in net] == [set(), set()]


@pytest.mark.parametrize(
    ("topics", "more"),
    [((), {}), (("a b",), {}), (("x&topics=head",), {}), (("error",), {}), (("block",), {"buffer": 0})],
)
async def test_what_cannot_be_subscribed_to_is_said_at_once(topics: tuple[str, ...], more: dict[str, Any]) -> None:
    """T1: nothing is sent."""
    async with simulated_devnet(1) as net, holding(net) as held:
        with pytest.raises(ValueError, match=r"topic|buffer"):
            held.calls.subscribe(*topics, **more)
        held.calls.subscribe(*(f"t{number}" for number in range(64)))
        with pytest.raises(ValueError, match="64 topics"):
            held.calls.subscribe("one_more")


async def test_a_subscription_ends_with_the_block() -> None:
    """Rule 5: who reads when the nodes are left is let go; nobody can subscribe before or after."""
    ended = anyio.Event()
    async with simulated_devnet(1) as net:
        async with anyio.create_task_group() as tasks, holding(net) as held:
            subscription = held.calls.subscribe("block")

            async def read() -> None:
                async for _ in subscription:
                    pass
                ended.set()

            tasks.start_soon(read)
            await held.until(129.5)
        assert ended.is_set()
        with pytest.raises(RuntimeError):
            held.calls.subscribe("block")


@pytest.mark.parametrize(
    "data",
    [
        "Topic weird not allowed",
        '{"message":"Topics block,weird not allowed for event subscriptions"}',
        '{"status_code":500,"message":"Topic weird not allowed"}',
        '{"code":3,"message":"Topic weird not allowed"}',
    ],
)
async def test_a_refusal_in_the_stream_costs_that_topic_only(data: str) -> None:
    """Rule 4, case 4: whatever number it has, or none."""
    async with simulated_devnet(1) as net:
        node = net[0]
        node.broadcast.unknown_topics = "open"

        async def refuse() -> None:
            refused: set[int] = set()
            while True:
                for stream in node.broadcast.streams:
                    if "weird" in stream.topics and id(stream) not in refused:
                        refused.add(id(stream))
                        stream.event(node.broadcast.framing.event("error", data))
                        stream.end()
                await anyio.sleep(0.01)

        async with holding(net) as held, anyio.create_task_group() as tasks:
            await held.until(129.5)
            tasks.start_soon(refuse)
            async with reading(held, "block", "weird") as reader:
                await held.until(136.5)
                assert reader.slots() == [130, 131, 132, 133, 134, 135, 136]
            tasks.cancel_scope.cancel()


async def test_a_head_is_told_as_its_own_node_said_it() -> None:
    """Rule 1: whatever others say of the same block, or one that is on another chain."""
    async with simulated_devnet(3) as net:
        first, second, other = net
        other.override("/eth/v1/beacon/genesis", genesis_validators_root="0x" + "ab" * 32)
        async with holding(net, ready=2, fallbacks=[second, other]) as held, reading(held, "head") as reader:
            await held.until(130.5)
            first.silence()
            await held.until(131.3)
            wrong = "0x" + "66" * 32
            announce(other, held.block(131), current_duty_dependent_root=wrong, state=wrong)
            await held.until(131.4)
            await first.kill()
            await held.until(131.6)
            (event,) = [event for event in reader.events if event.value.slot == 131]  # type: ignore[union-attr]
            assert event.node_id == "bn2"
            assert isinstance(event.value, HeadEvent)
            assert bytes.fromhex("66" * 32) not in (event.value.state, event.value.next_epoch_dependent_root)


async def test_a_head_that_was_optimistic_is_told_as_the_valid_one_it_became() -> None:
    """H12: it was held back until then."""
    async with simulated_devnet(1) as net, holding(net) as held, reading(held, "head") as reader:
        await held.until(130.5)
        net[0].state.optimistic = True
        await held.until(131.12)
        net[0].state.optimistic = False
        await held.until(131.9)
        (event,) = [event for event in reader.events if event.value.slot == 131]  # type: ignore[union-attr]
        assert isinstance(event.value, HeadEvent)
        assert not event.value.optimistic


async def test_a_reorg_that_comes_again_is_told_again() -> None:
    """T6: A → B → A → B is three reorgs, each told once, however many nodes tell of it."""
    async with simulated_devnet(2) as net:
        net.chain.branch("other", above=129)
        async with holding(net) as held, reading(held, "chain_reorg") as reader:
            await held.until(131.3)
            for place in ("other", "main", "other", "main"):
                for node in net:
                    node.switch(place)
                    await anyio.sleep(0.2)
            a, b = held.block(131).root, held.block(131, "other").root
            assert [event.value.new_head_block for event in reader.events] == [b, a, b, a]  # type: ignore[union-attr]


@pytest.mark.parametrize("status", [404, 422, 500, 501])
async def test_a_refusal_by_another_status_costs_that_topic_only(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 4, case 6: frameworks have their own ideas of what an unknown value is."""
    monkeypatch.setattr(
        "vc_fallback.testing.broadcast.Answer", lambda given, *rest: Answer(status if given == 400 else given, *rest)
    )
    async with simulated_devnet(1) as net, holding(net) as held:
        await held.until(129.5)
        async with reading(held, "block", "weird") as reader:
            await held.until(134.5)
            assert reader.slots() == [130, 131, 132, 133, 134]


async def test_a_subscription_that_its_reader_has_closed_only_ends() -> None:
    """T7: nobody serves the topic, and nobody wants it any more."""
    async with simulated_devnet(1) as net, holding(net) as held, held.calls.subscribe("weird") as events:
        await held.until(130.5)
        events.close()
        assert [event async for event in events] == []
