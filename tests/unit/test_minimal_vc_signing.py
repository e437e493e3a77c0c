"""The example's keys, roots and domains: against what a real Lodestar signed, and formulas written out by hand."""

import json
from functools import cache
from hashlib import sha256
from typing import Any

import pytest

from examples.minimal_vc import containers
from examples.minimal_vc.keys import interop_key
from examples.minimal_vc.signing import Domain, is_aggregator, signing_root
from tests.bls import verified
from tests.recordings import RECORDINGS
from vc_fallback import AttestationData, ChainIdentity, Checkpoint, Epoch, Fork, Root, Slot
from vc_fallback.testing.containers.blocks import block_types
from vc_fallback.testing.containers.presets import preset

FORKS = (Fork("bellatrix", b"\2\0\0\1", Epoch(0)), Fork("capella", b"\3\0\0\1", Epoch(3)))
ROOT = Root(bytes(range(32)))
CHAIN = ChainIdentity(0.0, Root(bytes(range(32, 64))), 2.0, 8, "minimal", FORKS)


def hashed(*parts: bytes) -> bytes:
    return sha256(b"".join(parts)).digest()


@cache
def real() -> Any:
    """A block of a real devnet with what it takes to check it: made by Lodestar, signed by its own validator client."""
    return json.loads((RECORDINGS / "signed_block.json").read_text())


@cache
def real_chain() -> ChainIdentity:
    """The chain of that block."""
    genesis = Root(bytes.fromhex(real()["genesis"]["genesis_validators_root"][2:]))
    versions = [bytes.fromhex(fork["current_version"][2:]) for fork in real()["fork_schedule"]]
    return ChainIdentity(0.0, genesis, 2.0, 8, "minimal", (Fork("capella", versions[3], Epoch(0)),))


def hexadecimal(text: str) -> bytes:
    return bytes.fromhex(text[2:])


# --- keys


def test_keys_are_those_of_every_devnet() -> None:
    """Private keys as the interop standard publishes them; public keys as a real node has them in its registry."""
    first = "25295f0d1d592a90b333e26e85149708208e9f8e8bc18f6c77bd62f8ad7a6866"
    second = "51d0b65185db6989ab0b560d6deed19c7ead0e24b9b6372cbecb1f26bdfad000"
    assert [bytes(interop_key(number).secret.to_be_bytes()).hex() for number in range(2)] == [first, second]
    assert len(real()["validators"]) == 8
    for number, pubkey in real()["validators"].items():
        assert interop_key(int(number)).pubkey == hexadecimal(pubkey)


def test_a_private_key_is_not_shown() -> None:
    """Secrets reach no log."""
    key = interop_key(3)
    assert bytes(key.secret.to_be_bytes()).hex() not in repr(key)
    assert "secret" not in repr(key)


# --- domains and signing roots


@pytest.mark.parametrize(
    ("domain", "first"),
    [
        (Domain.PROPOSER, 0),
        (Domain.ATTESTER, 1),
        (Domain.RANDAO, 2),
        (Domain.SELECTION, 5),
        (Domain.AGGREGATE, 6),
        (Domain.SYNC, 7),
        (Domain.SYNC_SELECTION, 8),
        (Domain.CONTRIBUTION, 9),
    ],
)
@pytest.mark.parametrize(("epoch", "version"), [(2, b"\2\0\0\1"), (3, b"\3\0\0\1")])
def test_a_signing_root_is_that_of_the_specification(domain: Domain, first: int, epoch: int, version: bytes) -> None:
    """`compute_domain` and `compute_signing_root`, by hand; the fork is that of the epoch."""
    fork_data = hashed(version, bytes(28), CHAIN.genesis_validators_root)
    expected = hashed(ROOT, bytes([first, 0, 0, 0]), fork_data[:28])
    assert signing_root(CHAIN, domain, Epoch(epoch), ROOT) == expected


def test_nothing_is_signed_for_a_fork_that_is_not_known() -> None:
    """A signature for a wrong fork is worth nothing."""
    with pytest.raises(ValueError, match="forks"):
        signing_root(ChainIdentity(0.0, ROOT, 2.0), Domain.SYNC, Epoch(0), ROOT)


