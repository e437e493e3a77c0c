"""Duties on simulated nodes: who they fall to, the roots they depend on, attestation data, who was seen."""

from typing import Any

import anyio
import pytest

from tests.acceptance.raw_client import fetch, listening
from tests.acceptance.simulated_api import ask, data
from tests.conformance.openapi import JSON, SSZ
from vc_fallback.testing import SimulatedChain, SimulatedNode, simulated_devnet
from vc_fallback.testing.containers import operations as signed_values

pytestmark = pytest.mark.anyio

EVERYONE = [str(index) for index in range(64)]


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


async def test_dependent_roots_of_duties_are_those_of_the_head_events() -> None:
    """Q14b, case 52: attester and proposer v2 by the roots of `head_v2`; proposer v1 by another one, or by the head."""
    async with (
        SimulatedNode(SimulatedChain(slots_per_epoch=8)) as node,
        listening(node.url, "/eth/v1/events?topics=head_v2") as heard,
    ):
        await anyio.sleep(12 * 3)
        said, epoch = heard.heard[-1].data["data"], node.head.slot // 8
        for offset, name in ((0, "current_epoch_dependent_root"), (1, "next_epoch_dependent_root")):
            place = {"epoch": epoch + offset}
            attester = await ask(node, "getAttesterDuties", place=place, body=EVERYONE)
            proposer = await ask(node, "getProposerDutiesV2", place=place)
            assert attester.json["dependent_root"] == proposer.json["dependent_root"] == said[name]
        older = [(await ask(node, "getProposerDuties", place={"epoch": epoch + n})).json for n in (0, 1)]
        assert [duties["dependent_root"] for duties in older] == [said["next_epoch_dependent_root"], said["block"]]
        newer = await ask(node, "getProposerDutiesV2", place={"epoch": epoch + 1})
        assert older[1]["data"] == newer.json["data"]


async def test_everyone_attests_once_an_epoch_in_the_committee_that_states_tell() -> None:
    async with SimulatedNode(SimulatedChain(slots_per_epoch=8)) as node:
        await anyio.sleep(2)
        duties = await data(node, "getAttesterDuties", place={"epoch": 5}, body=EVERYONE)
        assert sorted(int(duty["validator_index"]) for duty in duties) == list(range(64))
        query = [("epoch", 5)]
        committees = {
            (found["slot"], found["index"]): found["validators"]
            for found in await data(node, "getEpochCommittees", place={"state_id": "head"}, query=query)
        }
        for duty in duties:
            committee = committees[duty["slot"], duty["committee_index"]]
            assert committee[int(duty["validator_committee_index"])] == duty["validator_index"]
            assert (duty["committee_length"], duty["committees_at_slot"]) == (str(len(committee)), "2")
        some = await data(node, "getAttesterDuties", place={"epoch": 5}, body=["7", "99", "3"])
        assert sorted(duty["validator_index"] for duty in some) == ["3", "7"]


async def test_blocks_come_from_those_who_were_to_propose_them() -> None:
    async with SimulatedNode(SimulatedChain(slots_per_epoch=8)) as node:
        await anyio.sleep(12 * 10)
        for duty in await data(node, "getProposerDutiesV2", place={"epoch": 4}):
            header = await data(node, "getBlockHeader", place={"block_id": duty["slot"]})
            assert header["header"]["message"]["proposer_index"] == duty["validator_index"]


