"""Requests over real nodes: what a validator client asks in each slot is answered while nodes fail and come back."""

import pytest

from tests.devnet.story import FAULTS, Story
from vc_fallback import UnsupportedEndpoint


@pytest.mark.parametrize("story", FAULTS, indirect=True)
def test_calls_are_answered_while_the_node_that_has_the_duties_fails(story: Story) -> None:
    """Q2–Q4, Q8, N9: in each slot attestation data, the head's root and duties, before and after, and all the while."""
    story.assert_answered()


@pytest.mark.parametrize("story", ["killed"], indirect=True)
def test_a_killed_node_costs_no_quorum_and_is_told_again_when_it_is_back(story: Story) -> None:
    """Q6, Q14: two of three agree, blocks pay the right one, a node that had forgotten all knows it again."""
    # All that was seen on the way, or there would be no story.
    unknown = story.liveness
    assert unknown is not None
    # This version cannot tell who was seen; nobody is taken for dead because of that (Q14a).
    assert UnsupportedEndpoint in {type(error) for error in unknown.errors.values()}
    assert unknown.live == ()
