"""Simulated nodes held as one by the facade, and what a validator client signs."""

import json
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from tests.acceptance.harness import Nodes, candidate, known
from vc_fallback import Encodings, SyncCommitteeMessage
from vc_fallback.base.signals import Observer
from vc_fallback.base.types import NodeId, Slot
from vc_fallback.candidates import Candidate
from vc_fallback.config import FallbackConfig
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.node.values.encodings import SSZ
from vc_fallback.node.values.opaque import Opaque, ProducedBlock
from vc_fallback.testing import SimulatedChain, SimulatedNode
from vc_fallback.testing.containers.basic import Kind
from vc_fallback.testing.containers.blocks import block_types
from vc_fallback.testing.containers.blocks import signed as signed_kind

SIGNATURE = bytes(range(96))
REVEAL = b"\xab" * 96

SYNC_MESSAGES = "/eth/v1/beacon/pool/sync_committees"
BLOCKS = "/eth/v2/beacon/blocks"
BLINDED_BLOCKS = "/eth/v2/beacon/blinded_blocks"
ENVELOPES = "/eth/v1/beacon/execution_payload_envelopes"


@asynccontextmanager
async def held(
    nodes: Nodes,
    *,
    fallbacks: Collection[SimulatedNode] = (),
    more: Mapping[SimulatedNode, Mapping[str, object]] | None = None,
    listed: Iterable[SimulatedNode] | None = None,
    ready: int | None = None,
    observers: Sequence[Observer] = (),
    mistakes: bool = False,
    **settings: Any,
) -> AsyncIterator[BeaconNodeFallback]:
    """Hold simulated nodes as one until the body ends; then nothing of it is left, and nothing went wrong.

    :param fallbacks: which of the nodes are in the fallback tier.
    :param more: further settings of candidates.
    :param listed: the nodes that are in the list at first; by default all.
    :param ready: how many nodes have to be usable before the body begins; by default all that are listed.
    :param mistakes: errors may be logged.
    :param settings: of the configuration: `requests={…}`.
    """
    given = {} if more is None else more
    first = [*nodes] if listed is None else [*listed]
    chosen = [candidate(node, fallback=node in fallbacks, **given.get(node, {})) for node in first]
    chain = next(iter(nodes)).chain
    config = FallbackConfig.of({"candidates": chosen, "chain": known(chain)} | settings)
    log = _Errors()
    logging.getLogger("vc_fallback").addHandler(log)
    try:
        async with BeaconNodeFallback(config, clock=chain.clock, observers=observers) as facade:
            await facade.wait_ready(len(first) if ready is None else max(ready, 1), timeout=60) if ready != 0 else None
            yield facade
            assert_few_tasks(facade)
    finally:
        logging.getLogger("vc_fallback").removeHandler(log)
    assert mistakes or not log.texts, log.texts
    for node in nodes:
        node.thaw()  # a stopped process sees no close
        with anyio.move_on_after(120):
            while node.connections:  # noqa: ASYNC110 - the node's own clean-up, of which it tells nobody
                await anyio.sleep(0.1)
        assert not node.connections, f"{node.name} has {node.connections} connections that nobody closed"


def listing(*nodes: SimulatedNode, fallbacks: Collection[SimulatedNode] = ()) -> list[Candidate]:
    """Return a list of nodes for `update_candidates`."""
    chosen = [candidate(node, fallback=node in fallbacks) for node in nodes]
    return FallbackConfig.of({"candidates": chosen}).candidate_list()


def assert_few_tasks(facade: BeaconNodeFallback) -> None:
    """What runs beside the caller are stragglers of publishes, and what is told to nodes that came back."""
    runner = facade._runner
    stragglers = runner.stragglers.total() + facade._ahead.under_way
    assert len(runner._running) <= stragglers + len(facade.heads.candidates.current.members)


def node_id(node: SimulatedNode) -> NodeId:
    return NodeId(node.name)


def slot_of(facade: BeaconNodeFallback) -> Slot:
    """Return the present slot."""
    assert facade.slots is not None
    return facade.slots.slot_at(anyio.current_time())


async def to_next_slot(facade: BeaconNodeFallback, into: float = 0.25) -> Slot:
    """Wait for the next slot, and a part of it, in slots; return it."""
    assert facade.slots is not None
    slot = Slot(slot_of(facade) + 1)
    await anyio.sleep_until(facade.slots.start_of(slot) + into * facade.slots.duration)
    return slot


def messages(facade: BeaconNodeFallback, chain: SimulatedChain, count: int = 1) -> list[Encodings]:
    """Return what so many members of the sync committee sign in the present slot."""
    slot = slot_of(facade)
    members = sorted({*chain.shuffling.sync_committee(slot // chain.identity.slots_per_epoch)})
    head = chain.head_at(slot - 1).root
    return [SyncCommitteeMessage(slot, head, index, SIGNATURE).encodings() for index in members[:count]]


def sent(node: SimulatedNode, path: str = SYNC_MESSAGES) -> list[bytes]:
    """Return the bodies of all requests of a path that a node was sent, whatever became of them."""
    return [request.body for request in node.requests if request.path == path]


def signed(chain: SimulatedChain, made: ProducedBlock) -> Encodings:
    """Sign a block that a node made, and write it in both forms."""
    types = block_types(chain.preset, made.version)
    kind: Kind
    value: dict[str, Any]
    if made.blinded:
        kind, value = types.signed_blinded, {"message": _read(types.blinded, made), "signature": SIGNATURE}
    else:
        contents = _read(types.contents if made.included else types.block, made)
        value = {"message": contents.get("block", contents), "signature": SIGNATURE}
        kind = types.signed_contents
        if "block" in contents and made.version != "gloas":
            value = {**contents, "signed_block": value}
    return _both(kind, value)


def signed_envelope(chain: SimulatedChain, made: ProducedBlock) -> Encodings:
    """Sign the envelope that came with a block, with its blobs."""
    types = block_types(chain.preset, made.version)
    contents = _read(types.contents, made)
    envelope = {"message": contents["execution_payload_envelope"], "signature": SIGNATURE}
    return _both(types.envelope_contents, {**contents, "signed_execution_payload_envelope": envelope})


def signed_bare_envelope(chain: SimulatedChain, envelope: Opaque) -> Encodings:
    """Sign an envelope that was had from the node that made the block, without blobs."""
    types = block_types(chain.preset, "gloas")
    message = types.envelope.decode(envelope.body)
    return _both(signed_kind(types.envelope), {"message": message, "signature": SIGNATURE})


def _read(kind: Kind, made: ProducedBlock) -> dict[str, Any]:
    read: dict[str, Any] = kind.decode(made.body) if made.content_type == SSZ else kind.from_json(json.loads(made.body))
    return read


def _both(kind: Kind, value: Mapping[str, Any]) -> Encodings:
    return Encodings(ssz=kind.encode(value), json=json.dumps(kind.to_json(value)).encode())


class _Errors(logging.Handler):
    """Collects what was logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))
