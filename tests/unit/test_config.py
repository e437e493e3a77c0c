"""Settings: every bad value is an error that names its field, defaults scale with the slot (scenario 8, rule 11)."""

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

from vc_fallback.base.backoff import BackoffPolicy
from vc_fallback.base.errors import ConfigurationError
from vc_fallback.base.types import Role, Tier
from vc_fallback.chain import NETWORKS
from vc_fallback.config import FallbackConfig
from vc_fallback.settings import HealthSettings, StreamSettings, WireSettings
from vc_fallback.times import CheckTimes, StreamTimes

ROOT = "0x" + "ab" * 32
CHAIN = {"genesis_time": 1000, "genesis_validators_root": ROOT, "slot_duration": 2}


def one(**settings: Any) -> dict[str, Any]:
    return {"candidates": [{"url": "http://bn1:5052", **settings}]}


def refused(values: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        FallbackConfig.of(values)
    return caught.value


def test_defaults() -> None:
    """G6, H2, H4–H6, H13, Q15: the numbers of the requirements."""
    config = FallbackConfig.of({})
    assert config.candidates == ()
    assert config.identity() is None
    streams, wire = config.streams, config.wire
    assert (streams.connect_timeout, wire.request_connect_timeout) == (3, 1)
    assert (streams.backoff_first, streams.backoff_factor, streams.backoff_cap, streams.backoff_jitter) == (
        1,
        2,
        16,
        0.2,
    )
    assert (streams.head_silence, streams.hard_clock, streams.start_grace, streams.verify_timeout) == (2.5, 8.5, 3, 1.5)
    assert (streams.transport_silence, streams.transport_silence_slots) == (60, 6.5)
    assert (wire.response_body, wire.error_body, wire.event, wire.head) == (2**26, 2**20, 2**24, 2**16)
    assert (config.heads.deliver_optimistic, config.heads.oldest, config.heads.tier_gate) == (False, 32, True)


TOML = """
network = "hoodi"

[streams]
head_silence = 3
connect_timeout = 2.5

[heads]
deliver_optimistic = true

[[candidates]]
url = "https://user:p%40ss@bn1/TOKEN"
name = "left"
priority = -1
roles = ["events", "duties"]
ca = "ca.pem"
headers = { X-Api-Key = "TOKEN" }

[[candidates]]
url = "http://bn2:5052"
tier = "fallback"
"""


@pytest.mark.parametrize("through", ["toml", "json"])
def test_settings_are_read_from_toml_and_from_json(through: str) -> None:
    """Plain values, as either format gives them."""
    values = tomllib.loads(TOML)
    config = FallbackConfig.of(json.loads(json.dumps(values)) if through == "json" else values)
    assert config.identity() is NETWORKS["hoodi"]
    assert (config.streams.head_silence, config.streams.connect_timeout) == (3, 2.5)
    assert config.heads.deliver_optimistic is True
    left, right = config.candidate_list()
    assert (left.name, left.priority, left.roles) == ("left", -1, frozenset({Role.EVENTS, Role.DUTIES}))
    assert left.url.authorization == "Basic dXNlcjpwQHNz"
    assert left.headers == (("X-Api-Key", "TOKEN"),)
    assert left.tls.ca == Path("ca.pem")
    assert (right.tier, right.name, right.url.hostport) == (Tier.FALLBACK, None, "bn2:5052")


def test_urls_are_primaries_in_order() -> None:
    """The command's way."""
    config = FallbackConfig.from_urls(["http://bn1", "http://bn2"], network="mainnet", streams={"hard_clock": None})
    assert [candidate.url.host for candidate in config.candidate_list()] == ["bn1", "bn2"]
    assert {candidate.tier for candidate in config.candidate_list()} == {Tier.PRIMARY}
    assert config.streams.hard_clock is None


def test_an_explicit_chain() -> None:
    """I1."""
    identity = FallbackConfig.of({"chain": {**CHAIN, "slots_per_epoch": 8, "preset": "minimal"}}).identity()
    assert identity is not None
    assert (identity.genesis_time, identity.slot_duration, identity.slots_per_epoch) == (1000, 2, 8)
    assert (identity.genesis_validators_root, identity.preset) == (b"\xab" * 32, "minimal")


@pytest.mark.parametrize("name", NETWORKS)
def test_every_known_network_can_be_named(name: str) -> None:
    """I1."""
    assert FallbackConfig.of({"network": name}).identity() is NETWORKS[name]


TIMES = [
    "connect_timeout",
    "backoff_first",
    "backoff_cap",
    "head_silence",
    "hard_clock",
    "transport_silence",
    "transport_silence_slots",
    "start_grace",
    "verify_timeout",
    "check_interval",
    "check_cap",
]
CLOCKS = ["head_silence", "hard_clock", "transport_silence"]
NO_DURATION = [0, -1, -0.0, math.nan, math.inf, -math.inf, "3", "", True, [], {}, 10**400]


@pytest.mark.parametrize("field", TIMES)
@pytest.mark.parametrize("value", NO_DURATION, ids=[str(value)[:8] for value in NO_DURATION])
def test_a_time_is_a_finite_number_above_zero(field: str, value: object) -> None:
    """Scenario 8: a limit of 0 or below, and everything else that is no time."""
    assert refused({"streams": {field: value}}).field == f"streams.{field}"


@pytest.mark.parametrize("off", [None, False])
@pytest.mark.parametrize("field", TIMES)
def test_null_or_false_switches_the_clocks_off_and_nothing_else(field: str, off: object) -> None:
    """H5: `null`, or `false` where the format has no `null`."""
    if field not in CLOCKS:
        assert refused({"streams": {field: off}}).field == f"streams.{field}"
        return
    config = FallbackConfig.of({"streams": {field: off}})
    assert getattr(StreamTimes.of(config.streams, 12.0), field) is None


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"streams": {"backoff_factor": 0.9}}, "streams.backoff_factor"),
        ({"streams": {"backoff_factor": 11}}, "streams.backoff_factor"),
        ({"streams": {"backoff_factor": math.nan}}, "streams.backoff_factor"),
        ({"streams": {"backoff_jitter": 1}}, "streams.backoff_jitter"),
        ({"streams": {"backoff_jitter": -0.1}}, "streams.backoff_jitter"),
        ({"streams": {"backoff_jitter": math.nan}}, "streams.backoff_jitter"),
        ({"streams": {"unknown": 1}}, "streams.unknown"),
        ({"streams": 5}, "streams"),
        ({"heads": {"buffer": 0}}, "heads.buffer"),
        ({"heads": {"buffer": 2**70}}, "heads.buffer"),
        ({"heads": {"buffer": 1.5}}, "heads.buffer"),
        ({"heads": {"buffer": True}}, "heads.buffer"),
        ({"heads": {"oldest": 0}}, "heads.oldest"),
        ({"heads": {"deliver_optimistic": "yes"}}, "heads.deliver_optimistic"),
        ({"heads": {"deliver_optimistic": 1}}, "heads.deliver_optimistic"),
        ({"heads": {"tier_gate": None}}, "heads.tier_gate"),
        ({"wire": {"response_body": 0}}, "wire.response_body"),
        ({"wire": {"error_body": -1}}, "wire.error_body"),
        ({"wire": {"event": 2**32}}, "wire.event"),
        ({"wire": {"head": 0}}, "wire.head"),
        ({"wire": {"concurrency": 0}}, "wire.concurrency"),
        ({"wire": {"request_connect_timeout": 0}}, "wire.request_connect_timeout"),
        ({"network": "secretnet"}, "network"),
        ({"network": 1}, "network"),
        ({"chain": {}}, "chain.genesis_time"),
        ({"chain": {**CHAIN, "genesis_time": -1}}, "chain.genesis_time"),
        ({"chain": {**CHAIN, "genesis_time": 1e300}}, "chain.genesis_time"),
        ({"chain": {**CHAIN, "genesis_time": "0"}}, "chain.genesis_time"),
        ({"chain": {**CHAIN, "slot_duration": 0}}, "chain.slot_duration"),
        ({"chain": {**CHAIN, "slot_duration": 1e-9}}, "chain.slot_duration"),
        ({"chain": {**CHAIN, "slot_duration": math.nan}}, "chain.slot_duration"),
        ({"chain": {**CHAIN, "slots_per_epoch": 0}}, "chain.slots_per_epoch"),
        ({"chain": {**CHAIN, "genesis_validators_root": "0x12"}}, "chain.genesis_validators_root"),
        ({"chain": {**CHAIN, "genesis_validators_root": None}}, "chain.genesis_validators_root"),
        ({"network": "mainnet", "chain": CHAIN}, "chain"),
        (one(url="bn1:5052"), "candidates[0].url"),
        (one(url=""), "candidates[0].url"),
        (one(url=None), "candidates[0].url"),
        (one(url=5052), "candidates[0].url"),
        (one(tier="third"), "candidates[0].tier"),
        (one(roles=["events", "bogus"]), "candidates[0].roles[1]"),
        (one(roles=[]), "candidates[0].roles"),
        (one(roles="events"), "candidates[0].roles"),
        (one(priority=1.5), "candidates[0].priority"),
        (one(priority=2**40), "candidates[0].priority"),
        (one(priority=True), "candidates[0].priority"),
        (one(name=""), "candidates[0].name"),
        (one(name=7), "candidates[0].name"),
        (one(headers={"X Y": "a"}), "candidates[0].headers"),
        (one(headers={"X": "a\r\nb"}), "candidates[0].headers"),
        (one(headers={"X": 3}), "candidates[0].headers.X"),
        (one(headers=["X"]), "candidates[0].headers"),
        (one(key="key.pem"), "candidates[0].key"),
        (one(ca=3), "candidates[0].ca"),
        (one(url="http://u:p@bn1", headers={"AUTHORIZATION": "x"}), "candidates[0].headers"),
        ({"candidates": [{}]}, "candidates[0].url"),
        ({"candidates": ["http://bn1"]}, "candidates[0]"),
        ({"candidates": "http://bn1"}, "candidates"),
        ({"candidates": None}, "candidates"),
        ({"candidates": [{"url": "http://bn1"}, {"url": "http://bn1/", "tier": "fallback"}]}, "candidates[1].url"),
        (
            {"candidates": [{"url": "http://bn1", "name": "a"}, {"url": "http://bn2", "name": "a"}]},
            "candidates[1].name",
        ),
        ({"candidates": [{"url": "http://bn1"}, {"url": "x"}]}, "candidates[1].url"),
        ({"candidate": []}, "candidate"),
        ([], "configuration"),
        (None, "configuration"),
        ("http://bn1", "configuration"),
    ],
)
def test_a_bad_value_is_an_error_that_names_the_field(values: Any, field: str) -> None:
    """Scenario 8: one line, the dotted path of the field first."""
    error = refused(values)
    assert error.field == field
    assert str(error) == f"{field}: {error.problem}"
    assert error.problem
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    "values",
    [
        one(url="ftp://user:SECRET@bn1/SECRET"),
        one(url="http://user:SECRET@bn1:99999/SECRET"),
        one(url="http://user:SECRET@bn1/SECRET#x"),
        one(url="SECRET"),
        one(name="http://user:SECRET@bn1"),
        one(name="SECRET@bn1"),
        one(headers={"Authorization": "Bearer SECRET\n"}),
        one(headers={"Bearer SECRET": "x"}),
        one(headers={"X": ["SECRET"]}),
        one(tier="SECRET"),
        one(roles=["SECRET"]),
        one(priority="SECRET"),
        one(url="http://user:SECRET@bn1", headers={"authorization": "SECRET"}),
        {"candidates": "http://user:SECRET@bn1"},
        {"candidates": ["http://user:SECRET@bn1"]},
        {"http://user:SECRET@bn1": 1},
        {"streams": {"head_silence": "SECRET"}},
        {"network": "SECRET"},
        {"chain": {**CHAIN, "genesis_validators_root": "SECRET"}},
        {"candidates": [{"url": "http://u:SECRET@bn1"}, {"url": "http://u:SECRET@bn1", "tier": "fallback"}]},
    ],
)
def test_no_error_repeats_a_value(values: Any) -> None:
    """Rule 11: nor does what it was raised from."""
    error = refused(values)
    assert "SECRET" not in f"{error} {error!r} {error.field} {error.problem}"
    assert error.__suppress_context__ or error.__context__ is None


