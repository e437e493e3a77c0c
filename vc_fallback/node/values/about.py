"""What a node says of itself and of its chain."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from vc_fallback.node.values.fields import VALUE, Bytes4, Bytes20, EpochNumber, Flag, RootBytes, SlotNumber, Uint64

Text = Annotated[str, Field(max_length=65_536)]


@dataclass(frozen=True, slots=True, config=VALUE)
class Genesis:
    """Genesis of the chain; `genesis_time` is Unix time in seconds."""

    genesis_time: Uint64
    genesis_validators_root: RootBytes
    genesis_fork_version: Bytes4 | None = None


@dataclass(frozen=True, slots=True, config=VALUE)
class Syncing:
    """How far a node is; distance in slots. Flags that older nodes do not send are unknown (`None`)."""

    head_slot: SlotNumber
    sync_distance: Uint64
    is_syncing: Flag
    is_optimistic: Flag | None = None
    el_offline: Flag | None = None


@dataclass(frozen=True, slots=True, config=VALUE)
class Version:
    """The version string of a node, as it is."""

    version: Text


@dataclass(frozen=True, slots=True, config=VALUE)
class ClientVersion:
    """One program, as the Engine API names it: a code of two letters, its name, version, and commit (`0x…`)."""

    code: Text
    name: Text
    version: Text
    commit: Text


@dataclass(frozen=True, slots=True, config=VALUE)
class ClientVersions:
    """What a node is and what executes for it; `execution_client` is `None` where the node does not know."""

    beacon_node: ClientVersion
    execution_client: ClientVersion | None = None


@dataclass(frozen=True, slots=True, config=VALUE)
class NetworkIdentity:
    """Who a node is among its peers."""

    peer_id: Text
    enr: Text
    p2p_addresses: list[Text]
    discovery_addresses: list[Text]
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True, config=VALUE)
class PeerCount:
    """Numbers of peers by the state of their connection."""

    connected: Uint64
    connecting: Uint64 = 0
    disconnected: Uint64 = 0
    disconnecting: Uint64 = 0


@dataclass(frozen=True, slots=True, config=VALUE)
class ForkVersions:
    """A fork as states and schedules name it: from `epoch` on `current_version` holds."""

    previous_version: Bytes4
    current_version: Bytes4
    epoch: EpochNumber


@dataclass(frozen=True, slots=True, config=VALUE)
class DepositContract:
    """Where deposits are made on the execution layer."""

    chain_id: Uint64
    address: Bytes20
