"""Sending signed values in the form that a node takes (Q2a, Q10)."""

from collections.abc import Sequence

from vc_fallback.base.types import Sourced
from vc_fallback.node import failures
from vc_fallback.node.caller import ACCEPT_JSON, Body, Caller, Pairs, again
from vc_fallback.node.capabilities import ssz_request
from vc_fallback.node.routes import Route
from vc_fallback.node.values.encodings import SSZ, Encodings
from vc_fallback.node.values.publication import Publication
from vc_fallback.wire.http import Response

CONSENSUS_VERSION = "Eth-Consensus-Version"
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

        :param fixed_size: whether an item of a list has a fixed size as SSZ: then the list has no offsets.
        :param takes_ssz: whether the API has this request as SSZ at all.
        :raises UnsupportedMediaType: when the form the node takes was not given; without a request where that is known.
        """
        limit = self.request_timeout if timeout is None else timeout
        asked = self._clock.now()
        attempts = 0
        # Beside SSZ some nodes refuse a request that accepts nothing else (case 57): JSON is asked for, of errors.
        headers = (*ACCEPT_JSON, *headers)
        words = ssz_request(route.operation)
        lack = self.capabilities.lack(words, self._epoch()) if self.capabilities.any else None
        ssz = _ssz(value, fixed_size) if takes_ssz and lack is None else None
        if ssz is not None:
            try:
                return await self._ask(
                    route, _outcome, query=query, body=ssz, headers=headers, timeout=limit, success=(200, 202)
                )
            except failures.UnsupportedMediaType as error:
                self.capabilities.note(words, error.problem, self._epoch())
                attempts = 1
                refused = error
        json = _json(value)
        if json is None:
            if attempts:
                raise refused
            problem = lack.problem if lack is not None else "the request is not to be had as JSON"
            raise failures.UnsupportedMediaType(self.node_id, route.template, problem)
        limit -= self._clock.now() - asked
        return again(
            await self._ask(
                route, _outcome, query=query, body=json, headers=headers, timeout=limit, success=(200, 202)
            ),
            attempts,
        )


def _outcome(response: Response) -> Publication:
    return Publication.BROADCAST if response.status == 202 else Publication.ACCEPTED


def _ssz(value: Encodings | Sequence[Encodings], fixed_size: bool) -> Body | None:
    if isinstance(value, Encodings):
        return None if value.ssz is None else Body(value.ssz, SSZ)
    parts = [item.ssz for item in value if item.ssz is not None]
    if len(parts) != len(value):
        return None
    if not fixed_size:
        offsets, place = [], _OFFSET * len(parts)
        for part in parts:
            offsets.append(place.to_bytes(_OFFSET, "little"))
            place += len(part)
        parts = offsets + parts
    return Body(b"".join(parts), SSZ, items=len(value))


def _json(value: Encodings | Sequence[Encodings]) -> Body | None:
    if isinstance(value, Encodings):
        return None if value.json is None else Body(value.json)
    parts = [item.json for item in value if item.json is not None]
    if len(parts) != len(value):
        return None
    return Body(b"[" + b",".join(parts) + b"]", items=len(value))
