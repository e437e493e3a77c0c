"""Secrets of a candidate and everything that a facade says while its node fails in every way (rule 11)."""

import logging
import traceback
from collections.abc import Callable

import anyio
import pytest

from tests.acceptance.facade import CALLS, A, Held, holding
from tests.acceptance.test_secrets import BASIC, FAULTS, HEADER, PASSWORD, PATH, QUERY, SECRETS, USER, url_of
from vc_fallback.base.types import NodeId, Role
from vc_fallback.fallback import NotReadyInTime
from vc_fallback.node.client import BeaconNode
from vc_fallback.observe.log import FailureLog
from vc_fallback.routing.broadcast_result import BroadcastResult
from vc_fallback.testing import simulated_devnet

pytestmark = pytest.mark.anyio

FAILING = {name: fault for name, fault in FAULTS.items() if name not in ("unknown coding", "200 that is no stream")}


def all_of(error: BaseException) -> str:
    """Return what anybody could print of an error."""
    texts = ["".join(traceback.format_exception(error)), repr(error), repr(vars(error))]
    if isinstance(errors := getattr(error, "errors", None), dict):
        texts += [f"{one!r} {one} {vars(one)!r}" for one in errors.values()]
    return "\n".join(texts)


async def everything(held: Held) -> list[str]:
    """Make a call of each way to send, and return all that the facade says of it and of itself."""
    calls, texts = held.calls, []
    for name, call in CALLS.items():
        try:
            with anyio.move_on_after(3):
                if name == "wait_ready":
                    await calls.wait_ready(9, timeout=0)
                result = await call(calls)
                texts += [repr(result), str(result)]
                if isinstance(result, BroadcastResult):
                    with anyio.move_on_after(3):
                        await result.settled()
                    texts += [repr(result), *(all_of(one.error) for one in result.deliveries.values() if one.error)]
        except Exception as error:  # noqa: BLE001 - it is looked at
            texts.append(all_of(error))
    scoped = calls.scoped(A)
    own: list[Callable[[BeaconNode], object]] = [repr, str]
    texts += [str(look(scoped)) for look in own]
    try:
        await scoped.version(timeout=1.0)
    except Exception as error:  # noqa: BLE001 - it is looked at
        texts.append(all_of(error))
    status = calls.status()
    texts += [status.model_dump_json(), repr(status), str(status)]
    for role in (None, *Role):
        plan = calls.plan(role, prefer=A)
        texts += [repr(plan), str(plan), *(plan.reason(node_id) for node_id in (*plan.nodes, *plan.left_out))]
    texts += [calls.explain(NodeId(node.node)) for node in status.nodes]
    texts += [repr(calls.heads.candidates.current), repr(calls)]
    try:
        await calls.wait_ready(99, timeout=0)
    except NotReadyInTime as error:
        texts.append(all_of(error))
    return texts


@pytest.mark.parametrize("way", [*FAILING, "refused", "well"])
async def test_no_secret_is_said(way: str, caplog: pytest.LogCaptureFixture) -> None:
    """User-info, tokens in path, query and header: neither in a status, plan, reason or result, nor in an exception and
    all that hangs on it, a log record at its most talkative, or a signal."""
    caplog.set_level(logging.DEBUG)
    async with simulated_devnet(2) as net:
        node, other = net
        # The simulated node serves nothing under a path.
        path = f"/{PATH}" if way in FAILING else ""
        extra: list[dict[str, object]] = [
            {"url": url_of(node, path), "name": "bn1", "headers": {"X-Api-Key": HEADER}},
            {"url": other.url, "name": "bn2"},
        ]
        async with holding(
            net, listed=[], extra=extra, ready=0, observers=[FailureLog()], mistakes_of_others=True
        ) as held:
            await held.until(130.5)
            if way in FAILING:
                node.inject("*", FAILING[way])
            elif way == "refused":
                node.refuse()
                await node.cut_connections()
            texts = await everything(held)
            await held.until(held.slot + 2.5)
            texts += await everything(held)
            assert node.requests[0].headers["x-api-key"] == HEADER
            assert node.requests[0].headers["authorization"] == f"Basic {BASIC}"
            texts += [repr(signal) for signal in held.signals]
        for record in caplog.records:
            texts.append(f"{record.name} {record.getMessage()}")
            if record.exc_info is not None:
                texts += traceback.format_exception(*record.exc_info)
        text = "\n".join(texts)
        found = [secret for secret in (*SECRETS, USER) if secret in text]
        assert found == [], [text[max(0, text.index(s) - 200) : text.index(s) + 100] for s in found]
        assert "bn1" in text
        assert PASSWORD not in text
        assert QUERY not in text
