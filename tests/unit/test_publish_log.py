"""What is logged of publishes (rule 8; cases 53, 55, 62): loud about number 1, 2, 4, 8, … in a row."""

import logging

import pytest

from vc_fallback.base.types import NodeId, Provenance
from vc_fallback.node import failures
from vc_fallback.node.failures import ItemFailure
from vc_fallback.node.values.publication import Publication
from vc_fallback.routing.broadcast_result import BroadcastResult
from vc_fallback.routing.publish_log import PublishLog

A, B = map(NodeId, "ab")
OK, SENT_ON = Publication.ACCEPTED, Publication.BROADCAST
KNOWN = failures.AlreadyKnown(A, "/x", "have it", status=400)
NO = failures.BadRequest(B, "/x", "invalid signature", status=400)
BROKEN = failures.ServerError(B, "/x", "broken", status=500)
DOWN = failures.ConnectError(B, "/x", "refused")
SOME = failures.BadRequest(B, "/x", "some", status=400, failures=[ItemFailure(0, "bad", known=False)], rest_taken=True)

Said = Publication | Exception


def result(*said: Said, items: int = 1, what: str = "POST /x") -> BroadcastResult:
    made = BroadcastResult(what, [A, B][: len(said)], items, 0.0)
    for delivery, word in zip(made.deliveries.values(), said, strict=True):
        if isinstance(word, Publication):
            delivery.answered(word, Provenance(delivery.node_id, 1, 0.0))
        else:
            delivery.refused_or_failed(word, items)
    return made


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> PublishLog:
    caplog.set_level(logging.WARNING, "vc_fallback.routing.publish_log")
    return PublishLog()


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ((SENT_ON, SENT_ON), "imported by no node"),
        ((SENT_ON, NO), "imported by no node"),
        ((KNOWN, KNOWN), "none took it"),
        ((KNOWN, DOWN), "none took it"),
        ((OK, NO), "b: refused: 400 invalid signature; another node took it"),
        ((OK, BROKEN), "b: failed: 500 broken; another node took it"),
    ],
)
def test_what_no_exception_says_is_a_warning(
    log: PublishLog, caplog: pytest.LogCaptureFixture, said: tuple[Said, ...], text: str
) -> None:
    """Cases 53, 55, 62."""
    log.settled(result(*said))
    (message,) = caplog.messages
    assert message.startswith("POST /x: ")
    assert text in message


@pytest.mark.parametrize("said", [(OK, OK), (OK, KNOWN), (OK, DOWN), (OK, SENT_ON), (NO, NO), (DOWN, BROKEN)])
def test_nothing_is_said_of_a_success_of_what_health_says_or_of_what_was_raised(
    log: PublishLog, caplog: pytest.LogCaptureFixture, said: tuple[Said, ...]
) -> None:
    """H9: a node that is down is told of where it is found to be."""
    log.settled(result(*said))
    assert not caplog.messages


def test_items_that_no_node_took_are_a_warning(log: PublishLog, caplog: pytest.LogCaptureFixture) -> None:
    """Q12: the rest was taken, so nothing was raised."""
    log.settled(result(SOME, DOWN, items=3))
    assert "no node took 1 of 3" in caplog.messages[0]
    assert len(caplog.messages) == 2


def test_what_comes_again_and_again_is_said_less_and_less(log: PublishLog, caplog: pytest.LogCaptureFixture) -> None:
    """H9: by node and kind of publish; a node that takes one begins anew, and so does one that has left."""
    for _ in range(9):
        log.settled(result(OK, NO))
    assert len(caplog.messages) == 4
    log.settled(result(OK, NO, what="POST /y"))
    assert len(caplog.messages) == 5
    log.settled(result(OK, DOWN))
    log.settled(result(OK, NO))
    assert len(caplog.messages) == 5
    log.settled(result(OK, OK))
    log.settled(result(OK, NO))
    assert len(caplog.messages) == 6
    log.forget(B)
    log.settled(result(OK, NO))
    assert len(caplog.messages) == 7
