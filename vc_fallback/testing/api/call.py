"""One request to a simulated node's API as its endpoints see it, and what they answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from vc_fallback.base.types import Epoch, Root, Slot, parse_root, root_hex
from vc_fallback.testing.api import clients
from vc_fallback.testing.blocks import SimulatedBlock, SimulatedChain
from vc_fallback.testing.containers.basic import Kind
from vc_fallback.testing.containers.presets import FORKS
from vc_fallback.testing.events import finalized, justified
from vc_fallback.testing.faults import Refusal
from vc_fallback.testing.http import Answer, Request
from vc_fallback.testing.state import NodeState

JSON = "application/json"
SSZ = "application/octet-stream"
MEDIA_TYPES = (JSON, SSZ)

_UINT64 = 2**64


class ApiError(Exception):
    """An error answer of the Beacon API."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class UnsupportedType(Exception):
    """A request in a form that the node does not take."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What an endpoint answers.

    :param data: the JSON under `data`, where there is no `value`.
    :param value: the value under `data` with its kind: it can be had as SSZ too.
    :param version: the fork that it is of, for the header and the member `version`.
    :param members: what stands beside `data`.
    :param status: 200, or another success.
    :param bare: there is no body at all.
    """

    data: object = None
    value: tuple[Kind, Any] | None = None
    version: str | None = None
    members: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A request that found its route.

    :param place: values of the names in the template.
    :param refusal: what it is to meet in place of a proper publication.
    """

    state: NodeState
    request: Request
    route: "Route"
    place: Mapping[str, str]
    refusal: Refusal | None = None

    @property
    def chain(self) -> SimulatedChain:
        """The node's chain."""
        return self.state.chain

    @property
    def head(self) -> SimulatedBlock:
        """The node's head."""
        return self.state.head

    @property
    def epoch(self) -> Epoch:
        """The epoch of the wall clock."""
        return self.chain.identity.epoch_of(self.state.slot)

    # --- what was asked

    def query(self, name: str) -> str | None:
        """Return a parameter of the query, the last one where it is repeated."""
        return dict(self.request.query).get(name)

    def listed(self, name: str) -> list[str]:
        """Return a parameter that may be repeated, or list its values with commas."""
        return [part for key, value in self.request.query if key == name for part in value.split(",") if part]

    def number(self, name: str, *, default: int | None = None) -> int:
        """Return a number of the path or the query.

        :raises ApiError: where it is missing or none.
        """
        text = self.place.get(name, self.query(name))
        if text is None and default is not None:
            return default
        if text is None or not (text.isascii() and text.isdecimal()) or int(text) >= _UINT64:
            raise ApiError(400, f"Invalid {name}")
        return int(text)

    def root(self, name: str) -> Root:
        """Return a root of the path or the query.

        :raises ApiError: where it is missing or none.
        """
        try:
            return parse_root(self.place.get(name, self.query(name)))
        except ValueError:
            raise ApiError(400, f"Invalid {name}") from None

    def version(self) -> str:
        """Return the fork that the request says it is of.

        :raises ApiError: where it does not say so, or none that is known.
        """
        version = self.request.headers.get("eth-consensus-version")
        if version is None:
            raise ApiError(400, "missing Eth-Consensus-Version header")
        if version.lower() not in FORKS:
            raise ApiError(400, f"unknown Eth-Consensus-Version: {version}")
        return version.lower()

    def says(self, what: str, **details: object) -> ApiError:
        """Return what the node's client says when something is not to be had (`clients.TEXTS`)."""
        head, now = self.head.slot, self.state.slot
        return ApiError(*clients.says(self.state.manners.client, what, head=head, now=now, **details))

    # --- what the node has

    def fork(self, slot: int) -> str:
        """Return the name of the fork of a slot."""
        return self.chain.fork_name(slot)

    def synced(self) -> None:
        """:raises ApiError: while the node is syncing."""
        if self.state.is_syncing:
            raise self.says("syncing")

    def verified(self) -> None:
        """:raises ApiError: while the head is optimistic, or the node is syncing."""
        if self.state.optimistic:
            raise self.says("optimistic", root=root_hex(self.head.root))
        self.synced()

    def find(self, block_id: str) -> SimulatedBlock:
        """Return the block of an identifier that is on the node's own chain, up to its head, or known by root.

        :raises ApiError: where there is none, or it is no identifier.
        """
        if block_id.isdecimal():
            found = self.chain.block_at(int(block_id), self.head.branch) if int(block_id) <= self.head.slot else None
        else:
            found = self._named(block_id) or self._by_root(block_id, "block", self.chain.block)
        if found is None:
            raise ApiError(404, "Block not found")
        return found

    def find_state(self, state_id: str) -> SimulatedBlock:
        """Return the newest block in a state.

        :raises ApiError: where there is no such state, or it is no identifier.
        """
        if state_id.isdecimal():
            found = self.chain.head_at(int(state_id), self.head.branch) if int(state_id) <= self.head.slot else None
        else:
            found = self._named(state_id) or self._by_root(state_id, "state", self.chain.block_of_state)
        if found is None:
            raise ApiError(404, "State not found")
        return found

    def known(self, root: bytes) -> SimulatedBlock | None:
        """Return a block that the node has, on whichever branch."""
        found = self.chain.block(root)
        return found if found is not None and found.slot <= self.head.slot else None

    def about(self, block: SimulatedBlock) -> dict[str, object]:
        """Return what stands beside `data` about a block or a state."""
        epoch = finalized(self.chain, self.head)[0]
        final = block.slot <= epoch * self.chain.identity.slots_per_epoch
        return {"execution_optimistic": self.state.optimistic and not final, "finalized": final}

    def dependent_root(self, epoch: int, *, lookahead: int = 1) -> Root:
        """Return the root that fixes the duties of an epoch, as far as the node's own head goes."""
        if self.first_slot(max(0, epoch - lookahead)) > self.head.slot:
            return self.head.root
        return self.chain.dependent_root(epoch, self.head.branch, lookahead=lookahead)

    def first_slot(self, epoch: int) -> Slot:
        """Return the first slot of an epoch."""
        return self.chain.identity.first_slot(Epoch(epoch))

    def _named(self, name: str) -> SimulatedBlock | None:
        chain = self.chain
        if name == "head":
            return self.head
        if name in {"finalized", "justified"}:
            pick = finalized if name == "finalized" else justified
            return chain.block(pick(chain, self.head)[1]) or self._not_found()
        if name == "genesis":
            return chain.first_block if chain.first_block.slot == 0 else self._not_found()
        return None

    def _not_found(self) -> NoReturn:
        raise ApiError(404, "State not found" if "state_id" in self.place else "Block not found")

    def _by_root(self, text: str, what: str, look: Callable[[bytes], SimulatedBlock | None]) -> SimulatedBlock | None:
        try:
            found = look(parse_root(text))
        except ValueError:
            raise ApiError(400, f"Invalid {what} ID: {text}") from None
        return found if found is not None and found.slot <= self.head.slot else None


Handler = Callable[[Call], Reply | Answer]


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint.

    :param operation: its `operationId` in the API definition.
    :param ssz: whether it has its answer as SSZ.
    """

    operation: str
    method: Literal["GET", "POST"]
    template: str
    answer: Handler
    ssz: bool = False


Routes = Sequence[Route]


def get(operation: str, template: str, answer: Handler, *, ssz: bool = False) -> Route:
    """Return an endpoint that is read."""
    return Route(operation, "GET", template, answer, ssz)


def post(operation: str, template: str, answer: Handler, *, ssz: bool = False) -> Route:
    """Return an endpoint that is sent something."""
    return Route(operation, "POST", template, answer, ssz)
