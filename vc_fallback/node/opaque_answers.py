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


def read_opaque(response: Response, *, versioned: bool = True, listed: bool = False) -> Opaque:
    """Read an answer whose `data` is opaque.

    :param versioned: whether the API has the answer name its fork.
    :param listed: whether it is a list, which may be empty; else it is one value.
    :raises WithoutVersion: for SSZ that does not name its fork and is to.
    :raises Unreadable: for anything else that is not as the API defines it.
    """
    around, form, body = _take(response, listed)
    version = _version(response, around)
    if version is None and versioned:
        raise _without(form, _VERSION)
    return Opaque(version, form, body, _flag(_text(around.execution_optimistic)), _flag(_text(around.finalized)))


def read_block_v2(response: Response) -> ProducedBlock:
    """Read a block by the oldest route, which has neither blinded blocks nor values. Errors as `read_opaque`."""
    around, form, body = _take(response)
    version = _version(response, around)
    if version is None:
        raise _without(form, _VERSION)
    return ProducedBlock(version, False, True, None, None, form, body)


def read_block_v3(response: Response) -> ProducedBlock:
    """Read a block of before Gloas. Errors as `read_opaque`; SSZ is to say as well whether it is blinded."""
    around, form, body = _take(response)
    version, blinded = _version(response, around), _said(response, _BLINDED, around.execution_payload_blinded)
    if version is None or blinded is None:
        raise _without(form, _VERSION if version is None else _BLINDED)
    consensus = _value(response, _CONSENSUS_VALUE, around.consensus_block_value)
    execution = _value(response, _EXECUTION_VALUE, around.execution_payload_value)
    return ProducedBlock(version, blinded, not blinded, consensus, execution, form, body)


def read_block_v4(response: Response) -> ProducedBlock:
    """Read a block of Gloas or later. Errors as `read_opaque`; SSZ is to say as well whether the payload is in it."""
    around, form, body = _take(response)
    version, included = _version(response, around), _said(response, _INCLUDED, around.execution_payload_included)
    if version is None or included is None:
        raise _without(form, _VERSION if version is None else _INCLUDED)
    consensus = _value(response, _CONSENSUS_VALUE, around.consensus_block_value)
    return ProducedBlock(version, False, included, consensus, None, form, body)


def _take(response: Response, listed: bool = False) -> tuple[_Answer, str, bytes]:
    """Return what stands around the value, which is nothing with SSZ; its form; and its bytes."""
    if is_ssz(response):
        if not response.body and not listed:
            raise Unreadable("SSZ of no length")
        return _NOTHING, SSZ, response.body
    try:
        answer = _DECODER.decode(response.body)
    except (msgspec.DecodeError, RecursionError) as error:
        # Nothing is read but names of members, so the text repeats nothing.
        raise Unreadable(str(error)) from None
    # The only copy; before it, it is a view of the answer.
    body = bytes(answer.data)
    if body[:1] != (b"[" if listed else b"{") or body == b"{}":
        raise Unreadable("data: not a list" if listed else "data: not an object with members")
    return answer, JSON, body


def _without(form: str, header: str) -> ValueError:
    return WithoutVersion(f"SSZ without {header}") if form == SSZ else Unreadable(f"neither {header} nor its member")


def _version(response: Response, around: _Answer) -> str | None:
    # A bare `null` is no name.
    named = around.version if bytes(memoryview(around.version)[:1]) == b'"' else _ABSENT
    return _name(_header(response, _VERSION)) or _name(_text(named))


def _said(response: Response, header: str, member: msgspec.Raw) -> bool | None:
    said = _flag(_header(response, header))
    return _flag(_text(member)) if said is None else said


def _value(response: Response, header: str, member: msgspec.Raw) -> int | None:
    value = _wei(_header(response, header))
    return _wei(_text(member)) if value is None else value


def _header(response: Response, name: str) -> str:
    """Return a header that has one value, else an empty text; proxies may repeat it."""
    values = set(response.headers.get_all(name))
    return values.pop().strip() if len(values) == 1 else ""


def _text(member: msgspec.Raw) -> str:
    """Return a short member as it is written, without quotation marks."""
    text = bytes(memoryview(member)[:128])
    if len(text) > 1 and text[:1] == text[-1:] == b'"':
        text = text[1:-1]
    return text.decode("latin-1")


def _name(text: str) -> str | None:
    return text.lower() if _NAME.fullmatch(text.lower()) else None


def _flag(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _wei(text: str) -> int | None:
    value = int(text) if _WEI.fullmatch(text) else None
    return value if value is None or value < 2**256 else None
