"""Attesters vote for the head of their slot, and one of them puts together what the committee has voted."""

from collections.abc import Collection
from functools import partial

import anyio

import vc_fallback as vf
from examples.minimal_vc.containers import AGGREGATE, ATTESTATION, NUMBER, read, root, signed
from examples.minimal_vc.signing import Domain, is_aggregator
from examples.minimal_vc.turn import Turn


async def duties(validators: Collection[int], turn: Turn, epoch: vf.Epoch) -> vf.Duties[vf.AttesterDuty]:
    """Fetch the duties of an epoch, and have the nodes gather votes for those who aggregate."""
    found = (await turn.nodes.attester_duties(epoch, validators)).value
    wanted = []
    for one in found.data:
        place = (one.validator_index, one.committee_index, one.committees_at_slot, one.slot)
        wanted.append(vf.BeaconCommitteeSubscription(*place, await selection_proof(turn, one) is not None))
    await turn.nodes.subscribe_beacon_committees(wanted)
    return found


async def selection_proof(turn: Turn, duty: vf.AttesterDuty) -> bytes | None:
    """Return the proof that a validator aggregates at its slot; `None` where it does not."""
    proof = await turn.signer.other(duty.validator_index, Domain.SELECTION, duty.slot, root(NUMBER, duty.slot))
    return proof if is_aggregator(proof, duty.committee_length) else None


async def attest(turn: Turn, committee: Collection[vf.AttesterDuty]) -> None:
    """Vote for the head as soon as it is there, or when votes are due; then aggregate."""
    nodes, index, votes = turn.nodes, next(iter(committee)).committee_index, {}
    with turn.attempt("attestation", [duty.validator_index for duty in committee]):
        head = await nodes.heads.wait_for_slot(turn.slot, turn.slots.attestation_due(turn.slot))
        data = await nodes.attestation_data(turn.slot, index, head=head)
        for duty in committee:
            with turn.attempt("attestation", [duty.validator_index]):
                signature = (await turn.signer.vote(duty.validator_index, data.value)).hex().encode()
                # The highest bit says where the list ends.
                bits = 1 << duty.validator_committee_index | 1 << duty.committee_length
                digits = bits.to_bytes(duty.committee_length // 8 + 1, "little").hex().encode()
                vote = b'{"aggregation_bits":"0x%b","data":%b,"signature":"0x%b"}'
                ready = vf.Encodings(json=vote % (digits, data.value.to_json(), signature))
                votes[duty.validator_index] = ready
        call = partial(nodes.publish_attestations, version=turn.fork, deadline=turn.next_end)
        await turn.publish("attestation", votes, data.node_id, call)
        for duty in committee:
            if (proof := await selection_proof(turn, duty)) is not None:
                await aggregate(turn, duty.validator_index, proof, data)
                break  # One is enough: nodes pass on no second aggregate of the same votes (network specification).


async def aggregate(turn: Turn, validator: int, proof: bytes, data: vf.Sourced[vf.AttestationData]) -> None:
    """Publish what the nodes have of the committee's votes when aggregates are due."""
    nodes, data_root = turn.nodes, data.value.hash_tree_root()
    with turn.attempt("aggregate", [validator]):
        await anyio.sleep_until(turn.slots.aggregate_due(turn.slot))
        index, source, end = data.value.index, data.node_id, turn.next_end
        found = await nodes.aggregate_attestation(turn.slot, data_root, index, source=source, deadline=end)
        message = root(AGGREGATE, (validator, read(ATTESTATION, found.value.body), proof))
        signature = await turn.signer.other(validator, Domain.AGGREGATE, turn.slot, message)
        written = b'{"aggregator_index":"%d","aggregate":%b,"selection_proof":"0x%b"}'
        ready = signed(written % (validator, found.value.body, proof.hex().encode()), signature)
        call = partial(nodes.publish_aggregates, version=turn.fork, deadline=end)
        await turn.publish("aggregate", {validator: ready}, found.node_id, call)
