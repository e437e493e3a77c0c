"""What a node is: its version, its chain, how far it is."""

from collections.abc import Mapping
from typing import Any

from vc_fallback.base.redact import printable
from vc_fallback.base.types import Sourced
from vc_fallback.chain import ChainIdentity
from vc_fallback.node import routes
from vc_fallback.node.caller import Caller, again, reads_data
from vc_fallback.node.spec import chain_identity
from vc_fallback.node.values.about import (
    ClientVersion,
    ClientVersions,
    DepositContract,
    ForkVersions,
    Genesis,
    NetworkIdentity,
    PeerCount,
    Syncing,
    Version,
)
from vc_fallback.node.values.answers import Data
from vc_fallback.wire.http import Response

_VERSION = Data[Version]
_VERSIONS = Data[ClientVersions]
_SYNCING = Data[Syncing]
_GENESIS = Data[Genesis]
_SPEC = Data[dict[str, Any]]
_IDENTITY = Data[NetworkIdentity]
_PEER_COUNT = Data[PeerCount]
_FORK_SCHEDULE = Data[list[ForkVersions]]
_DEPOSIT_CONTRACT = Data[DepositContract]


class AboutEndpoints(Caller):
    """These are asked of quarantined nodes too: their answers say whether a node may come back (N7)."""

    async def version(self, *, timeout: float | None = None) -> Sourced[str]:
        """Return the node's version string, fit for one line; after a new one nothing counts as lacking (Q13)."""
        answer = await self._ask(routes.VERSION, reads_data(_VERSION), timeout=timeout)
        text = printable(self.mask(answer.value.version))
        self.capabilities.seen_version(text)
        return Sourced(text, answer.provenance)

    async def client_versions(self, *, timeout: float | None = None) -> Sourced[ClientVersions]:
        """Return the versions of the node and of its execution client, their texts fit for one line.

        :raises UnsupportedEndpoint: where the node does not have this newer endpoint beside `version`.
        """
        answer = await self._ask(routes.VERSION_V2, reads_data(_VERSIONS), timeout=timeout)

        def plain(client: ClientVersion) -> ClientVersion:
            texts = (client.code, client.name, client.version, client.commit)
            return ClientVersion(*(printable(self.mask(text)) for text in texts))

        node, execution = answer.value.beacon_node, answer.value.execution_client
        return Sourced(ClientVersions(plain(node), None if execution is None else plain(execution)), answer.provenance)

    async def health(self, *, timeout: float | None = None) -> Sourced[int]:
        """Return the status of the health endpoint: 200 ready, 206 syncing or not fully able (case 40).

        :raises NotReady: for 503: not started, or in trouble.
        """
        return await self._ask(routes.HEALTH, lambda response: response.status, timeout=timeout, success=(200, 206))

    async def syncing(self, *, timeout: float | None = None) -> Sourced[Syncing]:
        """Return how far the node is; 206 says it as well, as for its health (case 40)."""
        return await self._ask(routes.SYNCING, reads_data(_SYNCING), timeout=timeout, success=(200, 206))

    async def network_identity(self, *, timeout: float | None = None) -> Sourced[NetworkIdentity]:
        """Return who the node is among its peers."""
        return await self._ask(routes.IDENTITY, reads_data(_IDENTITY), timeout=timeout)

    async def peer_count(self, *, timeout: float | None = None) -> Sourced[PeerCount]:
        """Return how many peers the node has."""
        return await self._ask(routes.PEER_COUNT, reads_data(_PEER_COUNT), timeout=timeout)

    async def genesis(self, *, timeout: float | None = None) -> Sourced[Genesis]:
        """Return the chain's genesis.

        :raises NotFound: before it is known.
        """
        return await self._ask(routes.GENESIS, reads_data(_GENESIS), timeout=timeout)

    async def spec(self, *, timeout: float | None = None) -> Sourced[Mapping[str, Any]]:
        """Return the node's configuration as it sends it: most values are texts, some lists (case 34)."""
        return await self._ask(routes.SPEC, reads_data(_SPEC), timeout=timeout)

    async def fork_schedule(self, *, timeout: float | None = None) -> Sourced[list[ForkVersions]]:
        """Return the forks that the node knows, past and to come."""
        return await self._ask(routes.FORK_SCHEDULE, reads_data(_FORK_SCHEDULE), timeout=timeout)

    async def deposit_contract(self, *, timeout: float | None = None) -> Sourced[DepositContract]:
        """Return where deposits are made."""
        return await self._ask(routes.DEPOSIT_CONTRACT, reads_data(_DEPOSIT_CONTRACT), timeout=timeout)

    async def identity(self, *, timeout: float | None = None) -> Sourced[ChainIdentity]:
        """Ask for genesis and configuration, and put the node's chain identity together (I1)."""
        limit = self.request_timeout if timeout is None else timeout
        asked = self._clock.now()
        genesis = await self.genesis(timeout=limit)

        def read(response: Response) -> ChainIdentity:
            return chain_identity(genesis.value, reads_data(_SPEC)(response))

        answer = await self._ask(routes.SPEC, read, timeout=limit - (self._clock.now() - asked))
        return again(answer, genesis.provenance.attempts)
