"""Which chain it is, and when its slots are (I1, I2, N7; cases 33, 34, 65)."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vc_fallback.base.types import FAR_FUTURE_EPOCH, Epoch, Root, Slot, root_hex
from vc_fallback.chain import NETWORKS, ChainIdentity, Fork, SlotClock

PHASE0 = Fork("phase0", b"\0\0\0\0", Epoch(0))
ALTAIR = Fork("altair", b"\1\0\0\0", Epoch(10))
CAPELLA = Fork("capella", b"\3\0\0\0", Epoch(20))
GLOAS = Fork("gloas", b"\7\0\0\0", Epoch(100))

CHAIN = ChainIdentity(
    genesis_time=1_606_824_023.0,
    genesis_validators_root=Root(b"g" * 32),
    slot_duration=12.0,
    preset="mainnet",
    forks=(PHASE0, ALTAIR, CAPELLA),
)

DURATIONS = (0.05, 1 / 3, 0.1, 1.0, 2.0, 5.0, 12.0)
OFFSETS = (0.0, 1_764_480_000.123456 - 987_654.321, 1_606_824_023.0, -3.7)


def clock(duration: float, offset: float) -> SlotClock:
    return SlotClock(replace(CHAIN, slot_duration=duration), offset)


@settings(max_examples=250)
@given(st.sampled_from(DURATIONS), st.sampled_from(OFFSETS), st.integers(-10, 2000) | st.integers(0, 2**32))
def test_whoever_wakes_at_the_start_of_a_slot_is_in_it(duration: float, offset: float, slot: int) -> None:
    """I2: to the last bit, also where a slot is no binary fraction of a second; a bit earlier is the slot before."""
    slots = clock(duration, offset)
    start = slots.start_of(Slot(slot))
    assert slots.slot_at(start) == slot
    assert slots.slot_at(math.nextafter(start, -math.inf)) == slot - 1
    assert slots.slot_at(start + duration / 2) == slot
    assert slots.into_slot(start, Slot(slot)) == 0


@given(st.floats(-1e10, 1e10), st.floats(-1e10, 1e10), st.sampled_from(DURATIONS))
def test_time_never_goes_back_in_slots(now: float, later: float, duration: float) -> None:
    """I2: a later moment is in the same slot or a later one."""
    slots = clock(duration, 1_764_480_000.123)
    first, second = sorted((now, later))
    assert slots.slot_at(first) <= slots.slot_at(second)
    assert slots.start_of(slots.slot_at(now)) <= now < slots.start_of(Slot(slots.slot_at(now) + 1))


@pytest.mark.parametrize(
    ("unix", "slot", "epoch", "before"),
    [
        (-0.001, -1, 0, True),
        (-12.001, -2, 0, True),
        (-86400.0, -7200, 0, True),
        (0.0, 0, 0, False),
        (11.999, 0, 0, False),
        (12.0, 1, 0, False),
        (32 * 12.0, 32, 1, False),
        (32 * 12.0 - 0.001, 31, 0, False),
        (12.0 * 2**32, 2**32, 2**27, False),
    ],
)
def test_slots_and_epochs_by_the_clock(unix: float, slot: int, epoch: int, before: bool) -> None:
    """I2: `unix` is seconds after genesis; before it slots are negative and the epoch is 0."""
    slots = clock(12.0, CHAIN.genesis_time)
    assert slots.slot_at(unix) == slot
    assert slots.epoch_at(unix) == epoch
    assert slots.before_genesis(unix) is before
    assert slots.duration == 12.0


def test_a_moment_may_be_measured_against_any_slot() -> None:
    """I2: seconds into a slot, negative before it."""
    slots = clock(12.0, CHAIN.genesis_time)
    assert slots.into_slot(1203.0, Slot(100)) == 3.0
    assert slots.into_slot(1199.0, Slot(100)) == -1.0
    assert slots.into_slot(1215.0, Slot(100)) == 15.0


@pytest.mark.parametrize(
    ("epoch", "slot"),
    [
        (0, 0),
        (1, 32),
        (2**59 - 1, 2**64 - 32),
        (2**59, 2**64 - 1),
        (2**63, 2**64 - 1),
        (FAR_FUTURE_EPOCH, 2**64 - 1),
        (2**80, 2**64 - 1),
    ],
)
def test_the_first_slot_of_an_epoch_saturates(epoch: int, slot: int) -> None:
    """Case 65: the far-future epoch is in every answer about validators, and has no slots."""
    assert CHAIN.first_slot(Epoch(epoch)) == slot


@given(st.integers(0, 2**64 - 1), st.sampled_from([8, 16, 32]))
def test_epochs_are_exact_to_the_last_slot(slot: int, per_epoch: int) -> None:
    """Case 65: exact above 2^53."""
    chain = replace(CHAIN, slots_per_epoch=per_epoch)
    epoch = chain.epoch_of(Slot(slot))
    assert chain.first_slot(epoch) <= slot < chain.first_slot(epoch) + per_epoch


@pytest.mark.parametrize(("epoch", "fork"), [(0, PHASE0), (9, PHASE0), (10, ALTAIR), (19, ALTAIR), (20, CAPELLA)])
def test_the_fork_of_an_epoch(epoch: int, fork: Fork) -> None:
    """I2: due times come from the slot's own fork."""
    assert CHAIN.fork_at(Epoch(epoch)) is fork
    assert CHAIN.fork_at(Epoch(FAR_FUTURE_EPOCH)) is CAPELLA


