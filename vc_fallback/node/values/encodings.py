"""Forms in which opaque values travel (Q2a, rule 12)."""

from dataclasses import dataclass

JSON = "application/json"
SSZ = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Encodings:
    """One signed value in the forms that the caller has; each node is sent the form it takes, byte for byte.

    :param ssz: its SSZ serialisation.
    :param json: the JSON of it, in UTF-8, as the Beacon API defines it.
    """

    ssz: bytes | None = None
    json: bytes | None = None

    def __post_init__(self) -> None:
        if self.ssz is None and self.json is None:
            raise ValueError("neither SSZ nor JSON is given")

    def __repr__(self) -> str:
        forms = [f"{name}: {len(data)} bytes" for name, data in (("ssz", self.ssz), ("json", self.json)) if data]
        return f"<Encodings {', '.join(forms)}>"
