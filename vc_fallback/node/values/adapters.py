"""Readers and writers of JSON for types of values, made once each, when they are first needed."""

from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from vc_fallback.base.errors import field_path


class Unreadable(ValueError):
    """An answer is not as the API defines it. The text says why, and repeats nothing of the answer (rule 11)."""


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - a type, of any form
    """Return the adapter of a type; making one takes about a millisecond."""
    return TypeAdapter(kind)


def read_json(kind: Any, data: bytes) -> Any:  # noqa: ANN401 - a type, of any form
    """Read a value of a type.

    :raises ValueError: for anything else; the text says where, and repeats nothing of it.
    """
    try:
        return adapter(kind).validate_json(data)
    except ValidationError as error:
        raise ValueError(where(error)) from None


def where(error: Exception) -> str:
    """Say what is wrong with an answer without a word of it (rule 11)."""
    if isinstance(error, Unreadable):
        return f"not as the API defines it ({error})"
    if not isinstance(error, ValidationError):
        return f"not as the API defines it ({type(error).__name__})"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    # Behind the members come the names of checks.
    place = [part for part in first["loc"] if isinstance(part, int) or part.isidentifier()]
    return f"not as the API defines it ({field_path(place) or 'the whole'}: {first['type'].replace('_', ' ')})"