def test_without_a_schedule_the_fork_is_unknown() -> None:
    """Case 33: missing keys."""
    assert replace(CHAIN, forks=()).fork_at(Epoch(5)) is None
    assert replace(CHAIN, forks=(ALTAIR,)).fork_at(Epoch(5)) is None


def test_where_forks_come_together_the_last_one_holds() -> None:
    """Devnets begin with several forks at epoch 0."""
    altair, capella = replace(ALTAIR, epoch=Epoch(0)), replace(CAPELLA, epoch=Epoch(0))
    assert replace(CHAIN, forks=(PHASE0, altair, capella)).fork_at(Epoch(0)) is capella


@pytest.mark.parametrize(
    ("other", "mismatch"),
    [
        pytest.param(CHAIN, "", id="itself"),
        pytest.param(replace(CHAIN, genesis_time=0.0), "genesis_time differs", id="another genesis time"),
        pytest.param(
            replace(CHAIN, genesis_validators_root=Root(b"x" * 32)), "genesis_validators_root differs", id="root"
        ),
        pytest.param(replace(CHAIN, slot_duration=5.0), "slot duration differs", id="another slot"),
        pytest.param(replace(CHAIN, slots_per_epoch=8), "slots per epoch differ", id="another epoch"),
        pytest.param(replace(CHAIN, preset="minimal"), "preset differs", id="another preset"),
        pytest.param(replace(CHAIN, preset=""), "", id="33: an unknown preset"),
        pytest.param(replace(CHAIN, forks=()), "", id="33: an unknown schedule"),
        pytest.param(replace(CHAIN, due_bps={"PAYLOAD_DUE_BPS": 7500}), "", id="33: other due times"),
        pytest.param(replace(CHAIN, forks=(*CHAIN.forks, GLOAS)), "", id="33: it knows of a coming fork"),
        pytest.param(
            replace(CHAIN, forks=(*CHAIN.forks, replace(GLOAS, epoch=FAR_FUTURE_EPOCH))),
            "",
            id="65: an unscheduled fork",
        ),
        pytest.param(replace(CHAIN, forks=(PHASE0, ALTAIR)), "current fork differs", id="it missed the last fork"),
        pytest.param(
            replace(CHAIN, forks=(PHASE0, ALTAIR, replace(CAPELLA, version=b"\x43\0\0\0"))),
            "current fork differs",
            id="the current fork has another version",
        ),
        pytest.param(
            replace(CHAIN, forks=(PHASE0, replace(ALTAIR, epoch=Epoch(11)), CAPELLA)),
            "fork schedule differs",
            id="an earlier fork came at another epoch",
        ),
        pytest.param(
            replace(CHAIN, forks=(PHASE0, ALTAIR, replace(CAPELLA, epoch=Epoch(21)))),
            "fork schedule differs",
            id="the current fork came at another epoch",
        ),
        pytest.param(
            replace(CHAIN, forks=(CAPELLA, PHASE0, ALTAIR)), "", id="34: the order of the schedule says nothing"
        ),
    ],
)
def test_in_which_respect_a_node_is_on_another_chain(other: ChainIdentity, mismatch: str) -> None:
    """N7, cases 33, 34, 65: only identity counts, as of epoch 50."""
    words = CHAIN.mismatch(other, Epoch(50))
    assert words.partition(":")[0] == mismatch
    assert bool(other.mismatch(CHAIN, Epoch(50))) is bool(mismatch)


