"""What block a simulated node proposes."""

from dataclasses import dataclass

ETHER = 10**18
"""In wei."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a node answers when it is asked for a block; values in wei.

    :param size: about how many bytes it has as SSZ, blobs apart, with its payload (from Bellatrix on; in Gloas those of
        the payload); 0: as few as there can be.
    :param blinded: its payload comes from a builder: until Fulu the block is blinded, from Gloas on it commits to a
        builder's bid. A request with `builder_boost_factor=0` gets a block of the node's own all the same.
    :param consensus_value: rewards of the block for its proposer; `None` leaves it out, a text is sent as it is.
    :param execution_value: what the payload pays, likewise.
    :param included: whether a Gloas payload comes along when it is asked for.
    :param blobs: how many blobs come with it.
    """

    size: int = 0
    blinded: bool = False
    consensus_value: int | str | None = ETHER // 20
    execution_value: int | str | None = ETHER // 10
    included: bool = True
    blobs: int = 0
