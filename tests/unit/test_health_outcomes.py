"""What the end of a request says of its node's health (rule 10, N3, N8, Q2; case 39)."""

from collections.abc import Callable

import pytest

from tests.by_hand import ByHand
from vc_fallback.base.errors import NodeError
from vc_fallback.base.health import HealthState
from vc_fallback.base.signals import Observers
from vc_fallback.base.types import NodeId, Root, Slot
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import Candidate, Candidates
from vc_fallback.chain import ChainIdentity, SlotClock
from vc_fallback.health.book import HealthBook
from vc_fallback.health.outcomes import outcomes
from vc_fallback.node import failures, routes
from vc_fallback.node.caller import Outcomes
from vc_fallback.node.routes import Route
from vc_fallback.settings import HealthSettings

A, B = NodeId("a"), NodeId("b")
CHAIN = ChainIdentity(genesis_time=0.0, genesis_validators_root=Root(b"g" * 32), slot_duration=12.0)


class Asked:
    """A book with two nodes, and the outcomes of requests to the first of them."""

    def __init__(self) -> None:
        self.clock = ByHand(1206.0)
        self.candidates = Candidates([Candidate(BaseURL.parse(f"http://{name}"), name) for name in "ab"])
        self.book = HealthBook(HealthSettings(), self.candidates, self.clock, Observers())
        self.book.start()
        self.book.pin(SlotClock(CHAIN, 0.0))
        for node_id in (A, B):
            self.book.identified(node_id, "")
        self.ended: Outcomes = outcomes(self.book, A)

    def end(self, error: NodeError | None = None, route: Route = routes.PROPOSER_DUTIES, took: float = 0.1) -> None:
        self.clock.time += 1.0
        self.ended(route, self.clock.time - took, self.clock.time, error)

    @property
    def errors(self) -> int:
        return self.book.records[A].health.errors.count(self.clock.time)

    @property
    def suspect(self) -> str:
        return self.book.verdict(A).suspect


def error(kind: Callable[..., NodeError], status: int | None = None) -> NodeError:
    return kind(A, routes.PROPOSER_DUTIES.template, "said so", status=status)


TRANSPORT = [
    failures.ConnectError,
    failures.ConnectTimeout,
    failures.ConnectionLost,
    failures.InsecureConnection,
    failures.RequestTimeout,
]
UNABLE = [
    (failures.ServerError, 500),
    (failures.ServerError, 502),
    (failures.NotReady, 503),
    (failures.Optimistic, 500),
    (failures.RateLimited, 429),
    (failures.Unauthorized, 401),
    (failures.Unauthorized, 402),
    (failures.Unauthorized, 403),
    (failures.Malformed, 200),
]
SEMANTIC = [
    (failures.NotFound, 404),
    (failures.UnknownBlock, 404),
    (failures.BadRequest, 400),
    (failures.AlreadyKnown, 500),
    (failures.PayloadTooLarge, 413),
    (failures.UnsupportedEndpoint, 405),
    (failures.UnsupportedMediaType, 415),
    (failures.NotAcceptable, 406),
    (failures.FutureSlot, 400),
    (failures.Closed, None),
    (failures.Quarantined, None),
]


@pytest.mark.parametrize("kind", TRANSPORT)
def test_no_answer_makes_a_node_suspect(kind: type[NodeError]) -> None:
    """N4: at the first, in its own words; it is one error of the window, however many follow (scenario 53a)."""
    asked = Asked()
    for _ in range(10):
        asked.end(error(kind))
    assert asked.suspect == "/eth/v2/validator/duties/proposer/{epoch}: said so"
    assert asked.book.verdict(A).state is HealthState.HEALTHY
    assert asked.book.order == (B, A)
    assert asked.errors == 1


