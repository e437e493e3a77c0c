"""One look at one beacon node: what it is, and what each of its reading endpoints answers, in what time."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from vc_fallback.base.errors import NodeError
from vc_fallback.base.redact import printable
from vc_fallback.base.types import FAR_FUTURE_EPOCH, Epoch, Slot, Sourced, root_hex
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.node import routes
from vc_fallback.node.capabilities import Lack
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.failures import Unreachable
from vc_fallback.node.forks import up_to
from vc_fallback.node.routes import Route
from vc_fallback.node.values.about import ClientVersions, ForkVersions, Syncing
from vc_fallback.node.values.attestation import AttestationData

_INFINITY = b"\xc0" + bytes(95)
"""The point at infinity: the randao reveal of a block whose reveal is not verified."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One call: what was asked for, whether it was answered, in words, the seconds it took.

    `attempts` counts the requests it took: more than one where an older route had to be used.
    """

    route: Route
    good: bool
    words: str
    latency: float
    attempts: int = 1


@dataclass(slots=True)
class Look:
    """What was seen of a node; `None` and empty where it did not say."""

    version: str | None = None
    chain: ChainIdentity | None = None
    syncing: Syncing | None = None
    peers: int | None = None
    forks: list[ForkVersions] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    lacks: tuple[Lack, ...] = ()
    reachable: bool = False


class Looker:
    """Asks everything once, one request after the other: their times are the node's own.

    :param now: the event loop's time, in seconds.
    :param offset: Unix time minus loop time.
    :param produce: whether a block is asked for as well, which makes the node build one.
    """

    def __init__(
        self, node: BeaconNode, *, now: Callable[[], float], offset: float, timeout: float, produce: bool
    ) -> None:
        self.look = Look()
        self.slots: SlotClock | None = None
        self._node = node
        self._now = now
        self._offset = offset
        self._timeout = timeout
        self._produce = produce
        self._lacks: dict[str, Lack] = {}

    async def run(self) -> Look:
        """Look; a node that cannot be reached is not asked for the rest."""
        look, node, time = self.look, self._node, self._timeout
        look.version = await self._ask(routes.VERSION, lambda: node.version(timeout=time), str)
        if not look.reachable:
            return look
        await self._ask(routes.VERSION_V2, lambda: node.client_versions(timeout=time), _clients)
        await self._ask(routes.HEALTH, lambda: node.health(timeout=time), lambda status: f"{status}")
        look.syncing = await self._ask(routes.SYNCING, lambda: node.syncing(timeout=time), _syncing)
        await self._ask(routes.IDENTITY, lambda: node.network_identity(timeout=time), lambda who: who.peer_id)
        count = await self._ask(
            routes.PEER_COUNT, lambda: node.peer_count(timeout=time), lambda n: f"{n.connected} connected"
        )
        look.peers = None if count is None else count.connected
        await self._ask(
            routes.GENESIS, lambda: node.genesis(timeout=time), lambda genesis: f"at {genesis.genesis_time}"
        )
        look.chain = await self._ask(routes.SPEC, lambda: node.identity(timeout=time), lambda chain: chain.preset)
        look.forks = await self._ask(routes.FORK_SCHEDULE, lambda: node.fork_schedule(timeout=time), _count) or []
        await self._ask(
            routes.DEPOSIT_CONTRACT, lambda: node.deposit_contract(timeout=time), lambda at: f"chain {at.chain_id}"
        )
        if look.chain is not None:
            self.slots = SlotClock(look.chain, self._offset)
        await self._blocks()
        await self._states()
        if self.slots is not None:
            slot = Slot(max(0, self.slots.slot_at(self._now())))
            epoch = self.slots.chain.epoch_of(slot)
            await self._duties(epoch)
            await self._signing(slot)
        look.lacks = tuple(self._lacks.values())
        return look

    async def _blocks(self) -> None:
        node, time = self._node, self._timeout
        await self._ask(
            routes.HEADER, lambda: node.header("head", timeout=time), lambda h: f"slot {h.data.header.message.slot}"
        )
        await self._ask(routes.HEADERS, lambda: node.headers(timeout=time), lambda found: _count(found.data))
        await self._ask(
            routes.BLOCK_ROOT, lambda: node.block_root("head", timeout=time), lambda root: root_hex(root.data)
        )
        await self._ask(routes.BLOCK, lambda: node.block("head", timeout=time), _opaque)
        await self._ask(routes.BLINDED_BLOCK, lambda: node.blinded_block("head", timeout=time), _opaque)
        await self._ask(routes.BLOBS, lambda: node.blobs("head", timeout=time), _opaque)

    async def _states(self) -> None:
        node, time = self._node, self._timeout
        await self._ask(
            routes.STATE_ROOT, lambda: node.state_root("head", timeout=time), lambda root: root_hex(root.data)
        )
        await self._ask(
            routes.STATE_FORK,
            lambda: node.state_fork("head", timeout=time),
            lambda fork: root_hex(fork.data.current_version),
        )
        await self._ask(
            routes.FINALITY,
            lambda: node.finality_checkpoints("head", timeout=time),
            lambda found: f"finalized epoch {found.data.finalized.epoch}",
        )
        await self._ask(
            routes.VALIDATORS, lambda: node.validators("head", ids=[0], timeout=time), lambda found: _count(found.data)
        )
        await self._ask(
            routes.VALIDATOR, lambda: node.validator("head", 0, timeout=time), lambda found: str(found.data.status)
        )
        await self._ask(
            routes.BALANCES,
            lambda: node.validator_balances("head", ids=[0], timeout=time),
            lambda found: _count(found.data),
        )
        await self._ask(
            routes.COMMITTEES, lambda: node.committees("head", timeout=time), lambda found: _count(found.data)
        )
        await self._ask(
            routes.SYNC_COMMITTEES,
            lambda: node.sync_committees("head", timeout=time),
            lambda found: f"{len(found.data.validators)} members",
        )
        await self._ask(routes.RANDAO, lambda: node.randao("head", timeout=time), lambda found: root_hex(found.data))

    async def _duties(self, epoch: Epoch) -> None:
        node, time = self._node, self._timeout
        await self._ask(routes.PROPOSER_DUTIES, lambda: node.proposer_duties(epoch, timeout=time), _duties)
        await self._ask(routes.ATTESTER_DUTIES, lambda: node.attester_duties(epoch, [0], timeout=time), _duties)
        await self._ask(routes.SYNC_DUTIES, lambda: node.sync_committee_duties(epoch, [0], timeout=time), _duties)
        await self._ask(routes.PTC_DUTIES, lambda: node.ptc_duties(epoch, [0], timeout=time), _duties)
        await self._ask(routes.LIVENESS, lambda: node.liveness(Epoch(max(0, epoch - 1)), [0], timeout=time), _count)

    async def _signing(self, slot: Slot) -> None:
        node, time = self._node, self._timeout
        data: AttestationData | None = await self._ask(
            routes.ATTESTATION_DATA,
            lambda: node.attestation_data(slot, timeout=time),
            lambda data: f"head {root_hex(data.beacon_block_root)}",
        )
        if data is not None:
            root = data.beacon_block_root
            wanted = data.hash_tree_root()
            await self._ask(
                routes.AGGREGATE, lambda: node.aggregate_attestation(slot, wanted, 0, timeout=time), _opaque
            )
            await self._ask(
                routes.CONTRIBUTION,
                lambda: node.sync_committee_contribution(slot, 0, root, timeout=time),
                lambda found: f"{sum(byte.bit_count() for byte in found.aggregation_bits)} bits",
            )
        await self._ask(
            routes.PAYLOAD_ATTESTATION_DATA,
            lambda: node.payload_attestation_data(slot, timeout=time),
            lambda found: (
                "no block" if found is None else f"payload {'present' if found.payload_present else 'absent'}"
            ),
        )
        if self._produce and self.slots is not None:
            coming = Slot(max(slot, self.slots.slot_at(self._now())) + 1)
            fork = self.slots.chain.fork_at(self.slots.chain.epoch_of(coming))
            await self._ask(
                routes.PRODUCE_BLOCK if fork is None or up_to(fork.name, "fulu") else routes.PRODUCE_BLOCK_V4,
                lambda: node.produce_block(coming, _INFINITY, skip_randao_verification=True, timeout=time),
                _opaque,
            )

    async def _ask(self, route: Route, call: Callable[[], Awaitable[Sourced[Any]]], words: Callable[[Any], str]) -> Any:  # noqa: ANN401 - what the call answers
        began = self._now()
        try:
            answer = await call()
        except NodeError as error:
            kind = type(error).__name__
            said = error.words if error.words.startswith(f"{kind}:") else f"{kind}: {error.words}"
            self.look.asked.append(Asked(route, False, said, self._now() - began))
            self.look.reachable = self.look.reachable or not isinstance(error, Unreachable)
            self._collect()
            return None
        self.look.reachable = True
        self._collect()
        # A version of a block, a status, a peer's name: any of them may be what it was sent (rule 11).
        said = printable(self._node.mask(words(answer.value)))
        self.look.asked.append(Asked(route, True, said, self._now() - began, answer.provenance.attempts))
        return answer.value

    def _collect(self) -> None:
        # An epoch may end under way, and with it what is remembered.
        for lack in self._node.capabilities.lacks(None if self.slots is None else self.slots.epoch_at(self._now())):
            self._lacks[lack.capability] = lack


def _syncing(syncing: Syncing) -> str:
    words = [f"head slot {syncing.head_slot}"]
    slots = f"{syncing.sync_distance} {'slot' if syncing.sync_distance == 1 else 'slots'} behind"
    words.append(slots if syncing.is_syncing or syncing.sync_distance else "synced")
    words += ["optimistic"] if syncing.is_optimistic else []
    words += ["execution layer offline"] if syncing.el_offline else []
    return ", ".join(words)


def _clients(versions: ClientVersions) -> str:
    clients = [versions.beacon_node, versions.execution_client]
    return ", ".join(f"{client.name} {client.version}" for client in clients if client is not None)


def _count(found: Any) -> str:  # noqa: ANN401 - any list
    return f"{len(found)} found"


def _duties(found: Any) -> str:  # noqa: ANN401 - duties of any kind
    return f"{len(found.data)} duties"


def _opaque(found: Any) -> str:  # noqa: ANN401 - any opaque answer
    form = "SSZ" if found.content_type == "application/octet-stream" else "JSON"
    return f"{found.version or 'no version'}, {len(found.body):,} bytes of {form}"


def scheduled(forks: list[ForkVersions]) -> list[ForkVersions]:
    """Return the forks that have an epoch, later ones of the same epoch last."""
    return [fork for fork in forks if fork.epoch != FAR_FUTURE_EPOCH]
