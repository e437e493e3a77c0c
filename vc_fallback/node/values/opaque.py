"""Values that nothing here decodes (rule 12): their bytes, their form, and what came with them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Opaque:
    """A block, a blinded block, an envelope, a bid, an attestation, or blobs.

    :param version: its fork, in lower case; also one that is not known here (case 58). `None` where the node names none
        and the API does not ask for it: blobs, and attestations by the older route.
    :param content_type: what `body` is: `application/octet-stream`, its SSZ serialisation, or `application/json`.
    :param body: the bytes of it as they came; of a JSON answer those of its `data`, without what stands around it.
    :param execution_optimistic: whether it rests on a payload that is not verified; `None` where the node does not say,
        as with SSZ.
    :param finalized: whether it is finalized; `None` likewise.
    """

    version: str | None
    content_type: str
    body: bytes
    execution_optimistic: bool | None = None
    finalized: bool | None = None

    def __repr__(self) -> str:
        return f"<Opaque {self.version}, {len(self.body)} bytes of {self.content_type}>"


@dataclass(frozen=True, slots=True, repr=False)
class ProducedBlock:
    """A block to be signed, as a node made it.

    :param version: its fork, in lower case; also one that is not known here (case 58).
    :param blinded: whether `body` is a blinded block, which is signed and published as one; never from Gloas on.
    :param included: whether the execution payload came with it. From Gloas on `body` is then block contents with
        envelope and blobs, else the block alone: either the payload is a builder's, or it was not asked for and is at
        the node that made the block (Q9). Before Gloas it is whether the block is not blinded.
    :param consensus_value: rewards of the proposer for it, in wei; `None` where the node says nothing readable.
    :param execution_value: value of its execution payload, in wei; `None` likewise, and always from Gloas on.
    :param content_type: what `body` is: `application/octet-stream`, its SSZ serialisation, or `application/json`.
    :param body: the bytes of it as they came; of a JSON answer those of its `data`, without what stands around it.
    """

    version: str
    blinded: bool
    included: bool
    consensus_value: int | None
    execution_value: int | None
    content_type: str
    body: bytes

    def __repr__(self) -> str:
        kind = "blinded, " if self.blinded else ""
        return f"<ProducedBlock {self.version}, {kind}{len(self.body)} bytes of {self.content_type}>"
