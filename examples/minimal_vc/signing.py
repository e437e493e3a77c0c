"""Signatures and what they are of; the guard goes before whatever may be slashable."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256

import anyio.lowlevel
from anyio import to_thread

import vc_fallback as vf
from examples.minimal_vc.containers import FORK_DATA, SIGNING_DATA, root
from examples.minimal_vc.keys import Key
from examples.minimal_vc.slashing_guard import SlashingGuard

AGGREGATORS = 16
"""How many are wanted in a committee or subcommittee (consensus specification, honest validator)."""


class Domain(IntEnum):
    """What a signature is of: the first byte of its domain (consensus specification)."""

    PROPOSER, ATTESTER, RANDAO = 0, 1, 2
    SELECTION, AGGREGATE = 5, 6
    SYNC, SYNC_SELECTION, CONTRIBUTION = 7, 8, 9


def signing_root(chain: vf.ChainIdentity, domain: Domain, epoch: vf.Epoch, signed: vf.Root) -> vf.Root:
    """Return what is signed for a root: it holds on one chain, in the fork of an epoch, for one purpose."""
    fork = chain.fork_at(epoch)
    if fork is None:
        raise ValueError("no node has said which forks there are")
    of_fork = root(FORK_DATA, (fork.version, chain.genesis_validators_root))
    return root(SIGNING_DATA, (signed, bytes([domain, 0, 0, 0]) + of_fork[:28]))


def is_aggregator(proof: bytes, members: int) -> bool:
    """Whether a selection proof makes its validator one of the aggregators of so many members."""
    return int.from_bytes(sha256(proof).digest()[:8], "little") % max(1, members // AGGREGATORS) == 0


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs for validators, by their indices. The guard may refuse votes and blocks."""

    chain: vf.ChainIdentity
    keys: Mapping[int, Key]
    guard: SlashingGuard

    async def vote(self, validator: int, data: vf.AttestationData) -> bytes:
        """Sign attestation data, once the guard has it on the disk; in a thread, so that nobody else waits for that."""
        source, target = data.source.epoch, data.target.epoch
        await to_thread.run_sync(self.guard.allow_vote, self.keys[validator].pubkey, source, target)
        return await self._sign(validator, Domain.ATTESTER, target, data.hash_tree_root())

    async def block(self, validator: int, slot: vf.Slot, block_root: vf.Root) -> bytes:
        """Sign a block of a slot, likewise."""
        await to_thread.run_sync(self.guard.allow_block, self.keys[validator].pubkey, slot)
        return await self._sign(validator, Domain.PROPOSER, self.chain.epoch_of(slot), block_root)

    async def other(self, validator: int, domain: Domain, slot: vf.Slot, signed: vf.Root) -> bytes:
        """Sign what is never slashable, at a slot."""
        if domain in (Domain.PROPOSER, Domain.ATTESTER):
            raise ValueError("votes and blocks pass the guard")
        return await self._sign(validator, domain, self.chain.epoch_of(slot), signed)

    async def _sign(self, validator: int, domain: Domain, epoch: vf.Epoch, signed: vf.Root) -> bytes:
        # A signature stops the whole program for 2 ms, from a thread too: others have their turn before each.
        await anyio.lowlevel.checkpoint()
        return self.keys[validator].sign(signing_root(self.chain, domain, epoch, signed))
