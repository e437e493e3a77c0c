"""Which node stands on another branch than the others (N3, case 43)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from vc_fallback.base.types import NodeId, Root, Slot, root_hex
from vc_fallback.decide.branches import Branches, sides

FEWEST = 3
"""Nodes at one slot before one of them can be blamed: of two that disagree nobody knows who is wrong (N3)."""

RUNNING = 2
"""Slots running that make a node inconsistent, and that clear it again (N3)."""

_MOST_SHOWN = 8
_MOST_WANTED = 8


@dataclass(frozen=True, slots=True)
class Split:
    """The chains of nodes have different blocks at one slot. Who is wrong is not said here.

    :param roots: who has which; where a slot is empty on a branch, the block before it.
    """

    slot: Slot
    roots: Mapping[Root, tuple[NodeId, ...]]


@dataclass(frozen=True, slots=True)
class Judged:
    """A node has become inconsistent, for a reason, or is so no more (no reason).

    :param compared: whether it is so no more because it stands with the others again; else nobody can say any more.
    """

    node_id: NodeId
    reason: str
    compared: bool = True


@dataclass(slots=True)
class _Node:
    slot: Slot
    root: Root
    shown: dict[Slot, Root] = field(default_factory=dict)
    """The last root it showed at each of its latest slots."""
    against: int = 0
    """Slots running at which it stood against the majority."""
    with_them: int = 0
    news: int = -1
    """The newest slot that its last judgement was about."""
    reason: str = ""


class _Look(NamedTuple):
    """What all nodes say of one slot, asked for a head there."""

    newest: Slot
    """The newest slot of a head that has a voice."""
    roots: dict[Root, list[NodeId]]
    """Who has which root."""
    most: Root
    """The root that most have, how many that are, and how many have a voice."""
    backers: int
    total: int


class Consistency:
    """Compares what the nodes show, once in every slot.

    At the slot of a node's head every node that has come so far has a voice: the root of its own head there, or the
    block that its chain has there by its headers, or the head that it showed at that slot, if it is the same: that much
    acquits, but it blames nobody where slots differ. A node is against the others when three or more have a voice and
    more than half of them have one other root. So a node that is merely behind on the same chain is with them.

    A slot in which neither the node nor the others have a new head is none: missed slots repeat nothing.

    In a fork each slot has its block on one branch only, so the heads of two branches are hardly ever at one slot: it
    is the headers that tell, and those of heads that came within the slot have to be fetched. :meth:`judge` may be
    called again when they are there; no slot is counted twice.

    Give it verified nodes only. Eight shown roots are kept of each: 1.5 kB a node, by measurement. A look at 100 nodes
    takes 0.1 ms where they are on one branch or on two, and 3 ms where each is at a slot of its own.
    """

    def __init__(self) -> None:
        self.branches = Branches()
        self.splits: tuple[Split, ...] = ()
        """Where nodes disagreed at the last look, newest slot first: shown, whoever is right."""
        self.undecided = False
        """Whether headers that the last look lacked may show more of them."""
        self.wanted: tuple[tuple[NodeId, Root], ...] = ()
        """Headers that the last look lacked, and who has them; at most eight."""
        self._nodes: dict[NodeId, _Node] = {}
        self._lost: set[NodeId] = set()
        """Who was inconsistent when it was forgotten, since the last look."""

    def head(self, node_id: NodeId, slot: Slot, root: Root) -> None:
        """Take a node's head, from its stream or a poll."""
        node = self._nodes.get(node_id)
        if node is None:
            node = self._nodes[node_id] = _Node(slot, root)
        node.slot, node.root = slot, root
        node.shown.pop(slot, None)
        node.shown[slot] = root
        if len(node.shown) > _MOST_SHOWN:
            del node.shown[next(iter(node.shown))]

    def forget(self, node_id: NodeId) -> None:
        """Forget a node that left, is on another chain, or has no head any more."""
        node = self._nodes.pop(node_id, None)
        if node is not None and node.reason:
            self._lost.add(node_id)

    def inconsistent(self, node_id: NodeId) -> str:
        """Say why a node is inconsistent; empty where it is not."""
        node = self._nodes.get(node_id)
        return "" if node is None else node.reason

    def judge(self) -> list[Judged]:
        """Compare all nodes as of the end of a slot, and return whose verdict has changed, by name."""
        wanted: dict[Root, NodeId] = {}
        self.undecided = False
        found = []
        looks: dict[tuple[Slot, Root], _Look] = {}
        level: dict[Slot, _Look] = {}
        for node_id, node in self._nodes.items():
            # Nodes of one head are judged alike, and so are those of one slot to which nobody comes from ahead: a
            # hundred nodes are not compared pair by pair.
            head = (node.slot, node.root)
            look = level.get(node.slot) or looks.get(head)
            if look is None:
                look = looks[head] = self._look(node, wanted)
                if look.newest == node.slot and not self.undecided:
                    level[node.slot] = look
            before = node.reason
            if len(self._nodes) < FEWEST:
                # A verdict of three does not outlive the third: of two nobody is blamed.
                node.against = node.with_them = 0
                node.reason = ""
            elif look.total >= FEWEST and look.newest > node.news:
                node.news = look.newest
                self._count(node, _against(node, look))
            if node.reason != before and not (node.reason and before):
                found.append(Judged(node_id, node.reason, compared=len(self._nodes) >= FEWEST))
                self._lost.discard(node_id)
        found += [Judged(node_id, "", compared=False) for node_id in self._lost]
        self._lost.clear()
        self.splits = _splits(looks)
        self.wanted = tuple((node_id, root) for root, node_id in list(wanted.items())[:_MOST_WANTED])
        return sorted(found, key=lambda judged: judged.node_id)

    def _count(self, node: _Node, against: str) -> None:
        if against:
            node.against, node.with_them = node.against + 1, 0
            if node.against >= RUNNING:
                node.reason = against
        else:
            node.against, node.with_them = 0, node.with_them + 1
            if node.with_them >= RUNNING:
                node.reason = ""

    def _look(self, judged: _Node, wanted: dict[Root, NodeId]) -> _Look:
        """Ask every node that has come so far for its root at the slot of a node's head."""
        roots: dict[Root, list[NodeId]] = {}
        newest = judged.slot
        for node_id, node in self._nodes.items():
            if node.slot < judged.slot:
                continue
            root = self._voice(node_id, node, judged, wanted)
            if root is None:
                self.undecided = True
            else:
                roots.setdefault(root, []).append(node_id)
                newest = max(newest, node.slot)
        most = max(roots, key=lambda one: len(roots[one]))
        return _Look(newest, roots, most, len(roots[most]), sum(map(len, roots.values())))

    def _voice(self, node_id: NodeId, node: _Node, judged: _Node, wanted: dict[Root, NodeId]) -> Root | None:
        """Return the root that a node has at the slot of another's head; `None` where that is not known."""
        if node.slot == judged.slot:
            return node.root
        root, lacking = self.branches.at(node.root, node.slot, judged.slot, judged.root)
        if root is not None:
            return root
        if node.shown.get(judged.slot) == judged.root:
            return judged.root
        if lacking is not None:
            wanted.setdefault(lacking, node_id)
        return None


def _against(judged: _Node, look: _Look) -> str:
    """Say what stands against a node at its head's slot: empty where nothing does."""
    if look.most == judged.root or 2 * look.backers <= look.total:
        return ""
    return f"{look.backers} of {look.total} nodes have {root_hex(look.most)[:10]} at slot {judged.slot}"


def _splits(looks: Mapping[tuple[Slot, Root], _Look]) -> tuple[Split, ...]:
    """Return the splits that are known, of each slot by the look in which most nodes had a voice."""
    slots: dict[Slot, _Look] = {}
    for (slot, _), look in looks.items():
        if len(look.roots) > 1 and (slot not in slots or look.total > slots[slot].total):
            slots[slot] = look
    return tuple(Split(slot, sides(slots[slot].roots)) for slot in sorted(slots, reverse=True))
