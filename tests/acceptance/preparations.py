"""What simulated nodes are told ahead of duties, and what they remember of it."""

from vc_fallback import BeaconCommitteeSubscription, Encodings, ProposerPreparation
from vc_fallback.base.types import Slot
from vc_fallback.testing import SimulatedNode, Submission

PROPOSERS = "/eth/v1/validator/prepare_beacon_proposer"
REGISTRATIONS = "/eth/v1/validator/register_validator"
COMMITTEES = "/eth/v1/validator/beacon_committee_subscriptions"


def preparation(index: int, fee: int = 1) -> ProposerPreparation:
    return ProposerPreparation(index, bytes([fee]) * 20)


def registration(index: int) -> Encodings:
    return Encodings(ssz=bytes([index]) * 180, json=b'{"n":%d}' % index)


def committee(index: int, slot: int) -> BeaconCommitteeSubscription:
    return BeaconCommitteeSubscription(index, 0, 1, Slot(slot), False)


def told(node: SimulatedNode, path: str = PROPOSERS) -> list[Submission]:
    """Return what a node took of a kind, or refused."""
    return [submission for submission in node.prepared if submission.route == path]


def recipients(node: SimulatedNode) -> dict[int, int]:
    """Return whom a node would pay, by the first byte of the address."""
    return {index: address[0] for index, address in node.state.pool.fee_recipients.items()}


def forget(node: SimulatedNode) -> None:
    """Let a node forget whom it is to pay, as it does when it restarts."""
    node.state.pool.fee_recipients.clear()
