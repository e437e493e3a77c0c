"""A proposer has a block made for its slot, signs it and publishes it."""

from collections.abc import Collection

import vc_fallback as vf
from examples.minimal_vc.containers import NUMBER, block, read, root, signed
from examples.minimal_vc.signing import Domain
from examples.minimal_vc.turn import Turn

FEE_RECIPIENT = bytes.fromhex("c0ffee" + 17 * "00")
GRAFFITI = b"minimal_vc".ljust(32, b"\0")


async def duties(validators: Collection[int], turn: Turn, epoch: vf.Epoch) -> vf.ProposerDuties:
    """Fetch who proposes in an epoch, and tell the nodes who gets the fees of our blocks."""
    found = (await turn.nodes.proposer_duties(epoch)).value
    with turn.attempt("preparation", [None]):
        told = await turn.nodes.prepare_beacon_proposer([vf.ProposerPreparation(v, FEE_RECIPIENT) for v in validators])
        turn.tell("preparation", None, "published", detail=f"to {len(told.deliveries)} nodes")
    return found


async def propose(turn: Turn, validator: int) -> None:
    """Propose a block at the start of its slot."""
    nodes, kind = turn.nodes, block(turn.slots.chain.preset)

    def doubt(made: vf.Sourced[vf.ProducedBlock]) -> vf.Doubt | None:
        try:
            right = read(kind, made.value.body)[:2] == (turn.slot, validator)
        except ValueError as error:
            return vf.Doubt(str(error))
        return None if right else vf.Doubt("the block of another slot or proposer")

    with turn.attempt("block", [validator]):
        epoch = root(NUMBER, turn.slots.chain.epoch_of(turn.slot))
        reveal = await turn.signer.other(validator, Domain.RANDAO, turn.slot, epoch)
        made = await nodes.produce_block(turn.slot, reveal, graffiti=GRAFFITI, accept=doubt)
        block_root = root(kind, read(kind, made.value.body))
        ready = signed(made.value.body, await turn.signer.block(validator, turn.slot, block_root))
        fork = turn.fork
        await turn.publish("block", {validator: ready}, made.node_id, lambda one: nodes.publish_block(one[0], fork))
