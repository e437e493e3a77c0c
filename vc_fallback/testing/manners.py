"""How a simulated node takes requests and words its answers, whatever it knows."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from vc_fallback.testing.framings import FramingName

DuplicateWay = Literal["lighthouse", "prysm", "teku", "nimbus", "lodestar", "accept", "failures"]
"""What a node answers to what it has already: as that client does; `accept`: 200 again; `failures`: 400 that names each
item of a list (`PriorAttestationKnown`), as older nodes do."""

MISSING_IN_LODESTAR_1_5 = frozenset(
    {
        "produceBlockV3",
        "publishBlockV2",
        "publishBlindedBlockV2",
        "postStateValidators",
        "postStateValidatorBalances",
        "getProposerDutiesV2",
        "getLiveness",
        "getAggregatedAttestationV2",
        "publishAggregateAndProofsV2",
        "submitPoolAttestationsV2",
        "submitPoolAttesterSlashingsV2",
        "submitBeaconCommitteeSelections",
        "submitSyncCommitteeSelections",
        "getNodeVersionV2",
    }
)
"""For `routes_missing`: what a real node of that version has not got, of what there was before Gloas."""


@dataclass(slots=True)
class Manners:
    """How a node deals with requests.

    :param client: whose words it uses for errors.
    :param ssz: whether it speaks SSZ: without, it refuses SSZ requests with 415 and answers JSON whatever `Accept` is.
    :param strict_accept: whether it answers 406 also on routes that have JSON alone, publishes among them, when
        `Accept` names nothing it has (cases.md 57). On routes that have both forms it always does.
    :param routes_missing: operations (`produceBlockV3`), templates (`/eth/v3/validator/blocks/{slot}`) or both with
        the method (`POST /eth/v1/…`) that it has not got; as a mapping to the status that says so, else with 404.
    :param version_header: the name of `Eth-Consensus-Version` on its answers, in the case in which it is written;
        `None` leaves it out (cases.md 58).
    :param duplicates: what it answers to what it has already; `None`: as its client does.
    :param early: attestation data of the next slot is held back until that slot begins, or refused. Beyond the next
        slot it is always refused.
    :param checks: what it checks of what it is sent: `all`; only the `form` (it can be read as what it claims to be);
        or `none`: then any bytes are taken.
    """

    client: FramingName = "lighthouse"
    ssz: bool = True
    strict_accept: bool = False
    routes_missing: Collection[str] | Mapping[str, int] = field(default_factory=frozenset)
    version_header: str | None = "Eth-Consensus-Version"
    duplicates: DuplicateWay | None = None
    early: Literal["hold", "refuse"] = "hold"
    checks: Literal["all", "form", "none"] = "all"

    def missing(self, operation: str, method: str, template: str) -> int | None:
        """Return the status that says that a route is not there, `None` where it is."""
        for name in (operation, template, f"{method} {template}"):
            if name in self.routes_missing:
                return self.routes_missing[name] if isinstance(self.routes_missing, Mapping) else 404
        return None
