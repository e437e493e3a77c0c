"""What a facade says of itself: `status`, `plan`, `explain`, `wait_ready`; `drain` (O2, N11, I1, G6)."""

import json
import math
import re

import anyio
import pytest

from tests.acceptance.facade import VERSION, A, B, C, Held, holding, listed
from vc_fallback.base.health_signals import DutiesMoved
from vc_fallback.base.types import Role, root_hex
from vc_fallback.config import FallbackConfig
from vc_fallback.fallback import BeaconNodeFallback, NotReadyInTime
from vc_fallback.node.values.preparations import ProposerPreparation
from vc_fallback.status import Status
from vc_fallback.testing import Delay, SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

SYNCING = "/eth/v1/node/syncing"


async def test_the_status_of_everything() -> None:
    """O2: as of now, complete, and the same after a round through JSON."""
    async with simulated_devnet(3) as net, holding(net, fallbacks=[net[2]]) as held:
        first, second, _ = net
        await held.until(131.5)
        first.answer(VERSION, 429, headers={"Retry-After": "30"}, times=1)
        await held.version()
        second.state.el_offline = True
        held.calls.drain(C, 100)
        await (await held.calls.prepare_beacon_proposer([ProposerPreparation(1, bytes(20))])).settled()
        await held.until(132.95)
        status = held.calls.status()
        assert Status.model_validate_json(status.model_dump_json()) == status
        assert status.at == held.calls.clock.unix()
        assert (status.generation, status.ready, status.all_unhealthy, status.duties) == (1, True, False, "bn1")
        assert status.chain is not None
        assert (status.chain.slot, status.chain.epoch, status.chain.slot_duration) == (132, 4, 12.0)
        assert status.head is not None
        assert (status.head.slot, status.head.root) == (132, root_hex(held.block(132).root))
        assert status.remembered == {"prepare_beacon_proposer": 1} or sum(status.remembered.values()) == 1
        one, two, three = status.nodes
        assert [node.node for node in status.nodes] == ["bn1", "bn2", "bn3"]
        assert one.cooling == pytest.approx(30 - 17.4)
        assert (one.rank, one.state, one.subscription_healthy, one.head_slot) == (1, "healthy", True, 132)
        assert two.el_offline is True
        assert three.tier == "fallback"
        assert three.drained == pytest.approx(100 - 17.4)
        assert one.explanation == held.calls.explain(A)
        assert {key for key, value in json.loads(one.model_dump_json()).items() if value is None} <= {
            "clock_offset", "latency", "duty_latency", "peers",
        }  # fmt: skip


async def test_the_status_before_anything_is_known() -> None:
    """G6, I1: no node, no chain, no head; nothing of it is an error."""
    async with BeaconNodeFallback(FallbackConfig()) as nodes:
        status = nodes.status()
        assert (status.nodes, status.chain, status.head, status.ready, status.duties) == ((), None, None, False, None)
        assert json.loads(status.model_dump_json())["chain"] is None
        assert nodes.plan().nodes == ()
        assert nodes.slots is None


async def test_ready_with_a_configured_chain_and_with_one_that_is_asked_for() -> None:
    """I1: with a configured chain slots are there at once; else as soon as the nodes have said which it is."""
    async with simulated_devnet(3) as net:
        async with holding(net, ready=0) as held:
            assert held.calls.slots is not None
            assert held.calls.plan().nodes == ()
            await held.calls.wait_ready(3, timeout=1)
        config = FallbackConfig.of({"candidates": [{"url": node.url, "name": node.name} for node in net]})
        async with BeaconNodeFallback(config, clock=net.clock) as nodes:
            before = nodes.slots
            await nodes.wait_ready(3, timeout=10)
            assert before is None
            assert nodes.slots
            assert {*nodes.plan().nodes} == {A, B, C}
            assert nodes.status().chain is not None


async def test_ready_says_what_is_wanting() -> None:
    """A time-out with each node's reason: down, syncing, another chain, drained."""
    async with simulated_devnet(4) as net, simulated_devnet(1, seed=5) as other:
        down, syncing, drained, well = net
        down.refuse()
        syncing.override(SYNCING, is_syncing=True, sync_distance="500", head_slot="1")
        extra: list[dict[str, object]] = [{"url": other[0].url, "name": "else"}]
        async with holding(net, ready=0, extra=extra) as held:
            await held.calls.wait_ready(1, timeout=5)
            held.calls.drain(held.id(drained), 1000)
            began = anyio.current_time()
            with pytest.raises(NotReadyInTime) as caught:
                await held.calls.wait_ready(3, timeout=20)
            assert anyio.current_time() == began + 20
            assert re.fullmatch(
                r"1 of 3 nodes are usable after 20 s: bn2: 128 slots behind the tip; bn3: drained: for maintenance; "
                r"bn1: its chain is not known yet: \d failed checks in a row: .*cannot connect \(ECONNREFUSED\); "
                r"else: genesis_validators_root differs: 0x\w{8}…, not 0x\w{8}…",
                str(caught.value),
            )
            assert held.calls.plan().nodes[0] == held.id(well)
            for timeout in (0, -5.0):
                with pytest.raises(NotReadyInTime):
                    await held.calls.wait_ready(3, timeout=timeout)
            await held.calls.wait_ready(1, timeout=0)
            assert anyio.current_time() == began + 20


