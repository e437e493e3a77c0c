"""Makes beacon nodes of candidates: their connections, with the limits and certificates that are set."""

from collections.abc import Callable, Iterable

import httpx

from vc_fallback.base.clock import Clock
from vc_fallback.candidates import Candidate, Member, TLSSettings
from vc_fallback.chain import SlotClock
from vc_fallback.node.caller import Outcomes
from vc_fallback.node.client import BeaconNode
from vc_fallback.settings import MAINNET_SLOT, WireSettings
from vc_fallback.wire.client import HTTPClient
from vc_fallback.wire.dial import Resolver, SystemResolver
from vc_fallback.wire.http import WireLimits
from vc_fallback.wire.tls import TLSContexts


class NodeFactory:
    """Candidates with equal certificates share one TLS context."""

    def __init__(
        self, settings: WireSettings, resolver: Resolver | None, transport: httpx.AsyncBaseTransport | None
    ) -> None:
        self._settings = settings
        self._resolver = resolver or SystemResolver()
        self._transport = transport
        self._contexts = TLSContexts()

    def prepare(self, candidates: Iterable[Candidate], *, anew: bool = False) -> TLSContexts:
        """Make the TLS contexts that candidates need: a file that cannot be used is found before anything changes.

        :param anew: read files again that were read before. The contexts are used from :meth:`use` on.
        :raises ConfigurationError: naming the candidate and the setting.
        """
        contexts = TLSContexts() if anew else self._contexts
        for position, candidate in enumerate(candidates):
            if _uses_tls(candidate):
                contexts.get(candidate.tls, field=f"candidates[{position}]")
        return contexts

    def use(self, contexts: TLSContexts) -> None:
        """Take prepared contexts for the nodes that are made from now on."""
        self._contexts = contexts

    def make(
        self,
        member: Member,
        clock: Clock,
        *,
        generation: Callable[[], int],
        slots: Callable[[], SlotClock | None],
        quarantined: Callable[[], str],
        outcomes: Outcomes | None = None,
    ) -> BeaconNode:
        """Make the node of a candidate; nothing is dialled yet.

        :param generation: the present generation of the list.
        :param slots: the chain's slots; `None` while it is unknown.
        :param quarantined: why the node is not to be used, empty where it is.
        :param outcomes: told of every request.
        """
        candidate, settings = member.candidate, self._settings
        http = HTTPClient(
            candidate.url,
            headers=candidate.headers,
            tls=self._contexts.get(candidate.tls) if _uses_tls(candidate) else None,
            limits=WireLimits(body=settings.response_body, error_body=settings.error_body, head=settings.head),
            concurrency=settings.concurrency,
            resolver=self._resolver,
            transport=self._transport,
        )
        known = slots()
        slot_duration = known.duration if known is not None else MAINNET_SLOT
        return BeaconNode(
            member.node_id,
            http,
            clock=clock,
            connect_timeout=settings.scaled("request_connect_timeout", slot_duration),
            mask=candidate.mask,
            generation=generation,
            slots=slots,
            quarantined=quarantined,
            outcomes=outcomes,
        )


def _uses_tls(candidate: Candidate) -> bool:
    # An http:// URL may redirect to https:// on its host; whoever set certificates for it expects that.
    return candidate.url.scheme == "https" or candidate.tls != TLSSettings()
