"""One call to one beacon node: sent within its time, its answer read, its failure named, its provenance kept."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter

from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import NodeError
from vc_fallback.base.redact import Mask, printable
from vc_fallback.base.types import Epoch, NodeId, Provenance, Sourced
from vc_fallback.chain import SlotClock
from vc_fallback.node import failures
from vc_fallback.node.capabilities import Capabilities, ssz_answer
from vc_fallback.node.classify import failure, says_known
from vc_fallback.node.forks import up_to
from vc_fallback.node.routes import Route
from vc_fallback.node.transport_errors import transport_failure
from vc_fallback.node.values.adapters import adapter, where
from vc_fallback.node.values.encodings import JSON, SSZ
from vc_fallback.wire.client import HTTPClient
from vc_fallback.wire.http import Response

T = TypeVar("T")

Pairs = Sequence[tuple[str, str]]

_CONTENT_TYPE = b"content-type"
_SSZ = SSZ.encode()

ACCEPT_JSON: Pairs = (("Accept", JSON),)
ACCEPT_BOTH: Pairs = (("Accept", f"{SSZ};q=1.0,{JSON};q=0.9"),)
"""As the API definition prefers it; the weights matter to some nodes (case 57)."""

Outcomes = Callable[[Route, float, float, NodeError | None], None]
"""Called after every request, at once, with its route, the moments in loop time at which it began and ended, and how it
failed, or `None`. Of calls that were cancelled, or that needed no request, nothing is said."""

REQUEST_TIMEOUT = 10.0
"""Seconds for a call that names no time of its own (rule 6)."""


@dataclass(frozen=True, slots=True)
class Body:
    """What a request carries, in one form. `items` counts the items of a list, 0 where it is none."""

    content: bytes
    media_type: str = JSON
    items: int = 0


class WithoutVersion(ValueError):
    """An SSZ answer that does not say of which fork it is cannot be read (case 58)."""


class Caller:
    """What the parts of :class:`~vc_fallback.node.client.BeaconNode` have in common.

    Every call takes `timeout`, in seconds, for all it does, and raises only :exc:`~vc_fallback.NodeError`, or
    :exc:`ValueError` for what can be seen to be wrong before anything is sent.
    """

    def __init__(
        self,
        node_id: NodeId,
        http: HTTPClient,
        *,
        clock: Clock,
        connect_timeout: float = 1.0,
        request_timeout: float = REQUEST_TIMEOUT,
        mask: Mask = Mask(),  # noqa: B008 - it has no state
        generation: Callable[[], int] = lambda: 0,
        slots: Callable[[], SlotClock | None] = lambda: None,
        quarantined: Callable[[], str] = str,
        outcomes: Outcomes | None = None,
    ) -> None:
        """Make a client of one node; nothing is dialled yet.

        :param connect_timeout: seconds for making a connection (H2).
        :param request_timeout: seconds for a call that names no time of its own.
        :param mask: takes the node's secrets out of what it says itself (rule 11).
        :param generation: the present generation of the candidate list, for provenance.
        :param slots: the chain's slots once they are known, for what is remembered by epoch (Q13).
        :param quarantined: why the node is to be asked for nothing but what it is (N7); empty where it is not.
        :param outcomes: what is to know how every request ended: the node's health (rule 10).
        """
        self.node_id = node_id
        self.http = http
        self.connect_timeout = connect_timeout
        self.request_timeout = request_timeout
        self.mask = mask
        self.capabilities = Capabilities()
        self._clock = clock
        self._generation = generation
        self._slots = slots
        self._quarantined = quarantined
        self._outcomes = outcomes
        self.begun: Callable[[], None] | None = None

    def telling(self, begun: Callable[[], None]) -> Self:
        """Return this client, the same in everything, whose requests call `begun` before their first byte is written.

        Before that a cancelled publish has not left (Q5); for one publish.
        """
        told = self._like()
        told.begun = begun
        return told

    def within(self, seconds: float) -> Self:
        """Return this client, the same in everything, whose calls take no longer than so many seconds by themselves."""
        hasty = self._like()
        hasty.request_timeout = min(self.request_timeout, seconds)
        return hasty

    def asked_again(self) -> Self:
        """Return this client, the same in everything, of which it is not told once more that it is not ready: whoever
        asks until it is knows that already, and health would count it as many errors."""
        other = self._like()
        told = self._outcomes

        def ended(route: Route, began: float, at: float, error: NodeError | None) -> None:
            if told is not None and not isinstance(error, failures.NotReady):
                told(route, began, at, error)

        other._outcomes = ended  # noqa: SLF001 - of this class
        return other

    def _like(self) -> Self:
        # A sixth of the time of `copy.copy`, which asks how the class is pickled.
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def close(self) -> None:
        """Close the node's connections; calls under way raise :exc:`~vc_fallback.node.failures.Closed`."""
        self.http.close()

    async def aclose(self) -> None:
        """Do as `close`, where something to be awaited is expected."""
        self.close()

    # --- one call

    async def _ask(
        self,
        route: Route,
        parse: Callable[[Response], T],
        *,
        place: Mapping[str, str] | None = None,
        query: Pairs = (),
        body: Body | None = None,
        headers: Pairs = ACCEPT_JSON,
        timeout: float | None = None,
        success: Sequence[int] = (200,),
    ) -> Sourced[T]:
        """Send one request and read its answer.

        :param place: values of the names in the route's template.
        :param success: statuses that `parse` takes; every other is a failure.
        """
        self._refuse(route)
        limit = self.request_timeout if timeout is None else timeout
        path = route.template
        if place is not None:
            path = path.format_map({name: quote(value, safe="") for name, value in place.items()})
        if body is not None:
            headers = (*headers, ("Content-Type", body.media_type))
        asked = self._clock.now()
        try:
            response = await self._exchange(route, path, query, headers, body, asked + limit)
            if response is None:
                raise failures.RequestTimeout(self.node_id, route.template, f"no answer within {limit:.3g} s")
            received = self._clock.now()
            if not route.inspects and (reason := self._quarantined()):
                # It was found to be on another chain while it was asked (N7).
                raise failures.Quarantined(self.node_id, route.template, reason)
            if response.status not in success or (body is not None and says_known(response)):
                items = 0 if body is None else body.items
                proven = self.capabilities.proven(route.operation)
                unix = self._clock.unix(received)
                found = failure(self.node_id, route, response, unix, self.mask, items, proven=proven)
                if isinstance(found, failures.UnsupportedEndpoint):
                    self.capabilities.note(route.operation, found.problem, self._epoch())
                raise found
            try:
                value = parse(response)
            except WithoutVersion:
                raise
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise failures.Malformed(self.node_id, route.template, where(error), status=response.status) from None
        except NodeError as error:
            if self._outcomes is not None:
                self._outcomes(route, asked, self._clock.now(), error)
            raise
        self.capabilities.found(route.operation)
        if self._outcomes is not None:
            self._outcomes(route, asked, received, None)
        return Sourced(
            value, Provenance(self.node_id, self._generation(), received, received - asked, response.attempts)
        )

    async def _exchange(
        self, route: Route, path: str, query: Pairs, headers: Pairs, body: Body | None, deadline: float
    ) -> Response | None:
        """Send a request and return what comes, `None` where nothing came in time."""
        try:
            return await self.http.request(
                route.method,
                path,
                query=query,
                headers=headers,
                body=None if body is None else body.content,
                repeatable=True,
                connect_timeout=self.connect_timeout,
                begun=self.begun,
                deadline=deadline,
                patient=route.patient,
            )
        except TimeoutError:
            return None
        except httpx.LocalProtocolError as error:
            raise ValueError(f"{route.template}: {printable(str(error))}") from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise transport_failure(self.node_id, route.template, error, self.mask) from None

    async def _ask_either_form(
        self,
        route: Route,
        parse: Callable[[Response], T],
        *,
        place: Mapping[str, str] | None = None,
        query: Pairs = (),
        body: Body | None = None,
        timeout: float | None = None,
        success: Sequence[int] = (200,),
    ) -> Sourced[T]:
        """Send a request whose answer may be SSZ or JSON; where SSZ cannot be read or had, once more for JSON."""
        words = ssz_answer(route.operation)
        limit = self.request_timeout if timeout is None else timeout
        attempts = 0
        if not self.capabilities.any or self.capabilities.lack(words, self._epoch()) is None:
            asked = self._clock.now()
            try:
                return await self._ask(
                    route,
                    parse,
                    place=place,
                    query=query,
                    body=body,
                    headers=ACCEPT_BOTH,
                    timeout=limit,
                    success=success,
                )
            except (failures.NotAcceptable, WithoutVersion) as error:
                self.capabilities.note(words, printable(str(error)), self._epoch())
            limit -= self._clock.now() - asked
            attempts = 1
        try:
            answer = await self._ask(route, parse, place=place, query=query, body=body, timeout=limit, success=success)
        except WithoutVersion as error:
            raise failures.Malformed(self.node_id, route.template, str(error)) from None
        return again(answer, attempts)

    async def _ask_newest(
        self,
        newer: Route,
        older: Route,
        call: Callable[[Route, float], Awaitable[Sourced[T]]],
        *,
        fork: str | None,
        timeout: float | None,
    ) -> Sourced[T]:
        """Use a route, or the older one where the node does not have it and the fork allows it (Q13).

        :param fork: the fork that the call is about, `None` where it is not known: then the older route is allowed.
        :param call: makes the call on a route within a time.
        """
        limit = self.request_timeout if timeout is None else timeout
        if fork is not None and older.until and not up_to(fork, older.until):
            return await call(newer, limit)
        epoch = self._epoch()
        if self.capabilities.lack(newer.operation, epoch) is not None:
            return await call(older, limit)
        asked = self._clock.now()
        try:
            return await call(newer, limit)
        except failures.UnsupportedEndpoint:
            # It is remembered by now.
            return again(await call(older, limit - (self._clock.now() - asked)), 1)
        except failures.NotFound as absent:
            # Some nodes do not say whether it is the route that is not there: what the older one answers tells.
            if self.capabilities.proven(newer.operation):
                raise
            try:
                answer = again(await call(older, limit - (self._clock.now() - asked)), 1)
            except failures.SemanticError:
                raise absent from None
            self.capabilities.note(newer.operation, absent.problem, epoch)
            return answer

    def _unasked(self, value: T) -> Sourced[T]:
        """Return the answer to a question about nothing, which needs no request: no attempt, no latency."""
        return Sourced(value, Provenance(self.node_id, self._generation(), self._clock.now(), attempts=0))

    def _refuse(self, route: Route) -> None:
        if route.inspects:
            # Whatever was said last: a proxy says of its node, while that is down, that it has no such routes.
            return
        if reason := self._quarantined():
            raise failures.Quarantined(self.node_id, route.template, reason)
        if self.capabilities.any:
            lack = self.capabilities.lack(route.operation, self._epoch())
            if lack is not None:
                raise failures.UnsupportedEndpoint(self.node_id, route.template, lack.problem)

    def _epoch(self) -> Epoch | None:
        slots = self._slots()
        return None if slots is None else slots.epoch_at(self._clock.now())

    def _fork(self, slot: int) -> str | None:
        """Name the fork of a slot, `None` where it is not known."""
        slots = self._slots()
        if slots is None:
            return None
        fork = slots.chain.fork_at(Epoch(slot // slots.chain.slots_per_epoch))
        return None if fork is None else fork.name


def again(answer: Sourced[T], before: int) -> Sourced[T]:
    """Count the attempts that came before an answer."""
    if not before:
        return answer
    source = answer.provenance
    return Sourced(
        answer.value,
        Provenance(source.node_id, source.generation, source.received, source.latency, source.attempts + before),
    )


def reads(kind: Any) -> Callable[[Response], Any]:  # noqa: ANN401 - a type, of any form
    """Return the reader of a JSON answer of a type."""

    made: list[TypeAdapter[Any]] = []

    def read(response: Response) -> Any:  # noqa: ANN401 - a value of that type
        if not made:
            made.append(adapter(kind))
        return made[0].validator.validate_json(response.body)

    return read


def reads_data(kind: Any) -> Callable[[Response], Any]:  # noqa: ANN401 - as above
    """Return the reader of a JSON answer of a type that has `data`, which alone is returned."""

    # To look it up by its type takes as long as to read a small answer, and so does what is around the validator.
    made: list[TypeAdapter[Any]] = []

    def read(response: Response) -> Any:  # noqa: ANN401 - a value of that type
        if not made:
            made.append(adapter(kind))
        return made[0].validator.validate_json(response.body).data

    return read


def is_ssz(response: Response) -> bool:
    """Whether an answer is SSZ, by its media type."""
    for name, value in response.headers.raw:
        if len(name) == len(_CONTENT_TYPE) and name.lower() == _CONTENT_TYPE:
            return value.partition(b";")[0].strip().lower() == _SSZ
    return False