async def test_another_branch_or_an_older_head_means_other_duties() -> None:
    """Case 46: what a syncing node, or one on another branch, tells depends on other roots."""
    chain = SimulatedChain(slots_per_epoch=8)
    chain.branch("other", above=29)
    async with (
        SimulatedNode(chain) as first,
        SimulatedNode(chain, branch="other") as second,
        SimulatedNode(chain, lag=6) as third,
    ):
        await anyio.sleep(12 * 2)
        place = {"epoch": 5}
        replies = [(await ask(n, "getAttesterDuties", place=place, body=EVERYONE)).json for n in (first, second, third)]
        assert len({reply["dependent_root"] for reply in replies}) == 3
        assert replies[2]["dependent_root"] == "0x" + third.head.root.hex()
        assert replies[0]["data"] != replies[1]["data"]
        first.state.optimistic = True
        assert (await ask(first, "getAttesterDuties", place=place, body=["1"])).json["execution_optimistic"] is True
        first.state.syncing = True
        for operation in ("getAttesterDuties", "getSyncCommitteeDuties", "getLiveness"):
            assert (await ask(first, operation, place=place, body=["1"])).status == 503


async def test_duties_are_known_one_epoch_ahead_and_sync_duties_one_period() -> None:
    async with SimulatedNode(SimulatedChain(slots_per_epoch=8)) as node:
        for operation in ("getAttesterDuties", "getProposerDutiesV2", "getProposerDuties"):
            body = ["1"] if operation == "getAttesterDuties" else None
            assert (await ask(node, operation, place={"epoch": 5}, body=body)).status == 200
            assert (await ask(node, operation, place={"epoch": 6}, body=body)).status == 400
        assert (await ask(node, "getAttesterDuties", place={"epoch": "now"}, body=["1"])).status == 400
        assert (await ask(node, "getAttesterDuties", place={"epoch": 4}, body=[1])).status == 400
        assert (await ask(node, "getAttesterDuties", place={"epoch": 4}, body={})).status == 400
        assert (await ask(node, "getPtcDuties", place={"epoch": 4}, body=["1"])).status == 400
        members = (await data(node, "getEpochSyncCommittees", place={"state_id": "head"}))["validators"]
        duties = await data(node, "getSyncCommitteeDuties", place={"epoch": 4}, body=EVERYONE)
        assert {duty["validator_index"] for duty in duties} == set(members)
        for duty in duties:
            assert all(
                members[int(place)] == duty["validator_index"] for place in duty["validator_sync_committee_indices"]
            )
        assert (await ask(node, "getSyncCommitteeDuties", place={"epoch": 15}, body=["1"])).status == 200
        assert (await ask(node, "getSyncCommitteeDuties", place={"epoch": 16}, body=["1"])).status == 400


async def test_payload_committees_are_members_of_their_slots() -> None:
    async with SimulatedNode(SimulatedChain(slots_per_epoch=8, gloas_epoch=4)) as node:
        await anyio.sleep(2)
        attesters = await data(node, "getAttesterDuties", place={"epoch": 4}, body=EVERYONE)
        slots = {duty["validator_index"]: duty["slot"] for duty in attesters}
        for duty in await data(node, "getPtcDuties", place={"epoch": 4}, body=EVERYONE):
            assert duty["slot"] == slots[duty["validator_index"]]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        (JSON, JSON),
        (SSZ, SSZ),
        (f"{SSZ};q=1.0,{JSON};q=0.9", SSZ),
        (f"{SSZ};q=0.1, {JSON};q=0.9", JSON),
        (f"{JSON}, {SSZ}", JSON),
        (f"text/html;q=1, {SSZ.upper()} ; q=0.5", SSZ),
        (f"*/*;q=0.1, {JSON};q=0", SSZ),
        (f"{SSZ};q=much, {JSON};q=0.3", JSON),
        ("text/html", None),
        (f"{SSZ};q=0", None),
    ],
)
async def test_the_form_of_an_answer_is_what_accept_prefers(accept: str | None, expected: str | None) -> None:
    """The weights count; what cannot be had is a 406."""
    async with SimulatedNode(SimulatedChain()) as node:
        reply = await ask(node, "produceAttestationData", query=[("slot", 128)], accept=accept)
        assert (reply.status, reply.headers["content-type"]) == ((200, expected) if expected else (406, JSON))


