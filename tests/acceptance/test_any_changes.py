"""Whatever the list becomes while nodes fail: what holds at every moment, and in the end (G1–G4)."""

import random
from collections.abc import Callable
from dataclasses import replace

import anyio
import pytest

from tests.acceptance.generations import listed
from tests.acceptance.harness import Followed, monitor
from vc_fallback.base.signals import HeadDelivered, NodeHeadSeen, Signal, StreamChanged
from vc_fallback.base.types import Role, Tier
from vc_fallback.candidates import Candidate
from vc_fallback.heads.subscription import Subscription
from vc_fallback.testing import SimulatedNode, simulated_devnet

pytestmark = pytest.mark.anyio

TURNS = 20


def any_list(nodes: list[SimulatedNode], chance: random.Random) -> list[Candidate]:
    """Return some of the nodes in some order, under their own names or others', in some tier and role."""
    candidates: dict[str | None, Candidate] = {}
    for node in chance.sample(nodes, chance.randint(0, len(nodes))):
        (candidate,) = listed([node])
        if chance.random() < 0.2:
            candidate = replace(candidate, name=chance.choice(nodes).name)
        if chance.random() < 0.3:
            candidate = replace(candidate, tier=Tier.FALLBACK)
        if chance.random() < 0.2:
            candidate = replace(candidate, headers=(("X-Turn", str(chance.randint(0, 2))),))
        if chance.random() < 0.2:
            candidate = replace(candidate, roles=frozenset({Role.DUTIES}))
        candidates.setdefault(candidate.name, candidate)
    return list(candidates.values())


FAULTS: list[Callable[[SimulatedNode], None]] = [
    SimulatedNode.refuse,
    SimulatedNode.listen,
    SimulatedNode.freeze,
    SimulatedNode.thaw,
    SimulatedNode.silence,
    SimulatedNode.resume,
    SimulatedNode.vanish,
    SimulatedNode.end_streams,
    SimulatedNode.cut_off,
    SimulatedNode.rejoin,
]


@pytest.mark.parametrize("seed", range(3))
async def test_any_changes(seed: int) -> None:
    """At every moment: only nodes of the list are told of and read, with its generation. In the end: all is well."""
    chance = random.Random(seed)
    async with simulated_devnet(4) as net:
        nodes = list(net)
        wild = True

        def look(signal: Signal) -> None:
            if isinstance(signal, NodeHeadSeen | HeadDelivered):
                present = followed.monitor.candidates.current
                wrong.extend([signal] * (signal.node_id not in present or signal.generation != present.generation))
            if wild and isinstance(signal, StreamChanged | NodeHeadSeen) and chance.random() < 0.01:
                followed.monitor.update_candidates(any_list(nodes, chance))

        async def read(heads: Subscription) -> None:
            while True:
                head = (await heads.receive()).head
                present = followed.monitor.candidates.current
                wrong.extend([head] * (head.node_id not in present or head.generation != present.generation))
                await anyio.sleep(chance.choice([0, 0, 3]))

        wrong: list[object] = []
        async with monitor(net, listed=[], observers=[look]) as followed, anyio.create_task_group() as tasks:
            for buffer in (2, 64):
                tasks.start_soon(read, followed.monitor.subscribe(buffer=buffer, replay_latest=True))
            for _ in range(TURNS):
                if chance.random() < 0.4:
                    restart = chance.choice(["all", "changed"])
                    followed.monitor.update_candidates(any_list(nodes, chance), restart=restart)  # type: ignore[arg-type]
                else:
                    chance.choice(FAULTS)(chance.choice(nodes))
                await anyio.sleep(chance.choice([0, 0, 0.001, 0.3, 1, 5, 12]))
            wild = False
            for node in nodes:
                node.heal()
            followed.monitor.update_candidates(any_list(nodes, chance) or listed(nodes))
            await followed.until(int(followed.now) + 13.5)
            assert wrong == []
            _all_is_well(followed, nodes)
            tasks.cancel_scope.cancel()


def _all_is_well(followed: Followed, nodes: list[SimulatedNode]) -> None:
    present = followed.monitor.candidates.current
    followers = present.of(Role.EVENTS)
    assert set(followed.monitor.statistics()) == {member.node_id for member in followers}
    assert {member.node_id: followed.monitor.subscription_healthy(member.node_id) for member in followers} == {
        member.node_id: True for member in followers
    }
    ports = [member.candidate.url.port for member in followers]
    for node in nodes:
        assert len([stream for stream in node.streams if not stream.vanished]) == ports.count(node.port)
    if followers:
        latest = followed.monitor.latest.value
        assert latest is not None
        assert latest.head.slot == followed.slot
        assert latest.head.generation == present.generation
        # Fallbacks too: what is delivered already is not held back.
        assert set(latest.seen_by) == {member.node_id for member in followers}
