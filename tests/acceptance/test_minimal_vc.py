"""The example validator client over simulated nodes: what it publishes, slot by slot, while nodes fail."""

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from examples.minimal_vc.client import run
from examples.minimal_vc.keys import interop_key
from examples.minimal_vc.signing import Domain, signing_root
from examples.minimal_vc.slashing_guard import SlashingGuard
from tests.bls import verified
from vc_fallback import BeaconNodeFallback, FallbackConfig, Root, Slot
from vc_fallback.testing import Delay, Refusal, SimulatedDevnet, SimulatedNode, simulated_devnet
from vc_fallback.testing.containers.blocks import block_types
from vc_fallback.testing.containers.operations import ATTESTATION_DATA, signed_aggregate, signed_contribution

pytestmark = pytest.mark.anyio

FIRST = 134
"""The first slot with duties; epochs have eight, so epoch 17 begins with slot 136."""

KEYS = [interop_key(number) for number in range(8)]


def prepared(node: SimulatedNode, operation: str) -> list[Any]:
    """What a node was told to be ready for."""
    return [item for one in node.prepared if one.operation == operation for item in json.loads(one.body)]


class Running:
    """The client, and what it told."""

    def __init__(self, net: SimulatedDevnet, guard: SlashingGuard) -> None:
        self.net = net
        self.guard = guard
        self.lines: list[dict[str, Any]] = []

    async def until(self, position: float) -> None:
        """Wait for a position in slots."""
        slots = self.net.chain.slots
        await anyio.sleep_until(slots.start_of(Slot(0)) + position * slots.duration)

    def attester(self, slot: int, branch: str = "main") -> int:
        """Who attests at a slot: there is one in each of them."""
        chain = self.net.chain
        epoch = chain.identity.epoch_of(Slot(slot))
        return chain.shuffling.committees(epoch, chain.dependent_root(epoch, branch))[slot % 8][0][0]

    def outcomes(self, duty: str, slot: int) -> dict[int | None, str]:
        """What became of a duty in a slot, by validator."""
        told = [line for line in self.lines if (line["duty"], line["slot"]) == (duty, slot)]
        return {line["validator"]: line["outcome"] for line in told}

    def at(self, duty: str, slot: int) -> set[float]:
        """When, in seconds into the slot."""
        return {line["at"] for line in self.lines if (line["duty"], line["slot"]) == (duty, slot)}

    def assert_all_done(self, first: int, last: int) -> None:
        """Every duty of every validator is done, by whom the chain wants it."""
        chain = self.net.chain
        for slot in range(first, last + 1):
            attester = self.attester(slot)
            assert self.outcomes("block", slot) == {chain.proposer(slot): "published"}
            assert self.outcomes("attestation", slot) == {attester: "published"}
            assert self.outcomes("aggregate", slot) == {attester: "published"}
            assert self.outcomes("sync_message", slot) == dict.fromkeys(range(8), "published")
            contributions = [line for line in self.lines if (line["duty"], line["slot"]) == ("contribution", slot)]
            assert [line["outcome"] for line in contributions] == ["published"] * 4

    def published(self, operation: str, slot: int | None = None) -> list[Any]:
        """What nodes have taken of a kind, each once; of votes those of a slot, where it is given."""
        bodies: dict[str, None] = {}
        for one in (one for node in self.net for one in node.published):
            if one.operation.startswith(operation) and one.taken:
                items = json.loads(one.body)
                bodies.update((json.dumps(item), None) for item in (items if isinstance(items, list) else [items]))
        found = [json.loads(body) for body in bodies]
        return found if slot is None else [item for item in found if item["data"]["slot"] == str(slot)]


@asynccontextmanager
async def running(folder: Path, monkeypatch: pytest.MonkeyPatch, validators: int = 8) -> AsyncIterator[Running]:
    """Run the client, which has eight keys, over nodes of a chain of Capella with so many validators."""

    async def at_once(call: Callable[..., Any], *arguments: Any) -> Any:
        # In a thread time would jump over it.
        return call(*arguments)

    monkeypatch.setattr(anyio.to_thread, "run_sync", at_once)
    async with simulated_devnet(
        3, slots_per_epoch=8, forks={"capella": 0}, validators=validators, start_slot=FIRST - 1, into=5.0
    ) as net:
        for index, key in enumerate(KEYS):
            net.chain.registry.change(index, pubkey=key.pubkey)
        for node in net:
            node.manners.ssz = False
        guard = SlashingGuard(folder)
        out = Running(net, guard)
        config = FallbackConfig.from_urls(net.urls)
        async with BeaconNodeFallback(config, clock=net.clock) as nodes, anyio.create_task_group() as tasks:
            tasks.start_soon(run, nodes, KEYS, guard, lambda line: out.lines.append(json.loads(line)))
            yield out
            tasks.cancel_scope.cancel()


