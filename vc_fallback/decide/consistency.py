"""Which node stands on another branch than the others (N3, case 43)."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from vc_fallback.base.types import NodeId, Root, Slot, root_hex
from vc_fallback.decide.branches import Branches

FEWEST = 3
"""Nodes at one slot before one of them can be blamed: of two that disagree nobody knows who is wrong (N3)."""

RUNNING = 2
"""Slots running that make a node inconsistent, and that clear it again (N3)."""

_MOST_SHOWN = 8
_MOST_WANTED = 8


@dataclass(frozen=True, slots=True)
class Split:
    """Nodes show different roots at one slot. Who is wrong is not said here."""

    slot: Slot
    roots: Mapping[Root, tuple[NodeId, ...]]


@dataclass(frozen=True, slots=True)
class Judged:
    """A node has become inconsistent, for a reason, or is so no more (no reason)."""

    node_id: NodeId
    reason: str


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


class Consistency:
    """Compares what the nodes show, once in every slot.

    At the slot of a node's head every node that has come so far has a voice: the root of its own head there, or the
    block that its chain has there by its headers, or the head that it showed at that slot, if it is the same: that much
    acquits, but it blames nobody where slots differ. A node is against the others when three or more have a voice and
    more than half of them have one other root. So a node that is merely behind on the same chain is with them.

    A slot in which neither the node nor the others have a new head is none: missed slots repeat nothing.

    Give it verified nodes only. Eight shown roots are kept of each: 1.5 kB a node, by measurement. A look at 100 nodes
    takes 0.1 ms where they agree, and 3 ms where each shows another head.
    """

    def __init__(self) -> None:
        self.branches = Branches()
        self.splits: tuple[Split, ...] = ()
        """Where nodes disagreed at the last look, newest slot first: shown, whoever is right."""
        self.wanted: tuple[tuple[NodeId, Root], ...] = ()
        """Headers that the last look lacked, and who has them; at most eight."""
        self._nodes: dict[NodeId, _Node] = {}

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
        self._nodes.pop(node_id, None)

    def inconsistent(self, node_id: NodeId) -> str:
        """Say why a node is inconsistent; empty where it is not."""
        node = self._nodes.get(node_id)
        return "" if node is None else node.reason

    def judge(self) -> list[Judged]:
        """Compare all nodes as of the end of a slot, and return whose verdict has changed."""
        self.splits = self._splits()
        wanted: dict[Root, NodeId] = {}
        found = []
        known: dict[tuple[Slot, Root], tuple[str | None, Slot]] = {}
        for node_id, node in self._nodes.items():
            # Nodes of one head are judged alike: a hundred nodes are not compared pair by pair.
            head = (node.slot, node.root)
            if head not in known:
                known[head] = self._against(node, wanted)
            against, news = known[head]
            before = node.reason
            if len(self._nodes) < FEWEST:
                # A verdict of three does not outlive the third: of two nobody is blamed.
                node.against = node.with_them = 0
                node.reason = ""
            elif against is not None and news > node.news:
                node.news = news
                self._count(node, against)
            if node.reason != before and not (node.reason and before):
                found.append(Judged(node_id, node.reason))
        self.wanted = tuple((node_id, root) for root, node_id in list(wanted.items())[:_MOST_WANTED])
        return found

    def _count(self, node: _Node, against: str) -> None:
        if against:
            node.against, node.with_them = node.against + 1, 0
            if node.against >= RUNNING:
                node.reason = against
        else:
            node.against, node.with_them = 0, node.with_them + 1
            if node.with_them >= RUNNING:
                node.reason = ""

    def _against(self, judged: _Node, wanted: dict[Root, NodeId]) -> tuple[str | None, Slot]:
        """Say what stands against a node at its head's slot, and what slot is the newest that says so.

        `None` where too few have a voice, empty where nothing is against it.
        """
        voices: Counter[Root] = Counter()
        newest = judged.slot
        for node_id, node in self._nodes.items():
            if node.slot < judged.slot:
                continue
            root = self._voice(node_id, node, judged, wanted)
            if root is not None:
                voices[root] += 1
                newest = max(newest, node.slot)
        total = voices.total()
        if total < FEWEST:
            return None, newest
        root, most = voices.most_common(1)[0]
        if root == judged.root or 2 * most <= total:
            return "", newest
        return f"{most} of {total} nodes have {root_hex(root)[:10]} at slot {judged.slot}", newest

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

    def _splits(self) -> tuple[Split, ...]:
        slots: dict[Slot, dict[Root, list[NodeId]]] = {}
        for node_id, node in self._nodes.items():
            slots.setdefault(node.slot, {}).setdefault(node.root, []).append(node_id)
        return tuple(
            Split(slot, {root: tuple(nodes) for root, nodes in roots.items()})
            for slot, roots in sorted(slots.items(), reverse=True)
            if len(roots) > 1
        )
