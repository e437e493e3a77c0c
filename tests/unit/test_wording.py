"""The table of wordings: each row with a text of its client, and what must not be taken for another thing."""

import time

import pytest

from tests.error_texts import ROOT, SAID, Said
from vc_fallback.node.meanings import ROWS, Row, fitting, is_known, meaning, meaning_of
from vc_fallback.node.wording import FOLDERS, Meaning

KNOWN = "ATTESTATION_ERROR_ATTESTATION_ALREADY_KNOWN"
UNKNOWN = "ATTESTATION_ERROR_UNKNOWN_OR_PREFINALIZED_BEACON_BLOCK_ROOT"
BAD = "ATTESTATION_ERROR_BAD_TARGET_EPOCH"
MULTIPLE = "Multiple errors on publishAttestations\n"


@pytest.mark.parametrize("said", SAID, ids=str)
def test_text_of_a_client_means_what_the_table_says(said: Said) -> None:
    """Rule 10, N3: by the row of that client and no other."""
    assert meaning(said.text) is said.meaning
    row = fitting(said.text)
    assert row is not None
    assert (row.client, row.meaning) == (said.client, said.meaning)
    assert is_known(said.text) is (said.meaning is Meaning.ALREADY_KNOWN)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.client}, {row.pattern}")
def test_every_row_is_needed(row: Row) -> None:
    """Some text is told by it, and by no row before it; it says where it is from."""
    assert any(fitting(said.text) == row for said in SAID)
    assert row.source
    assert row.client in FOLDERS


def test_no_text_is_read_twice() -> None:
    """A pattern that stands in two rows would hide the second."""
    assert len({row.pattern for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        # What has to be there first is not what is there already.
        ("ATTESTATION_ERROR_UNKNOWN_OR_PREFINALIZED_BEACON_BLOCK_ROOT", Meaning.UNKNOWN_BLOCK),
        ("BLOCK_ERROR_PARENT_UNKNOWN", Meaning.UNKNOWN_BLOCK),
        ("unknown block root", None),
        ("block is not known", None),
        # Another block, vote or message of this validator is there: this one is not (slashing, case 46).
        ("BLOCK_ERROR_REPEAT_PROPOSAL", Meaning.REFUSED),
        (f"BAD_REQUEST: Invalid block: Slashable, {ROOT} was proposed already", None),
        ("BAD_REQUEST: proposal for this slot and proposer has already been seen", None),
        (
            "equivocation validation failed: block for slot 9 already exists in fork choice: block is equivocated",
            None,
        ),
        ("Validator already exited", None),
        ("already known", None),
        ("not a duplicate block", None),
        # Known block, invalid.
        ("BLOCK_ERROR_KNOWN_BAD_BLOCK", Meaning.REFUSED),
        # Lighthouse says this of duplicates, and of anything else (case 55).
        ("BAD_REQUEST: Unsupported endpoint version: v1", None),
        (f"BAD_REQUEST: Missing parts of block with root {ROOT}", None),
        ("BLOCK_INPUT_ERROR_INVALID_CONSTRUCTION", None),
        # To ask whether it is optimistic failed.
        ("Could not check optimistic status: context canceled", None),
        ("the node is optimistic about its peers", None),
        # Their one difference is a capital letter: of a gateway, and of a beacon node.
        ("Not Found", Meaning.NO_ENDPOINT),
        ("Not found", Meaning.NOT_FOUND),
        ("not found", None),
        # Names of what is missing.
        ("NOT_FOUND", Meaning.NO_ENDPOINT),
        ("NOT_FOUND: ", None),
        ("Route planning failed: peer not found", None),
        # The past is not the future.
        ("Requested epoch 2 must equal current 3 or next epoch 4", Meaning.REFUSED),
        ("Requested epoch 4 must equal current 3 or next epoch 4", Meaning.REFUSED),
        ("Requested epoch 5 must equal current 3 or next epoch 4", Meaning.FUTURE_SLOT),
        ("invalid request: slot 7 is not the current slot 8", None),
        ("payload attestation data is only available for current slot: requested 7, current 8", None),
        (f"Requested epoch {'9' * 21} must equal current 3 or next epoch 4", Meaning.REFUSED),
        ("ATTESTATION_ERROR_PAST_SLOT", Meaning.REFUSED),
        ("Clock is in the future", None),
        # Faults of the node itself.
        ("BLOCK_ERROR_EXECUTION_ERROR", None),
        ("BLOCK_ERROR_EXECUTION_ENGINE_ERROR", None),
        ("ATTESTATION_ERROR_UNKNOWN_ERROR", None),
        ("Cannot read properties of undefined (reading 'slot')", None),
        ("Internal Server Error", None),
        ("rpc error: code = Internal desc = database is not synced to disk", None),
        ("the database is not synced", None),
        ("disk is syncing", None),
        ("", None),
        # All of a text has to fit, as its client writes it.
        (f"{KNOWN} is what peer 7 says", None),
        (f"peer 7 says {KNOWN}", None),
        (f" {KNOWN}", None),
        (f"{KNOWN}\n", None),
        (KNOWN.lower(), None),
    ],
)
def test_text_is_not_taken_for_what_it_resembles(text: str, meant: Meaning | None) -> None:
    """N3: an error that is not known keeps what its status says of the node."""
    assert meaning(text) is meant
    assert not is_known(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (f"{MULTIPLE}{KNOWN}\n{KNOWN}", Meaning.ALREADY_KNOWN),
        (f"{MULTIPLE}{KNOWN}\nATTESTATION_ERROR_PRIOR_ATTESTATION_KNOWN", Meaning.ALREADY_KNOWN),
        (f"{MULTIPLE}{UNKNOWN}\n{UNKNOWN}", Meaning.UNKNOWN_BLOCK),
        # It does not say of which of them: none counts as taken, and the node is not to blame.
        (f"{MULTIPLE}{KNOWN}\n{UNKNOWN}", Meaning.REFUSED),
        (f"{MULTIPLE}{KNOWN}\n{BAD}", Meaning.REFUSED),
        # One is not the request's fault, or nobody knows whose.
        (f"{MULTIPLE}{KNOWN}\nNode is syncing - no peers", None),
        (f"{MULTIPLE}{KNOWN}\nCannot read properties of undefined", None),
        (f"{MULTIPLE}\n{KNOWN}", None),
        (MULTIPLE, None),
        (
            MULTIPLE + "\n".join(f"Requested slot {number} is in the future" for number in range(80)),
            Meaning.FUTURE_SLOT,
        ),
        ("Invalid contribution and proofs: ;not synced;not synced", Meaning.NOT_READY),
        ("Invalid contribution and proofs: ;not synced;the signature is wrong", None),
        ("Invalid contribution and proofs: ", None),
    ],
)
def test_errors_of_several_items_in_one_text(text: str, meant: Meaning | None) -> None:
    """Q12: clients that name no items put the errors one below the other (Lodestar 1.5 to 1.30, Teku)."""
    assert meaning(text) is meant


