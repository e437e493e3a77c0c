"""What became of a publish, merged from what all nodes said of each item (rule 8, Q5, Q12, cases 53, 55, 60, 62)."""

from collections.abc import Sequence

import pytest

from vc_fallback.base.types import NodeId, Provenance
from vc_fallback.node import failures
from vc_fallback.node.failures import ItemFailure
from vc_fallback.node.values.publication import Publication
from vc_fallback.routing.broadcast_result import BroadcastResult, NotPublished, Outcome
from vc_fallback.routing.delivery import AtNode, Delivery, Sending

A, B, C = map(NodeId, "abc")
ENDPOINT = "/eth/v2/beacon/pool/attestations"


def taken() -> Publication:
    return Publication.ACCEPTED


def some(*refused: int, known: Sequence[int] = (), rest_taken: bool = True) -> failures.BadRequest:
    """Return the failure that names items by index."""
    named = [ItemFailure(index, f"bad {index}", known=False) for index in refused]
    named += [ItemFailure(index, f"have {index}", known=True) for index in known]
    return failures.BadRequest(A, ENDPOINT, "some failures", status=400, failures=named, rest_taken=rest_taken)


KNOWN = failures.AlreadyKnown(A, ENDPOINT, "already known", status=400)
NO = failures.BadRequest(A, ENDPOINT, "invalid signature", status=400)
DOWN = failures.ConnectError(A, ENDPOINT, "connection refused")
ELSEWHERE = failures.BadRequest(A, ENDPOINT, "Unsupported endpoint version: v1", status=400)

Said = Publication | BaseException | None


def result(*said: Said, items: int = 1) -> BroadcastResult:
    """Return the result of a publish of which nodes a, b, c said this; `None` is pending."""
    made = BroadcastResult("attestations", [A, B, C][: len(said)], items, 0.0)
    for delivery, word in zip(made.deliveries.values(), said, strict=True):
        say(delivery, word, items)
    return made


def say(delivery: Delivery, word: Said, items: int) -> None:
    if isinstance(word, Publication):
        delivery.answered(word, Provenance(delivery.node_id, 1, 0.0))
    elif word is not None:
        delivery.refused_or_failed(word, items)


@pytest.mark.parametrize(
    ("word", "state", "rest"),
    [
        (Publication.ACCEPTED, Sending.ACCEPTED, AtNode.TAKEN),
        (Publication.BROADCAST, Sending.BROADCAST, AtNode.BROADCAST),
        (KNOWN, Sending.ALREADY_KNOWN, AtNode.KNOWN),
        (NO, Sending.REFUSED, AtNode.REFUSED),
        (failures.UnknownBlock(A, ENDPOINT, "?"), Sending.REFUSED, AtNode.REFUSED),
        (failures.UnsupportedMediaType(A, ENDPOINT, "?"), Sending.REFUSED, AtNode.REFUSED),
        (DOWN, Sending.FAILED, AtNode.FAILED),
        (failures.ServerError(A, ENDPOINT, "?"), Sending.FAILED, AtNode.FAILED),
        (failures.NotReady(A, ENDPOINT, "syncing"), Sending.FAILED, AtNode.FAILED),
        (failures.RateLimited(A, ENDPOINT, "?"), Sending.FAILED, AtNode.FAILED),
        (failures.Closed(A, ENDPOINT, "?"), Sending.FAILED, AtNode.FAILED),
        (RuntimeError("own"), Sending.FAILED, AtNode.FAILED),
        (None, Sending.PENDING, AtNode.PENDING),
    ],
)
def test_what_one_node_says_of_the_whole(word: Said, state: Sending, rest: AtNode) -> None:
    """Rule 8."""
    (delivery,) = result(word, items=3).deliveries.values()
    assert (delivery.state, delivery.rest) == (state, rest)
    assert [delivery.item(index) for index in range(3)] == [rest] * 3


