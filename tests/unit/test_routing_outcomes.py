"""What attempts came to, in words that are bounded and show no secret (rules 6 and 11)."""

from collections.abc import Hashable
from typing import Any

import pytest

from vc_fallback.base.errors import FallbackError, NodeError
from vc_fallback.base.types import NodeId, Provenance, Sourced
from vc_fallback.node import failures
from vc_fallback.routing import outcomes
from vc_fallback.routing.broadcast_result import NotPublished
from vc_fallback.routing.outcomes import (
    AllNodesFailed,
    Attempt,
    DeadlineExceeded,
    Doubt,
    NoCandidates,
    NotSent,
    QuorumNotReached,
    RequestFailed,
    failure,
)

A, B = NodeId("a"), NodeId("b")
SECRET = "https://user:hunter2@host/secret-token-123/eth/v1/x"


def attempt(node_id: NodeId = A, error: NodeError | None = None, **more: Any) -> Attempt[int]:
    return Attempt(node_id, 1.0, 3.5, error=error, **more)


def refused(node_id: NodeId, problem: str = "connection refused") -> NodeError:
    return failures.ConnectError(node_id, "/eth/v1/x", problem)


def test_an_attempt_says_what_came_of_it() -> None:
    """Without an answer and an error it was given up."""
    answer = Sourced(1, Provenance(A, 1, 3.5))
    assert attempt(answer=answer).words == "answered"
    assert attempt(answer=answer, doubt=Doubt("empty")).words == "not taken: empty"
    assert attempt(error=refused(A)).words == "connection refused"
    assert attempt().words == "no answer after 2.5 s"
    assert [a.given_up for a in (attempt(), attempt(error=refused(A)), attempt(answer=answer))] == [True, False, False]
    assert attempt().duration == 2.5


@pytest.mark.parametrize(
    ("error", "semantic"),
    [
        (failures.NotFound(A, "/x", "?"), True),
        (failures.BadRequest(A, "/x", "?"), True),
        (NotSent(A, "/x", "?"), True),
        (failures.ServerError(A, "/x", "?"), False),
        (failures.RequestTimeout(A, "/x", "?"), False),
        (None, False),
    ],
)
def test_an_attempt_tells_semantic_answers_from_failures_of_the_node(error: NodeError | None, semantic: bool) -> None:
    """Rule 10."""
    assert attempt(error=error).semantic is semantic


@pytest.mark.parametrize("kind", [NoCandidates, AllNodesFailed, DeadlineExceeded, QuorumNotReached, NotPublished])
def test_every_error_is_under_the_packages_own(kind: type[Exception]) -> None:
    """One root to catch."""
    assert issubclass(kind, RequestFailed)
    assert issubclass(kind, FallbackError)
    assert not issubclass(kind, NodeError)


def test_texts_are_bounded_however_many_nodes_and_however_long_their_words() -> None:
    """Rule 6."""
    nodes = [NodeId(f"node{number}") for number in range(500)]
    attempts = [attempt(node_id, refused(node_id, "y " * 1000)) for node_id in nodes]
    for over in (True, False):
        error = failure("duties", nodes, attempts, over=over)
        assert len(str(error)) < 2000
        assert "and 492 more" in str(error)
    votes: dict[Hashable, tuple[NodeId, ...]] = {number: (node_id,) for number, node_id in enumerate(nodes)}
    assert len(str(QuorumNotReached("duties", 400, votes))) < 500
    assert len(str(QuorumNotReached("duties", 400, {"k" * 9999: tuple(nodes)}))) < 500


def test_texts_show_no_secret() -> None:
    """Rule 11: neither of what nodes say nor of what the caller says of answers and keys."""
    answer = Sourced(1, Provenance(A, 1, 3.5))
    attempts = [attempt(A, refused(A, f"see {SECRET}")), attempt(B, answer=answer, doubt=Doubt(f"was {SECRET}"))]
    texts = [
        str(failure("duties", [A, B], attempts, over=True)),
        str(failure("duties", [A, B], attempts, over=False)),
        str(QuorumNotReached("duties", 2, {SECRET: (A,)}, attempts)),
    ]
    for text in texts:
        assert "hunter2" not in text
        assert "secret-token" not in text
        assert "host" in text


def test_the_last_error_of_each_node_counts() -> None:
    """A node may have been asked more than once."""
    early, late = refused(A, "early"), refused(A, "late")
    error = failure("duties", [A], [attempt(A, early), attempt(A, late)], over=False)
    assert isinstance(error, AllNodesFailed)
    assert error.errors == {A: late}
    assert str(error) == "duties: the only node failed: a: late"


def test_a_report_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Observers cost nobody anything."""

    def broken(_: object) -> None:
        raise RuntimeError("mine")

    outcomes.tell(broken, attempt())
    assert "RuntimeError: mine" in caplog.text
