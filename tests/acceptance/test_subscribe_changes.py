"""Topics while subscribers, lists and nodes change: nothing that nobody wants, nothing of who left (T5, G, H15)."""

import logging

import anyio
import pytest

from tests.acceptance.facade import holding, listed, moved
from tests.acceptance.harness import known
from tests.acceptance.subscribed import HEADS, carried, exit_of, lose, opens, reading
from tests.acceptance.test_secrets import HEADER, PASSWORD, PATH, QUERY, SECRETS, USER
from vc_fallback.node.topic_events import read_topic_event
from vc_fallback.testing import SimulatedChain, SimulatedNode, simulated_devnet
from vc_fallback.testing.faults import Delay
from vc_fallback.topics.event import TopicUnavailable

pytestmark = pytest.mark.anyio

EVENTS = "/eth/v1/events"
GENESIS = "/eth/v1/beacon/genesis"


async def test_a_released_topic_is_never_subscribed_again() -> None:
    """Scenario 26, T5: not by a reconnect, a refusal's next turn, a change of the list, or another topic."""
    async with simulated_devnet(2) as net, holding(net) as held:
        lose(net[1], "voluntary_exit")
        async with reading(held, "block"):
            async with reading(held, "voluntary_exit"):
                await held.until(129.5)
                assert carried(net[0]) == {"block", "voluntary_exit"}
            await anyio.sleep(0.2)
            assert [carried(node) for node in net] == [{"block"}, {"block"}]
            before = [len(opens(node)) for node in net]
            for node in net:
                node.end_streams()
            await held.until(133.5)
            await net[0].kill()
            net[0].restart()
            held.calls.update_candidates(listed(*net, priority=1))
            async with reading(held, "attester_slashing"):
                await held.until(140.5)
            for node, count in zip(net, before, strict=True):
                assert all("voluntary_exit" not in topics for topics in opens(node)[count:])
                assert carried(node) - {"attester_slashing"} == {"block"}


@pytest.mark.parametrize("after", [0.0, 0.5, 1.5])
async def test_leaving_while_a_subscribe_is_in_flight_leaves_nothing_upstream(after: float) -> None:
    """Scenario 33, T5: before anything is sent, while the node takes its time, and when it has just answered."""
    async with simulated_devnet(2) as net, holding(net) as held:
        for node in net:
            node.inject(EVENTS, Delay(1.0))
        with anyio.move_on_after(after):
            async with held.calls.subscribe("block", "single_attestation") as events:
                async for _ in events:
                    pass
        await anyio.sleep(5)
        for node in net:
            assert carried(node) == set()
            assert [record.topics for record in node.opens if record.closed is None] == [HEADS]
        assert held.calls.status().topics == {}
        assert all(not node.topics for node in held.calls.status().nodes)


async def test_topics_change_without_a_gap() -> None:
    """T1: the connection that has them is closed only when its successor stands; no event is lost or told twice."""
    async with simulated_devnet(1, slot_duration=2.0) as net, holding(net) as held:
        node = net[0]
        async with reading(held, "voluntary_exit") as reader, anyio.create_task_group() as tasks:
            await held.until(129.5)
            number = 0

            async def publish() -> None:
                nonlocal number
                while True:
                    node.publish("voluntary_exit", exit_of(number))
                    number += 1
                    await anyio.sleep(0.003)

            tasks.start_soon(publish)
            for topics in (("block",), ("block", "attester_slashing"), ("proposer_slashing",)):
                async with held.calls.subscribe(*topics):
                    await anyio.sleep(0.5)
                    assert carried(node) == {"voluntary_exit", *topics}
            await anyio.sleep(0.5)
            tasks.cancel_scope.cancel()
        assert len(opens(node)) == 5, "one after the other, and not more than there are sets"
        assert [value.message.validator_index for value in reader.of("voluntary_exit")] == [*range(number)]


