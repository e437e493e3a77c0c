"""Secrets of a candidate while its node fails in every way: none in a log record, a signal or an error (rule 11)."""

import base64
import logging
import traceback
from collections.abc import Awaitable, Callable

import pytest

from tests.acceptance.harness import Followed
from tests.conformance.scripted import following
from vc_fallback.base.errors import ConfigurationError
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import Candidate
from vc_fallback.config import FallbackConfig
from vc_fallback.observe.log import FailureLog
from vc_fallback.testing import Answer, Cut, Hang, SimulatedNode, StreamHeaders, redirect, simulated_devnet
from vc_fallback.testing.faults import Fault

pytestmark = pytest.mark.anyio

USER, PASSWORD, PATH, QUERY, HEADER = "us3rname", "p4ssw@rd", "t0kenpath", "t0kenquery", "t0kenheader"
BASIC = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
SECRETS = [PASSWORD, PASSWORD.replace("@", "%40"), PATH, QUERY, HEADER, BASIC]

ECHO = (
    f"Cannot GET /{PATH}/eth/v1/events?key={QUERY}&topics=head for http://{USER}:{PASSWORD}@127.0.0.1/{PATH}/ "
    f"with Authorization: Basic {BASIC} and X-Api-Key: {HEADER}"
)


def url_of(node: SimulatedNode, path: str) -> str:
    """Return a URL that holds secrets everywhere."""
    secret = f"{USER}:{PASSWORD.replace('@', '%40')}@"
    return node.url.replace("http://", f"http://{secret}") + f"{path}?key={QUERY}"


FAULTS: dict[str, Fault] = {
    "404 that echoes the request": Answer(404, f'{{"code":404,"message":"{ECHO}"}}'),
    "401 in HTML": Answer(401, f"<html>{ECHO}</html>", content_type="text/html"),
    "400 that echoes it nested": Answer(400, f'{{"error":{{"message":"{ECHO}"}}}}'),
    "403 in words of its own": Answer(403, f'{{"code":403,"message":"{HEADER} is no key of {USER}, {PATH}: {QUERY}"}}'),
    "400 that names the project": Answer(400, f"project {PATH} is unknown, {PASSWORD} is wrong"),
    "429": Answer(429, ECHO, {"Retry-After": "3"}),
    "500 with a trace": Answer(500, f'{{"code":500,"message":"failed","stacktraces":["{ECHO}"]}}'),
    "redirect with all of it": redirect(f"http://{USER}:{PASSWORD}@elsewhere.example/{PATH}?key={QUERY}"),
    "200 that is no stream": Answer(200, ECHO, content_type=f"text/{PATH}"),
    "error within the stream": Answer(
        200, f'event: error\ndata: {{"code":500,"message":"{ECHO}"}}\n\n', content_type="text/event-stream"
    ),
    "malformed head": Answer(
        200, f'event: head\ndata: {{"slot":"{ECHO}","block":"{ECHO}"}}\n\n', content_type="text/event-stream"
    ),
    "unknown coding": StreamHeaders(headers=(("Content-Encoding", HEADER),)),
    "hang": Hang(),
    "cut short": Cut(after=20),
    "reset": Cut(after=0, reset=True),
    "broken head": Answer(200, "", {"Bad Header": ECHO}),
}


async def _refuse(node: SimulatedNode) -> None:
    node.refuse()
    await node.cut_connections()


async def _kill(node: SimulatedNode) -> None:
    await node.kill(reset=True)


async def _garbage(node: SimulatedNode) -> None:
    node.send_raw(f"{ECHO}\r\n".encode(), below_http=True)


async def _freeze(node: SimulatedNode) -> None:
    node.freeze()


WAYS: dict[str, Callable[[SimulatedNode], Awaitable[None]]] = {
    "refused": _refuse,
    "killed": _kill,
    "garbage": _garbage,
    "frozen": _freeze,
}


def told(followed: Followed, records: list[logging.LogRecord]) -> str:
    """Return everything that anybody could read: signals, log records with their tracebacks, statistics."""
    texts = [repr(signal) for signal in followed.signals]
    for record in records:
        texts.append(f"{record.name} {record.getMessage()}")
        if record.exc_info is not None:
            texts += traceback.format_exception(*record.exc_info)
    texts.append(repr(followed.monitor.candidates.current))
    texts.append(repr(followed.monitor.statistics()) + repr(followed.monitor.heads()))
    return "\n".join(texts)


@pytest.mark.parametrize("way", [*FAULTS, *WAYS])
async def test_no_secret_is_told(way: str, caplog: pytest.LogCaptureFixture) -> None:
    """Rule 11: the node fails so at all its endpoints; every logger is heard at its most talkative."""
    caplog.set_level(logging.DEBUG)
    async with simulated_devnet(2) as net:
        node, other = net
        candidates = [
            # The simulated node serves nothing under a path.
            {"url": url_of(node, f"/{PATH}" if way in FAULTS else ""), "name": "bn1", "headers": {"X-Api-Key": HEADER}},
            {"url": other.url, "name": "bn2"},
        ]
        async with following(list(net), observers=[FailureLog()], candidates=candidates) as followed:
            await followed.until(129.5)
            if way in FAULTS:
                node.inject("*", FAULTS[way])
                node.end_streams()
            else:
                await WAYS[way](node)
            await followed.until(134.5)
            assert node.requests[0].headers["x-api-key"] == HEADER
            text = told(followed, caplog.records)
            assert [secret for secret in SECRETS if secret in text] == []
            assert "bn1" in text
            followed.assert_every_slot_delivered(130, 134)


def test_no_secret_in_the_errors_of_a_configuration() -> None:
    """Rule 11: what is wrong with a URL or a header is said without either."""
    for bad in (
        {"url": f"http://{USER}:{PASSWORD}@/{PATH}"},
        {"url": f"ftp://{USER}:{PASSWORD}@h/{PATH}?{QUERY}"},
        {"url": f"http://{USER}:{PASSWORD}@h:99999/{PATH}"},
        {"url": f"http://h/{PATH}", "headers": {"X": f"{HEADER}\n"}},
        {"url": f"http://h/{PATH}", "headers": {f"X {HEADER}": "x"}},
        {"url": f"http://h/{PATH}", "tier": HEADER},
        {"url": f"http://h/{PATH}", "name": f"http://{USER}:{PASSWORD}@h"},
    ):
        with pytest.raises(ConfigurationError) as caught:
            FallbackConfig.of({"candidates": [bad]}).candidate_list()
        text = "".join(traceback.format_exception(caught.value))
        assert [secret for secret in SECRETS if secret in text] == []


def test_no_secret_in_what_prints_itself() -> None:
    """Rule 11: configuration, candidates and URLs show no secret when they are printed."""
    config = FallbackConfig.of(
        {
            "candidates": [
                {
                    "url": f"http://{USER}:p4ssw%40rd@h/{PATH}?key={QUERY}",
                    "headers": {"X-Api-Key": HEADER},
                }
            ]
        }
    )
    (candidate,) = config.candidate_list()
    text = f"{config!r} {config} {candidate!r} {candidate} {candidate.url!r} {candidate.url}"
    assert [secret for secret in SECRETS if secret in text] == []
    assert isinstance(candidate, Candidate)
    assert isinstance(candidate.url, BaseURL)
