"""Any interleaving of three nodes' streams of one chain, with losses (C3, C4, H11, H14).

A chain's head goes through a history: the next block, one after an empty slot, another one at the same slot, one below,
and back to the head before (A → B → A). Each node announces it in order; any event may be lost but the last, which a
poll would bring (H14). Nothing is late here: the clock is at the newest slot that was shown.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.delivery_world import SLOT, SLOTS, World
from vc_fallback.base.signals import HeadOutcome
from vc_fallback.base.types import NodeId, Root, Slot
from vc_fallback.decide.delivery import Delivered, Delivery
from vc_fallback.decide.ledger import NodeHead, Standing

NODES = 3

Block = tuple[Slot, Root]

ON = ["next", "next", "skip"]
REORGS = ["beside", "below", "back"]


def history(steps: list[str]) -> list[Block]:
    """Return the heads of a chain, one for each change."""
    heads = [(Slot(100), Root(b"first".rjust(32)))]
    top = 100
    for number, step in enumerate(steps):
        slot = heads[-1][0] + {"next": 1, "skip": 2, "beside": 0, "below": -1}.get(step, 0)
        # Nothing two slots below the newest: such a head would wait for the end of a burst (H13).
        if step == "back" and len(heads) > 1 and heads[-2][0] >= top - 1:
            heads.append(heads[-2])
        else:
            heads.append((Slot(max(slot, top - 1)), Root(f"{number}".encode().rjust(32))))
        top = max(top, heads[-1][0])
    return heads


steps = st.lists(st.sampled_from(ON + REORGS), min_size=1, max_size=9)


@st.composite
def orders(draw: st.DrawFn, length: int, *, leader: bool = False, losses: bool = True) -> list[tuple[int, int]]:
    """Return who announces which head of a history when; a leader loses nothing and is first at each."""
    kept = []
    for node in range(NODES):
        loses = losses and length > 1 and not (leader and node == 0)
        lost = draw(st.sets(st.integers(0, length - 2))) if loses else set()
        kept.append([place for place in range(length) if place not in lost])
    order = draw(st.permutations([node for node in range(NODES) for _ in kept[node]]))
    at = [0] * NODES
    told = []
    for node in order:
        while leader and node and (at[0] == 0 or kept[0][at[0] - 1] < kept[node][at[node]]):
            told.append((0, kept[0][at[0]]))
            at[0] += 1
        if at[node] < len(kept[node]):
            told.append((node, kept[node][at[node]]))
            at[node] += 1
    return told


@dataclass
class Play:
    """Tells a delivery what nodes announce, and checks what can be said of every delivery."""

    heads: list[Block]
    delivery: Delivery = field(default_factory=lambda: Delivery(lambda _: Standing.ELIGIBLE))
    delivered: list[Block] = field(default_factory=list)
    outvoted: Counter[Block] = field(default_factory=Counter)
    """How often a block was delivered because most nodes stood there, and not where the delivered head was (C4)."""
    now: float = 0.0
    newest: int = 0

    def tell(self, order: list[tuple[int, int]]) -> None:
        last = [-1] * NODES
        for node, place in order:
            slot, root = self.heads[place]
            self.newest = max(self.newest, slot)
            self.now = max(self.now + 0.001, (self.newest + 0.3) * SLOT)
            before = self.delivery.delivered
            head = NodeHead(NodeId(f"n{node}"), slot, root, received=self.now)
            (decision,) = self.delivery.offer(head, self.now, SLOTS)
            (again,) = self.delivery.offer(head, self.now, SLOTS)
            assert again.delivered is None, "said twice"
            assert (decision.delivered is not None) is (decision.outcome is HeadOutcome.DELIVERED)
            if decision.delivered is None:
                continue
            # Out of its node's order nothing comes: it is what that node has just announced, and later than all before.
            assert (decision.delivered.slot, decision.delivered.root) == (slot, root)
            assert decision.delivered.node_id == head.node_id
            assert last[node] < place
            last[node] = place
            self.note(decision.delivered, before)

    def note(self, delivered: Delivered, before: Delivered | None) -> None:
        block = (delivered.slot, delivered.root)
        self.delivered.append(block)
        if before is None:
            return
        assert block != (before.slot, before.root), "no change"
        votes = self.delivery.votes(delivered.slot)
        if delivered.slot == before.slot and delivered.node_id != before.node_id:
            assert len(votes[delivered.root]) > len(votes.get(before.root, ()))
            self.outvoted[before.slot, before.root] += 1
            self.outvoted[block] += 1


@settings(max_examples=60)
@given(st.data())
def test_every_change_of_head_is_delivered_once_and_the_newest_stays(data: st.DataObject) -> None:
    """C3: no block is delivered oftener than the chain came to it, unless votes at one slot made it so (C4)."""
    heads = history(data.draw(steps))
    play = Play(heads)
    play.tell(data.draw(orders(len(heads))))
    # A head that the first node lost, and another shows later, is news all the same: what came after it comes again.
    belated = 0
    for count, block in enumerate(play.delivered):
        before = play.delivered[:count]
        belated += block not in before and any(_last(heads, block) < heads.index(other) for other in before)
    for block, times in Counter(play.delivered).items():
        assert times <= heads.count(block) + play.outvoted[block] + belated
    assert play.delivered[-1] == heads[-1]
    assert play.delivery.delivered is not None
    assert sorted(play.delivery.delivered.seen_by) == ["n0", "n1", "n2"]


@settings(max_examples=60)
@given(st.data())
def test_what_one_node_announces_first_is_delivered_exactly_so(data: st.DataObject) -> None:
    """C3: A → B → A is three, however far the two other nodes lag, whatever they lose, wherever they stand together."""
    heads = history(data.draw(steps))
    play = Play(heads)
    play.tell(data.draw(orders(len(heads), leader=True)))
    assert play.delivered == heads


@settings(max_examples=60)
@given(st.data())
def test_without_losses_it_is_every_change_whoever_is_first(data: st.DataObject) -> None:
    """C3: the lead goes from node to node; but for branches at one slot, where votes count (C4)."""
    heads = history(data.draw(steps))
    assume(all(head[0] != before[0] for before, head in pairwise(heads)))
    play = Play(heads)
    play.tell(data.draw(orders(len(heads), losses=False)))
    assert play.delivered == heads


@settings(max_examples=40)
@given(st.data())
def test_without_a_reorg_it_is_each_new_block_by_whoever_shows_it_first(data: st.DataObject) -> None:
    """C3: what was not shown before a newer one is no news any more."""
    heads = history(data.draw(st.lists(st.sampled_from(ON), min_size=1, max_size=9)))
    play = Play(heads)
    order = data.draw(orders(len(heads)))
    play.tell(order)
    expected: list[Block] = []
    for _, place in order:
        if not expected or heads[place][0] > expected[-1][0]:
            expected.append(heads[place])
    assert play.delivered == expected


def test_a_block_that_was_outvoted_is_delivered_again_once_more_nodes_come_there() -> None:
    """C4: its own nodes have not left it, so who comes there does not lag."""
    world = World()
    for node, name in (("n1", "100a"), ("n2", "100b"), ("n3", "100b"), ("n2", "100a"), ("n1", "100b"), ("n3", "100a")):
        world.show(node, name)
    assert world.delivered == ["100a", "100b", "100a", "100b", "100a"]


def test_most_nodes_at_a_block_that_was_left_are_followed_when_the_slot_is_over() -> None:
    """C3, C6: until then they may be slow to follow; after that it is the one that left who is alone."""
    world = World()
    for node, name in (("n1", "100a"), ("n1", "101a"), ("n1", "100a"), ("n2", "101a"), ("n3", "101a")):
        world.show(node, name, at=101 + 1 / 3)
    assert world.delivered == ["100a", "101a", "100a"]
    assert world.reconsider(101.9) is None
    assert world.reconsider(102.0) == "101a"


def _last(heads: list[Block], block: Block) -> int:
    return len(heads) - 1 - heads[::-1].index(block)


def test_the_histories_are_what_they_are_said_to_be() -> None:
    """The words of the tests above, on one history of each kind."""
    first, second, third, fourth = history(["next", "back", "below"])
    assert (first[0], second[0]) == (100, 101)
    assert third == first
    assert fourth[0] == 100
    assert fourth != first
    assert [slot for slot, _ in history(["skip", "beside", "below", "below"])] == [100, 102, 102, 101, 101]
