"""What a node is asked beside its streams of topics: which chain it is on (H15), and its version (T4)."""

from collections.abc import Callable

import anyio

from vc_fallback.base.backoff import Backoff
from vc_fallback.base.errors import NodeError
from vc_fallback.decide.topic_requests import TopicRequests
from vc_fallback.node.client import BeaconNode
from vc_fallback.topics.context import TopicContext
from vc_fallback.topics.retry import TopicRetry


async def look_at_version(node: BeaconNode, requests: TopicRequests, timeout: float) -> None:
    """See whether a node is still the one that refused topics."""
    try:
        requests.seen_version((await node.version(timeout=timeout)).value)
    except NodeError:
        return


async def identify(
    node: BeaconNode,
    context: TopicContext,
    retry: TopicRetry,
    *,
    listed: Callable[[], bool],
    stands: Callable[[], bool],
    release: Callable[[], None],
) -> None:
    """Ask which chain a node is on, until it says so; what its connection brings waits for the end of the first try.

    :param stands: whether the connection still stands.
    :param release: tells what has waited.
    """
    backoff = Backoff(context.times().backoff)
    while stands():
        try:
            identity = (await node.identity(timeout=context.times().verify_timeout)).value
        except NodeError:
            release()
            await anyio.sleep(backoff.failed())
            continue
        if listed():
            context.identified(node.node_id, identity)
        retry.interrupted = False
        break
    release()
