"""The simulated chain by itself: the same for the same seed, and right by the definitions."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from vc_fallback.base.clock import Clock
from vc_fallback.base.types import ZERO_ROOT, PayloadStatus, Root
from vc_fallback.testing import Answer, SimulatedChain, events, pool, run_in_virtual_time

T = TypeVar("T")


def with_chain(use: Callable[[SimulatedChain], T], **options: object) -> T:
    """Make a chain inside an event loop, and use it."""

    async def run() -> T:
        return use(SimulatedChain(**options))  # type: ignore[arg-type]

    return run_in_virtual_time(run)


def test_the_same_seed_makes_the_same_chain_in_any_order_of_asking() -> None:
    def forwards(chain: SimulatedChain) -> list[Root]:
        return [chain.head_at(slot).root for slot in range(100, 140)]

    def backwards(chain: SimulatedChain) -> list[Root]:
        return [chain.head_at(slot).root for slot in reversed(range(100, 140))][::-1]

    assert with_chain(forwards, start_slot=100) == with_chain(backwards, start_slot=100)
    assert with_chain(forwards, start_slot=100) != with_chain(forwards, start_slot=100, seed=1)


def test_chains_of_different_seeds_are_different_networks() -> None:
    roots = {with_chain(lambda chain: chain.identity.genesis_validators_root, seed=seed) for seed in range(3)}
    assert len(roots) == 3


def test_dependent_roots_are_those_of_the_definition() -> None:
    """Case 52: `get_block_root_at_slot` of the last slot before the previous, and before the own epoch."""

    def use(chain: SimulatedChain) -> None:
        chain.miss(39)
        for slot in range(40, 48):
            roots = chain.duty_roots(chain.head_at(slot))
            assert roots.current_epoch == chain.head_at(31).root
            assert roots.next_epoch == chain.head_at(38).root
        head = chain.head_at(47)
        first, second = events.head(chain, head), events.head_v2(chain, head, PayloadStatus.FULL)["data"]
        assert isinstance(second, dict)
        assert first["previous_duty_dependent_root"] == second["current_epoch_dependent_root"]
        assert first["current_duty_dependent_root"] == second["next_epoch_dependent_root"]

    with_chain(use, slots_per_epoch=8)


def test_dependent_roots_underflow_to_genesis() -> None:
    def use(chain: SimulatedChain) -> None:
        assert chain.first_block.slot == 0
        assert chain.first_block.parent_root == ZERO_ROOT
        for slot in (0, 5):
            roots = chain.duty_roots(chain.head_at(slot))
            assert roots.current_epoch == roots.next_epoch == chain.first_block.root
        roots = chain.duty_roots(chain.head_at(9))
        assert (roots.current_epoch, roots.next_epoch) == (chain.first_block.root, chain.head_at(7).root)

    with_chain(use, slots_per_epoch=8, start_slot=0)


def test_a_branch_shares_what_is_below_it_and_differs_above() -> None:
    def use(chain: SimulatedChain) -> None:
        chain.branch("other", above=34)
        chain.miss(36, branch="other")
        assert chain.head_at(34, "other") is chain.head_at(34)
        assert chain.head_at(35, "other").root != chain.head_at(35).root
        assert chain.head_at(35, "other").parent_root == chain.head_at(34).root
        assert chain.block_at(36, "other") is None
        assert chain.block_at(36) is not None
        assert chain.head_at(36, "other").slot == 35
        assert chain.depth(chain.head_at(37), chain.head_at(37, "other")) == 3
        assert chain.depth(chain.head_at(35), chain.head_at(37)) == 0
        chain.branch("third", above=36, parent="other")
        assert chain.head_at(37, "third").parent_root == chain.head_at(35, "other").root
        # A branch from before the epoch changes the next epoch's roots, not those of epochs before.
        main, other = (chain.duty_roots(chain.head_at(41, name)) for name in ("main", "other"))
        assert main.current_epoch == other.current_epoch
        assert main.next_epoch != other.next_epoch

    with_chain(use, slots_per_epoch=8)


def test_what_was_seen_cannot_be_declared_missed() -> None:
    def use(chain: SimulatedChain) -> None:
        chain.head_at(40)
        with pytest.raises(ValueError, match="seen"):
            chain.miss(40)
        chain.miss(41)
        assert chain.block_at(41) is None
        with pytest.raises(ValueError, match="already"):
            chain.branch("main", above=40)
        with pytest.raises(ValueError, match="reach back"):
            chain.branch("old", above=2)

    with_chain(use, slots_per_epoch=8)


def test_checkpoints_are_the_roots_at_first_slots_of_epochs() -> None:
    def use(chain: SimulatedChain) -> None:
        chain.miss(40)
        head = chain.head_at(57)
        assert events.justified(chain, head) == (6, chain.head_at(48).root)
        assert events.finalized(chain, head) == (5, chain.head_at(39).root)
        assert chain.checkpoint(0) == (0, ZERO_ROOT)

    with_chain(use, slots_per_epoch=8)


def test_gloas_blocks_have_their_payload_apart_from_its_epoch_on() -> None:
    def use(chain: SimulatedChain) -> None:
        start = chain.slots.start_of
        assert [events.fork_name(chain, slot) for slot in (39, 40)] == ["fulu", "gloas"]
        assert chain.payload_arrival(39) is None
        assert chain.payload_arrival(40) == start(chain.head_at(40).slot) + 6.0
        chain.delay(41, 8.0)
        assert chain.payload_arrival(41) == start(chain.head_at(41).slot) + 8.0
        chain.withhold_payload(42)
        assert chain.payload_arrival(42) is None

    with_chain(use, slots_per_epoch=8, gloas_epoch=5)


def test_genesis_is_a_whole_second_on_the_clock_it_is_given() -> None:
    """The API says genesis in whole seconds."""

    async def run() -> tuple[float, int]:
        chain = SimulatedChain(slot_duration=0.5, slots_per_epoch=8, clock=Clock(unix=1_800_000_000.3))
        return chain.identity.genesis_time, chain.slots.slot_at(chain.clock.now())

    genesis, slot = run_in_virtual_time(run)
    assert genesis == 1_799_999_984.0
    assert slot == 32


def test_history_is_bounded() -> None:
    """Rule 6: a chain that runs for days keeps its newest part."""

    def use(chain: SimulatedChain) -> int:
        chain.head_at(8000)
        assert chain.head_at(7999).slot == 7999
        assert chain.duty_roots(chain.head_at(8000)).next_epoch == chain.head_at(7999).root
        assert chain.head_at(100).slot > 3000
        return chain.kept

    assert with_chain(use, slots_per_epoch=8) < 4200


def test_records_are_bounded_by_number_and_by_their_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 6: of big blocks fewer are kept, the newest always."""
    monkeypatch.setattr(pool, "RECORDS", 5)
    monkeypatch.setattr(pool, "RECORDED", 1000)
    records: pool.Records[Any] = pool.Records()
    for size in (100, 200, 300, 1, 2, 3, 4):
        records.append(Answer(body=bytes(size)))
    assert [len(record.body) for record in records] == [300, 1, 2, 3, 4]
    records.append(Answer(body=bytes(998)))
    assert [len(record.body) for record in records] == [998]
    records.append(Answer(body=bytes(5000)))
    assert [len(record.body) for record in records] == [5000]


def test_validators_on_duty_are_those_who_are_active() -> None:
    def use(chain: SimulatedChain) -> None:
        chain.registry.change(3, exit_epoch=7)
        chain.registry.change(4, activation_epoch=8)
        for epoch, missing in ((6, {4}), (7, {3, 4}), (8, {3})):
            committees = chain.shuffling.committees(epoch, chain.dependent_root(epoch))
            on_duty = {one for slot in committees for committee in slot for one in committee}
            assert set(range(20)) - on_duty == missing
            assert all(chain.proposer(epoch * 8 + slot) in on_duty for slot in range(8))

    with_chain(use, slots_per_epoch=8, validators=20)
