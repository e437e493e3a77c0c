"""Sending signed values in the form that a node takes (Q2a, Q10)."""

import json
from collections.abc import Sequence

from vc_fallback.base.types import Sourced
from vc_fallback.node import failures
from vc_fallback.node.caller import ACCEPT_JSON, Body, Caller, Pairs, again
from vc_fallback.node.capabilities import ssz_request, ssz_request_doubted
from vc_fallback.node.routes import Route
from vc_fallback.node.values.adapters import Unreadable
from vc_fallback.node.values.encodings import SSZ, Encodings
from vc_fallback.node.values.publication import Publication
from vc_fallback.wire.http import Response

TAKEN = (200, 202, 204)
"""Statuses of a request that was taken; 204 is not in the API, and comes where a proxy empties a 200."""
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_LARGEST_ERROR = 65_536
"""Bytes of a body in which an error is looked for; one that is larger is none."""
_OFFSET = 4


class Sender(Caller):
    """Publishes values as they are; nothing of them is decoded (rule 12)."""

    async def _publish(
        self,
        route: Route,
        value: Encodings | Sequence[Encodings],
        *,
        fixed_size: bool = False,
        takes_ssz: bool = True,
        query: Pairs = (),
        headers: Pairs = (),
        timeout: float | None = None,
    ) -> Sourced[Publication]:
        """Send one value, or a list, as SSZ where the node takes it, else as JSON; after a 415 once more as JSON.

        A node that answers SSZ with 400 or 500 may mean its form: until it has taken SSZ here, it is sent JSON for the
        rest of the epoch, where there is some (case 56). That call fails all the same: another node takes it sooner.

        :param fixed_size: whether an item of a list has a fixed size as SSZ: then the list has no offsets.
        :param takes_ssz: whether the API has this request as SSZ at all.
        :raises ValueError: for an empty list, and for items that have no form in common.
        :raises UnsupportedMediaType: when the form the node takes was not given; without a request where that is known.
        """
        limit = self.request_timeout if timeout is None else timeout
        has_ssz, has_json = forms(value)
        # Beside SSZ some nodes refuse a request that accepts nothing else (case 57): JSON is asked for, of errors.
        headers = (*ACCEPT_JSON, *headers)
        attempts = 0
        problem = "the API has this as JSON alone"
        if takes_ssz and has_ssz:
            words, doubted, epoch = ssz_request(route.operation), ssz_request_doubted(route.operation), self._epoch()
            lack = self.capabilities.lack(words, epoch)
            if lack is not None:
                problem = lack.problem
            elif not has_json or self.capabilities.lack(doubted, epoch) is None:
                asked = self._clock.now()
                try:
                    answer = await self._ask(
                        route,
                        read_outcome,
                        query=query,
                        body=_ssz(value, fixed_size),
                        headers=headers,
                        timeout=limit,
                        success=TAKEN,
                    )
                except failures.UnsupportedMediaType as error:
                    self.capabilities.note(words, error.problem, epoch)
                    if not has_json:
                        raise
                    attempts = 1
                except (failures.AlreadyKnown, failures.UnknownBlock, failures.FutureSlot):
                    # It has read what it says this of.
                    self.capabilities.found(words)
                    raise
                except (failures.BadRequest, failures.ServerError) as error:
                    if isinstance(error, failures.BadRequest) and error.failures:
                        self.capabilities.found(words)
                    elif not self.capabilities.proven(words):
                        self.capabilities.note(doubted, error.problem, epoch)
                    raise
                else:
                    self.capabilities.found(words)
                    return answer
                limit -= self._clock.now() - asked
        if not has_json:
            raise failures.UnsupportedMediaType(self.node_id, route.template, problem)
        return again(
            await self._ask(
                route, read_outcome, query=query, body=_json(value), headers=headers, timeout=limit, success=TAKEN
            ),
            attempts,
        )


def consensus_version(version: str) -> tuple[str, str]:
    """Return the header that names the fork of what is sent; names that are not known here pass (case 58).

    :raises ValueError: for none.
    """
    if not version.strip():
        raise ValueError("version is the name of a fork")
    return ("Eth-Consensus-Version", version)


def read_outcome(response: Response) -> Publication:
    """Read the answer to what was sent, which says nothing by its body where it is a success.

    :raises Unreadable: a page, or a JSON error, under the status of a success: it is a gateway's, and no node took it.
    """
    media_type = (response.headers.get("content-type") or "").partition(";")[0].strip().lower()
    body = response.body.strip()
    if body and (media_type in _PAGES or body[:1] == b"<"):
        raise Unreadable("a page in the place of an answer")
    if body[:1] == b"{" and len(body) <= _LARGEST_ERROR:
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = {}
        code = found.get("code")
        if found.get("error") or (isinstance(code, int) and code >= 400):
            raise Unreadable("an error in the body of an answer whose status is a success")
    return Publication.BROADCAST if response.status == 202 else Publication.ACCEPTED


def forms(value: Encodings | Sequence[Encodings]) -> tuple[bool, bool]:
    """Return whether one value, or a list, can be sent as SSZ, and as JSON.

    :raises ValueError: for an empty list, and for items that have no form in common.
    :raises TypeError: for what are no `Encodings`.
    """
    if isinstance(value, Encodings):
        return value.ssz is not None, value.json is not None
    if not value:
        raise ValueError("an empty list: there is nothing to send")
    try:
        forms = all(item.ssz is not None for item in value), all(item.json is not None for item in value)
    except (AttributeError, TypeError):
        raise TypeError("what is signed is given as Encodings(ssz=…, json=…), several as a list of them") from None
    if not any(forms):
        raise ValueError("some items are given as SSZ alone and some as JSON alone: no list can be made of them")
    return forms


def _ssz(value: Encodings | Sequence[Encodings], fixed_size: bool) -> Body:
    if isinstance(value, Encodings):
        return Body(value.ssz or b"", SSZ)
    parts = [item.ssz or b"" for item in value]
    if not fixed_size:
        offsets, place = [], _OFFSET * len(parts)
        for part in parts:
            offsets.append(place.to_bytes(_OFFSET, "little"))
            place += len(part)
        parts = offsets + parts
    return Body(b"".join(parts), SSZ, items=len(value))


def _json(value: Encodings | Sequence[Encodings]) -> Body:
    if isinstance(value, Encodings):
        return Body(value.json or b"")
    return Body(b"[" + b",".join([item.json or b"" for item in value]) + b"]", items=len(value))
