"""Which chain the nodes agree on, as tables (I1, scenario 7a)."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from vc_fallback.base.types import Epoch, NodeId, Root
from vc_fallback.chain import ChainIdentity, Fork
from vc_fallback.decide.identity import agreed_identity, forks_of, not_scheduled

RIGHT = ChainIdentity(
    genesis_time=1000.0, genesis_validators_root=Root(b"r" * 32), slot_duration=12.0, preset="mainnet"
)
WRONG = replace(RIGHT, genesis_validators_root=Root(b"w" * 32))
OTHER = replace(RIGHT, genesis_time=999.0)

EPOCH = 12.0 * 32
PHASE0 = Fork("phase0", b"\0\0\0\0", Epoch(0))
ALTAIR = Fork("altair", b"\1\0\0\0", Epoch(10))
GLOAS = Fork("gloas", b"\7\0\0\0", Epoch(100))
SHADOW = Fork("altair", b"\xff\0\0\0", Epoch(10))


def ask(
    answers: Mapping[str, ChainIdentity], *, of: str, waited: bool, epoch: int | None = None
) -> ChainIdentity | None:
    """Ask with answers by node; `of` names all primaries in list order, one letter each."""
    known = {NodeId(node): identity for node, identity in answers.items()}
    unix = None if epoch is None else RIGHT.genesis_time + epoch * EPOCH
    return agreed_identity(known, [NodeId(node) for node in of], waited=waited, unix=unix)


@pytest.mark.parametrize(
    ("of", "answers", "at_once", "after_waiting"),
    [
        pytest.param("a", {}, None, None, id="nobody answered"),
        pytest.param("", {}, None, None, id="an empty list (G6)"),
        pytest.param("", {"f": RIGHT}, None, None, id="a node that is no primary decides nothing"),
        pytest.param("a", {"a": RIGHT}, RIGHT, RIGHT, id="the only one"),
        pytest.param("ab", {"a": RIGHT}, None, RIGHT, id="one of two is no majority"),
        pytest.param("ab", {"a": RIGHT, "b": RIGHT}, RIGHT, RIGHT, id="two of two"),
        pytest.param("ab", {"a": RIGHT, "b": WRONG}, None, RIGHT, id="a tie goes by list order"),
        pytest.param("ba", {"a": RIGHT, "b": WRONG}, None, WRONG, id="a tie goes by list order, not by arrival"),
        pytest.param("abc", {"b": RIGHT, "c": RIGHT}, RIGHT, RIGHT, id="two of three, one is down"),
        pytest.param("abc", {"a": WRONG, "b": RIGHT}, None, WRONG, id="one against one of three"),
        pytest.param("abc", {"a": WRONG, "b": RIGHT, "c": OTHER}, None, WRONG, id="all differ"),
        pytest.param("abcd", {"a": WRONG}, None, WRONG, id="7a: the wrong one answers first"),
        pytest.param("abcd", {"a": WRONG, "b": RIGHT}, None, WRONG, id="7a: a right one follows"),
        pytest.param("abcd", {"a": WRONG, "b": RIGHT, "c": RIGHT}, None, RIGHT, id="7a: half is no strict majority"),
        pytest.param("abcd", {"a": WRONG, "b": RIGHT, "c": RIGHT, "d": RIGHT}, RIGHT, RIGHT, id="7a: three rule"),
        pytest.param("abcde", {"a": WRONG, "b": WRONG, "c": RIGHT, "d": RIGHT, "e": RIGHT}, RIGHT, RIGHT, id="3 of 5"),
        pytest.param("ab", {"x": WRONG, "y": WRONG, "z": WRONG, "b": RIGHT}, None, RIGHT, id="fallbacks have no say"),
    ],
)
def test_the_largest_agreeing_set_of_primaries_rules(
    of: str, answers: dict[str, ChainIdentity], at_once: ChainIdentity | None, after_waiting: ChainIdentity | None
) -> None:
    """I1: a strict majority of the primaries decides at once, after waiting the largest set that answered."""
    assert ask(answers, of=of, waited=False) == at_once
    assert ask(answers, of=of, waited=True) == after_waiting


@pytest.mark.parametrize("order", ["abcd", "bacd", "bcad", "bcda"])
def test_the_one_on_the_wrong_network_does_not_fit_the_pinned_identity(order: str) -> None:
    """Scenario 7a: wherever it stands in the list."""
    pinned = ask({"a": WRONG, "b": RIGHT, "c": RIGHT, "d": RIGHT}, of=order, waited=False)
    assert pinned == RIGHT
    assert pinned.mismatch(WRONG, Epoch(0)).startswith("genesis_validators_root differs")
    assert pinned.mismatch(RIGHT, Epoch(0)) == ""


@pytest.mark.parametrize(
    "different",
    [
        replace(RIGHT, genesis_time=1001.0),
        replace(RIGHT, genesis_validators_root=Root(b"x" * 32)),
        replace(RIGHT, slot_duration=6.0),
        replace(RIGHT, slots_per_epoch=8),
        replace(RIGHT, preset="minimal"),
    ],
)
def test_identities_that_differ_do_not_agree(different: ChainIdentity) -> None:
    """I1, N7: genesis, preset and slot are the identity."""
    assert ask({"a": RIGHT, "b": different}, of="ab", waited=False) is None


def test_a_node_that_knows_less_agrees() -> None:
    """Case 33: a missing preset, a missing fork schedule, other due times are no other chain."""
    vague = replace(RIGHT, preset="", due_bps={"PAYLOAD_DUE_BPS": 7500})
    assert ask({"a": vague, "b": RIGHT}, of="ab", waited=False) == vague


def test_the_longest_schedule_of_the_agreeing_set_is_pinned() -> None:
    """Case 33: one node has not been told of a coming fork yet."""
    short, long = replace(RIGHT, forks=(PHASE0, ALTAIR)), replace(RIGHT, forks=(PHASE0, ALTAIR, GLOAS))
    assert ask({"a": short, "b": long, "c": short}, of="abc", waited=False, epoch=50) == long


def test_a_shadow_fork_with_the_same_genesis_is_not_in_the_agreeing_set() -> None:
    """N7: the forks that have come are identity; one node with more of them must not have its schedule pinned."""
    right = replace(RIGHT, forks=(PHASE0, ALTAIR))
    shadow = replace(RIGHT, forks=(PHASE0, SHADOW, GLOAS))
    pinned = ask({"a": shadow, "b": right, "c": right}, of="abc", waited=False, epoch=50)
    assert pinned == right
    assert pinned.mismatch(shadow, Epoch(50)) == "current fork differs"


def test_before_a_fork_comes_it_divides_nobody() -> None:
    """N7: forks to come may differ."""
    right = replace(RIGHT, forks=(PHASE0, ALTAIR))
    shadow = replace(RIGHT, forks=(PHASE0, SHADOW))
    for epoch in (None, 0, 9):
        assert ask({"a": right, "b": shadow}, of="ab", waited=False, epoch=epoch) == right
    assert ask({"a": right, "b": shadow}, of="ab", waited=False, epoch=10) is None


def test_before_genesis_the_forks_of_genesis_count() -> None:
    """H2, I1: Unix time before genesis is epoch 0."""
    assert ask({"a": RIGHT, "b": RIGHT}, of="ab", waited=False, epoch=-5) == RIGHT


HEZE = Fork("heze", b"\x08\0\0\0", Epoch(200))


def forks(of: str, pinned: tuple[Fork, ...], epoch: int, **answers: tuple[Fork, ...] | None) -> tuple[Fork, ...]:
    """Ask which forks a pinned chain has; `None` stands for a node of another genesis."""
    known = {
        NodeId(name): replace(WRONG, forks=pinned) if named is None else replace(RIGHT, forks=named)
        for name, named in answers.items()
    }
    unix = RIGHT.genesis_time + epoch * EPOCH
    return forks_of(replace(RIGHT, forks=pinned), known, [NodeId(name) for name in of], unix)


NOW, SOON, LATER = (PHASE0, ALTAIR), (PHASE0, ALTAIR, GLOAS), (PHASE0, ALTAIR, GLOAS, HEZE)
MOVED = (PHASE0, ALTAIR, replace(GLOAS, epoch=Epoch(120)))


@pytest.mark.parametrize(
    ("pinned", "epoch", "answers", "expected"),
    [
        pytest.param(NOW, 50, {}, NOW, id="nobody has answered"),
        pytest.param(NOW, 50, {"a": NOW, "b": NOW, "c": NOW}, NOW, id="nothing new"),
        pytest.param(NOW, 50, {"a": NOW, "b": SOON, "c": NOW}, SOON, id="one knows of a fork to come"),
        pytest.param(NOW, 50, {"b": SOON}, SOON, id="one answered, and fits"),
        pytest.param(NOW, 50, {"b": LATER, "c": SOON}, LATER, id="the longest schedule"),
        pytest.param(SOON, 50, {"a": MOVED, "b": MOVED, "c": MOVED}, MOVED, id="it was put off"),
        pytest.param(SOON, 50, {"a": None, "b": SOON, "c": NOW}, SOON, id="a node of another chain has no say"),
        pytest.param(SOON, 150, {"a": SOON, "b": SOON, "c": NOW}, SOON, id="it has come, and one has not got it"),
        pytest.param(SOON, 150, {"a": SOON, "b": NOW, "c": NOW}, NOW, id="it has come, and most have not got it"),
        pytest.param(SOON, 150, {"a": SOON, "b": NOW}, SOON, id="no strict majority: as it was"),
        pytest.param(NOW, 150, {"a": NOW, "b": SOON, "c": SOON}, SOON, id="it came before anybody was told"),
        pytest.param(NOW, 150, {"b": SOON}, NOW, id="one of three says that it has come"),
        pytest.param((), 50, {"a": NOW, "b": NOW}, NOW, id="a configured chain takes them from most nodes"),
        pytest.param((), 50, {"a": NOW}, (), id="not from one of three"),
        pytest.param((), 50, {"a": (), "b": ()}, (), id="nodes that name none"),
        pytest.param(SOON, 50, {"a": (), "b": (), "c": ()}, SOON, id="nodes that name none any more"),
    ],
)
def test_which_forks_the_pinned_chain_has(
    pinned: tuple[Fork, ...], epoch: int, answers: dict[str, tuple[Fork, ...] | None], expected: tuple[Fork, ...]
) -> None:
    """I1, N7, case 33: of three primaries; nodes are updated while we run."""
    assert forks("abc", pinned, epoch, **answers) == expected


@pytest.mark.parametrize(
    ("named", "epoch", "lacking"),
    [
        pytest.param(LATER, 50, (), id="it knows all"),
        pytest.param(NOW, 50, (GLOAS, HEZE), id="it knows of none to come"),
        pytest.param(NOW, 150, (HEZE,), id="what has come is another matter"),
        pytest.param((*MOVED, HEZE), 50, (GLOAS,), id="at another epoch"),
        pytest.param((), 50, (), id="it names none at all"),
    ],
)
def test_which_forks_a_node_has_not_scheduled(named: tuple[Fork, ...], epoch: int, lacking: tuple[Fork, ...]) -> None:
    """N7, case 33: a warning until their epoch comes."""
    assert not_scheduled(replace(RIGHT, forks=LATER), replace(RIGHT, forks=named), Epoch(epoch)) == lacking
