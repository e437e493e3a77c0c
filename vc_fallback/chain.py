"""Which chain it is, and when its slots are (I1, I2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from vc_fallback.base.redact import printable
from vc_fallback.base.types import FAR_FUTURE_EPOCH, Epoch, Root, Slot, parse_root, root_hex

BASIS_POINTS = 10_000

DUE_BPS: Mapping[str, int] = MappingProxyType(
    {
        "ATTESTATION_DUE_BPS": 3333,
        "AGGREGATE_DUE_BPS": 6667,
        "SYNC_MESSAGE_DUE_BPS": 3333,
        "CONTRIBUTION_DUE_BPS": 6667,
        "ATTESTATION_DUE_BPS_GLOAS": 2500,
        "AGGREGATE_DUE_BPS_GLOAS": 5000,
        "SYNC_MESSAGE_DUE_BPS_GLOAS": 2500,
        "CONTRIBUTION_DUE_BPS_GLOAS": 5000,
        "PAYLOAD_ATTESTATION_DUE_BPS": 7500,
    }
)
"""When duties are due, in basis points of a slot, where a chain does not say (consensus specification, mainnet)."""

KNOWN_FORKS = ("phase0", "altair", "bellatrix", "capella", "deneb", "electra", "fulu", "gloas")
"""Names of forks in their order; one that is not known here is a later one."""

_BEFORE_GLOAS = frozenset(KNOWN_FORKS[: KNOWN_FORKS.index("gloas")])


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork: its name in lower case, its version (4 bytes) and the epoch from which it holds."""

    name: str
    version: bytes
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class ChainIdentity:
    """What makes a chain this one.

    :param genesis_time: Unix time in seconds.
    :param genesis_validators_root: root of the validator registry at genesis.
    :param slot_duration: seconds; from `SLOT_DURATION_MS`, else `SECONDS_PER_SLOT`.
    :param slots_per_epoch: 32 in the mainnet preset, 8 in the minimal one, 16 on Gnosis.
    :param preset: `PRESET_BASE`, or empty where unknown.
    :param forks: scheduled forks by rising epoch; unscheduled ones (far-future epoch) are left out.
    :param due_bps: the `…_DUE_BPS…` values of the configuration, in basis points of a slot.
    """

    genesis_time: float
    genesis_validators_root: Root
    slot_duration: float
    slots_per_epoch: int = 32
    preset: str = ""
    forks: tuple[Fork, ...] = ()
    due_bps: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), hash=False, compare=False)

    def fork_at(self, epoch: Epoch) -> Fork | None:
        """Return the fork that holds in an epoch, or `None` where the schedule is unknown."""
        current = None
        for fork in self.forks:
            if fork.epoch <= epoch:
                current = fork
        return current

    def payload_apart(self, slot: Slot) -> bool | None:
        """Whether the blocks of a slot have their payload apart, as from Gloas on; `None` where forks are unknown."""
        fork = self.fork_at(self.epoch_of(Slot(max(0, slot))))
        return None if fork is None else fork.name not in _BEFORE_GLOAS

    def epoch_of(self, slot: Slot) -> Epoch:
        """Return the epoch of a slot."""
        return Epoch(slot // self.slots_per_epoch)

    def first_slot(self, epoch: Epoch) -> Slot:
        """Return the first slot of an epoch, saturating at 2^64−1 (the far-future epoch has no slots, case 65)."""
        return Slot(min(epoch * self.slots_per_epoch, FAR_FUTURE_EPOCH))

    def mismatch(self, other: "ChainIdentity", epoch: Epoch) -> str:
        """Say in which respect another identity does not fit this one, or return an empty text (N7).

        Only identity counts: genesis, preset, and the forks whose epoch has come by `epoch` (the current one). Unknown
        values (empty preset, no forks) fit everything, and forks still to come may differ.
        """
        if self.genesis_validators_root != other.genesis_validators_root:
            return f"genesis_validators_root differs: {_short(other.genesis_validators_root)}, not " + _short(
                self.genesis_validators_root
            )
        if self.genesis_time != other.genesis_time:
            return f"genesis_time differs: {other.genesis_time:.15g}, not {self.genesis_time:.15g}"
        if self.slot_duration != other.slot_duration:
            return f"slot duration differs: {other.slot_duration:g} s, not {self.slot_duration:g} s"
        if self.preset and other.preset and self.preset != other.preset:
            return f"preset differs: {printable(other.preset, 20)}, not {self.preset}"
        if self.slots_per_epoch != other.slots_per_epoch:
            return f"slots per epoch differ: {other.slots_per_epoch}, not {self.slots_per_epoch}"
        if self.forks and other.forks:
            ours = {fork.version: fork.epoch for fork in self.forks if fork.epoch <= epoch}
            theirs = {fork.version: fork.epoch for fork in other.forks if fork.epoch <= epoch}
            # Forks that held from the start may be listed with one version for several names.
            if _held(ours, epoch) != _held(theirs, epoch):
                return "current fork differs"
            if {e for e in ours.values() if e} != {e for e in theirs.values() if e}:
                return "fork schedule differs"
        return ""


def _short(root: Root) -> str:
    return root_hex(root)[:10] + "…"


def _held(forks: dict[bytes, Epoch], epoch: Epoch) -> bytes:
    return max(((e, version) for version, e in forks.items() if e <= epoch), default=(Epoch(0), b""))[1]


@dataclass(frozen=True, slots=True)
class SlotClock:
    """Converts between loop time and slots: an identity and the clock's offset at its last anchor.

    It is a value: a re-anchored clock gives a new one, so a decision works with one view of time.

    :param offset: Unix time minus loop time, in seconds.
    """

    chain: ChainIdentity
    offset: float

    @property
    def duration(self) -> float:
        """Seconds per slot."""
        return self.chain.slot_duration

    def slot_at(self, now: float) -> Slot:
        """Return the slot at a moment in loop time; negative before genesis.

        It is the last slot that has started by :meth:`start_of`, to the last bit: whoever wakes at the start of a slot
        is in that slot, also where the duration is no binary fraction (1/3 s, 0.05 s).
        """
        genesis, duration, offset = self.chain.genesis_time, self.chain.slot_duration, self.offset
        slot = int((now + offset - genesis) // duration)
        # Both directions round, so the quotient may be off by one at the very start of a slot. These are the very terms
        # of `start_of`: every head asks for its slot, and calls would double the time.
        if genesis + (slot + 1) * duration - offset <= now:
            slot += 1
        elif genesis + slot * duration - offset > now:
            slot -= 1
        return Slot(slot)

    def start_of(self, slot: Slot) -> float:
        """Return the moment in loop time at which a slot starts."""
        return self.chain.genesis_time + slot * self.chain.slot_duration - self.offset

    def into_slot(self, now: float, slot: Slot) -> float:
        """Return the seconds from the start of a slot to a moment in loop time; negative before it."""
        return now - self.start_of(slot)

    def epoch_at(self, now: float) -> Epoch:
        """Return the epoch at a moment in loop time, 0 before genesis."""
        return self.chain.epoch_of(Slot(max(0, self.slot_at(now))))

    def attestation_due(self, slot: Slot) -> float:
        """Return the moment in loop time at which attestations of a slot are due, block or not."""
        return self._due(slot, "ATTESTATION_DUE_BPS")

    def aggregate_due(self, slot: Slot) -> float:
        """Return the moment in loop time at which aggregates of a slot are due."""
        return self._due(slot, "AGGREGATE_DUE_BPS")

    def sync_message_due(self, slot: Slot) -> float:
        """Return the moment in loop time at which messages of the sync committee are due, block or not."""
        return self._due(slot, "SYNC_MESSAGE_DUE_BPS")

    def contribution_due(self, slot: Slot) -> float:
        """Return the moment in loop time at which contributions of a slot are due."""
        return self._due(slot, "CONTRIBUTION_DUE_BPS")

    def payload_attestation_due(self, slot: Slot) -> float:
        """Return the moment in loop time at which the payload timeliness committee of a slot is to speak (Gloas)."""
        return self._due(slot, "PAYLOAD_ATTESTATION_DUE_BPS")

    def _due(self, slot: Slot, key: str) -> float:
        """The fork of the slot decides, not which keys are there: a node has those of Gloas long before it (I2)."""
        fork = self.chain.fork_at(self.chain.epoch_of(Slot(max(0, slot))))
        if fork is not None and fork.name not in _BEFORE_GLOAS and f"{key}_GLOAS" in DUE_BPS:
            key = f"{key}_GLOAS"
        part: int = self.chain.due_bps.get(key, DUE_BPS[key])
        if part > BASIS_POINTS:
            # No duty of a slot is due after its end, whatever a node says.
            part = DUE_BPS[key]
        return self.start_of(slot) + part / BASIS_POINTS * self.duration

    def before_genesis(self, now: float) -> bool:
        """Whether the chain has not begun at a moment in loop time."""
        return self.slot_at(now) < 0


def _network(genesis_time: int, root: str, *, slot: float = 12.0, per_epoch: int = 32) -> ChainIdentity:
    return ChainIdentity(
        genesis_time=float(genesis_time),
        genesis_validators_root=parse_root(root),
        slot_duration=slot,
        slots_per_epoch=per_epoch,
        preset="gnosis" if per_epoch == 16 else "mainnet",
    )


NETWORKS: Mapping[str, ChainIdentity] = MappingProxyType(
    {
        "mainnet": _network(1606824023, "0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95"),
        "sepolia": _network(1655733600, "0xd8ea171f3c94aea21ebc42a1ed61052acf3f9209c00e4efbaaddac09ed9b8078"),
        "holesky": _network(1695902400, "0x9143aa7c615a7f7115e2b6aac319c03529df8242ae705fba9df39b79c59fa8b1"),
        "hoodi": _network(1742213400, "0x212f13fc4df078b6cb7db228f1c8307566dcecf900867401a92023d7ba99cb5f"),
        "gnosis": _network(
            1638993340, "0xf5dcb5564e829aab27264b9becd5dfaa017085611224cb3036f573368dbb9d47", slot=5.0, per_epoch=16
        ),
    }
)
"""Networks known by name (their genesis files). Fork schedules are taken from the nodes."""
