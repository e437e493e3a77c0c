"""What prepares a simulated node for duties to come: subscriptions, fee recipients, registrations, selections."""

from collections.abc import Mapping

from vc_fallback.testing.api.call import Call, Reply, post
from vc_fallback.testing.api.submissions import Item, Received, Sent, receiver
from vc_fallback.testing.containers import operations
from vc_fallback.testing.containers.composite import Container


def _take_preparation(one: Received) -> None:
    one.call.state.pool.fee_recipients[one.value["validator_index"]] = one.value["fee_recipient"]


def _take_preferences(one: Received) -> None:
    message = one.value["message"]
    one.call.state.pool.fee_recipients[message["validator_index"]] = message["fee_recipient"]


def _prepared(kind: Container) -> Sent:
    return Sent(kind, box="prepared")


def _selections(kind: Container) -> Sent:
    """As a distributed validator's middleware: what comes back is the combined proof, not the part that was sent."""

    def answer(call: Call, items: list[Item]) -> Reply:
        combined = []
        for item in items:
            what = {name: value for name, value in item.items() if name != "selection_proof"}
            combined.append({**item, "selection_proof": call.chain.made_up("selection", *what.items(), size=96)})
        return Reply([kind.to_json(item) for item in combined])

    return Sent(kind, box="prepared", answer=answer)


SENT: Mapping[str, tuple[str, Sent]] = {
    "prepareBeaconCommitteeSubnet": (
        "/eth/v1/validator/beacon_committee_subscriptions",
        _prepared(operations.COMMITTEE_SUBSCRIPTION),
    ),
    "prepareSyncCommitteeSubnets": (
        "/eth/v1/validator/sync_committee_subscriptions",
        _prepared(operations.SYNC_SUBSCRIPTION),
    ),
    "submitBeaconCommitteeSelections": (
        "/eth/v1/validator/beacon_committee_selections",
        _selections(operations.COMMITTEE_SELECTION),
    ),
    "submitSyncCommitteeSelections": (
        "/eth/v1/validator/sync_committee_selections",
        _selections(operations.SYNC_SELECTION),
    ),
    "prepareBeaconProposer": (
        "/eth/v1/validator/prepare_beacon_proposer",
        Sent(operations.PREPARATION, box="prepared", take=_take_preparation),
    ),
    "registerValidator": (
        "/eth/v1/validator/register_validator",
        Sent(operations.REGISTRATION, box="prepared", ssz=True),
    ),
    "submitProposerPreferences": (
        "/eth/v1/validator/proposer_preferences",
        Sent(
            operations.PROPOSER_PREFERENCES,
            box="prepared",
            ssz=True,
            versioned=True,
            take=_take_preferences,
        ),
    ),
}
"""What prepares, by operation, with its template."""

ROUTES = tuple(post(operation, template, receiver(sent)) for operation, (template, sent) in SENT.items())
