"""When duties are due: by the configuration of the chain, and by the slot's own fork (I2, case 33)."""

from dataclasses import replace

import pytest

from vc_fallback.base.types import Epoch, Root, Slot
from vc_fallback.chain import DUE_BPS, NETWORKS, ChainIdentity, Fork, SlotClock
from vc_fallback.node.spec import chain_identity
from vc_fallback.node.values.about import Genesis

DUTIES = ("attestation", "aggregate", "sync_message", "contribution", "payload_attestation")
GLOAS_EPOCH = 10
PER_EPOCH = 32

FULU = Fork("fulu", b"\6\0\0\0", Epoch(0))
GLOAS = Fork("gloas", b"\7\0\0\0", Epoch(GLOAS_EPOCH))
LATER = Fork("heze", b"\x08\0\0\0", Epoch(GLOAS_EPOCH + 1))

CHAIN = ChainIdentity(1_000.0, Root(b"g" * 32), 12.0, forks=(FULU, GLOAS))


def due(chain: ChainIdentity, duty: str, slot: int, *, offset: float = 0.0) -> float:
    """Return how many seconds into its slot a duty is due."""
    slots = SlotClock(chain, offset)
    moment: float = getattr(slots, f"{duty}_due")(Slot(slot))
    return moment - slots.start_of(Slot(slot))


@pytest.mark.parametrize(
    ("duty", "before", "after"),
    [
        ("attestation", 0.3333, 0.25),
        ("aggregate", 0.6667, 0.5),
        ("sync_message", 0.3333, 0.25),
        ("contribution", 0.6667, 0.5),
        ("payload_attestation", 0.75, 0.75),
    ],
)
@pytest.mark.parametrize("duration", [12.0, 5.0, 1.0, 0.05])
def test_duties_are_due_by_the_slots_own_fork(duty: str, before: float, after: float, duration: float) -> None:
    """I2: the last slot before the fork has the times of before, and the first one of the fork its own."""
    chain = replace(CHAIN, slot_duration=duration)
    first = GLOAS_EPOCH * PER_EPOCH
    assert due(chain, duty, first - 1) == pytest.approx(before * duration, abs=1e-9)
    assert due(chain, duty, first) == pytest.approx(after * duration, abs=1e-9)
    assert due(chain, duty, 0) == pytest.approx(before * duration, abs=1e-9)


def test_due_times_are_moments_in_loop_time() -> None:
    """I2: Unix time minus the clock's offset."""
    slots = SlotClock(CHAIN, offset=600.0)
    assert slots.attestation_due(Slot(2)) == pytest.approx(1_000 + 24 - 600 + 3.9996)


def test_what_the_chain_says_goes_before_the_defaults() -> None:
    """I2: never a constant third."""
    given = {"ATTESTATION_DUE_BPS": 2000, "ATTESTATION_DUE_BPS_GLOAS": 1000, "PAYLOAD_ATTESTATION_DUE_BPS": 6000}
    chain = replace(CHAIN, due_bps=given)
    first = GLOAS_EPOCH * PER_EPOCH
    assert [due(chain, "attestation", slot) for slot in (first - 1, first)] == pytest.approx([2.4, 1.2])
    assert due(chain, "payload_attestation", first) == pytest.approx(7.2)
    # What it does not say is as the specification has it.
    assert [due(chain, "aggregate", slot) for slot in (first - 1, first)] == pytest.approx([8.0004, 6.0])


def test_no_duty_is_due_after_the_end_of_its_slot() -> None:
    """I2: a chain that says so is not believed."""
    chain = replace(CHAIN, due_bps={"ATTESTATION_DUE_BPS": 10_001, "AGGREGATE_DUE_BPS": 10_000})
    assert [due(chain, duty, 5) for duty in ("attestation", "aggregate")] == pytest.approx([3.9996, 12.0])


def test_keys_of_a_fork_that_has_not_come_change_nothing() -> None:
    """I2, case 33: nodes have those of Gloas long before it, scheduled or not."""
    for forks in ((FULU,), (FULU, GLOAS), ()):
        chain = replace(CHAIN, forks=forks, due_bps={**DUE_BPS, "ATTESTATION_DUE_BPS_GLOAS": 1})
        assert due(chain, "attestation", 5) == pytest.approx(3.9996)


def test_a_fork_that_is_not_known_here_is_a_later_one() -> None:
    """I2: its times are those of Gloas, as far as is known."""
    chain = replace(CHAIN, forks=(FULU, GLOAS, LATER))
    assert due(chain, "attestation", (GLOAS_EPOCH + 1) * PER_EPOCH) == 3.0


@pytest.mark.parametrize("duty", DUTIES)
def test_without_a_schedule_the_times_are_those_of_today(duty: str) -> None:
    """I2: a configured network, before any node has told of its forks; and before genesis."""
    chain = NETWORKS["mainnet"]
    assert chain.forks == ()
    part = DUE_BPS[f"{duty.upper()}_DUE_BPS"] / 10_000
    assert due(chain, duty, 1000) == pytest.approx(12 * part, abs=1e-6)
    assert due(CHAIN, duty, -1) == pytest.approx(12 * part, abs=1e-6)


def test_due_times_come_out_of_a_nodes_specification() -> None:
    """I2, case 34: as decimal strings; what cannot be read is left out and stands at its default."""
    spec = {
        "PRESET_BASE": "mainnet",
        "SLOT_DURATION_MS": "12000",
        "GENESIS_FORK_VERSION": "0x00000000",
        "ATTESTATION_DUE_BPS": "2500",
        "AGGREGATE_DUE_BPS": [],
        "SYNC_MESSAGE_DUE_BPS": "-1",
        "PAYLOAD_DUE_BPS": "5000",
    }
    chain = chain_identity(Genesis(1_000, Root(b"g" * 32), b"\0\0\0\0"), spec)
    assert [due(chain, duty, 0) for duty in ("attestation", "aggregate", "sync_message")] == pytest.approx(
        [3.0, 8.0004, 3.9996]
    )
