"""Settings and their defaults, checked when they are loaded; a bad one is an error that names its field."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from vc_fallback.base.backoff import BackoffPolicy
from vc_fallback.base.errors import ConfigurationError, field_path
from vc_fallback.base.toml_file import read_toml
from vc_fallback.base.types import Role, Root, Tier, parse_root
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import ALL_ROLES, Candidate, Candidates, TLSSettings, check_headers
from vc_fallback.chain import NETWORKS, ChainIdentity

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


class _Settings(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=False, hide_input_in_errors=True, use_attribute_docstrings=True
    )

    def scaled(self, field: str, slot_duration: float) -> float:
        """Return a time in seconds: as it was set, or its default scaled to the slot."""
        value: float = getattr(self, field)
        if field in self.model_fields_set:
            return value
        return max(SHORTEST, value * slot_duration / MAINNET_SLOT)


class StreamSettings(_Settings):
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
    check_interval: Positive = 2.0
    """Seconds until a node that was out of reach is checked; a good check ends the backoff (H4, N2)."""
    check_cap: Positive = 60.0
    """Longest time in seconds between such checks (N2)."""


class HeadSettings(_Settings):
    """Delivery of heads (H12, H13, C8)."""

    deliver_optimistic: Switch = False
    """Whether heads whose payload was not verified are delivered as usable (H12)."""
    oldest: Annotated[Count, Field(ge=1, le=2**20)] = 32
    """Heads more than so many slots behind the clock are never delivered (H13)."""
    tier_gate: Switch = True
    """Whether heads that only fallbacks have are held back while a primary serves (C5)."""
    buffer: Annotated[Count, Field(ge=1, le=2**16)] = 64
    """Heads that a subscriber may leave unread (C8)."""


class WireSettings(_Settings):
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


class ChainSettings(_Settings):
    """An explicit chain identity (I1)."""

    genesis_time: Annotated[Number, Field(ge=0, le=2**40)]
    """Unix time in seconds."""
    genesis_validators_root: str
    """`0x` and 64 hexadecimal digits."""
    slot_duration: Annotated[Number, Field(ge=0.01, le=3600)]
    """Seconds."""
    slots_per_epoch: Annotated[Count, Field(ge=1, le=2**16)] = 32
    """32 in the mainnet preset, 8 in the minimal one, 16 on Gnosis."""
    preset: str = ""
    """`mainnet`, `minimal`, `gnosis`; empty is unknown and fits every node."""

    @field_validator("genesis_validators_root")
    @classmethod
    def _root(cls, value: str) -> str:
        parse_root(value)
        return value

    def identity(self) -> ChainIdentity:
        """Return the chain identity."""
        return ChainIdentity(
            genesis_time=self.genesis_time,
            genesis_validators_root=Root(parse_root(self.genesis_validators_root)),
            slot_duration=self.slot_duration,
            slots_per_epoch=self.slots_per_epoch,
            preset=self.preset,
        )


class CandidateSettings(_Settings):
    """One beacon node."""

    url: SecretStr
    """Base URL; a path prefix, a query and user-info are kept (Q16)."""
    name: str | None = None
    """Node id in logs, metrics and lines; `host:port` where it is not given (I3)."""
    tier: Tier = Tier.PRIMARY
    """`primary`, or `fallback`: used for events only while no primary serves (C5)."""
    roles: frozenset[Role] = ALL_ROLES
    """What the node may be used for: `events`, `duties`, `attestation`, `proposal`, `submission`."""
    priority: Annotated[Count, Field(ge=-(2**31), lt=2**31)] = 0
    """Lower is preferred within a tier; list order decides between equals."""
    headers: Mapping[str, SecretStr] = {}
    """Sent with every request and stream (Q16)."""
    ca: Path | None = None
    """PEM file of the certificate authority to trust instead of the system's."""
    certificate: Path | None = None
    """PEM file of our client certificate."""
    key: Path | None = None
    """PEM file of its key, where it is not in the same file."""

    @field_validator("url")
    @classmethod
    def _url(cls, value: SecretStr) -> SecretStr:
        BaseURL.parse(value.get_secret_value())
        return value

    @field_validator("headers")
    @classmethod
    def _headers(cls, value: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
        check_headers((name, secret.get_secret_value()) for name, secret in value.items())
        return value

    @field_validator("key")
    @classmethod
    def _key(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value is not None and info.data.get("certificate") is None:
            raise ValueError("a key without a certificate")
        return value

    def beside(self, folder: Path) -> Self:
        """Return the settings with the paths of certificates taken relative to a folder."""
        paths = {name: getattr(self, name) for name in ("ca", "certificate", "key")}
        return self.model_copy(update={name: folder / path for name, path in paths.items() if path is not None})

    def candidate(self) -> Candidate:
        """Return the candidate."""
        return Candidate(
            url=BaseURL.parse(self.url.get_secret_value()),
            name=self.name,
            tier=self.tier,
            roles=self.roles,
            priority=self.priority,
            headers=tuple((name, value.get_secret_value()) for name, value in self.headers.items()),
            tls=TLSSettings(self.ca, self.certificate, self.key),
        )


class FallbackConfig(_Settings):
    """All settings. `network` names a known chain, `chain` spells one out; with neither the nodes are asked (I1)."""

    candidates: tuple[CandidateSettings, ...] = ()
    """The beacon nodes, in order of preference."""
    network: Literal["mainnet", "sepolia", "holesky", "hoodi", "gnosis"] | None = None
    """A known network; without it and without `chain` the nodes are asked which chain they are on (I1)."""
    chain: ChainSettings | None = None
    """An explicit chain identity (I1)."""
    streams: StreamSettings = StreamSettings()
    """Head streams."""
    heads: HeadSettings = HeadSettings()
    """Delivery of heads."""
    wire: WireSettings = WireSettings()
    """Limits of connections."""

    @field_validator("chain")
    @classmethod
    def _one_chain(cls, value: ChainSettings | None, info: ValidationInfo) -> ChainSettings | None:
        if value is not None and info.data.get("network") is not None:
            raise ValueError("network and chain exclude each other")
        return value

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Check settings given as plain values, the candidates among themselves too.

        :raises ConfigurationError: naming the first bad field; no value is repeated.
        """
        try:
            config = cls.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            problem = str(first["msg"]).removeprefix("Value error, ")
            raise ConfigurationError(field_path(first["loc"]) or "configuration", problem) from None
        Candidates(config.candidate_list())
        return config

    @classmethod
    def load(cls, path: str | Path, environment: Mapping[str, str] | None = None) -> Self:
        """Read a TOML file (O6). `${NAME}` in a text stands for an environment variable, `$$` for a dollar sign; paths
        of certificates are relative to the file.

        :param environment: in place of the process's own.
        :raises ConfigurationError: as :meth:`of`, and for a file that cannot be read or a variable that is not set.
        """
        path = Path(path)
        values = read_toml(path, os.environ if environment is None else environment)
        config = cls.of(values)
        candidates = tuple(candidate.beside(path.parent) for candidate in config.candidates)
        return config.model_copy(update={"candidates": candidates})

    @classmethod
    def from_urls(cls, urls: Sequence[str], **settings: Any) -> Self:  # noqa: ANN401 - checked by `of`
        """Make a configuration of primaries from base URLs, in order.

        :raises ConfigurationError: as :meth:`of`.
        """
        return cls.of({"candidates": [{"url": url} for url in urls], **settings})

    def identity(self) -> ChainIdentity | None:
        """Return the configured chain identity, or `None` where the nodes are to be asked (I1)."""
        if self.network is not None:
            return NETWORKS[self.network]
        return self.chain.identity() if self.chain is not None else None

    def candidate_list(self) -> list[Candidate]:
        """Return the configured candidates."""
        return [settings.candidate() for settings in self.candidates]


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
    check: BackoffPolicy
    """Between checks of a node that is not healthy (N2)."""

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
            check=BackoffPolicy(
                first=scaled("check_interval"),
                cap=max(scaled("check_interval"), scaled("check_cap")),
                jitter=settings.backoff_jitter,
            ),
        )
