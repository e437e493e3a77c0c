"""Subscribers to topics over simulated nodes, and what is open where."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from tests.acceptance.facade import Held
from vc_fallback.base.types import root_hex
from vc_fallback.testing import SimulatedNode
from vc_fallback.topics.event import TopicEvent, TopicUnavailable
from vc_fallback.topics.subscription import TopicSubscription

HEADS = ("head", "head_v2", "chain_reorg")


class Reader:
    """Reads a subscription to its end, and writes down what comes and when."""

    def __init__(self, held: Held, subscription: TopicSubscription) -> None:
        self.subscription = subscription
        self.events: list[TopicEvent] = []
        self.errors: list[tuple[float, TopicUnavailable]] = []
        self._held = held

    async def run(self) -> None:
        """Read on after each error."""
        while True:
            try:
                async for event in self.subscription:
                    self.events.append(event)
            except TopicUnavailable as error:
                self.errors.append((anyio.current_time(), error))
            else:
                return

    def of(self, topic: str) -> list[Any]:
        """Return the values of a topic."""
        return [event.value for event in self.events if event.topic == topic]

    def slots(self, topic: str = "block") -> list[int]:
        """Return the slots of a topic's events."""
        return [value.slot for value in self.of(topic)]

    def sources(self, topic: str = "block") -> set[str]:
        """Return the nodes that a topic's events came from."""
        return {event.node_id for event in self.events if event.topic == topic}


@asynccontextmanager
async def reading(held: Held, *topics: str, **more: Any) -> AsyncIterator[Reader]:
    """Subscribe, and read in the background until the body ends."""
    async with anyio.create_task_group() as tasks, held.calls.subscribe(*topics, **more) as subscription:
        reader = Reader(held, subscription)
        tasks.start_soon(reader.run)
        yield reader
        subscription.close()


def opens(node: SimulatedNode) -> list[tuple[str, ...]]:
    """Return the topics of each request for others than the head's."""
    return [record.topics for record in node.opens if record.topics != HEADS]


def carried(node: SimulatedNode) -> set[str]:
    """Return the topics that a node has open streams for, the head's apart."""
    streams = (stream.record.topics for stream in node.streams if stream.record.topics != HEADS)
    return {topic for topics in streams for topic in topics}


def lose(node: SimulatedNode, *topics: str) -> None:
    """Let a node refuse topics from now on, and end the streams that have them."""
    node.broadcast.topics -= set(topics)
    for stream in node.streams:
        if stream.topics & set(topics):
            stream.end()


def exit_of(validator: int, epoch: int = 3) -> dict[str, object]:
    """Return the data of a `voluntary_exit`."""
    return {"message": {"epoch": str(epoch), "validator_index": str(validator)}, "signature": "0x" + "11" * 96}


def vote_of(validator: int, slot: int = 130) -> dict[str, object]:
    """Return the data of a `single_attestation`."""
    checkpoint = {"epoch": "3", "root": root_hex(bytes(32))}
    data = {
        "slot": str(slot),
        "index": "0",
        "beacon_block_root": root_hex(bytes(32)),
        "source": checkpoint,
        "target": checkpoint,
    }
    return {"committee_index": "0", "attester_index": str(validator), "data": data, "signature": "0x" + "11" * 96}