def test_no_secret_stands_in_a_repr() -> None:
    """Rule 11: a configuration ends up in a log line sooner or later."""
    config = FallbackConfig.of(one(url="https://user:SECRET@bn1/SECRET?k=SECRET", headers={"X-Api-Key": "SECRET"}))
    for shown in (repr(config), str(config), config.model_dump_json(), repr(config.candidate_list())):
        assert "SECRET" not in shown


@pytest.mark.parametrize(
    ("slot", "connect", "verify", "backoff"),
    [
        (12.0, 3.0, 1.5, (1.0, 16.0)),
        (6.0, 1.5, 0.75, (0.5, 8.0)),
        (5.0, 1.25, 0.625, (5 / 12, 16 * 5 / 12)),
        (2.0, 0.5, 0.25, (0.2, 16 / 6)),
        (1.0, 0.25, 0.2, (0.2, 16 / 12)),
        (0.05, 0.2, 0.2, (0.2, 0.2)),
        (24.0, 6.0, 3.0, (2.0, 32.0)),
    ],
)
def test_defaults_in_seconds_scale_with_the_slot(
    slot: float, connect: float, verify: float, backoff: tuple[float, float]
) -> None:
    """Requirements, top: defaults are for 12 s slots, never below 0.2 s."""
    times = StreamTimes.of(StreamSettings(), slot)
    assert times.connect_timeout == pytest.approx(connect)
    assert times.verify_timeout == pytest.approx(verify)
    assert (times.backoff.first, times.backoff.cap) == pytest.approx(backoff)
    assert (times.backoff.factor, times.backoff.jitter) == (2, 0.2)
    assert WireSettings().scaled("request_connect_timeout", slot) == pytest.approx(max(0.2, slot / 12))


