"""What is published on simulated nodes beside blocks, and what prepares them: records, pools, duplicates, refusals."""

import json
from typing import Any

import anyio
import pytest

from tests.acceptance.raw_client import Reply, fetch
from tests.acceptance.simulated_api import ask, data
from tests.conformance.openapi import JSON, SSZ
from vc_fallback.testing import Refusal, SimulatedChain, SimulatedNode, simulated_devnet
from vc_fallback.testing.containers import operations as signed_values
from vc_fallback.testing.containers.composite import List

pytestmark = pytest.mark.anyio

SIGNATURE = "0x" + bytes(range(96)).hex()
EVERYONE = [str(index) for index in range(64)]
POOL = "/eth/v2/beacon/pool/attestations"


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


async def votes(node: SimulatedNode) -> list[dict[str, Any]]:
    """Return what everyone who is on duty in the present slot signs, as `SingleAttestation`."""
    slot = node.state.slot
    found = await data(node, "produceAttestationData", query=[("slot", slot)])
    duties = await data(node, "getAttesterDuties", place={"epoch": slot // 8}, body=EVERYONE)
    return [
        {
            "committee_index": duty["committee_index"],
            "attester_index": duty["validator_index"],
            "data": found,
            "signature": SIGNATURE,
        }
        for duty in duties
        if duty["slot"] == str(slot)
    ]


def as_ssz(items: list[dict[str, Any]]) -> bytes:
    kind = List(signed_values.SINGLE_ATTESTATION, 100)
    return kind.encode(kind.from_json(items))


async def submit(node: SimulatedNode, body: object, version: str = "fulu") -> Reply:
    return await ask(node, "submitPoolAttestationsV2", body=body, version=version)


def data_root(of: dict[str, Any]) -> str:
    kind = signed_values.ATTESTATION_DATA
    return "0x" + kind.root(kind.from_json(of)).hex()


async def test_attestations_are_kept_on_record_and_aggregated() -> None:
    """JSON and SSZ; 404 for what nobody signed, for another committee, and on a node that was not told."""
    async with simulated_devnet(2, slots_per_epoch=8) as net:
        first, second = net
        await anyio.sleep(2)
        signed = await votes(first)
        assert len(signed) == 8
        assert (await submit(first, signed[:3])).status == 200
        assert (await submit(first, as_ssz(signed[3:]))).status == 200
        one, two = first.published
        assert (one.operation, one.route, one.version) == ("submitPoolAttestationsV2", POOL, "fulu")
        assert (one.media_type, one.items, one.at, one.status, dict(one.failures)) == (JSON, 3, 2.0, 200, {})
        assert json.loads(one.body) == signed[:3]
        assert (two.media_type, two.items, two.body) == (SSZ, 5, as_ssz(signed[3:]))
        root = data_root(signed[0]["data"])
        for index in ("0", "1"):
            query = [("attestation_data_root", root), ("slot", 32), ("committee_index", index)]
            reply = await ask(first, "getAggregatedAttestationV2", query=query)
            aggregate = reply.json["data"]
            assert (reply.json["version"], aggregate["data"]) == ("fulu", signed[0]["data"])
            assert aggregate["aggregation_bits"] == "0x1f"  # four members, all of them, and the end of the list
            assert aggregate["committee_bits"] == f"0x0{1 << int(index)}"
            in_ssz = await ask(first, "getAggregatedAttestationV2", query=query, accept=SSZ)
            kind = signed_values.attestation(first.chain.preset, "fulu")
            assert kind.to_json(kind.decode(in_ssz.body)) == aggregate
            assert (await ask(second, "getAggregatedAttestationV2", query=query)).status == 404
        for change in ({"attestation_data_root": "0x" + "00" * 32}, {"committee_index": 2}, {"slot": 31}):
            query = list({"attestation_data_root": root, "slot": 32, "committee_index": 0, **change}.items())
            assert (await ask(first, "getAggregatedAttestationV2", query=query)).status == 404


async def test_attestations_before_electra_are_of_one_bit() -> None:
    """v2 and v1; what v1 aggregates is found by v1."""
    async with SimulatedNode(SimulatedChain(slots_per_epoch=8, forks={"deneb": 0})) as node:
        await anyio.sleep(2)
        duties = await data(node, "getAttesterDuties", place={"epoch": 4}, body=EVERYONE)
        mine = [duty for duty in duties if duty["slot"] == "32" and duty["committee_index"] == "1"]
        query = [("slot", 32), ("committee_index", 1)]
        found = await data(node, "produceAttestationData", query=query)

        def vote(duty: dict[str, Any]) -> dict[str, Any]:
            bits = 1 << int(duty["validator_committee_index"]) | 1 << int(duty["committee_length"])
            return {"aggregation_bits": f"0x{bits:02x}", "data": found, "signature": SIGNATURE}

        assert (await submit(node, [vote(mine[0])], "deneb")).status == 200
        body = json.dumps([vote(mine[1])]).encode()
        told = {"Content-Type": JSON}
        older = "/eth/v1/beacon/pool/attestations"
        assert (await fetch(node.url, older, method="POST", headers=told, body=body)).status == 200
        assert (node.published[-1].operation, node.published[-1].version) == ("submitPoolAttestations", None)
        target = f"/eth/v1/validator/aggregate_attestation?slot=32&attestation_data_root={data_root(found)}"
        aggregate = (await fetch(node.url, target)).json["data"]
        bits = int(aggregate["aggregation_bits"], 16)
        assert (bits.bit_count(), bits.bit_length()) == (3, 5)
        assert "committee_bits" not in aggregate
        both = {**vote(mine[2]), "aggregation_bits": "0x1c"}
        assert (await submit(node, [both], "deneb")).status == 400


async def test_single_items_are_refused_and_the_rest_is_taken() -> None:
    """Case 60, Q12: failures by index; the aggregate has the others."""
    async with SimulatedNode(SimulatedChain(slots_per_epoch=8)) as node:
        await anyio.sleep(2)
        signed = [vote for vote in await votes(node) if vote["committee_index"] == "0"]
        with node.inject(POOL, Refusal("invalid signature", items=(0, 2))) as fault:
            reply = await submit(node, signed)
        assert fault.met == 1
        expected = [{"index": index, "message": "invalid signature"} for index in (0, 2)]
        assert (reply.status, reply.json["failures"]) == (400, expected)
        assert node.published[0].failures == {0: "invalid signature", 2: "invalid signature"}
        assert node.published[0].taken
        query = [("attestation_data_root", data_root(signed[0]["data"])), ("slot", 32), ("committee_index", 0)]
        aggregate = await data(node, "getAggregatedAttestationV2", query=query)
        assert int(aggregate["aggregation_bits"], 16).bit_count() == 3
        assert (await submit(node, [signed[0]])).status == 200
        await submit(node, signed[:1], "deneb")
        assert not node.published[-1].taken


async def test_a_node_that_lags_does_not_know_the_head_that_others_attest_to() -> None:
    """Case 44: the words are those of its client."""
    async with simulated_devnet(3, slots_per_epoch=8, framings=("lighthouse", "lighthouse", "lodestar")) as net:
        net[1].cut_off()
        net[2].cut_off()
        await anyio.sleep(2)
        signed = await votes(net[0])
        assert (await submit(net[0], signed)).status == 200
        behind = (await submit(net[1], signed)).json["failures"]
        assert len(behind) == 8
        assert behind[0]["message"].startswith("UnknownHeadBlock")
        lodestar = await submit(net[2], signed[:1])
        expected = "ATTESTATION_ERROR_UNKNOWN_OR_PREFINALIZED_BEACON_BLOCK_ROOT"
        assert (lodestar.status, lodestar.json["message"]) == (500, expected)


async def test_what_cannot_be_right_is_refused() -> None:
    async with SimulatedNode(SimulatedChain(slots_per_epoch=8)) as node:
        await anyio.sleep(2)
        vote = (await votes(node))[0]
        for wrong in (
            {"attester_index": str((int(vote["attester_index"]) + 1) % 64), "committee_index": "3"},
            {"data": {**vote["data"], "slot": "33"}},
            {"data": {**vote["data"], "slot": "8"}},
            {"data": {**vote["data"], "target": {**vote["data"]["target"], "epoch": "3"}}},
        ):
            reply = await submit(node, [{**vote, **wrong}])
            assert (reply.status, [one["index"] for one in reply.json["failures"]]) == (400, [0]), wrong
        unreadable: list[object] = [
            {},
            [{}],
            [{**vote, "committee_index": 0}],
            [{**vote, "committee_index": "01"}],
            b"\x00" * 239,
        ]
        for body in unreadable:
            reply = await submit(node, body)
            assert (reply.status, "failures" in reply.json) == (400, False), body
        assert (await ask(node, "submitPoolAttestationsV2", body=[vote])).status == 400
        node.manners.checks = "form"
        assert (await submit(node, [{**vote, "data": {**vote["data"], "slot": str(2**64 - 1)}}])).status == 200
        node.manners.checks = "none"
        assert (await ask(node, "submitPoolAttestationsV2", body=["whatever", {}])).status == 200
        assert (node.published[-1].items, node.published[-1].version) == (2, None)
        assert (await submit(node, b"whatever")).status == 200
        assert node.published[-1].body == b"whatever"


@pytest.mark.parametrize(
    ("framing", "status", "words"),
    [
        ("lighthouse", 200, b"null"),
        ("prysm", 200, b""),
        ("teku", 200, b""),
        ("lodestar", 500, b"ATTESTATION_ERROR_ATTESTATION_ALREADY_KNOWN"),
    ],
)
async def test_each_client_has_its_way_with_what_it_knows(framing: Any, status: int, words: bytes) -> None:
    """The identical attestation once more; per node; settable."""
    async with SimulatedNode(SimulatedChain(slots_per_epoch=8), framing=framing) as node:
        await anyio.sleep(2)
        signed = await votes(node)
        assert (await submit(node, signed[:2])).status == 200
        again = await submit(node, signed[:1])
        assert again.status == status
        assert words in again.body
        node.manners.duplicates = "failures"
        some = await submit(node, signed[1:4])
        assert b"PriorAttestationKnown" in some.body
        assert node.published[-1].failures == {0: "PriorAttestationKnown"}
        node.manners.duplicates = "accept"
        assert (await submit(node, signed)).status == 200


async def test_a_node_can_hear_of_what_was_published_elsewhere() -> None:
    """Case 62: by gossip; publishing it there is a duplicate."""
    async with simulated_devnet(2, slots_per_epoch=8, framings=("lodestar",)) as net:
        first, second = net
        await anyio.sleep(2)
        signed = await votes(first)
        await submit(first, signed)
        second.hear(first.published[0])
        assert (await submit(second, as_ssz(signed))).status == 500
        await ask(first, "prepareBeaconProposer", body=[])
        with pytest.raises(ValueError, match="not published"):
            second.hear(first.prepared[0])


async def test_sync_messages_make_contributions() -> None:
    async with SimulatedNode(SimulatedChain(slots_per_epoch=8)) as node:
        await anyio.sleep(2)
        root = "0x" + node.head.root.hex()
        members = (await data(node, "getEpochSyncCommittees", place={"state_id": "head"}))["validator_aggregates"]
        messages = [
            {"slot": "32", "beacon_block_root": root, "validator_index": one, "signature": SIGNATURE}
            for one in members[1][:3]
        ]
        query = [("slot", 32), ("subcommittee_index", 1), ("beacon_block_root", root)]
        assert (await ask(node, "produceSyncCommitteeContribution", query=query)).status == 404
        assert (await ask(node, "submitPoolSyncCommitteeSignatures", body=messages)).status == 200
        contribution = await data(node, "produceSyncCommitteeContribution", query=query)
        assert contribution["aggregation_bits"] == "0x07"
        elsewhere = [("slot", 32), ("subcommittee_index", 4), ("beacon_block_root", root)]
        assert (await ask(node, "produceSyncCommitteeContribution", query=elsewhere)).status == 400
        message = {"aggregator_index": members[1][0], "selection_proof": SIGNATURE, "contribution": contribution}
        proof = {"message": message, "signature": SIGNATURE}
        assert (await ask(node, "publishContributionAndProofs", body=[proof])).status == 200
        outsider = next(index for index in EVERYONE if all(index not in part for part in members))
        stranger = {**messages[0], "validator_index": outsider}
        late = {**messages[1], "slot": "20"}
        reply = await ask(node, "submitPoolSyncCommitteeSignatures", body=[stranger, late])
        assert [one["index"] for one in reply.json["failures"]] == [0, 1]


async def test_whoever_published_was_seen() -> None:
    """Liveness: by attestations and sync messages sent here, by what the test says, never by other nodes' (Q14a)."""
    async with simulated_devnet(2, slots_per_epoch=8) as net:
        first, second = net
        await anyio.sleep(2)
        signed = await votes(first)
        await submit(first, signed)
        first.state.pool.saw(3, 5)

        async def live(node: SimulatedNode, epoch: int) -> set[str]:
            found = await data(node, "getLiveness", place={"epoch": epoch}, body=EVERYONE)
            assert [one["index"] for one in found] == EVERYONE
            return {one["index"] for one in found if one["is_live"]}

        assert await live(first, 4) == {vote["attester_index"] for vote in signed}
        assert await live(first, 3) == {"5"}
        assert await live(second, 4) == set()
        assert (await ask(first, "getLiveness", place={"epoch": 2}, body=EVERYONE)).status == 400


async def test_aggregates_payload_attestations_exits_changes_and_slashings_are_taken() -> None:
    chain = SimulatedChain(slots_per_epoch=8, gloas_epoch=0)
    async with SimulatedNode(chain) as node:
        await anyio.sleep(7)
        signed = await votes(node)
        await submit(node, signed, "gloas")
        query = [("attestation_data_root", data_root(signed[0]["data"])), ("slot", 32), ("committee_index", 0)]
        target = "/eth/v2/validator/aggregate_attestation?" + "&".join(f"{key}={value}" for key, value in query)
        aggregate = (await fetch(node.url, target)).json["data"]
        message = {"aggregator_index": "1", "aggregate": aggregate, "selection_proof": SIGNATURE}
        proof = {"message": message, "signature": SIGNATURE}
        assert (await ask(node, "publishAggregateAndProofsV2", body=[proof], version="gloas")).status == 200
        (duty, *_) = [
            one for one in await data(node, "getPtcDuties", place={"epoch": 4}, body=EVERYONE) if one["slot"] == "32"
        ]
        there = await data(node, "producePayloadAttestationData", query=[("slot", 32)])
        seen = {"validator_index": duty["validator_index"], "data": there, "signature": SIGNATURE}
        kind = List(signed_values.PAYLOAD_ATTESTATION_MESSAGE, 10)
        body = kind.encode(kind.from_json([seen]))
        assert len(body) == 146
        assert (await ask(node, "submitPayloadAttestationMessages", body=body, version="gloas")).status == 200
        header = (await data(node, "getBlockHeader", place={"block_id": "head"}))["header"]
        slashing = {"signed_header_1": header, "signed_header_2": header}
        assert (await ask(node, "submitPoolProposerSlashings", body=slashing)).status == 200
        indexed = {"attesting_indices": ["1"], "data": signed[0]["data"], "signature": SIGNATURE}
        slashing = {"attestation_1": indexed, "attestation_2": indexed}
        reply = await ask(node, "submitPoolAttesterSlashingsV2", body=slashing, version="gloas")
        assert reply.status == 200
        leaving = {"message": {"epoch": "4", "validator_index": "3"}, "signature": SIGNATURE}
        assert (await ask(node, "submitPoolVoluntaryExit", body=leaving)).status == 200
        change = {"validator_index": "99", "from_bls_pubkey": SIGNATURE[:98], "to_execution_address": SIGNATURE[:42]}
        changes = [{"message": {**change, "validator_index": str(index)}, "signature": SIGNATURE} for index in (2, 99)]
        reply = await ask(node, "submitPoolBLSToExecutionChange", body=changes)
        assert [one["index"] for one in reply.json["failures"]] == [1]
        assert [one.items for one in node.published] == [8, 1, 1, 1, 1, 1, 2]


async def test_preparations_are_kept_on_record() -> None:
    """Subscriptions, fee recipients, registrations, preferences; selections come back combined."""
    async with SimulatedNode(SimulatedChain(slots_per_epoch=8)) as node:
        subscription = {
            "validator_index": "1",
            "committee_index": "0",
            "committees_at_slot": "2",
            "slot": "33",
            "is_aggregator": True,
        }
        assert (await ask(node, "prepareBeaconCommitteeSubnet", body=[subscription] * 2)).status == 200
        wish = {"validator_index": "1", "sync_committee_indices": ["3"], "until_epoch": "8"}
        assert (await ask(node, "prepareSyncCommitteeSubnets", body=[wish])).status == 200
        told = {"validator_index": "1", "fee_recipient": "0x" + "aa" * 20}
        assert (await ask(node, "prepareBeaconProposer", body=[told])).status == 200
        registration = {
            "message": {
                "fee_recipient": "0x" + "aa" * 20,
                "gas_limit": "36000000",
                "timestamp": "1700000000",
                "pubkey": "0x" + "bb" * 48,
            },
            "signature": SIGNATURE,
        }
        kind = List(signed_values.REGISTRATION, 10)
        body = kind.encode(kind.from_json([registration]))
        assert len(body) == 180
        assert (await ask(node, "registerValidator", body=body)).status == 200
        preferences = {
            "message": {
                "dependent_root": "0x" + "11" * 32,
                "proposal_slot": "40",
                "validator_index": "1",
                "fee_recipient": "0x" + "aa" * 20,
                "target_gas_limit": "36000000",
            },
            "signature": SIGNATURE,
        }
        assert (await ask(node, "submitProposerPreferences", body=[preferences], version="gloas")).status == 200
        assert (await ask(node, "submitProposerPreferences", body=[preferences])).status == 400
        part = {"validator_index": "1", "slot": "33", "selection_proof": SIGNATURE}
        (whole,) = await data(node, "submitBeaconCommitteeSelections", body=[part])
        assert (whole["validator_index"], whole["slot"]) == ("1", "33")
        assert whole["selection_proof"] != SIGNATURE
        again = await data(node, "submitSyncCommitteeSelections", body=[{**part, "subcommittee_index": "2"}])
        assert again[0]["subcommittee_index"] == "2"
        assert [(one.operation, one.items) for one in node.prepared] == [
            ("prepareBeaconCommitteeSubnet", 2),
            ("prepareSyncCommitteeSubnets", 1),
            ("prepareBeaconProposer", 1),
            ("registerValidator", 1),
            ("submitProposerPreferences", 1),
            ("submitProposerPreferences", 0),
            ("submitBeaconCommitteeSelections", 1),
            ("submitSyncCommitteeSelections", 1),
        ]
        assert not node.published
