"""A node that refuses one kind of requests loses no others, and one that rests no block (Q11)."""

import pytest

from tests.acceptance.facade import A, B, holding
from vc_fallback.base.types import Slot
from vc_fallback.node.values.preparations import (
    ProposerPreparation,
    SignedValidatorRegistration,
    ValidatorRegistration,
)
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio

REGISTER = "/eth/v1/validator/register_validator"
ATTESTATION = "/eth/v1/validator/attestation_data"


async def test_a_primary_that_refuses_registrations_still_has_the_duties() -> None:
    """A gateway keeps one route shut: the data, and what is published, go on to the primary."""
    async with simulated_devnet(2) as net, holding(net, fallbacks=[net[1]]) as held:
        first, second = net
        await held.until(130.5)
        first.answer(REGISTER, 403, "forbidden")
        for slot in range(131, 136):
            await held.until(slot)
            wish = ValidatorRegistration(bytes(20), 30_000_000, slot, bytes(48))
            result = await held.calls.register_validators([SignedValidatorRegistration(wish, bytes(96)).encodings()])
            await result.settled()
            await held.until(slot + 0.4)
            assert (await held.calls.attestation_data(Slot(slot))).node_id == A
        assert held.asked(second, ATTESTATION) == 0
        assert held.asked(first, REGISTER) <= 2


async def test_a_block_is_had_of_a_good_node_that_rests_rather_than_of_one_that_is_behind() -> None:
    """What the one behind makes is for an old head; a rest is no verdict."""
    async with simulated_devnet(2) as net, holding(net) as held:
        first, second = net
        await held.until(130.5)
        second.cut_off()
        await held.until(137.5)
        first.answer("/eth/v1/node/version", 429, headers={"Retry-After": "300"}, times=1)
        await held.version()
        assert [*held.calls.plan().cooling] == [A]
        assert held.calls.plan().nodes == (A, B)
        assert (await held.calls.produce_block(Slot(138), bytes(96))).node_id == A
        result = await held.calls.prepare_beacon_proposer([ProposerPreparation(1, bytes(20))])
        await result.settled()
        assert A in result.accepted
