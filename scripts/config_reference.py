"""Writes docs/configuration.md from the models of the settings; a test holds the two together."""

import re
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from vc_fallback.base.types import Role, Tier
from vc_fallback.config import CandidateSettings, ChainSettings, FallbackConfig
from vc_fallback.settings import (
    HeadSettings,
    HealthSettings,
    RequestSettings,
    StreamSettings,
    TopicSettings,
    WireSettings,
)

TARGET = Path(__file__).parent.parent / "docs" / "configuration.md"

SECTIONS: Mapping[str, type[BaseModel]] = {
    "Top level": FallbackConfig,
    "`[[candidates]]`": CandidateSettings,
    "`[chain]`": ChainSettings,
    "`[streams]`": StreamSettings,
    "`[heads]`": HeadSettings,
    "`[topics]`": TopicSettings,
    "`[health]`": HealthSettings,
    "`[requests]`": RequestSettings,
    "`[wire]`": WireSettings,
}

_REQUIREMENT = re.compile(r" \((?:[A-Z][0-9]+[a-z]?(?:, )?)+\)")

HEAD = """# Configuration

One TOML file for the command (`vc-fallback monitor --config fallback.toml`) and the library
(`FallbackConfig.load("fallback.toml")`). This page is generated from the models of the settings by
`python -m scripts.config_reference`.

- `${NAME}` in any text stands for an environment variable, so that secrets stand in no file; `$$` is a dollar sign.
- Paths of certificates are relative to the file.
- Defaults in seconds are for slots of 12 s. They scale with the slot of the network (never below 0.2 s) unless they are
  set. A clock is switched off by `false`.
- A file with an unknown key, a wrong type, two nodes of one name or a variable that is not set is refused; the error
  names the field.

```toml
network = "hoodi"

[[candidates]]
name = "home"
url = "http://127.0.0.1:5052"

[[candidates]]
name = "provider"
tier = "fallback"
url = "https://eth.example.org/v1/${PROVIDER_KEY}"
headers = { Authorization = "Bearer ${PROVIDER_TOKEN}" }

[streams]
hard_clock = false
```
"""


def reference() -> str:
    """Return the page."""
    return HEAD + "".join(f"\n## {title}\n\n" + "\n".join(_table(model)) + "\n" for title, model in SECTIONS.items())


def _table(model: type[BaseModel]) -> Iterator[str]:
    yield "| field | type | default | meaning |"
    yield "|---|---|---|---|"
    for name, field in model.model_fields.items():
        meaning = _REQUIREMENT.sub("", " ".join((field.description or "").split()))
        if not meaning:
            raise ValueError(f"{model.__name__}.{name} has no docstring")
        yield f"| `{name}` | {_type(field)} | {_default(field)} | {meaning} |"


def _type(field: FieldInfo) -> str:
    text = _name(field.annotation)
    limits = {type(limit): limit for limit in field.metadata}
    for kind, sign in ((Gt, ">"), (Ge, "≥"), (Lt, "<"), (Le, "≤")):
        if kind in limits:
            text += f", {sign} {_number(getattr(limits[kind], kind.__name__.lower()))}"
    return text


def _number(value: float) -> str:
    for power in (40, 32, 31):
        if abs(value) == 2**power:
            return f"{'−' if value < 0 else ''}2^{power}"
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else f"{value:g}"


def _name(annotation: Any) -> str:  # noqa: ANN401 - a type of any kind
    origin = get_origin(annotation)
    if origin is Annotated:
        return _name(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return " or ".join(_name(part) for part in get_args(annotation) if part is not type(None))
    if origin is Literal:
        return " or ".join(f'`"{value}"`' for value in get_args(annotation))
    if origin is tuple:
        return "tables"
    if origin is frozenset:
        return "list of texts"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "table of texts"
    names: dict[Any, str] = {bool: "true or false", int: "integer", float: "number", str: "text", Path: "path"}
    if annotation in names:
        return names[annotation]
    if annotation is SecretStr:
        return "text (secret)"
    if annotation in (Tier, Role):
        return " or ".join(f'`"{value}"`' for value in annotation)
    return "table"


def _default(field: FieldInfo) -> str:
    value = field.default
    if field.is_required():
        return "required"
    if value is None or value in ((), {}, ""):
        return "none"
    if isinstance(value, BaseModel):
        return "see below"
    if isinstance(value, frozenset):
        return "all"
    if isinstance(value, bool):
        return str(value).lower()
    return f'`"{value}"`' if isinstance(value, str) else _number(value)


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
