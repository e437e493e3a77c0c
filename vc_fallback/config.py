"""The configuration as a whole, checked when it is loaded; a bad setting is an error that names its field."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator

from vc_fallback.base.errors import ConfigurationError, field_path
from vc_fallback.base.toml_file import read_toml
from vc_fallback.base.types import Role, Root, Tier, parse_root
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import ALL_ROLES, Candidate, Candidates, TLSSettings, check_headers
from vc_fallback.chain import NETWORKS, ChainIdentity
from vc_fallback.settings import (
    Count,
    HeadSettings,
    HealthSettings,
    Number,
    RequestSettings,
    Settings,
    StreamSettings,
    TopicSettings,
    WireSettings,
)


class ChainSettings(Settings):
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


class CandidateSettings(Settings):
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


class FallbackConfig(Settings):
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
    topics: TopicSettings = TopicSettings()
    """Subscriptions to topics."""
    health: HealthSettings = HealthSettings()
    """Health of nodes."""
    requests: RequestSettings = RequestSettings()
    """How requests are sent."""
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
        if isinstance(urls, str):
            raise ConfigurationError("candidates", "a list of base URLs is needed, not one text")
        return cls.of({"candidates": [{"url": url} for url in urls], **settings})

    def identity(self) -> ChainIdentity | None:
        """Return the configured chain identity, or `None` where the nodes are to be asked (I1)."""
        if self.network is not None:
            return NETWORKS[self.network]
        return self.chain.identity() if self.chain is not None else None

    def candidate_list(self) -> list[Candidate]:
        """Return the configured candidates."""
        return [settings.candidate() for settings in self.candidates]
