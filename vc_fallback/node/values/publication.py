"""What became of something published on one node (rule 8)."""

from enum import StrEnum


class Publication(StrEnum):
    """How a node took what it was given."""

    ACCEPTED = "accepted"
    """Taken and, where it is a block, imported (200)."""
    BROADCAST = "broadcast"
    """A block that was sent on and not imported (202): neither an error nor a full success (case 53)."""