async def test_nothing_of_a_node_that_left_is_told_and_who_stays_is_not_restarted() -> None:
    """G2, G3: buffered events of who left are dropped at reading; the others are stamped anew and keep their
    connections; who comes carries the topics; a node with another address is another one."""
    async with (
        simulated_devnet(4) as net,
        holding(net, listed=net.nodes[:3]) as held,
        held.calls.subscribe("voluntary_exit") as events,
    ):
        await held.until(129.5)
        for number, node in enumerate(net):
            node.publish("voluntary_exit", exit_of(number))
        await anyio.sleep(0.1)
        held.calls.update_candidates([*listed(net[0]), moved(net[3], "bn2"), *listed(net[3], name="new")][:2])
        await anyio.sleep(0.1)
        net[2].publish("voluntary_exit", exit_of(10))
        net[3].publish("voluntary_exit", exit_of(11))
        await anyio.sleep(0.1)
        read = [await events.receive(), await events.receive()]
        assert events.receive_nowait() is None
        told = [(e.node_id, e.provenance.generation, e.value.message.validator_index) for e in read]  # type: ignore[union-attr]
        assert told == [("bn1", 2, 0), ("bn2", 2, 11)]
        assert events.statistics().purged == 2
        assert len(opens(net[0])) == 1
        assert [carried(node) for node in net] == [{"voluntary_exit"}, set(), set(), {"voluntary_exit"}]
        held.calls.update_candidates(listed(net[0], net[3]), restart="all")
        await anyio.sleep(0.5)
        assert len(opens(net[0])) == 2
        assert carried(net[0]) == {"voluntary_exit"}


async def test_tiers_and_roles_change_without_a_restart() -> None:
    """G2, T2: a primary that becomes a fallback is let go when the other has the topics; one without role `events`
    is not asked for any."""
    async with simulated_devnet(2) as net, holding(net) as held, reading(held, "block") as reader:
        await held.until(129.5)
        held.calls.update_candidates(listed(net[0]) + listed(net[1], fallbacks=[net[1]]))
        await held.until(130.5)
        assert [carried(node) for node in net] == [{"block"}, set()]
        held.calls.update_candidates(listed(net[0], roles=["duties"]) + listed(net[1], fallbacks=[net[1]]))
        await held.until(131.5)
        assert [carried(node) for node in net] == [set(), {"block"}]
        assert [len(opens(node)) for node in net] == [1, 2]
        assert reader.slots() == [128, 129, 130, 131]


async def test_events_of_a_quarantined_node_are_never_told() -> None:
    """H15, N7: a node that comes back on another chain says nothing that is told, not even before it is found out; it
    is asked for nothing while it is there, and for everything when it fits again."""
    async with simulated_devnet(2) as net:
        turncoat = net[1]
        async with holding(net) as held, reading(held, "voluntary_exit") as reader:
            await held.until(129.5)
            await turncoat.kill()
            turncoat.override(GENESIS, genesis_validators_root="0x" + "ee" * 32)
            turncoat.latency = 0.2
            turncoat.restart()

            async def talk() -> None:
                for number in range(10_000):
                    turncoat.publish("voluntary_exit", exit_of(number))
                    await anyio.sleep(0.01)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(talk)
                await held.until(133.5)
                tasks.cancel_scope.cancel()
            assert any(record.status == 200 for record in turncoat.opens[2:])
            assert not reader.of("voluntary_exit")
            assert carried(turncoat) == set()
            assert not reader.errors
            turncoat.override(GENESIS)
            await held.until(140.5)
            assert carried(turncoat) == {"voluntary_exit"}
            turncoat.publish("voluntary_exit", exit_of(5))
            await anyio.sleep(1)
            assert reader.sources("voluntary_exit") == {"bn2"}


@pytest.mark.parametrize("configured", [True, False])
async def test_events_before_the_chain_is_known_are_not_told(configured: bool) -> None:
    """I1, G6, H15: the connections stand, and what comes is nobody's until the node is known to be on our chain, which
    may be configured."""
    async with simulated_devnet(1) as net:
        net[0].answer(GENESIS, 503, "{}")
        chain = known(net.chain) if configured else None
        async with holding(net, ready=0, chain=chain) as held, reading(held, "voluntary_exit") as reader:
            await held.until(128.5)
            assert carried(net[0]) == {"voluntary_exit"}
            net[0].publish("voluntary_exit", exit_of(1))
            await anyio.sleep(0.1)
            net[0].heal()
            await held.until(133.5)
            net[0].publish("voluntary_exit", exit_of(2))
            await anyio.sleep(0.1)
            assert [value.message.validator_index for value in reader.of("voluntary_exit")] == [2]