@pytest.mark.parametrize("slot", [12.0, 5.0, 1.0])
def test_times_in_slots_are_times_the_slot(slot: float) -> None:
    """H5, H6: 2½, 8½ and 3 slots, whatever a slot is."""
    times = StreamTimes.of(StreamSettings(), slot)
    assert times.head_silence == 2.5 * slot
    assert times.hard_clock == 8.5 * slot
    assert times.start_grace == 3 * slot


def test_what_is_set_does_not_scale() -> None:
    """Requirements, top: unless set, also to the default, also below 0.2 s."""
    settings = StreamSettings(connect_timeout=3.0, verify_timeout=0.05, backoff_cap=16.0)
    times = StreamTimes.of(settings, 1.0)
    assert (times.connect_timeout, times.verify_timeout, times.backoff.cap) == (3.0, 0.05, 16.0)
    assert times.backoff.first == 0.2


@pytest.mark.parametrize(
    ("settings", "slot", "silence"),
    [
        (StreamSettings(), 12.0, 78.0),
        (StreamSettings(), 2.0, 13.0),
        (StreamSettings(transport_silence=60), 2.0, 60.0),
        (StreamSettings(transport_silence=100), 12.0, 100.0),
        (StreamSettings(transport_silence_slots=1), 12.0, 60.0),
        (StreamSettings(transport_silence=None), 12.0, None),
    ],
)
def test_transport_silence_is_the_longer_of_its_two_times(
    settings: StreamSettings, slot: float, silence: float | None
) -> None:
    """H5: 60 s or 6½ slots."""
    assert StreamTimes.of(settings, slot).transport_silence == silence


def test_a_cap_is_never_below_the_first_wait() -> None:
    """H4, N2: a first wait that is set stays, where the cap scales below it."""
    times = StreamTimes.of(StreamSettings(backoff_first=5), 1.0)
    assert times.backoff == BackoffPolicy(first=5, cap=5)
    often = CheckTimes.of(HealthSettings(check_interval=30), 1.0).often
    assert (often.first, often.cap) == (30, 30)


def test_base_urls_are_a_list() -> None:
    """One text is a sequence of letters, too."""
    with pytest.raises(ConfigurationError, match="a list of base URLs"):
        FallbackConfig.from_urls("http://127.0.0.1:5052")
