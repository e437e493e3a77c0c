"""When a head stream is fresh, when it is to be verified or replaced, and what a verification means (H5, H6)."""

from dataclasses import dataclass
from enum import Enum, auto

from vc_fallback.base.signals import StreamState
from vc_fallback.base.types import Slot
from vc_fallback.chain import SlotClock
from vc_fallback.decide.ledger import StreamFacts
from vc_fallback.times import StreamTimes

AHEAD = 1
"""A head more than so many slots ahead of the clock is refused (H13)."""


def is_current(slot: Slot, now: float, slots: SlotClock) -> bool:
    """Whether a head's slot is the current or the previous one by the wall clock (H6).

    One that is early counts too, one that is refused does not: slots of the far future keep no stream fresh (H13).
    """
    wall = slots.slot_at(now)
    return wall - 1 <= slot <= wall + AHEAD


def subscription_healthy(stream: StreamFacts, now: float, slots: SlotClock | None, times: StreamTimes) -> bool | None:
    """Say whether consumers should rely on this stream: fresh, not fresh, or unknown (H6).

    Unknown before the chain is known, before genesis, within the start-up grace, and with the watchdog off.
    """
    if times.head_silence is None or slots is None or slots.before_genesis(now):
        return None
    if stream.stalled:
        return False
    if stream.last_current_at is None:
        begun = max(stream.started, slots.start_of(Slot(0)))
        return None if now < begun + times.start_grace else False
    if stream.standing_connection:
        return True
    return not away_too_long(stream, now, times)


def away_too_long(stream: StreamFacts, now: float, times: StreamTimes) -> bool:
    """Whether a stream without a connection has been so for longer than a silent one may be: it is stalled then."""
    if times.head_silence is None or stream.last_current_at is None:
        return False
    return now >= stream.last_current_at + times.head_silence


def verdict_ends(stream: StreamFacts, slots: SlotClock, times: StreamTimes) -> float:
    """Return the moment in loop time at which the verdict becomes `false` with time alone; infinity where none."""
    if times.head_silence is None or stream.stalled:
        return float("inf")
    if stream.last_current_at is None:
        return max(stream.started, slots.start_of(Slot(0))) + times.start_grace
    return float("inf") if stream.standing_connection else stream.last_current_at + times.head_silence


class Action(Enum):
    """What the watchdog asks for."""

    VERIFY = auto()
    """Poll the node's own head beside the others' (:func:`judge`)."""
    REPLACE = auto()
    """The hard clock: open a new connection, then close the old one; one node at a time."""
    RECONNECT = auto()
    """Transport silence: the connection is dead."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What is due now, and the moment in loop time at which to look again at the latest."""

    due: Action | None
    again: float


def watchdog(
    stream: StreamFacts, newest_elsewhere: Slot | None, now: float, slots: SlotClock, times: StreamTimes
) -> Watch:
    """Look at one stream's clocks (H5). None runs before genesis, or without a request under way.

    :param newest_elsewhere: the newest slot that any other node shows, or `None`.
    """
    genesis = slots.start_of(Slot(0))
    again = slots.start_of(Slot(max(0, slots.slot_at(now) + 1)))
    verdict = verdict_ends(stream, slots, times)
    if verdict > now:
        again = min(again, verdict)
    if now < genesis or not stream.standing_connection or stream.since is None:
        return Watch(None, again)
    begun = max(stream.since, genesis)

    if times.transport_silence is not None and stream.comments and stream.last_byte is not None:
        dead = stream.last_byte + times.transport_silence
        if now >= dead:
            return Watch(Action.RECONNECT, again)
        again = min(again, dead)

    if times.hard_clock is not None:
        hard = max(begun, stream.last_head_at or begun) + times.hard_clock
        if now >= hard:
            return Watch(Action.REPLACE, again)
        again = min(again, hard)

    if times.head_silence is not None:
        due = max(begun, stream.last_current_at or begun) + times.head_silence
        due = min(due, _missed_what_another_has(stream, newest_elsewhere, begun, now, slots))
        if stream.verified is not None:
            due = max(due, stream.verified + slots.duration)
        if now >= due:
            return Watch(Action.VERIFY, again)
        again = min(again, due)
    return Watch(None, again)


def _missed_what_another_has(
    stream: StreamFacts, newest_elsewhere: Slot | None, begun: float, now: float, slots: SlotClock
) -> float:
    """Return the end of the slot that another node has announced and this stream has not; infinity where there is none.

    A connection that was opened within a slot may have missed that slot's head rightly.
    """
    if newest_elsewhere is None:
        return float("inf")
    slot = Slot(min(newest_elsewhere, slots.slot_at(now)))
    if begun > slots.start_of(slot) or (stream.last_head is not None and stream.last_head.slot >= slot):
        return float("inf")
    return slots.start_of(Slot(slot + 1))


class Verdict(Enum):
    """What a verification found."""

    STALLED = auto()
    """The stream is not to be relied on: reconnect."""
    BEHIND = auto()
    """The node itself is behind: health's matter, no reconnect."""
    MISSED = auto()
    """Nobody has a newer head: missed slots, nothing."""


def announced(stream: StreamFacts, slots: SlotClock) -> Slot:
    """Return the slot up to which the present connection has announced what there was to announce.

    The last head on it, be it of a reorg; before one, the node's head when it was made; where that is unknown, that
    moment's slot, whose head may have been announced just before.
    """
    since = stream.since if stream.since is not None else stream.started
    if stream.last_reorg is not None and stream.last_reorg[1] >= max(since, stream.last_head_at or since):
        return stream.last_reorg[0]
    if stream.last_head is not None and _spoke(stream):
        return stream.last_head.slot
    if stream.baseline is not None:
        return stream.baseline
    return slots.slot_at(since)


def unknown_start(stream: StreamFacts) -> bool:
    """Whether nothing says what the present connection had to announce: no head came, and no poll when it was made.

    A node that was frozen when it was asked takes the subscription up at some later moment, and some say so with their
    first event only (H2): the next poll is the beginning then, not a head that was left out.
    """
    return stream.baseline is None and not _spoke(stream)


def _spoke(stream: StreamFacts) -> bool:
    """Whether a head came on the present connection."""
    since = stream.since if stream.since is not None else stream.started
    return stream.last_head_at is not None and stream.last_head_at >= since


def judge(own: Slot | None, streamed: Slot, elsewhere: Slot | None) -> Verdict:
    """Say what a verification means (H5).

    :param own: the slot of the node's own head by its poll, `None` when the poll failed.
    :param streamed: what its stream has announced (:func:`announced`).
    :param elsewhere: the newest slot that any other node shows, `None` where there is none.
    """
    others = -1 if elsewhere is None else elsewhere
    if own is None:
        return Verdict.STALLED if others > streamed else Verdict.MISSED
    if own > streamed:
        return Verdict.STALLED
    return Verdict.BEHIND if others > own else Verdict.MISSED


def state_of(healthy: bool | None) -> StreamState:
    """Say how an open connection is shown: open or fresh. Stalled is said once, when the watchdog finds it."""
    return StreamState.FRESH if healthy else StreamState.OPEN
