"""Which nodes should be linked, and making it so."""

import itertools
import time
from collections.abc import Iterable

from scripts.lodestar import rest
from scripts.lodestar.errors import DevnetError
from scripts.lodestar.rest import RestError
from scripts.lodestar.state import State

# A node that is frozen or overloaded must not hold up the others for long.
ANSWER_LIMIT = 2.0


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


def make_links(state: State, awake: Iterable[int], deadline: float) -> None:
    """Connect and disconnect nodes until the links between those that are `awake` are the wanted ones.

    A frozen node's links are cut from the other side as far as it has one; new ones are made when it is awake.

    :raises DevnetError: they were not before `deadline` (monotonic seconds).
    """
    awake = set(awake)
    wanted = wanted_links(state.nodes, state.cut)
    while True:
        try:
            left = _adjust(state, awake, wanted)
            problem = f"links not yet made or cut: {sorted(left)}"
        except RestError as error:
            left, problem = {(0, 0)}, str(error)
        if not left:
            return
        if time.monotonic() >= deadline:
            raise DevnetError(f"the nodes could not be linked in time ({problem})")
        time.sleep(0.1)


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
