"""What beacon nodes say on `/eth/v1/events`: topics, payloads, refusals, and nonsense for tests."""

import json
from collections.abc import Mapping, Sequence
from typing import Literal

from vc_fallback.base.types import PayloadStatus, root_hex
from vc_fallback.testing.blocks import SimulatedBlock, SimulatedChain

TOPICS = (
    "head",
    "head_v2",
    "block",
    "block_gossip",
    "attestation",
    "single_attestation",
    "voluntary_exit",
    "bls_to_execution_change",
    "proposer_slashing",
    "attester_slashing",
    "finalized_checkpoint",
    "chain_reorg",
    "contribution_and_proof",
    "light_client_finality_update",
    "light_client_optimistic_update",
    "payload_attributes",
    "data_column_sidecar",
    "execution_payload",
    "execution_payload_gossip",
    "execution_payload_available",
    "execution_payload_bid",
    "payload_attestation_message",
    "fast_confirmation",
    "proposer_preferences",
)
"""The topics of the Beacon API definition (2026-07)."""

UnknownTopics = Literal["nimbus", "prysm", "grandine", "spec", "lodestar", "silent", "open"]
"""What a node does with a topic it does not know (cases.md 4 to 7): refuse in the words of that node or of the
definition; `silent` as Lodestar 1.5.1: ignore it beside one it knows, and never answer when it is alone; `open`: answer
200 and ignore it."""

Json = Mapping[str, object]


def refusal(style: UnknownTopics, topic: str) -> bytes:
    """Return the body of the 400 for an unknown topic."""
    body: dict[str, object]
    if style == "nimbus":
        body = {"code": 400, "message": "Invalid topics value", "stacktraces": ["Incorrect event's topic value"]}
    elif style == "prysm":
        body = {"message": f"{topic}: invalid topic name", "code": 400}
    elif style == "grandine":
        body = {"code": 400, "message": "invalid query string: topics: Matching variant not found"}
    elif style == "lodestar":
        body = {"statusCode": 400, "error": "Bad Request", "message": f"Invalid topic: {topic}"}
    else:
        body = {"code": 400, "message": f"Invalid topic: {topic}"}
    return dumps(body).encode()


def dumps(data: object) -> str:
    """Write JSON as the nodes do, without blanks."""
    return json.dumps(data, separators=(",", ":"))


def head(chain: SimulatedChain, block: SimulatedBlock, *, optimistic: bool = False) -> dict[str, object]:
    """Return the data of a `head` event."""
    roots = chain.duty_roots(block)
    return {
        "slot": str(block.slot),
        "block": root_hex(block.root),
        "state": root_hex(block.state_root),
        "epoch_transition": epoch_transition(chain, block),
        "previous_duty_dependent_root": root_hex(roots.current_epoch),
        "current_duty_dependent_root": root_hex(roots.next_epoch),
        "execution_optimistic": optimistic,
    }


def head_v2(
    chain: SimulatedChain, block: SimulatedBlock, status: PayloadStatus, *, optimistic: bool = False
) -> dict[str, object]:
    """Return the data of a `head_v2` event."""
    roots = chain.duty_roots(block)
    return {
        "version": fork_name(chain, block.slot),
        "data": {
            "slot": str(block.slot),
            "block": root_hex(block.root),
            "state": root_hex(block.state_root),
            "payload_status": status.value,
            "epoch_transition": epoch_transition(chain, block),
            "current_epoch_dependent_root": root_hex(roots.current_epoch),
            "next_epoch_dependent_root": root_hex(roots.next_epoch),
            "execution_optimistic": optimistic,
        },
    }


def block(block: SimulatedBlock, *, optimistic: bool = False) -> dict[str, object]:
    """Return the data of a `block` event."""
    return {"slot": str(block.slot), "block": root_hex(block.root), "execution_optimistic": optimistic}