@pytest.mark.parametrize(("epoch", "fits"), [(0, True), (99, True), (100, False), (10**6, False)])
def test_a_node_that_was_not_told_of_a_fork_fits_until_it_comes(epoch: int, fits: bool) -> None:
    """N7: warned about before, demoted at its epoch."""
    told = replace(CHAIN, forks=(*CHAIN.forks, GLOAS))
    assert (told.mismatch(CHAIN, Epoch(epoch)) == "") is fits


def test_a_schedule_that_leaves_out_the_forks_of_genesis_fits_one_that_names_them() -> None:
    """Case 33: on a devnet one node lists every fork of epoch 0, another only the last."""
    whole = replace(CHAIN, forks=(PHASE0, replace(ALTAIR, epoch=Epoch(0)), replace(CAPELLA, epoch=Epoch(0)), GLOAS))
    short = replace(CHAIN, forks=(replace(CAPELLA, epoch=Epoch(0)), GLOAS))
    for epoch in (0, 50, 100):
        assert whole.mismatch(short, Epoch(epoch)) == ""
        assert short.mismatch(whole, Epoch(epoch)) == ""


def test_an_identity_can_be_hashed_and_due_times_are_no_part_of_it() -> None:
    """I1: identities are counted and compared."""
    assert hash(CHAIN) == hash(replace(CHAIN, due_bps={"a": 1}))
    assert replace(CHAIN, due_bps={"a": 1}) == CHAIN


@pytest.mark.parametrize(
    ("name", "genesis_time", "root", "slot", "per_epoch"),
    [
        ("mainnet", 1606824023, "0x4b363db9", 12, 32),
        ("sepolia", 1655733600, "0xd8ea171f", 12, 32),
        ("holesky", 1695902400, "0x9143aa7c", 12, 32),
        ("hoodi", 1742213400, "0x212f13fc", 12, 32),
        ("gnosis", 1638993340, "0xf5dcb556", 5, 16),
    ],
)
def test_the_built_in_networks(name: str, genesis_time: int, root: str, slot: int, per_epoch: int) -> None:
    """I1: genesis as published by each network."""
    chain = NETWORKS[name]
    assert (chain.genesis_time, chain.slot_duration, chain.slots_per_epoch) == (genesis_time, slot, per_epoch)
    assert root_hex(chain.genesis_validators_root).startswith(root)
    others = [other for other in NETWORKS.values() if other is not chain]
    assert all(chain.mismatch(other, Epoch(0)) for other in others)


def test_a_mismatch_shows_both_values() -> None:
    """Who reads it has to find out which of the two is wrong."""
    other = replace(CHAIN, genesis_time=CHAIN.genesis_time + 1)
    both = f"{other.genesis_time:.0f}, not {CHAIN.genesis_time:.0f}"
    assert CHAIN.mismatch(other, Epoch(0)) == f"genesis_time differs: {both}"