# --- containers


def test_all_signatures_of_a_real_block_are_of_what_would_be_signed_here() -> None:
    """Capella, by a real node and a real validator client: the block, its reveal, the votes and the heads in it."""
    kind, chain = containers.block("minimal"), real_chain()
    value = containers.read(kind, json.dumps(real()["block"]["message"]).encode())
    root = containers.root(kind, value)
    assert root == hexadecimal(real()["root"])
    slot, proposer, parent, _, (reveal, *_, votes, _, _, (bits, head_signature), _, _) = value
    epoch, pubkeys = chain.epoch_of(Slot(slot)), [interop_key(number).pubkey for number in range(8)]

    signed = signing_root(chain, Domain.PROPOSER, epoch, root)
    assert verified([pubkeys[proposer]], signed, hexadecimal(real()["block"]["signature"]))
    signed = signing_root(chain, Domain.RANDAO, epoch, containers.root(containers.NUMBER, epoch))
    assert verified([pubkeys[proposer]], signed, reveal)

    assert votes
    for members, data, signature in votes:
        assert members == (True,)
        vote = AttestationData(*data[:3], *(Checkpoint(*one) for one in data[3:]))
        signed = signing_root(chain, Domain.ATTESTER, vote.target.epoch, vote.hash_tree_root())
        assert any(verified([pubkey], signed, signature) for pubkey in pubkeys)

    assert all(bits)
    signed = signing_root(chain, Domain.SYNC, chain.epoch_of(Slot(slot - 1)), Root(parent))
    assert verified([pubkeys[int(member)] for member in real()["sync_committee"]], signed, head_signature)


@pytest.mark.parametrize("name", ["minimal", "mainnet"])
def test_blocks_hash_alike_in_an_implementation_that_shares_nothing(name: str) -> None:
    """Both presets, every list filled: as the simulated nodes have it, who do not use the `ssz` library."""
    types = block_types(preset(name), "capella")
    value: dict[str, Any] = types.block.default()
    for operation in ("proposer_slashings", "attester_slashings", "attestations", "deposits", "voluntary_exits"):
        value["body"][operation] = (types.body.fields[operation].item.default(),) * 2  # type: ignore[attr-defined]
    changes = types.body.fields["bls_to_execution_changes"]
    value["body"]["bls_to_execution_changes"] = (changes.item.default(),)  # type: ignore[attr-defined]
    payload = value["body"]["execution_payload"]
    withdrawal = types.payload.fields["withdrawals"].item.default()  # type: ignore[attr-defined]
    payload.update(transactions=(b"\1\2\3", b"\4" * 200), withdrawals=(withdrawal,) * 4, extra_data=b"\7" * 20)
    payload.update(base_fee_per_gas=2**200 + 1, gas_limit=30_000_000)
    value["slot"], value["proposer_index"] = 77, 2**40
    kind = containers.block(name)
    read = containers.read(kind, json.dumps(types.block.to_json(value)).encode())
    assert containers.root(kind, read) == types.block.root(value)


@pytest.mark.parametrize("text", [b"{}", b"[]", b"null", b"7", b'{"slot":"x"}', b"{", b'{"slot":{}}'])
def test_what_is_no_block_cannot_be_read(text: bytes) -> None:
    """Whatever a node sends costs that node its place, and no more."""
    with pytest.raises(ValueError, match=r".+"):
        containers.read(containers.block("minimal"), text)


# --- who aggregates


@pytest.mark.parametrize(("members", "modulo"), [(1, 1), (31, 1), (32, 2), (128, 8), (2048, 128)])
def test_one_of_so_many_proofs_makes_an_aggregator(members: int, modulo: int) -> None:
    """`is_aggregator` of the specification: the first 8 bytes of the hash, little-endian; 16 are wanted."""
    proofs = [number.to_bytes(96, "big") for number in range(600)]
    chosen = [proof for proof in proofs if is_aggregator(proof, members)]
    assert chosen == [p for p in proofs if int.from_bytes(hashed(p)[:8], "little") % modulo == 0]
    assert chosen
