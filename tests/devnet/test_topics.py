"""Topics on real nodes: a primary and a fallback with slots of 1 s, of which the primary stops and goes on."""

from collections import defaultdict
from functools import partial

import anyio
import anyio.to_thread

from scripts.lodestar.devnet import Devnet
from vc_fallback import BeaconNodeFallback, BlockEvent, FallbackConfig, TopicEvent, TopicSubscription

TOPICS = ("block", "attestation", "finalized_checkpoint")
PRIMARY, FALLBACK = 2, 1


def test_the_fallback_carries_topics_while_the_primary_is_silent(healthy_devnet: Devnet) -> None:
    """T1–T3 on real nodes: each block once, from the primary, from the fallback, and from the primary again."""
    anyio.run(partial(follow, healthy_devnet))


async def follow(devnet: Devnet) -> None:
    config = FallbackConfig.of(
        {
            "candidates": [
                {"url": devnet.url(PRIMARY), "name": "primary"},
                {"url": devnet.url(FALLBACK), "name": "fallback", "tier": "fallback"},
            ]
        }
    )
    seen: dict[tuple[str, str], list[TopicEvent]] = defaultdict(list)

    async def read(events: TopicSubscription) -> None:
        async for event in events:
            seen[event.topic, event.node_id].append(event)

    async def until(topic: str, node: str, count: int) -> None:
        with anyio.fail_after(60):
            while len(seen[topic, node]) < count:  # noqa: ASYNC110 - what is waited for is what a subscriber reads
                await anyio.sleep(0.1)

    async with BeaconNodeFallback(config) as nodes, anyio.create_task_group() as tasks:
        await nodes.wait_ready(2, timeout=60)
        async with nodes.subscribe(*TOPICS) as events:
            tasks.start_soon(read, events)
            # Whether a chain of so few validators finalizes anything is a matter of the machine's speed.
            await until("attestation", "primary", 1)
            await until("block", "primary", 3)
            carried = nodes.status().topics
            assert {carried[topic].live for topic in TOPICS} == {("primary",)}
            await anyio.to_thread.run_sync(devnet.freeze, PRIMARY)
            await until("block", "fallback", 3)
            await anyio.to_thread.run_sync(devnet.thaw, PRIMARY)
            with anyio.fail_after(60):
                while nodes.status().topics["block"].live != ("primary",):  # noqa: ASYNC110 - nobody tells of it
                    await anyio.sleep(0.1)
            handed_back = len(seen["block", "fallback"])
            await until("block", "primary", len(seen["block", "primary"]) + 3)
            assert len(seen["block", "fallback"]) == handed_back
            blocks = [event.value for node in ("primary", "fallback") for event in seen["block", node]]
            assert len({(block.slot, block.block) for block in blocks if isinstance(block, BlockEvent)}) == len(blocks)
            tasks.cancel_scope.cancel()
