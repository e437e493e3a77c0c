"""Example calls, and the answers that the Beacon API definition has for them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args, get_type_hints

from tests.conformance.openapi import JSON, SSZ, Answer, Operation, Schema, operations
from tests.conformance.openapi_examples import example, examples
from tests.conformance.openapi_node import Exchange, Reply, json_reply
from vc_fallback.base.clock import Clock
from vc_fallback.base.types import ZERO_ROOT, Epoch, Sourced
from vc_fallback.chain import ChainIdentity, Fork, SlotClock
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.values.opaque import Opaque, ProducedBlock


@dataclass(frozen=True)
class Row:
    """One example call.

    :param operation: what it asks for. Of everything else the node says that it does not have it, so where this is an
        older route the newer one is tried first.
    :param fork: the fork that holds from genesis on, for methods that ask by it; empty: it is not known.
    """

    operation: str
    method: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    fork: str = ""
    what: str = ""

    @property
    def label(self) -> str:
        return "-".join(filter(None, (self.operation, self.method, self.what)))

    @property
    def opaque(self) -> bool:
        """Whether what is answered passes through as bytes."""
        answered = get_type_hints(getattr(BeaconNode, self.method))["return"]
        return get_args(answered)[0] in (Opaque, ProducedBlock)

    def examples(self, schema: Schema) -> list[Any]:
        """Return examples of an answer to this call; within what nobody reads nothing is varied."""
        return [older(self.operation, value) for value in examples(schema, *([1] if self.opaque else []))]

    async def call(self, exchange: Exchange) -> Sourced[Any]:
        """Make the call, as a client that knows nothing of the node yet."""
        slots = slots_of(self.fork)
        node = exchange.client(slots=lambda: slots)
        found: Sourced[Any] = await getattr(node, self.method)(*self.args, **self.kwargs)
        return found

    def replies(self, *replies: Reply) -> Mapping[str, Sequence[Reply]]:
        """Return the answers that the node gives to this operation, without any the plain example."""
        return {self.operation: replies or [plain_reply(self.operation)]}


def slots_of(fork: str) -> SlotClock | None:
    """Return slots of a chain on which one fork holds from genesis on."""
    if not fork:
        return None
    forks = (Fork(fork, bytes(4), Epoch(0)),)
    return SlotClock(ChainIdentity(0.0, ZERO_ROOT, 12.0, forks=forks), Clock().offset)


def defined(operation: str) -> Operation:
    """Return an operation; an older route than the definition has is answered as the one that took its place."""
    found = operations()
    return found[operation] if operation in found else found[SUCCESSORS[operation]]


SUCCESSORS = {
    "getAggregatedAttestation": "getAggregatedAttestationV2",
    "produceBlockV2": "produceBlockV3",
    "publishBlock": "publishBlockV2",
    "publishBlindedBlock": "publishBlindedBlockV2",
    "submitPoolAttestations": "submitPoolAttestationsV2",
    "publishAggregateAndProofs": "publishAggregateAndProofsV2",
    "submitPoolAttesterSlashings": "submitPoolAttesterSlashingsV2",
}
"""Routes that the definition has no more, and what it has instead."""


@cache
def plain_reply(operation: str) -> Reply:
    """Return a success of an operation: its plain example, in JSON where it has a body."""
    answer = success(defined(operation))
    if JSON not in answer.schemas:
        return Reply(answer.status)
    return reply_of(answer, older(operation, example(answer.schemas[JSON])))


_NEWER_MEMBERS = {
    "produceBlockV2": {"execution_payload_blinded", "execution_payload_value", "consensus_block_value"},
    "getAggregatedAttestation": {"version"},
}
"""Members that the older routes do not have yet."""


def older(operation: str, value: Any) -> Any:
    """Return an answer as an older route gives it, made from that of its successor; others stay as they are."""
    newer = _NEWER_MEMBERS.get(operation, set())
    return {name: member for name, member in value.items() if name not in newer} if newer else value


def plain_refusal(operation: str, status: int) -> Reply:
    """Return a refusal as the definition words it."""
    return json_reply(defined(operation).answers[status].examples[JSON]["example"], status=status)


def success(operation: Operation) -> Answer:
    """Return the first success that is defined of an operation."""
    return next(answer for status, answer in operation.answers.items() if status < 300)


def reply_of(answer: Answer, value: Any) -> Reply:
    """Return an answer in JSON with the headers that are defined, which say what its members say."""
    return json_reply(value, status=answer.status, headers=headers_of(answer, value))


def ssz_reply(answer: Answer, value: Any, body: bytes) -> Reply:
    """Return an answer in SSZ, with the headers of what it would be in JSON."""
    return Reply(answer.status, body, SSZ, headers_of(answer, value))


def headers_of(answer: Answer, value: Any) -> Mapping[str, str]:
    """Return the headers of an answer, which say what its members say; those of members that are not there are not."""
    found = {}
    for name in answer.headers:
        said = value.get(MEMBERS[name])
        if said is None:
            continue
        found[name] = said if isinstance(said, str) else json.dumps(said)
    return found


MEMBERS = {
    "Eth-Consensus-Version": "version",
    "Eth-Execution-Payload-Blinded": "execution_payload_blinded",
    "Eth-Execution-Payload-Value": "execution_payload_value",
    "Eth-Consensus-Block-Value": "consensus_block_value",
    "Eth-Execution-Payload-Included": "execution_payload_included",
}
"""Headers, and the members that say the same."""
