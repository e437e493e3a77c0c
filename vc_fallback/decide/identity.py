"""Which chain the nodes agree on (I1)."""

from collections.abc import Mapping, Sequence

from vc_fallback.base.types import Epoch, NodeId
from vc_fallback.chain import ChainIdentity, SlotClock

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


def _epoch(chain: ChainIdentity, unix: float | None) -> Epoch:
    return GENESIS_EPOCH if unix is None else SlotClock(chain, offset=0.0).epoch_at(unix)
