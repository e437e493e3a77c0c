"""The event stream rules of the HTML standard, written down as plainly as they stand there.

Whole streams only, slow, without a bound. It shares nothing with the decoder of the package; the tests compare the two.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from httpx_sse import ServerSentEvent


class Event(NamedTuple):
    """What of an event can be compared."""

    event: str
    data: str
    id: str
    retry: int | None


@dataclass
class Interpretation:
    """What a whole stream amounts to."""

    events: list[Event] = field(default_factory=list)
    comments: int = 0
    retry: int | None = None
    last_event_id: str = ""


def plain(events: list[ServerSentEvent]) -> list[Event]:
    """The events as values that compare by content."""
    return [Event(e.event, e.data, e.id, e.retry) for e in events]


def interpret(stream: bytes) -> Interpretation:
    """Interpret a whole stream. An event's `retry` is the last one of its own block (the standard has none)."""
    text = stream.decode("utf-8", errors="replace")
    text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    *lines, _unfinished = re.split("\r\n|\r|\n", text)

    result = Interpretation()
    event_type = data = event_id = ""
    retry: int | None = None
    for line in lines:
        if line == "":
            result.last_event_id = event_id
            if data != "":
                result.events.append(Event(event_type or "message", data[:-1], event_id, retry))
            event_type, data, retry = "", "", None
        elif line[0] == ":":
            result.comments += 1
        else:
            name, colon, value = line.partition(":")
            if colon and value[:1] == " ":
                value = value[1:]
            if name == "event":
                event_type = value
            elif name == "data":
                data += value + "\n"
            elif name == "id" and "\0" not in value:
                event_id = value
            elif name == "retry" and re.fullmatch("[0-9]+", value):
                result.retry = retry = int(value)
    return result