async def test_attestation_data_of_the_next_slot_is_held_back_until_it_begins() -> None:
    """As Lodestar 1.5.1 does; two slots ahead is refused at once, in the words of the node's client."""
    async with SimulatedNode(SimulatedChain(into=4.0), framing="lodestar") as node:
        early = await ask(node, "produceAttestationData", query=[("slot", 129)], within=20)
        assert anyio.current_time() == 8.0
        assert early.json["data"]["slot"] == "129"
        assert early.json["data"]["beacon_block_root"] == "0x" + node.head.root.hex()
        refused = await ask(node, "produceAttestationData", query=[("slot", 131)])
        assert refused.status == 500
        assert refused.json["message"] == "Requested slot 131 is in the future"
        node.manners.early = "refuse"
        assert (await ask(node, "produceAttestationData", query=[("slot", 130)])).status == 500
        assert anyio.current_time() == 8.0
        for query in ([], [("slot", "soon")], [("slot", 128), ("committee_index", -1)], [("slot", 2**64)]):
            assert (await ask(node, "produceAttestationData", query=query)).status == 400


@pytest.mark.parametrize(("fork", "index"), [("deneb", "3"), ("electra", "0"), ("fulu", "0")])
async def test_the_index_of_attestation_data_is_that_of_the_fork(fork: str, index: str) -> None:
    async with SimulatedNode(SimulatedChain(forks={fork: 0})) as node:
        found = await data(node, "produceAttestationData", query=[("slot", 128), ("committee_index", 3)])
        assert found["index"] == index


async def test_the_index_says_in_gloas_whether_the_payload_is_there() -> None:
    """0 for the slot's own block; for an older one whether its payload has come."""
    chain = SimulatedChain(slots_per_epoch=8, gloas_epoch=0)
    chain.withhold_payload(33)
    chain.miss(34, 36)
    async with SimulatedNode(chain) as node:

        async def index(slot: int, at: float) -> tuple[str, int]:
            await anyio.sleep_until(at)
            found = await data(node, "produceAttestationData", query=[("slot", slot)])
            return found["index"], node.head.slot

        assert await index(32, 3.0) == ("0", 32)
        assert await index(34, 12 * 2 + 3.0) == ("0", 33)
        assert await index(36, 12 * 4 + 3.0) == ("1", 35)
        query = [("slot", 36)]
        assert (await ask(node, "producePayloadAttestationData", query=query)).status == 204
        there = await data(node, "producePayloadAttestationData", query=[("slot", 35)])
        assert (there["payload_present"], there["blob_data_available"]) == (True, True)
        gone = await data(node, "producePayloadAttestationData", query=[("slot", 33)])
        assert gone["payload_present"] is False
        in_ssz = await ask(node, "producePayloadAttestationData", query=[("slot", 35)], accept=SSZ)
        assert (
            signed_values.PAYLOAD_ATTESTATION_DATA.to_json(signed_values.PAYLOAD_ATTESTATION_DATA.decode(in_ssz.body))
            == there
        )
        assert len(in_ssz.body) == 42


@pytest.mark.parametrize("trouble", ["optimistic", "syncing"])
async def test_nothing_to_sign_comes_from_a_node_in_trouble(trouble: str) -> None:
    async with SimulatedNode(SimulatedChain()) as node:
        setattr(node.state, trouble, True)
        assert (await ask(node, "produceAttestationData", query=[("slot", 128)])).status == 503
        query = [("randao_reveal", "0x" + "ab" * 96)]
        assert (await ask(node, "produceBlockV3", place={"slot": 129}, query=query)).status == 503


async def test_an_answer_is_late_by_the_latency_of_its_node() -> None:
    async with simulated_devnet(2) as net:
        net[1].latency = 0.4
        before = anyio.current_time()
        for node, late in zip(net, (0.0, 0.4), strict=True):
            assert (await fetch(node.url, "/eth/v1/validator/attestation_data?slot=128")).status == 200
            assert anyio.current_time() == before + late
