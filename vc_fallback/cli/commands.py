"""The commands and their options. Each command loads what it needs when it runs."""

import math
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer
import typer.core

from vc_fallback.base.errors import ConfigurationError
from vc_fallback.cli.version import version_line

MOST_SLOTS = 2**32
"""Largest `--slots`; more would leave what a float counts exactly, and is 1,600 years of mainnet."""

MOST_NODES = 1000
"""Largest number of simulated nodes; each takes a port and a few descriptors."""

UsageError: type[Exception] = typer.BadParameter.__bases__[0]
"""By version, typer brings its own copy of click or uses the installed one; its public error leads to the base."""


class Commands(typer.core.TyperGroup):
    """The commands, with an error for an unknown one that does not repeat it: it may be a URL in the wrong place."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - click's types, from either place
        """Return a command by its name."""
        command = super().get_command(ctx, cmd_name)
        if command is None:
            raise ConfigurationError("command", f"there is no such command; choose {' or '.join(self.commands)}")
        return command


Word = TypeVar("Word", bound=str)

FORMATS: tuple[Literal["auto", "table", "plain", "jsonl"], ...] = ("auto", "table", "plain", "jsonl")
FRAMINGS = ("lighthouse", "lodestar", "nimbus", "prysm", "teku")
LOG_LEVELS = ("debug", "info", "warning", "error")

# Options are texts and are read by the functions below, whose errors repeat no value.
LogLevelOption = Annotated[
    str, typer.Option("--log-level", metavar="|".join(LOG_LEVELS), help="Log to stderr from this level on.")
]

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    # Locals in a traceback would show the secrets of URLs.
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Hold many Ethereum beacon nodes as one."""
    if version:
        print(version_line())
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        raise ConfigurationError("command", "one is needed; see vc-fallback --help")


@app.command()
def monitor(
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="URL", help="Base URLs of beacon nodes, all primaries, in order.")
    ] = None,
    fallback: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A fallback: its heads count while no primary serves. May be repeated."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Take nodes and settings from a TOML file; SIGHUP has it read again."),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="A table on a terminal, lines, or JSON lines.")
    ] = "auto",
    duration: Annotated[str | None, typer.Option(metavar="SECONDS", help="End after so many seconds.")] = None,
    slots: Annotated[str | None, typer.Option(metavar="N", help="End after so many slots of the clock.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Follow three simulated nodes that fail and come back.")] = False,
    log_level: LogLevelOption = "info",
) -> int:
    """Follow the heads of beacon nodes.

    Exit status: 0, or 1 when no head was delivered, or 2 for a bad configuration.
    """
    from vc_fallback.cli import monitor as command

    options = command.Options(
        urls=urls or [],
        fallbacks=fallback or [],
        config=None if config is None else Path(config),
        form=_choice("--format", form, FORMATS),
        duration=None if duration is None else _seconds("--duration", duration),
        slots=None if slots is None else _whole("--slots", slots, MOST_SLOTS),
        demo=demo,
        log_level=_choice("--log-level", log_level, LOG_LEVELS),
    )
    return command.monitor(options)


@app.command()
def devnet(
    count: Annotated[str, typer.Argument(metavar="COUNT", help="How many nodes.")] = "3",
    slot_duration: Annotated[str, typer.Option(metavar="SECONDS", help="Length of a slot.")] = "2",
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="IP address to listen on.")] = "127.0.0.1",
    port: Annotated[
        list[str] | None, typer.Option(metavar="PORT", help="Once for each node; free ones without it.")
    ] = None,
    framing: Annotated[
        list[str] | None, typer.Option(metavar="|".join(FRAMINGS), help="How the nodes send events, in turn.")
    ] = None,
    faults: Annotated[bool, typer.Option("--faults", help="bn2 stalls, bn3 dies, bn1 freezes, for ever.")] = False,
    log_level: LogLevelOption = "info",
) -> int:
    """Serve simulated beacon nodes on one chain; print the URL of each, one a line."""
    from vc_fallback.cli import devnet as command

    options = command.Options(
        count=_whole("COUNT", count, MOST_NODES),
        slot_duration=_seconds("--slot-duration", slot_duration),
        host=_address("--host", host),
        ports=[_whole("--port", text, 2**16 - 1) for text in port or []],
        framings=[_choice("--framing", text, FRAMINGS) for text in framing or FRAMINGS[:1]],
        faults=faults,
        log_level=_choice("--log-level", log_level, LOG_LEVELS),
    )
    return command.devnet(options)


def _address(field: str, text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise ConfigurationError(field, "an IP address is needed") from None


def _seconds(field: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value <= 0:
        raise ConfigurationError(field, "a number of seconds above 0 is needed")
    return value


def _whole(field: str, text: str, most: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 0 < value <= most:
        raise ConfigurationError(field, f"a whole number from 1 to {most} is needed")
    return value


def _choice(field: str, text: str, choices: Sequence[Word]) -> Word:
    for choice in choices:
        if text == choice:
            return choice
    raise ConfigurationError(field, f"choose one of {', '.join(choices)}")