async def test_ready_is_who_has_said_so() -> None:
    """A node that has not answered a check yet may be syncing: it is not ready for being ours."""
    async with simulated_devnet(2) as net:
        for node in net:
            node.inject(SYNCING, Delay(0.5))
        net[0].override(SYNCING, is_syncing=True, sync_distance="500", head_slot="1")
        async with holding(net, ready=0) as held:
            began = anyio.current_time()
            with pytest.raises(
                NotReadyInTime, match=r"0 of 1 nodes are usable after 0\.1 s: bn1: not checked yet; bn2: not"
            ):
                await held.calls.wait_ready(1, timeout=0.1)
            assert not held.calls.status().ready
            assert await held.version() in (A, B), "they are asked all the same"
            await held.calls.wait_ready(1, timeout=5)
            assert anyio.current_time() == pytest.approx(began + 0.5, abs=0.01)
            with pytest.raises(NotReadyInTime, match=r"1 of 2 nodes are usable after 5 s: bn1: 12[67] slots behind"):
                await held.calls.wait_ready(2, timeout=5)


async def test_ready_when_nodes_join_later() -> None:
    """G6: an empty list at first, then nodes that are down, then they come up."""
    async with simulated_devnet(2) as net, holding(net, listed=[], ready=0) as held:
        net[1].refuse()
        came: list[float] = []

        async def wait(count: int) -> None:
            await held.calls.wait_ready(count)
            came.append(anyio.current_time())

        began = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, 1)
            tasks.start_soon(wait, 2)
            await anyio.sleep(10)
            with pytest.raises(NotReadyInTime, match="0 of 1 nodes are usable after 1 s: the list of nodes is empty"):
                await held.calls.wait_ready(1, timeout=1)
            held.calls.update_candidates(listed(*net))
            await anyio.sleep(10)
            assert [moment - began for moment in came] == [pytest.approx(11, abs=0.1)]
            net[1].listen()
        assert 21 < came[1] - began < 40


@pytest.mark.parametrize(("count", "timeout"), [(0, 1.0), (-1, None), (1, math.nan)])
async def test_ready_for_nothing(count: int, timeout: float | None) -> None:
    """A mistake of the caller's is one."""
    async with simulated_devnet(1) as net, holding(net) as held:
        with pytest.raises(ValueError, match="is"):
            await held.calls.wait_ready(count, timeout)


async def test_draining_a_node() -> None:
    """N11: requests go elsewhere from the next one on, calls under way go on, and it comes back by itself."""
    async with simulated_devnet(2) as net, holding(net) as held:
        await held.until(135.5)
        assert await held.version() == A
        held.calls.drain(A, 60)
        assert await held.version() == B
        assert "drained" in held.calls.plan().reason(A)
        assert [move.target for move in held.told(DutiesMoved, since=135.5)] == ["bn2"]
        net[1].answer(VERSION, 503)
        assert await held.version() == A, "there is nobody else"
        net[1].heal()
        await held.until(135.5 + 5 + 5)
        assert held.calls.plan().nodes[0] == A
        held.calls.drain(A, 60)
        held.calls.drain(A, 0)
        assert held.calls.status().nodes[0].drained == 0
        for duration in (-1, math.nan, math.inf):
            with pytest.raises(ValueError, match="drain"):
                held.calls.drain(A, duration)
        with pytest.raises(KeyError):
            held.calls.drain(C, 1)


async def reasons(held: Held) -> list[str]:
    return [held.calls.plan(role).reason(node) for role in (None, *Role) for node in held.calls.plan(role).nodes]


async def test_a_refused_connection_makes_a_detour_and_no_failover() -> None:
    """Scenario 53a: the next node at once, while duties stay; after a good check requests are back."""
    async with simulated_devnet(3) as net, holding(net) as held:
        first: SimulatedNode = net[0]
        await held.until(140.2)
        await first.kill(reset=True)
        began = anyio.current_time()
        assert await held.version() == B
        assert anyio.current_time() == began
        first.restart()
        assert held.health(first).suspect
        assert held.calls.plan().nodes == (B, C, A)
        assert any("last of its tier as suspect" in reason for reason in await reasons(held))
        assert await held.version() == B
        await anyio.sleep(3)
        assert held.calls.plan().nodes == (A, B, C)
        assert await held.version() == A
        assert held.calls.status().failovers == 0
        assert not held.told(DutiesMoved, since=140.2)
