"""The times of streams and checks, worked out for the slots of a network."""

from dataclasses import dataclass

from vc_fallback.base.backoff import BackoffPolicy
from vc_fallback.settings import HealthSettings, StreamSettings


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """The times of head streams for one slot duration, all in seconds; `None` is switched off."""

    connect_timeout: float
    backoff: BackoffPolicy
    head_silence: float | None
    hard_clock: float | None
    transport_silence: float | None
    start_grace: float
    verify_timeout: float

    @classmethod
    def of(cls, settings: StreamSettings, slot_duration: float) -> "StreamTimes":
        """Work the settings out for a slot duration in seconds. A cap that scaled below its first wait is that wait."""

        def slots(value: float | None) -> float | None:
            return None if value is None else value * slot_duration

        def scaled(field: str) -> float:
            return settings.scaled(field, slot_duration)

        transport = None
        if settings.transport_silence is not None:
            transport = max(scaled("transport_silence"), settings.transport_silence_slots * slot_duration)
        return cls(
            connect_timeout=scaled("connect_timeout"),
            backoff=BackoffPolicy(
                first=scaled("backoff_first"),
                factor=settings.backoff_factor,
                cap=max(scaled("backoff_first"), scaled("backoff_cap")),
                jitter=settings.backoff_jitter,
            ),
            head_silence=slots(settings.head_silence),
            hard_clock=slots(settings.hard_clock),
            transport_silence=transport,
            start_grace=settings.start_grace * slot_duration,
            verify_timeout=scaled("verify_timeout"),
        )


@dataclass(frozen=True, slots=True)
class CheckTimes:
    """The times of checks for one slot duration, all in seconds."""

    timeout: float
    often: BackoffPolicy
    """Between checks of a node that is not well (N2)."""

    @classmethod
    def of(cls, settings: HealthSettings, slot_duration: float) -> "CheckTimes":
        """Work the settings out for a slot duration in seconds."""
        first = settings.scaled("check_interval", slot_duration)
        return cls(
            timeout=settings.scaled("check_timeout", slot_duration),
            often=BackoffPolicy(
                first=first, cap=max(first, settings.scaled("check_cap", slot_duration)), jitter=settings.check_jitter
            ),
        )