@pytest.mark.parametrize(("kind", "status"), UNABLE)
def test_answers_by_which_a_node_says_that_it_is_not_able(kind: Callable[..., NodeError], status: int) -> None:
    """N3: the fifth within the window makes it unhealthy; none makes it suspect."""
    asked = Asked()
    for count in range(5):
        assert not asked.book.unhealthy(A), count
        asked.end(error(kind, status))
        assert not asked.suspect
    assert asked.book.unhealthy(A) == "5 errors in 60 s"
    assert not asked.book.unhealthy(B)


@pytest.mark.parametrize(("kind", "status"), SEMANTIC)
def test_a_node_that_says_no_is_well(kind: Callable[..., NodeError], status: int | None) -> None:
    """Rule 10, case 39: a gauge does not flicker for a duplicate, a missing aggregate, or our own mistake."""
    asked = Asked()
    for _ in range(20):
        asked.end(error(kind, status))
        asked.end()
    assert not asked.suspect
    assert not asked.book.unhealthy(A)
    assert asked.errors == 0


def test_errors_that_overlap_are_one() -> None:
    """N3: thirty requests under way while it stumbles once."""
    asked = Asked()
    for _ in range(30):
        asked.ended(routes.PROPOSER_DUTIES, 1200.0, asked.clock.time, error(failures.ServerError, 500))
    assert asked.errors == 1


def test_a_slot_that_is_said_to_be_in_the_future_is_a_clock_that_is_off() -> None:
    """N8: it warns of the node at the end of the slot."""
    asked = Asked()
    asked.end(error(failures.FutureSlot, 400), routes.ATTESTATION_DATA)
    assert not asked.suspect
    asked.book.slot_ended(Slot(100))
    assert asked.book.verdict(A).offset is None
    assert asked.book.verdict(A).clock == "says that our slots are in the future"
    assert asked.book.verdict(B).clock == ""


def test_attestation_data_is_timed_and_a_wait_that_was_given_up_too() -> None:
    """N3, Q2: its p90 alone; of failures only those say how long it takes that were waited out."""
    asked = Asked()
    for _ in range(5):
        asked.end(route=routes.ATTESTATION_DATA, took=0.2)
        asked.end(route=routes.AGGREGATE, took=9.0)
        asked.end(error(failures.NotFound, 404), route=routes.ATTESTATION_DATA, took=9.0)
        asked.end(error(failures.ConnectError), route=routes.ATTESTATION_DATA, took=9.0)
    assert asked.book.verdict(A).duty_latency == pytest.approx(0.2)
    assert asked.book.verdict(A).latency is None
    for _ in range(5):
        asked.end(error(failures.RequestTimeout), route=routes.ATTESTATION_DATA, took=4.0)
    assert asked.book.unhealthy(A) == "nine of ten answers of attestation data take up to 4.00 s"


@pytest.mark.parametrize("route", [routes.SYNCING, routes.PEER_COUNT, routes.FINALITY])
def test_checks_write_their_outcomes_themselves(route: Route) -> None:
    """N4: a check that fails is counted once, not as a request as well; what it asks besides says nothing of health."""
    asked = Asked()
    asked.end(error(failures.ConnectError), route)
    asked.end(error(failures.ServerError, 500), route)
    assert not asked.suspect
    assert asked.errors == 0


@pytest.mark.parametrize("url", ["http://elsewhere", None])
def test_what_an_old_client_has_under_way_says_nothing_of_the_node_that_comes_after(url: str | None) -> None:
    """G3: the node left and came back, or is reached in another way."""
    asked = Asked()
    if url is None:
        asked.book.apply(asked.candidates.update([]))
        asked.end(error(failures.ConnectError))
    asked.book.apply(asked.candidates.update([Candidate(BaseURL.parse(url or "http://a"), "a")]))
    asked.end(error(failures.ConnectError))
    assert not asked.suspect
    outcomes(asked.book, A)(routes.PROPOSER_DUTIES, 1200.0, asked.clock.time, error(failures.ConnectError))
    assert asked.suspect