def test_one_text_of_too_many_errors_means_nothing() -> None:
    """Q15."""
    assert meaning(MULTIPLE + "\n".join(f"Requested slot {number} is in the future" for number in range(256))) is (
        Meaning.FUTURE_SLOT
    )
    assert meaning(MULTIPLE + "\n".join(f"Requested slot {number} is in the future" for number in range(257))) is None


def test_text_of_several_lines_is_one_text() -> None:
    """Details of some clients have lines."""
    assert meaning("Node is syncing - headSlot 7\ncurrentSlot 99") is Meaning.NOT_READY
    assert meaning("NOT_FOUND: no block\nat slot 9") is Meaning.NOT_FOUND


def test_first_text_that_means_something_holds() -> None:
    """Nimbus and Lighthouse put into details what the message leaves open."""
    assert meaning_of(["no words", "BeaconBlock: too old", "not synced"]) is Meaning.REFUSED
    assert meaning_of(["no words", ""]) is None
    assert meaning_of([]) is None


@pytest.mark.parametrize(
    "text",
    [
        # Begins and goes on as rows with gaps do, and does not end so.
        *("A" * 5000, "a: " * 341, ":" * 1024, "\n" * 1024, "9" * 1024, "NOT_FOUND" * 113, f"{ROOT} " * 15),
        "BAD_REQUEST: " + "(BlockIsAlreadyKnow" * 50,
        "BAD_REQUEST: " + "x ParentUnknown " * 60,
        "Validator index exceeds maximum " + "number of validator" * 50,
        "cached envelope " + " does not match" * 60,
        "PTC duties only available for " + " next epoch 1, requested" * 40,
        "v1/validator and " * 60,
        " endpoint was deprecated" * 40,
        "Requested epoch " + "9" * 1000,
        "a is only available for current slot: requested 1" * 20,
        MULTIPLE + "a\n" * 2000,
        MULTIPLE + "\n".join(":" * (900 + number) for number in range(64)),
        MULTIPLE + "\n".join(f"BAD_REQUEST: {number}" for number in range(200)),
        "Invalid contribution and proofs: " + ";" * 4000,
    ],
    ids=lambda text: text[:30],
)
def test_no_text_takes_long(text: str) -> None:
    """Q15: a node must not be able to stop the program with what it says."""
    began = time.process_time()
    for _ in range(5):
        meaning(text)
        is_known(text)
    assert time.process_time() - began < 1


def test_text_that_is_too_long_means_nothing() -> None:
    """Q15."""
    begun = "Node is syncing - "
    assert meaning(begun + "x" * (1024 - len(begun))) is Meaning.NOT_READY
    assert meaning(begun + "x" * (1025 - len(begun))) is None
    begun = "BAD_REQUEST: BlockIsAlreadyKnown "
    assert is_known(begun + "x" * (1024 - len(begun)))
    assert not is_known(begun + "x" * (1025 - len(begun)))
    assert meaning(MULTIPLE + f"{KNOWN}\n" * 1400 + KNOWN) is Meaning.ALREADY_KNOWN
    assert meaning(MULTIPLE + f"{KNOWN}\n" * 1600 + KNOWN) is None