@pytest.mark.parametrize(
    ("word", "state", "items"),
    [
        (some(1), Sending.PARTLY, "taken refused taken"),
        (some(known=[1]), Sending.ACCEPTED, "taken known taken"),
        (some(0, known=[2]), Sending.PARTLY, "refused taken known"),
        (some(0, 1, 2), Sending.REFUSED, "refused refused refused"),
        (some(known=[0, 1, 2]), Sending.ALREADY_KNOWN, "known known known"),
        (some(0, 1, known=[2]), Sending.PARTLY, "refused refused known"),
        (some(1, rest_taken=False), Sending.REFUSED, "failed refused failed"),
        (some(known=[1], rest_taken=False), Sending.PARTLY, "failed known failed"),
        (some(1, 7, -1, known=[99]), Sending.PARTLY, "taken refused taken"),
        (some(7), Sending.REFUSED, "refused refused refused"),
        (some(1, 1, known=[1]), Sending.PARTLY, "taken refused taken"),
    ],
)
def test_what_one_node_says_of_items(word: failures.BadRequest, state: Sending, items: str) -> None:
    """Q12, case 60: indexes that are none, or are there twice, do no harm."""
    (delivery,) = result(word, items=3).deliveries.values()
    assert delivery.state is state
    assert " ".join(delivery.item(index) for index in range(3)) == items


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ([taken(), DOWN, NO], Outcome.ACCEPTED),
        ([taken(), None, None], Outcome.ACCEPTED),
        ([Publication.BROADCAST, taken(), DOWN], Outcome.ACCEPTED),
        ([Publication.BROADCAST, Publication.BROADCAST, DOWN], Outcome.BROADCAST),
        ([Publication.BROADCAST, KNOWN, None], Outcome.BROADCAST),
        ([KNOWN, taken(), DOWN], Outcome.ACCEPTED),
        ([KNOWN, KNOWN, KNOWN], Outcome.UNCERTAIN),
        ([KNOWN, DOWN, NO], Outcome.UNCERTAIN),
        ([KNOWN, None, DOWN], Outcome.UNCERTAIN),
        ([DOWN, None, NO], Outcome.PENDING),
        ([ELSEWHERE, taken(), DOWN], Outcome.ACCEPTED),
        ([NO, DOWN, DOWN], Outcome.REFUSED),
        ([DOWN, DOWN, DOWN], Outcome.FAILED),
    ],
)
def test_what_all_nodes_together_say(said: list[Said], outcome: Outcome) -> None:
    """Rule 8, Q5; cases 53 (202), 55 (an error beside a success), 62 (known everywhere is no success)."""
    made = result(*said)
    assert made.outcome is made.best_outcome is outcome
    assert made.complete is (outcome is Outcome.ACCEPTED)
    assert made.missed == ((0,) if outcome in (Outcome.REFUSED, Outcome.FAILED) else ())


def test_items_are_merged_each_for_itself() -> None:
    """Q12: an item is accepted once any node took it, or a known duplicate says it is there."""
    made = result(some(0, 1), some(1, 3, known=[2]), DOWN, items=4)
    assert made.by_item == (Outcome.ACCEPTED, Outcome.REFUSED, Outcome.ACCEPTED, Outcome.ACCEPTED)
    assert made.missed == (1,)
    assert (made.outcome, made.best_outcome) == (Outcome.REFUSED, Outcome.ACCEPTED)
    assert made.reasons(1) == {A: "bad 1", B: "bad 1", C: "failed: connection refused"}
    assert made.reasons(0) == {A: "bad 0", C: "failed: connection refused"}
    assert (made.partly, made.failed) == ((A, B), (C,))


def test_a_known_item_counts_as_there_once_something_was_taken() -> None:
    """Q5 and Q12: "already known" beside one success is success; alone it is uncertain."""
    assert result(some(known=[1]), items=3).complete
    assert result(some(0, known=[1]), items=2).by_item == (Outcome.REFUSED, Outcome.UNCERTAIN)
    assert result(some(0, known=[1]), some(1, 0, rest_taken=True), items=3).by_item == (
        Outcome.REFUSED,
        Outcome.ACCEPTED,
        Outcome.ACCEPTED,
    )
    assert result(KNOWN, some(0), items=2).complete


def test_a_result_is_live() -> None:
    """Rule 8: pending nodes fill in."""
    made = result(None, None, items=2)
    assert made.pending == (A, B)
    assert made.outcome is Outcome.PENDING
    say(made.deliveries[B], some(0), 2)
    assert made.by_item == (Outcome.PENDING, Outcome.ACCEPTED)
    assert made.missed == ()
    say(made.deliveries[A], taken(), 2)
    assert made.complete
    assert [*made.accepted, *made.partly] == [A, B]
    assert not made.pending


def test_lists_by_state_hold_every_node_once() -> None:
    """Rule 8."""
    made = result(KNOWN, Publication.BROADCAST, NO)
    assert [*made.already_known, *made.broadcast, *made.refused] == [A, B, C]
    assert [*made.accepted, *made.partly, *made.failed, *made.pending] == []


def test_the_error_says_of_every_node_what_became_of_it() -> None:
    """Errors by node, in words, bounded."""
    failed = NotPublished(result(NO, DOWN, None))
    assert str(failed) == (
        "attestations: no node took it: a: refused: 400 invalid signature; b: failed: connection refused; c: pending"
    )
    assert failed.errors == {A: NO, B: DOWN}
    many = BroadcastResult("block", [NodeId(f"n{number}") for number in range(100)], 1, 0.0)
    for delivery in many.deliveries.values():
        delivery.refused_or_failed(failures.ConnectError(delivery.node_id, ENDPOINT, "x " * 1000), 1)
    assert len(str(NotPublished(many))) < 2000
    assert "and 92 more" in str(NotPublished(many))


def test_an_exception_of_ones_own_shows_no_secret() -> None:
    """Rule 11."""
    made = result(RuntimeError("http://user:hunter2@host/secret-token-123/eth/v1/x"))
    assert "hunter2" not in repr(made)
    assert "secret-token" not in repr(made)
