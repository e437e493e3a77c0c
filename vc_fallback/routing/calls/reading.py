"""Reading the chain: blocks, states, what is configured; first success (Q2, Q3)."""

# Functions are made here at every call: their annotations are not to be evaluated each time.
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import anyio

from vc_fallback.base.types import Epoch, NodeId, Role, Root, Slot, Sourced, Tier
from vc_fallback.node import routes
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.endpoints.blocks import BlockId
from vc_fallback.node.endpoints.states import StateId
from vc_fallback.node.failures import NotFound
from vc_fallback.node.routes import Route
from vc_fallback.node.values.about import DepositContract, ForkVersions, Genesis
from vc_fallback.node.values.answers import OnChain
from vc_fallback.node.values.blocks import Header
from vc_fallback.node.values.opaque import Opaque
from vc_fallback.node.values.states import (
    Committee,
    FinalityCheckpoints,
    ListedValidator,
    SyncCommittees,
    ValidatorBalance,
)
from vc_fallback.node.values.validator_ids import ValidatorId
from vc_fallback.routing.requests import Ask, Requests

T = TypeVar("T")

ANNOUNCED = 1.0
"""Seconds after which a node that has announced a head has it for everyone who asks (case 51)."""


class ReadingCalls(Requests):
    """The node with the best rank is asked, the next at once where it fails or says "not found", and as well where it
    is silent for an eighth of a slot. `deadline` is a moment in loop time; half a slot from the call without one.

    Where a block or a state is named by the root, or the slot, of a head that a node has announced within the last
    second, that node is asked first, and once more where it does not find it yet (case 51).

    :raises NotFound: when all say so.
    :raises AllNodesFailed, DeadlineExceeded, NoCandidates: see `vc_fallback.routing.outcomes`.
    :raises ValueError: for what can be seen to be wrong before anything is sent.
    """

    async def genesis(self, *, deadline: float | None = None) -> Sourced[Genesis]:
        """Return the chain's genesis."""
        return await self._read(routes.GENESIS, lambda node, t: node.genesis(timeout=t), deadline)

    async def spec(self, *, deadline: float | None = None) -> Sourced[Mapping[str, Any]]:
        """Return a node's configuration as it sends it."""
        return await self._read(routes.SPEC, lambda node, t: node.spec(timeout=t), deadline)

    async def fork_schedule(self, *, deadline: float | None = None) -> Sourced[list[ForkVersions]]:
        """Return the forks that a node knows, past and to come."""
        return await self._read(routes.FORK_SCHEDULE, lambda node, t: node.fork_schedule(timeout=t), deadline)

    async def deposit_contract(self, *, deadline: float | None = None) -> Sourced[DepositContract]:
        """Return where deposits are made."""
        return await self._read(routes.DEPOSIT_CONTRACT, lambda node, t: node.deposit_contract(timeout=t), deadline)

    async def header(self, block_id: BlockId, *, deadline: float | None = None) -> Sourced[OnChain[Header]]:
        """Return a block's header."""
        return await self._read(routes.HEADER, lambda node, t: node.header(block_id, timeout=t), deadline, block_id)

    async def headers(
        self, *, slot: Slot | None = None, parent_root: Root | None = None, deadline: float | None = None
    ) -> Sourced[OnChain[list[Header]]]:
        """Return the headers of a slot, of the children of a block, or of both; without either those at the head."""
        return await self._read(
            routes.HEADERS, lambda node, t: node.headers(slot=slot, parent_root=parent_root, timeout=t), deadline
        )

    async def block_root(self, block_id: BlockId, *, deadline: float | None = None) -> Sourced[OnChain[Root]]:
        """Return a block's root."""
        return await self._read(
            routes.BLOCK_ROOT, lambda node, t: node.block_root(block_id, timeout=t), deadline, block_id
        )

    async def block(self, block_id: BlockId, *, deadline: float | None = None) -> Sourced[Opaque]:
        """Return a signed block."""
        return await self._read(routes.BLOCK, lambda node, t: node.block(block_id, timeout=t), deadline, block_id)

    async def blinded_block(self, block_id: BlockId, *, deadline: float | None = None) -> Sourced[Opaque]:
        """Return a signed block with the header of its payload in the place of that; there are none from Gloas on."""
        return await self._read(
            routes.BLINDED_BLOCK, lambda node, t: node.blinded_block(block_id, timeout=t), deadline, block_id
        )

    async def blobs(
        self, block_id: BlockId, *, versioned_hashes: Sequence[bytes] | None = None, deadline: float | None = None
    ) -> Sourced[Opaque]:
        """Return the blobs of a block as one list; see :meth:`vc_fallback.BeaconNode.blobs`."""

        def ask(node: BeaconNode, t: float) -> Any:  # noqa: ANN401 - the type checker sees it below
            return node.blobs(block_id, versioned_hashes=versioned_hashes, timeout=t)

        return await self._read(routes.BLOBS, ask, deadline, block_id)

    async def state_root(self, state_id: StateId, *, deadline: float | None = None) -> Sourced[OnChain[Root]]:
        """Return a state's hash tree root."""
        return await self._read(
            routes.STATE_ROOT, lambda node, t: node.state_root(state_id, timeout=t), deadline, state_id
        )

    async def state_fork(self, state_id: StateId, *, deadline: float | None = None) -> Sourced[OnChain[ForkVersions]]:
        """Return the fork that holds in a state."""
        return await self._read(
            routes.STATE_FORK, lambda node, t: node.state_fork(state_id, timeout=t), deadline, state_id
        )

    async def finality_checkpoints(
        self, state_id: StateId = "head", *, deadline: float | None = None
    ) -> Sourced[OnChain[FinalityCheckpoints]]:
        """Return a state's checkpoints."""
        return await self._read(
            routes.FINALITY, lambda node, t: node.finality_checkpoints(state_id, timeout=t), deadline, state_id
        )

    async def validators(
        self,
        state_id: StateId,
        ids: Iterable[ValidatorId] | None = None,
        statuses: Iterable[str] = (),
        *,
        deadline: float | None = None,
    ) -> Sourced[OnChain[list[ListedValidator]]]:
        """Return validators of a state; see :meth:`vc_fallback.BeaconNode.validators`."""
        wanted = None if ids is None else [*ids]
        only = [*statuses]
        return await self._read(
            routes.VALIDATORS, lambda node, t: node.validators(state_id, wanted, only, timeout=t), deadline, state_id
        )

    async def validator(
        self, state_id: StateId, validator_id: ValidatorId, *, deadline: float | None = None
    ) -> Sourced[OnChain[ListedValidator]]:
        """Return one validator of a state, by its index or its public key."""
        return await self._read(
            routes.VALIDATOR, lambda node, t: node.validator(state_id, validator_id, timeout=t), deadline, state_id
        )

    async def validator_balances(
        self, state_id: StateId, ids: Iterable[ValidatorId] | None = None, *, deadline: float | None = None
    ) -> Sourced[OnChain[list[ValidatorBalance]]]:
        """Return balances of validators of a state."""
        wanted = None if ids is None else [*ids]
        return await self._read(
            routes.BALANCES, lambda node, t: node.validator_balances(state_id, wanted, timeout=t), deadline, state_id
        )

    async def committees(
        self,
        state_id: StateId,
        *,
        epoch: Epoch | None = None,
        index: int | None = None,
        slot: Slot | None = None,
        deadline: float | None = None,
    ) -> Sourced[OnChain[list[Committee]]]:
        """Return committees of an epoch, by default that of the state."""
        return await self._read(
            routes.COMMITTEES,
            lambda node, t: node.committees(state_id, epoch=epoch, index=index, slot=slot, timeout=t),
            deadline,
            state_id,
        )

    async def sync_committees(
        self, state_id: StateId, *, epoch: Epoch | None = None, deadline: float | None = None
    ) -> Sourced[OnChain[SyncCommittees]]:
        """Return the sync committee of an epoch, by default that of the state."""
        return await self._read(
            routes.SYNC_COMMITTEES,
            lambda node, t: node.sync_committees(state_id, epoch=epoch, timeout=t),
            deadline,
            state_id,
        )

    async def randao(
        self, state_id: StateId, *, epoch: Epoch | None = None, deadline: float | None = None
    ) -> Sourced[OnChain[bytes]]:
        """Return the RANDAO mix of an epoch, 32 bytes."""
        return await self._read(
            routes.RANDAO, lambda node, t: node.randao(state_id, epoch=epoch, timeout=t), deadline, state_id
        )

    async def _read(
        self, route: Route, ask: Ask[T], deadline: float | None, named: BlockId | StateId | None = None
    ) -> Sourced[T]:
        desk = self._open()
        end = self._end(desk.settings.duties_end, None, deadline)
        announcers = {} if named is None or isinstance(named, str) else self._announcers(named)
        if not announcers:
            return await self._first(route, Role.DUTIES, ask, end=end)
        # Who is merely ahead is not asked first for what may be found elsewhere: a slot, but not a root (scenario 43).
        first = next((n for n, tier in announcers.items() if tier is Tier.PRIMARY or isinstance(named, bytes)), None)
        return await self._first(route, Role.DUTIES, self._patiently(announcers, ask), end=end, prefer=first)

    def _announcers(self, named: Slot | Root) -> dict[NodeId, Tier]:
        """Return the nodes that have announced a block within the last second, primaries first."""
        desk = self._open()
        now = desk.clock.now()
        found = {}
        for tier in Tier:
            for member in desk.candidates.current.members.values():
                head = desk.chain.head_of(member.node_id)
                if member.tier is not tier or head is None or now - head.received >= ANNOUNCED:
                    continue
                if named == (head.root if isinstance(named, bytes) else head.slot):
                    found[member.node_id] = tier
        return found

    def _patiently(self, announcers: Collection[NodeId], ask: Ask[T]) -> Ask[T]:
        """Ask nodes that have announced a block once more where they do not find it yet."""

        async def patient(node: BeaconNode, timeout: float) -> Sourced[T]:
            desk = self._open()
            end = desk.clock.now() + timeout
            wait = desk.settings.refetch_after
            try:
                return await ask(node, timeout)
            except NotFound:
                if node.node_id not in announcers or desk.clock.now() + wait >= end:
                    raise
            await anyio.sleep(wait)
            return await ask(node, end - desk.clock.now())

        return patient