async def test_all_duties_are_done_in_time_and_signed_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the boundary of an epoch; signatures are checked with roots that the simulated nodes' types make."""
    async with running(tmp_path, monkeypatch) as client:
        await client.until(FIRST + 4)
    chain = client.net.chain
    client.assert_all_done(FIRST, FIRST + 3)
    for slot in range(FIRST, FIRST + 4):
        assert client.at("block", slot) == {0.0}
        # Blocks come a second into their slots here.
        assert client.at("attestation", slot) == client.at("sync_message", slot) == {1.0}
        assert client.at("aggregate", slot) == client.at("contribution", slot) == {8.0}

    def signed_by(validator: Any, domain: Domain, slot: Any, root: bytes, signature: str) -> bool:
        signed = signing_root(chain.identity, domain, chain.identity.epoch_of(Slot(int(slot))), Root(root))
        return verified([KEYS[int(validator)].pubkey], signed, bytes.fromhex(signature[2:]))

    blocks = client.published("publishBlock")
    assert len(blocks) == 4
    kind = block_types(chain.preset, "capella").block
    for block in blocks:
        message = block["message"]
        root = kind.root(kind.from_json(message))
        assert signed_by(message["proposer_index"], Domain.PROPOSER, message["slot"], root, block["signature"])
    votes = client.published("submitPoolAttestations")
    assert len(votes) == 4
    for vote in votes:
        root, slot = ATTESTATION_DATA.root(ATTESTATION_DATA.from_json(vote["data"])), int(vote["data"]["slot"])
        (attester,) = client.outcomes("attestation", slot)
        assert signed_by(attester, Domain.ATTESTER, slot, root, vote["signature"])
        assert vote["data"]["beacon_block_root"] == "0x" + chain.head_at(slot).root.hex()
    aggregates = client.published("publishAggregateAndProofs")
    assert len(aggregates) == 4
    aggregate_kind = signed_aggregate(chain.preset, "capella").fields["message"]
    for aggregate in aggregates:
        message, slot = aggregate["message"], aggregate["message"]["aggregate"]["data"]["slot"]
        root = aggregate_kind.root(aggregate_kind.from_json(message))
        assert signed_by(message["aggregator_index"], Domain.AGGREGATE, slot, root, aggregate["signature"])
        proof, root = message["selection_proof"], int(slot).to_bytes(32, "little")
        assert signed_by(message["aggregator_index"], Domain.SELECTION, slot, root, proof)
    messages = client.published("submitPoolSyncCommitteeSignatures")
    assert len(messages) == 8 * 4
    for message in messages[:8]:
        root = bytes.fromhex(message["beacon_block_root"][2:])
        assert signed_by(message["validator_index"], Domain.SYNC, message["slot"], root, message["signature"])
    contributions = client.published("publishContributionAndProofs")
    assert len(contributions) == 4 * 4
    contribution_kind = signed_contribution(chain.preset).fields["message"]
    for contribution in contributions[:4]:
        message, slot = contribution["message"], contribution["message"]["contribution"]["slot"]
        root = contribution_kind.root(contribution_kind.from_json(message))
        assert signed_by(message["aggregator_index"], Domain.CONTRIBUTION, slot, root, contribution["signature"])
    for node in client.net:
        fees = {one["validator_index"] for one in prepared(node, "prepareBeaconProposer")}
        assert fees == {str(number) for number in range(8)}
        committees = prepared(node, "prepareBeaconCommitteeSubnet")
        assert {int(one["slot"]) for one in committees} >= {*range(FIRST, FIRST + 10)}
        assert all(one["is_aggregator"] for one in committees)
        assert {one["until_epoch"] for one in prepared(node, "prepareSyncCommitteeSubnets")} == {"17", "18"}


async def test_nothing_is_missed_while_nodes_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that has the duties is killed; the next one freezes, and the first is back."""
    async with running(tmp_path, monkeypatch) as client:
        first, second, _ = client.net
        await client.until(FIRST + 0.5)
        await first.kill()
        await client.until(FIRST + 1.5)
        first.restart()
        await client.until(FIRST + 2.5)
        second.freeze()
        await client.until(FIRST + 4)
        second.thaw()
    client.assert_all_done(FIRST, FIRST + 3)


async def test_of_many_validators_it_does_the_duties_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Committees of four, in each the places of ours; a seat of the sync committee each, in one of its four parts."""
    async with running(tmp_path, monkeypatch, validators=32) as client:
        await client.until(FIRST + 2)
    chain = client.net.chain
    for slot in (FIRST, FIRST + 1):
        proposer = chain.proposer(slot)
        assert client.outcomes("block", slot) == ({proposer: "published"} if proposer < 8 else {})
        committee = chain.shuffling.committees(16, chain.dependent_root(16))[slot % 8][0]
        ours = {member: "published" for member in committee if member < 8}
        assert client.outcomes("attestation", slot) == ours
        assert len(client.outcomes("aggregate", slot)) == min(1, len(ours))
        bits = {vote["aggregation_bits"] for vote in client.published("submitPoolAttestations", slot)}
        assert bits == {f"0x{16 + (1 << committee.index(member)):02x}" for member in ours}
        parts = [chain.shuffling.sync_subcommittee(16, number) for number in range(4)]
        ours_in = [min((member for member in part if member < 8), default=None) for part in parts]
        contributing = client.outcomes("contribution", slot)
        assert contributing == {member: "published" for member in ours_in if member is not None}


