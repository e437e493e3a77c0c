"""A proposer has a block made for its slot, signs it and publishes it."""

from collections.abc import Collection

from ssz.sedes.uint import uint64

import vc_fallback as vf
from examples.minimal_vc.containers import block, read, root, signed
from examples.minimal_vc.signing import Domain
from examples.minimal_vc.work import Attempt, Work

FEE_RECIPIENT = bytes.fromhex("c0ffee" + 17 * "00")
GRAFFITI = b"minimal_vc".ljust(32, b"\0")


async def duties(validators: Collection[int], work: Work, epoch: vf.Epoch) -> vf.ProposerDuties:
    """Tell the nodes who gets the fees of our blocks, in this epoch and two more, and fetch who proposes."""
    slot = work.slots.slot_at(work.nodes.clock.now())
    with Attempt(work, slot, "preparation", [None]):
        told = await work.nodes.prepare_beacon_proposer([vf.ProposerPreparation(v, FEE_RECIPIENT) for v in validators])
        work.tell(slot, "preparation", None, "published", "", f"to {len(told.deliveries)} nodes")
    return (await work.nodes.proposer_duties(epoch)).value


async def propose(work: Work, slot: vf.Slot, validator: int) -> None:
    """Propose at the start of the slot."""
    kind = block(work.slots.chain.preset)

    def doubt(answer: vf.Sourced[vf.ProducedBlock]) -> vf.Doubt | None:
        try:
            made = read(kind, answer.value.body)
        except ValueError as error:
            return vf.Doubt(str(error))
        return None if made[:2] == (slot, validator) else vf.Doubt("the block of another slot or proposer")

    async def get() -> vf.Sourced[vf.ProducedBlock]:
        epoch = root(uint64, work.slots.chain.epoch_of(slot))
        reveal = await work.signer.other(validator, Domain.RANDAO, slot, epoch)
        return await work.nodes.produce_block(slot, reveal, graffiti=GRAFFITI, accept=doubt)

    async def sign(validator: int, made: vf.ProducedBlock) -> vf.Encodings:
        return signed(made.body, await work.signer.block(validator, slot, root(kind, read(kind, made.body))))

    async def send(blocks: list[vf.Encodings]) -> vf.BroadcastResult:
        return await work.nodes.publish_block(blocks[0], work.fork(slot))

    await work.do(slot, "block", [validator], get, sign, send)
