"""Sections of the configuration and their defaults; each is checked when it is loaded."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

MAINNET_SLOT = 12.0
"""Defaults given in seconds are for slots of this duration and scale with the slot."""

SHORTEST = 0.2
"""A scaled default is never shorter than this, in seconds."""

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""Strict: `true` and `"3"` are no numbers."""
Count = Annotated[int, Field(strict=True)]
Switch = Annotated[bool, Field(strict=True)]
Positive = Annotated[Number, Field(gt=0)]
Clock = Annotated[Positive | None, BeforeValidator(lambda value: None if value is False else value)]
"""A time that can be switched off: by `null`, or by `false` where the format (TOML) has no `null`."""


class Settings(BaseModel):
    """A section; what it does not know is an error, and no error repeats a value."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=False, hide_input_in_errors=True, use_attribute_docstrings=True
    )

    def scaled(self, field: str, slot_duration: float) -> float:
        """Return a time in seconds: as it was set, or its default scaled to the slot."""
        value: float = getattr(self, field)
        if field in self.model_fields_set:
            return value
        return max(SHORTEST, value * slot_duration / MAINNET_SLOT)


class StreamSettings(Settings):
    """Head streams (H2, H4–H6). Times in seconds scale with the slot unless set."""

    connect_timeout: Positive = 3.0
    """Seconds for name resolution, TCP and TLS of a stream (H2)."""
    backoff_first: Positive = 1.0
    """Seconds to wait after the first failure (H4)."""
    backoff_cap: Positive = 16.0
    """Longest wait in seconds between attempts, not below the first (H4)."""
    backoff_factor: Annotated[Number, Field(ge=1, le=10)] = 2.0
    """By how much each wait is longer than the one before (H4)."""
    backoff_jitter: Annotated[Number, Field(ge=0, lt=1)] = 0.2
    """Random part of each wait (H4)."""
    head_silence: Clock = 2.5
    """Slots without a current head until the stream is verified by a poll; `false` switches the watchdog off (H5)."""
    hard_clock: Clock = 8.5
    """Slots without any head after which the stream is replaced all the same; `false` switches it off (H5)."""
    transport_silence: Clock = 60.0
    """Seconds without a byte on a connection that had sent comments; `false` switches it off (H5)."""
    transport_silence_slots: Positive = 6.5
    """As above in slots; the longer of the two counts (H5)."""
    start_grace: Positive = 3.0
    """Slots after the start within which a stream without a head is unknown rather than unhealthy (H6)."""
    verify_timeout: Positive = 1.5
    """Seconds for a poll: of a verification (H5), and of what a node is asked when its stream connects."""


class HeadSettings(Settings):
    """Delivery of heads (H12, H13, C8)."""

    deliver_optimistic: Switch = False
    """Whether heads whose payload was not verified are delivered as usable (H12)."""
    oldest: Annotated[Count, Field(ge=1, le=2**20)] = 32
    """Heads more than so many slots behind the clock are never delivered (H13)."""
    tier_gate: Switch = True
    """Whether heads that only fallbacks have are held back while a primary serves (C5)."""
    buffer: Annotated[Count, Field(ge=1, le=2**16)] = 64
    """Heads that a subscriber may leave unread (C8)."""


class TopicSettings(Settings):
    """Subscriptions to topics (T1–T7). Times in seconds scale with the slot unless set."""

    buffer: Annotated[Count, Field(ge=1, le=2**20)] = 1024
    """Events that a subscriber may leave unread (C8)."""
    retry_first: Positive = 1.0
    """Seconds until a refused topic is asked for again (T4)."""
    retry_cap: Positive = 30.0
    """Longest time in seconds between attempts for a refused topic, not below the first (T4)."""
    attempt: Positive = 15.0
    """Seconds that an attempt to open a connection for topics may take (T4)."""
    unserved: Annotated[Number, Field(ge=0, le=2**16)] = 2.0
    """Slots for which nobody carries a topic, beside one attempt, until its subscribers get an error (T7)."""


class WireSettings(Settings):
    """Limits of connections (Q15), in bytes unless said otherwise."""

    response_body: Annotated[Count, Field(gt=0, le=2**31)] = 64 * 2**20
    """Largest body of an answer."""
    error_body: Annotated[Count, Field(gt=0, le=2**31)] = 2**20
    """Largest body of an answer whose status is 400 or above."""
    event: Annotated[Count, Field(gt=0, le=2**31)] = 16 * 2**20
    """Largest event and line of an event stream."""
    head: Annotated[Count, Field(gt=0, le=2**24)] = 64 * 2**10
    """All headers of a response together."""
    concurrency: Annotated[Count, Field(gt=0, le=2**16)] = 64
    """Requests under way at once to one node; streams do not count."""
    request_connect_timeout: Positive = 1.0
    """Seconds for name resolution, TCP and TLS of a request (H2); scales with the slot unless set."""


class HealthSettings(Settings):
    """Health of nodes (N2–N9). Times in seconds scale with the slot unless set."""

    check_timeout: Positive = 1.5
    """Seconds for a check (N2)."""
    check_interval: Positive = 2.0
    """Seconds between checks of a node that is suspect, not healthy, or whose stream has ended (N2, N4, H4)."""
    check_cap: Positive = 60.0
    """Longest time in seconds between checks of a node that goes on failing them (N2)."""
    check_jitter: Annotated[Number, Field(ge=0, lt=1)] = 0.2
    """Random part of each time between two checks (N2)."""
    failed_checks: Annotated[Count, Field(ge=1, le=1000)] = 3
    """Failed checks in a row that make a node unhealthy (N4)."""
    min_recovery_checks: Annotated[Count, Field(ge=1, le=1000)] = 3
    """Good checks in a row until it is healthy again (N4)."""
    max_lag: Annotated[Count, Field(ge=1, le=2**20)] = 8
    """A node more slots behind the tip than this is unhealthy (N5)."""
    most_errors: Annotated[Count, Field(ge=1, le=10_000)] = 5
    """Errors of requests within `error_window` that make a node unhealthy (N3)."""
    error_window: Positive = 60.0
    """Seconds in which errors are counted (N3)."""
    slow: Clock = 0.25
    """Slots that nine of ten answers may take before a node is unhealthy; `false` switches it off (N3)."""
    prefer_higher_priority: Switch = True
    """Whether duties go back to a node that ranks higher while the one that has them is usable (N9)."""
    dwell: Annotated[Number, Field(ge=0)] = 4.0
    """Slots for which a node that took over keeps its place before they go back (N9)."""
    min_peers: Annotated[Count, Field(ge=0, le=2**20)] | None = None
    """Peers that a node needs before duties go back to it, where it says how many: 15 on a known network, 0 on a
    devnet, unless set (N9)."""


Topic = Literal["attestations", "blocks", "subscriptions", "sync-committee"]
"""What can be sent to all nodes, or to one after the other (Q5)."""

ALL_TOPICS: frozenset[Topic] = frozenset({"attestations", "blocks", "subscriptions", "sync-committee"})

Part = Annotated[Number, Field(gt=0, le=64)]
"""A part of a slot."""


class RequestSettings(Settings):
    """Requests (Q2–Q14). Parts are of a slot, from the call on; a request also ends with the window of its duty."""

    hedge_floor: Positive = 0.05
    """Seconds until the next node is asked as well, at least, however fast a node's answers have been (Q2)."""
    attestation_next: Part = 1 / 24
    """Part until the next node is asked as well for attestation data, or for what is signed beside it; less where
    nine of ten answers of the node came sooner (Q2)."""
    aggregate_soft: Part = 1 / 12
    """Part in which aggregates and contributions are collected for the best (Q2, Q7)."""
    block_choice: Literal["best", "first"] = "best"
    """Whether the block with the highest value is taken, or the first one (Q7)."""
    block_soft: Part = 1 / 8
    """Part in which blocks are collected for the best (Q2)."""
    block_end: Part = 1 / 2
    """Part until a proposer gets an error, and until sends of a block are given up (Q2)."""
    block_min_improvement: Annotated[Number, Field(ge=0, le=10)] = 0.0
    """By which part of its value another block must exceed that of the first node for that to be left (Q7)."""
    duties_next: Part = 1 / 8
    """Part until the next node is asked as well for duties and all that is not urgent (Q2)."""
    duties_end: Part = 1 / 2
    """Part until the caller of these gets an error (Q2)."""
    preparation_end: Part = 1.0
    """Part until preparations, registrations and subscriptions are given up (Q2)."""
    producer_silence: Part = 1 / 8
    """Part for which the producer of a blinded block may be silent before others are given it (Q9)."""
    quorum_again: Part = 1 / 24
    """Part after which a node that differs is asked again (Q6)."""
    refetch_after: Positive = 0.05
    """Seconds until attestation data that is older than the head is asked for again (Q8)."""
    broadcast: frozenset[Topic] = ALL_TOPICS
    """What is sent to all nodes; what is left out goes to one after the other until one takes it (Q5)."""
    stragglers: Annotated[Count, Field(ge=2, le=2**16)] = 64
    """Sends of answered publishes that may still be under way to one node (Q5). Half as many are written to it at once,
    blocks apart, and no more than half of `wire.concurrency`: the rest is for what is read."""
    cooldown: Positive = 2.0
    """Seconds for which a node that answers 429 without `Retry-After` is left alone (Q11)."""
    refused_cooldown: Positive = 300.0
    """Seconds for which a node that answers 401, 402 or 403 is left alone (Q11)."""