async def test_a_node_that_asks_to_be_left_alone_is_left_alone() -> None:
    """Case 24: what it says to one connection holds for the other, too."""
    async with simulated_devnet(1) as net, holding(net) as held:
        await held.until(129.5)
        net[0].answer(EVENTS, 429, "{}", headers={"Retry-After": "30"}, times=1)
        async with reading(held, "block"):
            await anyio.sleep(1)
            async with reading(held, "single_attestation"):
                await anyio.sleep(28)
                assert opens(net[0]) == [("block",)]
                await anyio.sleep(5)
                assert carried(net[0]) == {"block", "single_attestation"}


@pytest.mark.parametrize("status", [503, 200])
async def test_every_end_backs_off(status: int) -> None:
    """H4, rule 6, scenarios 35 and 37: a minute of refusals, or of clean ends, is at most as many requests as the waits
    allow: 1, 2, 4, 8, 16, 16 s; when the node is well again the topic is carried."""
    async with simulated_devnet(1) as net, holding(net) as held:
        await held.until(129.5)
        net[0].answer(EVENTS, status, "", content_type="text/event-stream")
        async with reading(held, "block"):
            await anyio.sleep(60)
            assert 5 <= len(opens(net[0])) <= 8
            net[0].heal()
            await anyio.sleep(20)
            assert carried(net[0]) == {"block"}


async def test_a_new_version_is_asked_for_what_the_old_one_refused() -> None:
    """T4, H10: at once when it comes back, not when the wait is over."""
    chain = SimulatedChain(start_slot=128)
    async with (
        SimulatedNode(chain, name="bn1") as node,
        holding([node]) as held,
        reading(held, "block", "brand_new") as reader,
    ):
        await held.until(136.5)
        assert len(reader.errors) == 3
        await node.kill()
        node.state.version = "Lighthouse/v9.0.0-simulated"
        node.broadcast.topics.add("brand_new")
        node.restart()
        await held.until(138)
        assert carried(node) == {"block", "brand_new"}


async def test_a_mistake_of_our_own_costs_one_stream_for_a_moment(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Rule 4: it is logged with its traceback, and that connection begins anew with backoff."""
    async with simulated_devnet(2) as net, holding(net, mistakes_of_others=True) as held:
        failed = 0

        def fail(topic: str, data: str) -> object:
            nonlocal failed
            if failed < 2:
                failed += 1
                raise LookupError("mistake")
            return read_topic_event(topic, data)

        monkeypatch.setattr("vc_fallback.topics.hub.read_topic_event", fail)
        async with reading(held, "block") as reader:
            await held.until(132.5)
            assert reader.slots()[-4:] == [129, 130, 131, 132]
        assert sum(record.exc_info is not None for record in caplog.records) == 2
        held.assert_undisturbed()


async def test_no_secret_is_said_of_topics(caplog: pytest.LogCaptureFixture) -> None:
    """Rule 11: a node's words are repeated in errors, logs and the status; its secrets are not, which it echoes."""
    caplog.set_level(logging.DEBUG)
    async with simulated_devnet(1) as net:
        node = net[0]
        url = node.url.replace("//", f"//{USER}:{PASSWORD}@") + f"?key={QUERY}"
        extra: list[dict[str, object]] = [{"url": url, "name": "bn1", "headers": {"X-Api-Key": HEADER}}]
        async with holding(net, listed=[], extra=extra, ready=1) as held:
            node.answer(EVENTS, 400, f'{{"message":"bad: {USER} {PASSWORD} {QUERY} {HEADER} {PATH}"}}')
            async with held.calls.subscribe("block") as events:
                with pytest.raises(TopicUnavailable) as caught:
                    await events.receive()
                texts = [
                    repr(caught.value),
                    str(caught.value.reasons),
                    held.calls.status().model_dump_json(),
                    caplog.text,
                ]
        for secret in {*SECRETS, USER} - {PATH}:
            assert not [text for text in texts if secret in text]
        assert "bad" in texts[0]
