"""Attesters vote for the head of their slot; those who aggregate put together what their committee voted."""

from collections.abc import Collection, Mapping
from functools import partial

import anyio
from ssz.sedes.uint import uint64

import vc_fallback as vf
from examples.minimal_vc.containers import AGGREGATE, ATTESTATION, read, root, signed
from examples.minimal_vc.signing import Domain, is_aggregator
from examples.minimal_vc.work import Work


async def duties(validators: Collection[int], work: Work, epoch: vf.Epoch) -> vf.Duties[vf.AttesterDuty]:
    """Fetch duties, and have the nodes gather the votes that are to be aggregated."""
    found = (await work.nodes.attester_duties(epoch, validators)).value
    wanted = []
    for one in found.data:
        aggregates = await selection_proof(work, one) is not None
        place = (one.validator_index, one.committee_index, one.committees_at_slot, one.slot)
        wanted.append(vf.BeaconCommitteeSubscription(*place, is_aggregator=aggregates))
    await work.nodes.subscribe_beacon_committees(wanted)
    return found


async def selection_proof(work: Work, duty: vf.AttesterDuty) -> bytes | None:
    """Return the proof that a validator aggregates at its slot; `None` where it does not."""
    slot_root = root(uint64, duty.slot)
    proof = await work.signer.other(duty.validator_index, Domain.SELECTION, duty.slot, slot_root)
    return proof if is_aggregator(proof, duty.committee_length) else None


async def attest(work: Work, slot: vf.Slot, committee: Mapping[int, vf.AttesterDuty]) -> None:
    """Members of one committee vote for the head as soon as it is there, or when votes are due."""
    nodes, index = work.nodes, next(iter(committee.values())).committee_index

    async def get() -> vf.Sourced[vf.AttestationData]:
        head = await nodes.heads.wait_for_slot(slot, work.slots.attestation_due(slot))
        return await nodes.attestation_data(slot, index, head=head)

    async def sign(validator: int, data: vf.AttestationData) -> vf.Encodings:
        signature, duty = await work.signer.vote(validator, data), committee[validator]
        # The highest bit says where the list ends.
        bits = 1 << duty.validator_committee_index | 1 << duty.committee_length
        digits = bits.to_bytes(duty.committee_length // 8 + 1, "little").hex().encode()
        text = b'{"aggregation_bits":"0x%b","data":%b,"signature":"0x%b"}'
        return vf.Encodings(json=text % (digits, data.to_json(), signature.hex().encode()))

    send = partial(nodes.publish_attestations, version=work.fork(slot))
    data = await work.do(slot, "attestation", committee, get, sign, send)
    if data is not None:
        await aggregate(work, slot, committee, data)


async def aggregate(
    work: Work, slot: vf.Slot, committee: Mapping[int, vf.AttesterDuty], data: vf.Sourced[vf.AttestationData]
) -> None:
    """An aggregator publishes what the nodes have of its committee's votes when aggregates are due.

    One of several is enough: nodes pass on no second aggregate of the same votes (network specification).
    """
    nodes, data_root = work.nodes, data.value.hash_tree_root()
    for duty in committee.values():
        proof = await selection_proof(work, duty)
        if proof is not None:
            break
    else:
        return

    async def get() -> vf.Sourced[vf.Opaque]:
        await anyio.sleep_until(work.slots.aggregate_due(slot))
        return await nodes.aggregate_attestation(slot, data_root, data.value.index, source=data.node_id)

    async def sign(validator: int, found: vf.Opaque) -> vf.Encodings:
        message = root(AGGREGATE, (validator, read(ATTESTATION, found.body), proof))
        text = b'{"aggregator_index":"%d","aggregate":%b,"selection_proof":"0x%b"}'
        written = text % (validator, found.body, proof.hex().encode())
        return signed(written, await work.signer.other(validator, Domain.AGGREGATE, slot, message))

    send = partial(nodes.publish_aggregates, version=work.fork(slot))
    await work.do(slot, "aggregate", [duty.validator_index], get, sign, send)
