"""States of simulated nodes: validators, forks of any schedule, committees."""

import itertools
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from tests.acceptance.simulated_api import ask, data
from vc_fallback.base.types import Epoch
from vc_fallback.testing import SimulatedChain, SimulatedNode
from vc_fallback.testing.containers.presets import FORKS

pytestmark = pytest.mark.anyio

ROOT = "0x" + "11" * 32


@pytest.fixture
def anyio_backend(virtual_time_backend: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time_backend


async def test_validators_are_found_by_index_key_and_status() -> None:
    """GET and POST, unknown ones left out, one that is not there a 404, nonsense a 400."""
    chain = SimulatedChain(validators=20, slots_per_epoch=8)
    chain.registry.change(3, activation_epoch=90)
    chain.registry.change(4, exit_epoch=70)
    chain.registry.change(5, exit_epoch=2, withdrawable_epoch=900, slashed=True)
    chain.registry.change(6, exit_epoch=1, withdrawable_epoch=2, effective_balance=0, balance=0)
    state = {"state_id": "head"}
    async with SimulatedNode(chain) as node:
        everyone = await data(node, "getStateValidators", place=state)
        assert [one["index"] for one in everyone] == [str(index) for index in range(20)]
        assert [one["status"] for one in everyone[2:7]] == [
            "active_ongoing",
            "pending_queued",
            "active_exiting",
            "exited_slashed",
            "withdrawal_done",
        ]
        assert everyone[6]["balance"] == "0"
        key = everyone[7]["validator"]["pubkey"]
        query = [("id", f"2,{key}"), ("id", "77"), ("status", "active")]
        assert [one["index"] for one in await data(node, "getStateValidators", place=state, query=query)] == ["2", "7"]
        body = {"ids": [key, "4", "5", "0x" + "00" * 48], "statuses": ["active_exiting", "exited_slashed"]}
        posted = await data(node, "postStateValidators", place=state, body=body)
        assert [one["index"] for one in posted] == ["4", "5"]
        assert (await data(node, "getStateValidator", place={**state, "validator_id": key}))["index"] == "7"
        assert (await data(node, "getStateValidatorBalances", place=state, query=[("id", 2)]))[0]["index"] == "2"
        for place, status in (
            ({**state, "validator_id": "20"}, 404),
            ({**state, "validator_id": "0x12"}, 400),
            ({**state, "validator_id": "-1"}, 400),
            ({"state_id": "nonsense", "validator_id": "1"}, 400),
            ({"state_id": ROOT, "validator_id": "1"}, 404),
        ):
            assert (await ask(node, "getStateValidator", place=place)).status == status
        assert (await ask(node, "getStateValidators", place=state, query=[("status", "well")])).status == 400
        assert (await ask(node, "getStateValidators", place=state, query=[("id", n) for n in range(65)])).status == 414
        assert (await ask(node, "postStateValidators", place=state, body=[])).status == 400


async def test_states_are_found_by_their_root_and_by_slots_without_a_block() -> None:
    chain = SimulatedChain(start_slot=100)
    chain.miss(98)
    async with SimulatedNode(chain) as node:
        root = (await data(node, "getStateRoot", place={"state_id": "98"}))["root"]
        assert root == (await data(node, "getBlockHeader", place={"block_id": "97"}))["header"]["message"]["state_root"]
        assert (await data(node, "getStateRoot", place={"state_id": root}))["root"] == root
        assert (await ask(node, "getStateRoot", place={"state_id": "101"})).status == 404


async def test_forks_follow_the_schedule() -> None:
    """Phase0 to Gloas on one chain, a fork at each epoch: state forks, versions of blocks, the configuration."""
    forks = {name: epoch for epoch, name in enumerate(FORKS)}
    chain = SimulatedChain(slots_per_epoch=8, start_slot=0, forks=forks)
    async with SimulatedNode(chain) as node:
        spec = await data(node, "getSpec")
        assert [spec[f"{name.upper()}_FORK_EPOCH"] for name in FORKS[1:]] == [str(epoch) for epoch in range(1, 8)]
        for epoch, fork in enumerate(FORKS):
            await anyio.sleep_until(chain.slots.start_of(chain.identity.first_slot(Epoch(epoch))) + 2)
            reply = await ask(node, "getBlockV2", place={"block_id": "head"})
            assert (reply.json["version"], reply.headers["eth-consensus-version"]) == (fork, fork)
            held = await data(node, "getStateFork", place={"state_id": "head"})
            assert (held["epoch"], held["current_version"]) == (str(epoch), f"0x{epoch:02x}000000"[:9] + "1")
            block = await data(node, "getBlockV2", place={"block_id": "head"})
            assert ("execution_payload" in block["message"]["body"]) == (fork in FORKS[2:7])


@pytest.mark.parametrize(
    ("forks", "epochs"),
    [
        (None, dict.fromkeys(FORKS[:7], 0)),
        ({"deneb": 0}, dict.fromkeys(FORKS[:5], 0)),
        (
            {"capella": 2, "electra": 5},
            {"phase0": 0, "altair": 0, "bellatrix": 0, "capella": 2, "deneb": 5, "electra": 5},
        ),
    ],
)
async def test_forks_that_are_not_named_come_with_the_next_one(forks: Any, epochs: Mapping[str, int]) -> None:
    chain = SimulatedChain(forks=forks)
    assert {fork.name: fork.epoch for fork in chain.identity.forks} == epochs


@pytest.mark.parametrize("forks", [{"berlin": 0}, {}, {"deneb": 3, "electra": 2}])
async def test_a_schedule_that_cannot_be_is_refused(forks: Mapping[str, int]) -> None:
    with pytest.raises(ValueError, match="forks: "):
        SimulatedChain(forks=forks)


async def test_committees_sync_committees_and_mixes_belong_to_their_epochs() -> None:
    chain = SimulatedChain(slots_per_epoch=8, validators=100)
    state = {"state_id": "head"}
    async with SimulatedNode(chain) as node:
        await anyio.sleep(2)
        committees = await data(node, "getEpochCommittees", place=state)
        assert sorted(int(one) for found in committees for one in found["validators"]) == list(range(100))
        assert len(committees) == 8 * 3  # 100 validators, four at least in each
        one = await data(node, "getEpochCommittees", place=state, query=[("slot", 35), ("index", 1)])
        assert [(found["slot"], found["index"]) for found in one] == [("35", "1")]
        assert (await ask(node, "getEpochCommittees", place=state, query=[("slot", 40)])).status == 400
        assert (await ask(node, "getEpochCommittees", place=state, query=[("epoch", 9)])).status == 400
        sync = await data(node, "getEpochSyncCommittees", place=state)
        assert len(sync["validators"]) == 32
        assert [len(part) for part in sync["validator_aggregates"]] == [8] * 4
        assert list(itertools.chain(*sync["validator_aggregates"])) == sync["validators"]
        later = await data(node, "getEpochSyncCommittees", place=state, query=[("epoch", 8)])
        assert later != sync
        assert (await ask(node, "getEpochSyncCommittees", place=state, query=[("epoch", 16)])).status == 400
        mix = await data(node, "getStateRandao", place=state)
        assert mix != await data(node, "getStateRandao", place=state, query=[("epoch", 3)])
        assert (await ask(node, "getStateRandao", place=state, query=[("epoch", 5)])).status == 400
