"""Operations of the caller's own through `first_success`, and what is asked for in a way that cannot be."""

import math
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.acceptance.embedding import OwnError, OwnStop
from tests.acceptance.facade import CALLS, VERSION, A, B, C, Held, holding, version
from vc_fallback.base.errors import FallbackError, NodeError
from vc_fallback.base.types import NodeId, Role, Sourced
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.failures import NotFound, RequestTimeout, ServerError
from vc_fallback.routing.outcomes import AllNodesFailed, DeadlineExceeded, Doubt, QuorumNotReached
from vc_fallback.testing import Delay, simulated_devnet

pytestmark = pytest.mark.anyio


class Odd(Exception):
    """An exception that compares and prints in ways of its own."""

    def __eq__(self, other: object) -> bool:
        raise OwnError

    def __bool__(self) -> bool:
        raise OwnError

    __hash__ = Exception.__hash__


@pytest.mark.parametrize(
    "error",
    [
        OwnError("mine"), OwnStop(), KeyError("x"), StopAsyncIteration(), TimeoutError(), OSError(5, "x"), Odd("odd"),
        ExceptionGroup("group", [OwnError(), ValueError()]), BaseExceptionGroup("group", [OwnStop()]),
        AllNodesFailed("another request", "failed"), KeyboardInterrupt(), SystemExit(3),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
@pytest.mark.parametrize("where", ["first", "second", "beside"])
async def test_what_an_operation_raises_comes_out_unchanged(error: BaseException, where: str) -> None:
    """The very exception, never in a group, whichever attempt raises it; whoever else is under way is ended."""
    async with simulated_devnet(2) as net, holding(net) as held:
        await held.until(130.2)
        ended: list[NodeId] = []

        async def op(node: BeaconNode) -> object:
            try:
                if node.node_id == A and where == "second":
                    raise ServerError(A, "own", "down", status=500)
                if node.node_id == A and where == "beside":
                    await anyio.sleep(3600)
                await anyio.sleep(0.1)
                raise error
            finally:
                ended.append(node.node_id)

        with pytest.raises(type(error)) as caught:
            await held.calls.first_success(op, prefer=A, next_after=0.5)
        assert caught.value is error
        assert sorted(ended) == ([A] if where == "first" else [A, B])
        await held.assert_idle()
        assert not held.health(net[0]).suspect, "it says nothing of the node"


@pytest.mark.parametrize("value", [None, 0, "", b"", [], (), object(), math.nan, OwnError(), Ellipsis])
async def test_an_operation_may_return_anything(value: object) -> None:
    """What is no `Sourced` gets its provenance; what is, keeps its own."""
    async with simulated_devnet(1) as net, holding(net) as held:

        async def op(_: BeaconNode) -> object:
            await anyio.sleep(0.25)
            return value

        answer = await held.calls.first_success(op)
        assert answer.value is value
        assert (answer.node_id, answer.latency, answer.provenance.generation) == (A, 0.25, 1)
        own = await held.calls.first_success(lambda node: node.version())
        assert isinstance(own.value, str)
        assert isinstance(own, Sourced)


async def test_an_operation_that_is_none() -> None:
    """It returns nothing to await, or raises before there is anything: the caller's own mistake, at once."""
    async with simulated_devnet(2) as net, holding(net) as held:

        def broken(_: BeaconNode) -> Any:
            raise OwnError

        with pytest.raises(OwnError):
            await held.calls.first_success(broken)
        with pytest.raises(TypeError, match="await"):
            await held.calls.first_success(lambda node: node.node_id)  # type: ignore[arg-type, return-value]
        await held.assert_idle()


async def test_an_operation_that_never_returns_ends_with_the_call() -> None:
    """Rule 6: half a slot without a deadline; all nodes were asked, an eighth of a slot after one another."""
    async with simulated_devnet(3) as net, holding(net) as held:
        await held.until(130.2)
        began = anyio.current_time()
        asked: list[tuple[NodeId, float]] = []

        async def op(node: BeaconNode) -> object:
            asked.append((node.node_id, anyio.current_time() - began))
            await anyio.sleep_forever()
            return None

        with pytest.raises(DeadlineExceeded, match=r"mine: no answer in time: bn1: no answer after 6 s; bn2: .* 4.5 s"):
            await held.calls.first_success(op, what="mine")
        assert anyio.current_time() == began + 6
        assert asked == [(A, 0.0), (B, 1.5), (C, 3.0)]
        await held.assert_idle()


async def test_an_operation_that_is_not_to_be_cancelled_is_waited_for() -> None:
    """Rule 5: the caller gets the answer when the loser has ended, and not before."""
    async with simulated_devnet(2) as net, holding(net) as held:
        await held.until(130.2)
        began = anyio.current_time()

        async def op(node: BeaconNode) -> object:
            with anyio.CancelScope(shield=node.node_id == A):
                await anyio.sleep(1.0 if node.node_id == A else 0.1)
            return node.node_id

        answer = await held.calls.first_success(op, prefer=A, next_after=0.2)
        assert anyio.current_time() == began + 1.0
        assert answer.value in (A, B)
        await held.assert_idle()


async def test_failures_of_an_operation_move_on() -> None:
    """Q3: a `NodeError`, whoever made it, is the node's; "not found" is the answer where all say so."""
    async with simulated_devnet(3) as net, holding(net) as held:
        await held.until(130.2)

        async def absent(node: BeaconNode) -> object:
            raise NotFound(node.node_id, "own", "nothing there", status=404)

        with pytest.raises(NotFound, match="bn1: own: 404 nothing there"):
            await held.calls.first_success(absent, prefer=A)

        async def fails_but_the_last(node: BeaconNode) -> object:
            if node.node_id != C:
                raise NodeError(node.node_id, "own", "no")
            return "yes"

        assert (await held.calls.first_success(fails_but_the_last)).node_id == C

        def doubt(answer: Sourced[Any]) -> Doubt | None:
            return Doubt("too old", usable=answer.node_id == B) if answer.node_id != C else Doubt("empty")

        answer = await held.calls.first_success(version, accept=doubt)
        assert answer.node_id == B, "the only one that is usable"


def past(held: Held) -> float:
    return held.calls.clock.now() - 1


@pytest.mark.parametrize("virtual_time_backend", ["asyncio"], indirect=True)
@pytest.mark.parametrize("name", [name for name in CALLS if name != "wait_ready"])
@pytest.mark.parametrize(
    ("deadline", "error"),
    [
        (past, DeadlineExceeded),
        (lambda held: held.calls.clock.now(), DeadlineExceeded),
        (lambda _: math.nan, ValueError),
        (lambda _: math.inf, ValueError),
        (lambda _: -math.inf, ValueError),
    ],
    ids=["past", "now", "nan", "inf", "-inf"],
)
async def test_a_deadline_that_is_none(
    name: str, deadline: Callable[[Held], float], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 6: a clear error at once, before anything is sent, for every kind of call."""
    async with simulated_devnet(2) as net, holding(net) as held:
        await held.until(131.2)
        before = [dict(node.request_counts) for node in net]
        end = deadline(held)
        call = CALLS[name]

        class WithDeadline:
            def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
                return lambda *args: getattr(held.calls, method)(*args, deadline=end)

        began = anyio.current_time()
        with pytest.raises(error):
            await call(WithDeadline())  # type: ignore[arg-type]
        assert anyio.current_time() == began
        assert [dict(node.request_counts) for node in net] == before
        await held.assert_idle()


async def test_a_deadline_too_near_blames_nobody() -> None:
    """N4: a node that was given a millisecond is not suspect for it; one that was given a second is."""
    async with simulated_devnet(1) as net, holding(net) as held:
        await held.until(130.2)
        net[0].inject(VERSION, Delay(30))
        for seconds in (1e-9, 0.0005, 0.01, 0.4):
            with pytest.raises(DeadlineExceeded):
                await held.version(deadline=anyio.current_time() + seconds)
            assert not held.health(net[0]).suspect
        with pytest.raises(FallbackError) as caught:
            await held.calls.header("head", deadline=anyio.current_time() - 1)
        assert isinstance(caught.value, DeadlineExceeded)
        net[0].hang("/eth/v1/beacon/*")
        with pytest.raises((DeadlineExceeded, AllNodesFailed)):
            await held.calls.header("head", deadline=anyio.current_time() + 1)
        assert "no answer within" in held.health(net[0]).suspect


async def test_a_hung_node_is_known_by_the_generic_call_too() -> None:
    """N4: the client that an operation gets does not wait longer than the call itself does."""
    async with simulated_devnet(1) as net, holding(net) as held:
        await held.until(130.2)
        net[0].hang(VERSION)
        with pytest.raises((DeadlineExceeded, AllNodesFailed)) as caught:
            await held.version()
        (error,) = caught.value.errors.values() or [None]
        assert isinstance(error, RequestTimeout)
        assert held.health(net[0]).suspect


@pytest.mark.parametrize("role", [*Role])
async def test_a_role_that_nobody_has(role: Role) -> None:
    """Q14: all others serve; the reason says so."""
    async with simulated_devnet(2) as net:
        others = [other for other in Role if other is not role]
        async with holding(net, each={"roles": others}, ready=0) as held:
            await held.calls.wait_ready(2, timeout=60)
            assert await held.version(role=role) in (A, B)
            assert f"nobody who is usable has the role {role}" in held.calls.plan(role).reason(A)


@pytest.mark.parametrize(("threshold", "error"), [(0, ValueError), (-1, ValueError), (3, QuorumNotReached)])
async def test_a_threshold_that_cannot_be(threshold: int, error: type[Exception]) -> None:
    """Rule 9: more than there are nodes is not lowered; none at all is no threshold. Nothing is sent."""
    async with simulated_devnet(2) as net, holding(net) as held:
        await held.until(130.2)
        began = anyio.current_time()
        with pytest.raises(error):
            await held.calls.attestation_data_by_quorum(held.slot, threshold=threshold)
        assert anyio.current_time() == began
        assert held.asked(net[0], "/eth/v1/validator/attestation_data") == 0


async def test_a_delay_that_is_no_time_is_refused() -> None:
    """Rule 6: a timer at no moment never rings, and the call would not end in time."""
    async with simulated_devnet(2) as net, holding(net) as held:
        for delay in (math.nan, -1.0):
            with pytest.raises(ValueError, match="next_after"):
                await held.version(next_after=delay)
        assert await held.version(next_after=math.inf) in (A, B)


async def test_a_role_that_is_none() -> None:
    """A configuration without a role, and a role that does not exist, are refused."""
    async with simulated_devnet(1) as net:
        with pytest.raises(FallbackError, match="role"):
            async with holding(net, each={"roles": []}):
                raise AssertionError
        with pytest.raises(FallbackError, match="roles"):
            async with holding(net, each={"roles": ["everything"]}):
                raise AssertionError
