"""Reading answers whose values pass through as bytes (rule 12), and the headers that say what they are."""

import re

import msgspec

from vc_fallback.node.caller import WithoutVersion, is_ssz
from vc_fallback.node.values.adapters import Unreadable
from vc_fallback.node.values.encodings import JSON, SSZ
from vc_fallback.node.values.opaque import Opaque, ProducedBlock
from vc_fallback.wire.http import Response

_VERSION = "Eth-Consensus-Version"
_BLINDED = "Eth-Execution-Payload-Blinded"
_INCLUDED = "Eth-Execution-Payload-Included"
_CONSENSUS_VALUE = "Eth-Consensus-Block-Value"
_EXECUTION_VALUE = "Eth-Execution-Payload-Value"

_NAME = re.compile(r"[a-z0-9_.-]{1,64}")
_WEI = re.compile(r"0|[1-9][0-9]{0,77}")
_ABSENT = msgspec.Raw()


class _Answer(msgspec.Struct):
    # All as it stands in the answer: what is odd about one member must not cost the block.
    data: msgspec.Raw
    version: msgspec.Raw = _ABSENT
    execution_optimistic: msgspec.Raw = _ABSENT
    finalized: msgspec.Raw = _ABSENT
    execution_payload_blinded: msgspec.Raw = _ABSENT
    execution_payload_included: msgspec.Raw = _ABSENT
    execution_payload_value: msgspec.Raw = _ABSENT
    consensus_block_value: msgspec.Raw = _ABSENT


_NOTHING = _Answer(_ABSENT)
_DECODER = msgspec.json.Decoder(_Answer)


class _Said:
    """An answer taken apart: form and bytes of its value, and what its headers and members say of it."""

    __slots__ = ("around", "body", "form", "headers")

    def __init__(self, response: Response, *, listed: bool = False) -> None:
        self.headers = _headers(response)
        if is_ssz(response):
            if not response.body and not listed:
                raise Unreadable("SSZ of no length")
            self.form, self.body, self.around = SSZ, response.body, _NOTHING
            return
        try:
            self.around = _DECODER.decode(response.body)
        except (msgspec.DecodeError, RecursionError) as error:
            # Nothing is read but names of members, so the text repeats nothing.
            raise Unreadable(str(error)) from None
        # The only copy; before it, it is a view of the answer.
        self.form, self.body = JSON, bytes(self.around.data)
        if self.body[:1] != (b"[" if listed else b"{") or self.body == b"{}":
            raise Unreadable("data: not a list" if listed else "data: not an object with members")

    def version(self) -> str | None:
        # A bare `null` is no name.
        member = self.around.version if bytes(memoryview(self.around.version)[:1]) == b'"' else _ABSENT
        return _name(self.headers.get(_VERSION.lower(), "")) or _name(_text(member))

    def flag(self, header: str, member: msgspec.Raw) -> bool | None:
        said = _flag(self.headers.get(header.lower(), ""))
        return _flag(_text(member)) if said is None else said

    def wei(self, header: str, member: msgspec.Raw) -> int | None:
        said = _wei(self.headers.get(header.lower(), ""))
        return _wei(_text(member)) if said is None else said

    def without(self, header: str) -> ValueError:
        if self.form == SSZ:
            return WithoutVersion(f"SSZ without {header}")
        return Unreadable(f"neither {header} nor its member")


def read_opaque(response: Response, *, versioned: bool = True, listed: bool = False) -> Opaque:
    """Read an answer whose `data` is opaque.

    :param versioned: whether the API has the answer name its fork.
    :param listed: whether it is a list, which may be empty; else it is one value.
    :raises WithoutVersion: for SSZ that does not name its fork and is to.
    :raises Unreadable: for anything else that is not as the API defines it.
    """
    said = _Said(response, listed=listed)
    version = said.version()
    if version is None and versioned:
        raise said.without(_VERSION)
    optimistic, finalized = _flag(_text(said.around.execution_optimistic)), _flag(_text(said.around.finalized))
    return Opaque(version, said.form, said.body, optimistic, finalized)


def read_block_v2(response: Response) -> ProducedBlock:
    """Read a block by the oldest route, which has neither blinded blocks nor values. Errors as `read_opaque`."""
    said = _Said(response)
    version = said.version()
    if version is None:
        raise said.without(_VERSION)
    return ProducedBlock(version, False, True, None, None, said.form, said.body)


def read_block_v3(response: Response) -> ProducedBlock:
    """Read a block of before Gloas. Errors as `read_opaque`; SSZ is to say as well whether it is blinded."""
    said = _Said(response)
    version, blinded = said.version(), said.flag(_BLINDED, said.around.execution_payload_blinded)
    if version is None or blinded is None:
        raise said.without(_VERSION if version is None else _BLINDED)
    consensus = said.wei(_CONSENSUS_VALUE, said.around.consensus_block_value)
    execution = said.wei(_EXECUTION_VALUE, said.around.execution_payload_value)
    return ProducedBlock(version, blinded, not blinded, consensus, execution, said.form, said.body)


def read_block_v4(response: Response) -> ProducedBlock:
    """Read a block of Gloas or later. Errors as `read_opaque`; SSZ is to say as well whether the payload is in it."""
    said = _Said(response)
    version, included = said.version(), said.flag(_INCLUDED, said.around.execution_payload_included)
    if version is None or included is None:
        raise said.without(_VERSION if version is None else _INCLUDED)
    consensus = said.wei(_CONSENSUS_VALUE, said.around.consensus_block_value)
    return ProducedBlock(version, False, included, consensus, None, said.form, said.body)


def _headers(response: Response) -> dict[str, str]:
    """Return the headers that say what a value is, with names in lower case."""
    found: dict[str, str] = {}
    for key, value in response.headers.raw:
        if key[:4].lower() == b"eth-":
            text = value.decode("latin-1").strip()
            # A proxy may repeat one; where its values differ it says nothing.
            if found.setdefault(key.decode("latin-1").lower(), text) != text:
                found[key.decode("latin-1").lower()] = ""
    return found


def _text(member: msgspec.Raw) -> str:
    """Return a short member as it is written, without quotation marks."""
    text = bytes(memoryview(member)[:128])
    if len(text) > 1 and text[:1] == text[-1:] == b'"':
        text = text[1:-1]
    return text.decode("latin-1")


def _name(text: str) -> str | None:
    text = text.lower()
    return text if _NAME.fullmatch(text) else None


def _flag(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _wei(text: str) -> int | None:
    value = int(text) if _WEI.fullmatch(text) else None
    return value if value is None or value < 2**256 else None
