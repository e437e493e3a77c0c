"""Reading a TOML file whose texts may name environment variables, so that secrets stand in no file (O6)."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vc_fallback.base.errors import ConfigurationError, field_path

LARGEST = 2**20
"""Bytes of a configuration file that are read; more is a mistake."""

_VARIABLE = re.compile(r"\$(?:\$|\{([^}]*)\}|)")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_toml(path: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Read a file and put the variables in: `${NAME}` stands for an environment variable, `$$` for a dollar sign.

    :raises ConfigurationError: `field` is `config` where the file cannot be read or is not TOML, else the dotted path
        of the value whose variable is missing. No value is repeated.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise ConfigurationError("config", f"the file cannot be read ({error.strerror or 'unknown error'})") from None
    except ValueError:
        raise ConfigurationError("config", "the path of the file holds NUL") from None
    if len(data) > LARGEST:
        raise ConfigurationError("config", f"the file is larger than {LARGEST} bytes")
    try:
        values = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise ConfigurationError("config", "the file is not UTF-8") from None
    except ValueError as error:
        # Not TOMLDecodeError alone: an integer of 5,000 digits is a plain ValueError.
        raise ConfigurationError("config", f"the file is not TOML ({_place(str(error))})") from None
    except RecursionError:
        raise ConfigurationError("config", "the file is nested too deeply") from None
    try:
        filled: dict[str, Any] = _fill(values, environment, ())
    except RecursionError:
        raise ConfigurationError("config", "the file is nested too deeply") from None
    return filled


def _place(message: str) -> str:
    """Keep the place of a TOML error and nothing else: its words may repeat what stands there."""
    found = re.search(r"at (line \d+, column \d+|end of document)", message)
    return found[1] if found else "unknown place"


def _fill(
    value: Any,  # noqa: ANN401 - TOML can hold anything
    environment: Mapping[str, str],
    path: tuple[int | str, ...],
) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {key: _fill(item, environment, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, environment, (*path, index)) for index, item in enumerate(value)]
    if not isinstance(value, str) or "$" not in value:
        return value

    def put_in(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        name = match[1]
        if name is None or not _VARIABLE_NAME.fullmatch(name):
            raise ConfigurationError(field_path(path), "a dollar sign that is neither ${NAME} nor $$")
        if name not in environment:
            raise ConfigurationError(field_path(path), f"the environment variable {name} is not set")
        return environment[name]

    return _VARIABLE.sub(put_in, value)
