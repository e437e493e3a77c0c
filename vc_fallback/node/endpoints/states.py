"""States of the chain and what is in them, by their identifiers."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal

from vc_fallback.base.types import Epoch, Root, Slot, Sourced
from vc_fallback.node import routes
from vc_fallback.node.caller import Body, Caller, Pairs, is_ssz, reads
from vc_fallback.node.endpoints.blocks import identifier
from vc_fallback.node.routes import Route
from vc_fallback.node.scalars import uint64
from vc_fallback.node.values.about import ForkVersions
from vc_fallback.node.values.answers import OnChain
from vc_fallback.node.values.states import (
    Committee,
    FinalityCheckpoints,
    ListedValidator,
    Randao,
    StateRoot,
    SyncCommittees,
    ValidatorBalance,
    balances_from_ssz,
    merged,
    read_rows,
)
from vc_fallback.node.values.validator_ids import ValidatorId, write_statuses, write_validator_id, write_validator_ids
from vc_fallback.wire.http import Response

StateId = Slot | Root | Literal["head", "genesis", "finalized", "justified"]
"""A slot, a state root, or a word."""

MOST_IDS = 64
"""Validators that one GET asks for (`maxItems` in the API definition)."""

_ROOT = OnChain[StateRoot]
_FORK = OnChain[ForkVersions]
_FINALITY = OnChain[FinalityCheckpoints]
_VALIDATORS = OnChain[list[ListedValidator]]
_VALIDATOR = OnChain[ListedValidator]
_BALANCES = OnChain[list[ValidatorBalance]]
_COMMITTEES = list[Committee]
_RANDAO = OnChain[Randao]


class StateEndpoints(Caller):
    """What the node has of states. For a state that it does not have each raises `NotFound`."""

    async def state_root(self, state_id: StateId, *, timeout: float | None = None) -> Sourced[OnChain[Root]]:
        """Return a state's hash tree root."""
        return await self._ask(routes.STATE_ROOT, _root, place={"state_id": identifier(state_id)}, timeout=timeout)

    async def state_fork(self, state_id: StateId, *, timeout: float | None = None) -> Sourced[OnChain[ForkVersions]]:
        """Return the fork that holds in a state."""
        return await self._ask(
            routes.STATE_FORK, reads(_FORK), place={"state_id": identifier(state_id)}, timeout=timeout
        )

    async def finality_checkpoints(
        self, state_id: StateId, *, timeout: float | None = None
    ) -> Sourced[OnChain[FinalityCheckpoints]]:
        """Return a state's checkpoints."""
        return await self._ask(
            routes.FINALITY, reads(_FINALITY), place={"state_id": identifier(state_id)}, timeout=timeout
        )

    async def validators(
        self,
        state_id: StateId,
        ids: Iterable[ValidatorId] | None = None,
        statuses: Iterable[str] = (),
        *,
        timeout: float | None = None,
    ) -> Sourced[OnChain[list[ListedValidator]]]:
        """Return validators of a state, in the node's order; those that are not known to it are left out.

        A node without the newer route, which takes any number, is asked for 64 at a time. Of `head` the parts may then
        be of different states; name a state by its slot or its root where that matters.

        :param ids: those that are wanted. An empty list is the answer to an empty list, without a request: the API
            would mean all by it. All where it is not given, which on a large network is more than an answer may hold
            (`AnswerTooLarge`).
        :param statuses: those that are wanted, `active` and the like for all that begin so among them; all without any.
        """
        wanted = None if ids is None else write_validator_ids(ids)
        only = write_statuses(statuses)
        filters = {name: texts for name, texts in (("ids", wanted), ("statuses", only)) if texts}
        return await self._listed(
            (routes.VALIDATORS, routes.VALIDATORS_GET),
            state_id,
            wanted,
            [("status", status) for status in only],
            Body(json.dumps(filters, separators=(",", ":")).encode()),
            reads(_VALIDATORS),
            timeout,
        )

    async def validator(
        self, state_id: StateId, validator_id: ValidatorId, *, timeout: float | None = None
    ) -> Sourced[OnChain[ListedValidator]]:
        """Return one validator of a state.

        :raises NotFound: when the state, or the validator in it, is not known to the node.
        """
        place = {"state_id": identifier(state_id), "validator_id": write_validator_id(validator_id)}
        return await self._ask(routes.VALIDATOR, reads(_VALIDATOR), place=place, timeout=timeout)

    async def validator_balances(
        self, state_id: StateId, ids: Iterable[ValidatorId] | None = None, *, timeout: float | None = None
    ) -> Sourced[OnChain[list[ValidatorBalance]]]:
        """Return balances of a state, in the node's order. All else as in :meth:`validators`.

        Most nodes do not say with SSZ whether they are optimistic.
        """
        wanted = None if ids is None else write_validator_ids(ids)
        return await self._listed(
            (routes.BALANCES, routes.BALANCES_GET),
            state_id,
            wanted,
            (),
            Body(json.dumps(wanted or [], separators=(",", ":")).encode()),
            _balances,
            timeout,
        )

    async def committees(
        self,
        state_id: StateId,
        *,
        epoch: Epoch | None = None,
        index: int | None = None,
        slot: Slot | None = None,
        timeout: float | None = None,
    ) -> Sourced[OnChain[list[Committee]]]:
        """Return the committees of an epoch that attest.

        :param epoch: of the state, where it is not given.
        :param index: of the committees in each slot; all where it is not given.
        :param slot: in the epoch; all where it is not given.
        """
        return await self._ask(
            routes.COMMITTEES,
            lambda response: read_rows(_COMMITTEES, response.body),
            place={"state_id": identifier(state_id)},
            query=_numbers(epoch=epoch, index=index, slot=slot),
            timeout=timeout,
        )

    async def sync_committees(
        self, state_id: StateId, *, epoch: Epoch | None = None, timeout: float | None = None
    ) -> Sourced[OnChain[SyncCommittees]]:
        """Return the sync committee of an epoch, by default of the state's; there is none before Altair.

        :param epoch: in the period of the state, or the next.
        """
        return await self._ask(
            routes.SYNC_COMMITTEES,
            lambda response: read_rows(SyncCommittees, response.body),
            place={"state_id": identifier(state_id)},
            query=_numbers(epoch=epoch),
            timeout=timeout,
        )

    async def randao(
        self, state_id: StateId, *, epoch: Epoch | None = None, timeout: float | None = None
    ) -> Sourced[OnChain[bytes]]:
        """Return the RANDAO mix of an epoch, 32 bytes, by default of the state's."""
        return await self._ask(
            routes.RANDAO,
            _randao,
            place={"state_id": identifier(state_id)},
            query=_numbers(epoch=epoch),
            timeout=timeout,
        )

    async def _listed(
        self,
        pair: tuple[Route, Route],
        state_id: StateId,
        ids: list[str] | None,
        query: Pairs,
        body: Body,
        read: Callable[[Response], OnChain[Any]],
        timeout: float | None,
    ) -> Sourced[OnChain[Any]]:
        """Ask for a list by the newer route, which has everything in its body, or in parts by the older."""
        place = {"state_id": identifier(state_id)}
        if ids is not None and not ids:
            return self._unasked(OnChain([]))
        newer, older = pair

        async def ask(route: Route, query: Pairs, body: Body | None, limit: float) -> Sourced[OnChain[Any]]:
            call = self._ask_either_form if route.ssz else self._ask
            return await call(route, read, place=place, query=query, body=body, timeout=limit)

        async def call(route: Route, limit: float) -> Sourced[OnChain[Any]]:
            if route is newer:
                return await ask(route, (), body, limit)
            pairs = [("id", one) for one in ids or ()]
            asked = self._clock.now()
            parts = []
            for first in range(0, max(len(pairs), 1), MOST_IDS):
                left = limit - (self._clock.now() - asked)
                parts.append(await ask(route, [*pairs[first : first + MOST_IDS], *query], None, left))
            if len(parts) == 1:
                return parts[0]
            last = parts[-1].provenance
            attempts = sum(part.provenance.attempts for part in parts)
            return Sourced(
                merged([part.value for part in parts]),
                replace(last, latency=last.received - asked, attempts=attempts),
            )

        return await self._ask_newest(newer, older, call, fork=None, timeout=timeout)


def _root(response: Response) -> OnChain[Root]:
    answer = reads(_ROOT)(response)
    return OnChain(answer.data.root, answer.execution_optimistic, answer.finalized)


def _randao(response: Response) -> OnChain[bytes]:
    answer = reads(_RANDAO)(response)
    return OnChain(answer.data.randao, answer.execution_optimistic, answer.finalized)


def _balances(response: Response) -> OnChain[list[ValidatorBalance]]:
    if is_ssz(response):
        # The API has no header for either flag; Lodestar has these.
        optimistic = _flag(response.headers.get("Eth-Execution-Optimistic"))
        return OnChain(
            balances_from_ssz(response.body), optimistic, _flag(response.headers.get("Eth-Consensus-Finalized"))
        )
    answer: OnChain[list[ValidatorBalance]] = reads(_BALANCES)(response)
    return answer


def _flag(text: str | None) -> bool | None:
    return {"true": True, "false": False}.get((text or "").strip().lower())


def _numbers(**values: int | None) -> list[tuple[str, str]]:
    return [(name, str(uint64(value))) for name, value in values.items() if value is not None]