async def test_votes_are_of_use_after_their_slot_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that are slow have until the end of the next slot."""
    async with running(tmp_path, monkeypatch) as client:
        for node in client.net:
            node.inject("/eth/v2/validator/aggregate_and_proofs", Delay(10.0))
            node.inject("/eth/v2/beacon/pool/attestations", Delay(5.0))
        await client.until(FIRST + 2)
    for duty, took in (("attestation", 1 + 5.0), ("aggregate", 8 + 10.0)):
        assert [*client.outcomes(duty, FIRST).values()] == ["published"]
        assert client.at(duty, FIRST) == {took}


async def test_what_fails_costs_no_other_duty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Votes that nobody takes, blocks that nobody makes or of another slot, a guard that refuses, a missing head."""
    async with running(tmp_path, monkeypatch) as client:
        client.net.chain.miss(FIRST + 3)
        for node in client.net:
            node.inject("/eth/v2/beacon/pool/attestations", Refusal("invalid signature", items=(0,)), times=1)
        await client.until(FIRST + 0.9)
        for node in client.net:
            node.answer(f"/eth/v3/validator/blocks/{FIRST + 1}", 500, "no block")
        for node in (client.net[0], client.net[1]):
            node.override(f"/eth/v3/validator/blocks/{FIRST + 2}", slot=str(FIRST))
        await client.until(FIRST + 1.9)
        refused = client.attester(FIRST + 2)
        client.guard.allow_vote(KEYS[refused].pubkey, 16, 17)
        await client.until(FIRST + 4)
    became = {slot: client.outcomes("attestation", slot) for slot in range(FIRST, FIRST + 4)}
    assert [*became[FIRST].values()] == ["missed"]
    assert [*became[FIRST + 1].values()] == [*became[FIRST + 3].values()] == ["published"]
    assert became[FIRST + 2] == {refused: "refused"}
    assert [[*client.outcomes("block", FIRST + slot).values()] for slot in range(4)] == [
        ["published"],
        ["missed"],
        ["published"],
        ["published"],
    ]
    assert [int(block["message"]["slot"]) - FIRST for block in client.published("publishBlock")] == [0, 2, 3]
    # Without a block they vote when it is time. By then it is epoch 17.
    for duty in ("attestation", "sync_message"):
        assert client.at(duty, FIRST + 3) == {4.0}
    for slot in range(FIRST, FIRST + 4):
        assert client.outcomes("sync_message", slot) == dict.fromkeys(range(8), "published")
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_duties_are_asked_for_until_they_come_and_again_when_another_block_fixes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No node has any at first; those of epoch 17, which are there by then, change with a reorg to before slot 127."""
    async with running(tmp_path, monkeypatch) as client:
        chain, refusals = client.net.chain, []
        chain.branch("other", above=126)
        for node in client.net:
            refusals.append(node.answer("/eth/v1/validator/duties/*", 500, "broken"))
            refusals.append(node.answer("/eth/v2/validator/duties/*", 500, "broken"))
        await client.until(FIRST + 1.2)
        for refusal in refusals:
            refusal.remove()
        await client.until(FIRST + 1.6)
        for node in client.net:
            node.switch("other")
        await client.until(FIRST + 4)
    assert [client.outcomes("attestation", FIRST + slot) for slot in range(2)] == [
        {},
        {client.attester(FIRST + 1): "published"},
    ]
    assert {line["outcome"] for line in client.lines if line["duty"] == "duties"} == {"missed"}
    new = [client.attester(slot, "other") for slot in (136, 137)]
    assert [client.outcomes("attestation", slot) for slot in (136, 137)] == [{one: "published"} for one in new]
    assert new != [client.attester(slot) for slot in (136, 137)]


async def test_keys_that_no_node_knows_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Those of another devnet: it says so, and goes on to ask."""
    async with simulated_devnet(1, forks={"capella": 0}) as net:
        config = FallbackConfig.from_urls(net.urls)
        async with BeaconNodeFallback(config, clock=net.clock) as nodes:
            with anyio.move_on_after(5):
                await run(nodes, KEYS, SlashingGuard(tmp_path), print)
    words = [record.getMessage() for record in caplog.records if record.name == "examples.minimal_vc.client"]
    assert len(words) >= 2
    assert {*words} == {"of 8 keys no node knows a validator; asking again"}
