"""Which chain the nodes agree on (I1)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from vc_fallback.base.types import Epoch, NodeId
from vc_fallback.chain import ChainIdentity, Fork, SlotClock

GENESIS_EPOCH = Epoch(0)


def agreed_identity(
    answers: Mapping[NodeId, ChainIdentity], primaries: Sequence[NodeId], *, waited: bool, unix: float | None = None
) -> ChainIdentity | None:
    """Return the identity of the largest agreeing set of primaries that answered, or `None` to wait.

    A strict majority of all primaries decides at once. When enough time has gone by (`waited`), those that answered
    decide: the largest set, ties by list order. Agreement is about genesis, preset, slot and the forks that have come;
    the longest fork schedule of the agreeing set is taken, since a node may not have been told of a coming fork yet.

    :param answers: identities by node id.
    :param primaries: all primaries in list order, whether they answered or not.
    :param unix: Unix time now, in seconds, which says what forks have come; without it only those of genesis count.
    """
    sets: list[list[ChainIdentity]] = []
    for node_id in primaries:
        answer = answers.get(node_id)
        if answer is None:
            continue
        for members in sets:
            if not members[0].mismatch(answer, _epoch(members[0], unix)):
                members.append(answer)
                break
        else:
            sets.append([answer])
    if not sets:
        return None
    # max() keeps the first of equals, which is the one whose first member comes first in the list.
    largest = max(sets, key=len)
    if not waited and 2 * len(largest) <= len(primaries):
        return None
    return max(largest, key=lambda identity: len(identity.forks))


def forks_of(
    pinned: ChainIdentity, answers: Mapping[NodeId, ChainIdentity], primaries: Sequence[NodeId], unix: float
) -> tuple[Fork, ...]:
    """Return the forks of the pinned chain as they are known by now (N7): nodes are updated while we run.

    What a strict majority of all primaries names is so, of forks that have come too: whoever pinned the chain may not
    have been told of one. Without such a majority those that have come stay as they are, and those to come are the
    longest schedule of the nodes that fit.
    """
    epoch = _epoch(pinned, unix)
    bare = replace(pinned, forks=())
    same = {node_id: answer for node_id, answer in answers.items() if not bare.mismatch(answer, epoch)}
    agreed = agreed_identity(same, primaries, waited=False, unix=unix)
    if agreed is not None:
        return agreed.forks or pinned.forks
    if not pinned.forks:
        return ()
    fitting = {node_id: answer for node_id, answer in same.items() if not pinned.mismatch(answer, epoch)}
    longest = agreed_identity(fitting, primaries, waited=True, unix=unix)
    if longest is None or not longest.forks:
        return pinned.forks
    come = tuple(fork for fork in pinned.forks if fork.epoch <= epoch)
    return come + tuple(fork for fork in longest.forks if fork.epoch > epoch)


def not_scheduled(pinned: ChainIdentity, other: ChainIdentity, epoch: Epoch) -> tuple[Fork, ...]:
    """Return the forks to come that a node does not know of, or at another epoch: it does not fit any more then."""
    known = {(fork.version, fork.epoch) for fork in other.forks}
    if not known:
        return ()
    return tuple(fork for fork in pinned.forks if fork.epoch > epoch and (fork.version, fork.epoch) not in known)


def _epoch(chain: ChainIdentity, unix: float | None) -> Epoch:
    return GENESIS_EPOCH if unix is None else SlotClock(chain, offset=0.0).epoch_at(unix)