def chain_reorg(
    chain: SimulatedChain, old: SimulatedBlock, new: SimulatedBlock, *, optimistic: bool = False
) -> dict[str, object]:
    """Return the data of a `chain_reorg` event."""
    return {
        "slot": str(new.slot),
        "depth": str(chain.depth(old, new)),
        "old_head_block": root_hex(old.root),
        "new_head_block": root_hex(new.root),
        "old_head_state": root_hex(old.state_root),
        "new_head_state": root_hex(new.state_root),
        "epoch": str(chain.identity.epoch_of(new.slot)),
        "execution_optimistic": optimistic,
    }


def finalized_checkpoint(chain: SimulatedChain, head: SimulatedBlock, *, optimistic: bool = False) -> dict[str, object]:
    """Return the data of the `finalized_checkpoint` event of a head."""
    epoch, root = finalized(chain, head)
    found = chain.block(root)
    state = root_hex(found.state_root) if found is not None else root_hex(root)
    return {"block": root_hex(root), "state": state, "epoch": str(epoch), "execution_optimistic": optimistic}


def finalized(chain: SimulatedChain, head: SimulatedBlock) -> tuple[int, bytes]:
    """Return the finalized checkpoint of a head: two epochs before its own."""
    return chain.checkpoint(chain.identity.epoch_of(head.slot) - 2, head.branch)


def justified(chain: SimulatedChain, head: SimulatedBlock) -> tuple[int, bytes]:
    """Return the justified checkpoint of a head: the epoch before its own."""
    return chain.checkpoint(chain.identity.epoch_of(head.slot) - 1, head.branch)


def epoch_transition(chain: SimulatedChain, block: SimulatedBlock) -> bool:
    """Whether a block is the first of its epoch on its branch."""
    parent = chain.block(block.parent_root)
    return parent is not None and chain.identity.epoch_of(parent.slot) < chain.identity.epoch_of(block.slot)


def fork_name(chain: SimulatedChain, slot: int) -> str:
    """Return the name of the fork of a slot."""
    return chain.fork_name(slot)


def attester_slashing(indices: int = 15_000) -> dict[str, object]:
    """Return the data of an `attester_slashing` event, by default of about 300 kB on one line (cases.md 14)."""
    zero = root_hex(bytes(32))
    checkpoint = {"epoch": "0", "root": zero}
    data = {"slot": "0", "index": "0", "beacon_block_root": zero, "source": checkpoint, "target": checkpoint}
    signature = "0x" + "00" * 96

    def attestation(first: int, count: int) -> dict[str, object]:
        return {
            "attesting_indices": [str(first + index) for index in range(count)],
            "data": data,
            "signature": signature,
        }

    return {"attestation_1": attestation(1_000_000, indices), "attestation_2": attestation(1_000_000, indices)}


def malformed_heads(good: Json) -> Sequence[tuple[str, str]]:
    """Return broken forms of a `head` event's data, each with what is wrong about it."""
    without = {key: value for key, value in good.items() if key != "block"}
    return (
        ("not JSON", "{not json"),
        ("cut off", dumps(good)[:-20]),
        ("blank", "\t"),
        ("null", "null"),
        ("a list", dumps([good])),
        ("a string", dumps("head")),
        ("a number", "17"),
        ("no block", dumps(without)),
        ("slot not a number", dumps({**good, "slot": "seventeen"})),
        ("slot a float", dumps({**good, "slot": 17.5})),
        ("slot true", dumps({**good, "slot": True})),
        ("slot null", dumps({**good, "slot": None})),
        ("slot negative", dumps({**good, "slot": "-1"})),
        ("slot with a plus", dumps({**good, "slot": "+17"})),
        ("slot beyond 64 bits", dumps({**good, "slot": str(2**64)})),
        ("block too short", dumps({**good, "block": "0xaabb"})),
        ("block without 0x", dumps({**good, "block": str(good["block"])[2:]})),
        ("block not hexadecimal", dumps({**good, "block": "0x" + "zz" * 32})),
        ("block a number", dumps({**good, "block": 5})),
        ("optimistic a string", dumps({**good, "execution_optimistic": "yes"})),
        ("nested too deep", "[" * 5000 + "]" * 5000),
    )
