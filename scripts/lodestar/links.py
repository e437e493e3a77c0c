"""Which nodes should be linked, and making it so."""

import itertools
import time
from collections.abc import Iterable

from scripts.lodestar import rest
from scripts.lodestar.errors import DevnetError
from scripts.lodestar.rest import NotFoundError, RestError
from scripts.lodestar.state import State

# A node that is frozen or overloaded must not hold up the others for long.
ANSWER_LIMIT = 2.0
# Slots in the minimal preset.
EPOCH = 8


def wanted_links(nodes: int, cut: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """All links there should be, as (lower, higher), when those in `cut` are cut.

    Node 0, the validators' own, is linked with the largest group of linked nodes (of equally large ones with that of
    the lowest number), so that a node without links gets no more blocks.
    """
    links = {pair for pair in itertools.combinations(range(1, nodes + 1), 2) if pair not in cut}
    groups: list[set[int]] = []
    for number in range(1, nodes + 1):
        near = {number} | {other for pair in links if number in pair for other in pair}
        joined = [group for group in groups if group & near]
        groups = [group for group in groups if not group & near] + [near.union(*joined)]
    with_validators = max(groups, key=lambda group: (len(group), -min(group)))
    return links | {(0, number) for number in with_validators}


def make_links(
    state: State, awake: set[int], deadline: float, *, without: frozenset[int] | set[int] = frozenset()
) -> None:
    """Connect and disconnect nodes until the links between those that are `awake` are the wanted ones.

    Those in `without` get no links. A node that is not awake is left alone.

    :raises DevnetError: they were not before `deadline` (monotonic seconds).
    """
    wanted = {pair for pair in wanted_links(state.nodes, state.cut) if without.isdisjoint(pair)}
    while True:
        try:
            left = _adjust(state, awake, wanted)
        except RestError as error:
            problem = str(error)
        else:
            if not left:
                return
            problem = f"not as they should be: {sorted(left)}"
        if time.monotonic() >= deadline:
            raise DevnetError(f"the nodes could not be linked in time ({problem})")
        time.sleep(0.1)


def renew_links(
    state: State, awake: set[int], suspects: Iterable[int], deadline: float, known: dict[int, int] | None = None
) -> set[int]:
    """Cut and make anew the links of those `suspects` that are more than an epoch behind, so that they catch up.

    Such a node has left the gossip of blocks and fetches what it lacks from a peer it knows to be ahead. It learns that
    when it meets the peer and every five minutes, which is enough on a network where peers come and go. After new
    links it imports about 40 blocks a second, and new links in the midst of that would have it begin again: one that
    has come on since the last call with the same `known` keeps its links.

    Returns those that are so far behind. One that has no head to tell is left alone.

    :raises DevnetError: the links were not made before `deadline` (monotonic seconds).
    """
    known = {} if known is None else known
    slots: dict[int, int] = {}
    for number in awake:
        while True:
            try:
                slots[number] = rest.head(state.rest_ports[number], ANSWER_LIMIT).slot
            except NotFoundError:
                break
            except RestError as error:
                if time.monotonic() >= deadline:
                    raise DevnetError(f"a node does not say what its head is ({error})") from error
            else:
                break
    late = {number for number in slots.keys() & set(suspects) if slots[number] < max(slots.values()) - EPOCH}
    stuck = {number for number in late if slots[number] <= known.get(number, slots[number])}
    known.clear()
    known.update((number, slots[number]) for number in late)
    if stuck:
        make_links(state, awake, deadline, without=stuck)
        make_links(state, awake, deadline)
    return late


def _adjust(state: State, awake: set[int], wanted: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """One round; returns the pairs that were not as wanted before it."""
    ids = {number: rest.peer_id(state.rest_ports[number], ANSWER_LIMIT) for number in awake}
    peers = {number: rest.connected_peers(state.rest_ports[number], ANSWER_LIMIT) for number in awake}
    wrong = set()
    for low, high in itertools.combinations(sorted(awake), 2):
        linked = ids[high] in peers[low], ids[low] in peers[high]
        if (low, high) in wanted and not all(linked):
            wrong.add((low, high))
            rest.connect(state.rest_ports[low], ids[high], state.p2p_ports[high])
        elif (low, high) not in wanted and any(linked):
            wrong.add((low, high))
            rest.disconnect(state.rest_ports[low], ids[high])
            rest.disconnect(state.rest_ports[high], ids[low])
    return wrong
