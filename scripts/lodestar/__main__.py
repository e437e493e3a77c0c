"""The command line behind scripts/devnet."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn, get_args

from scripts.lodestar.devnet import Devnet, Execution
from scripts.lodestar.errors import DevnetError
from scripts.lodestar.modules import ensure_modules
from scripts.lodestar.rest import RestError
from scripts.lodestar.state import default_directory

FAILED = 1
MISUSED = 2
INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """One line for every misuse."""

    def error(self, message: str) -> NoReturn:
        print(f"devnet: {message} (see --help)", file=sys.stderr)
        raise SystemExit(MISUSED)


def _parser() -> argparse.ArgumentParser:
    common = _Parser(add_help=False)
    common.add_argument(
        "--dir",
        type=Path,
        help="where its data is (default: $VC_FALLBACK_DEVNET_DIR, or vc-fallback/devnet in $XDG_STATE_HOME)",
    )
    parser = _Parser(
        prog="scripts/devnet", description="Real beacon nodes (Lodestar 1.5.1) on one chain, on 127.0.0.1."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    def add(name: str, about: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=about, description=about, parents=[common])

    up = add("up", "start N nodes and the validators, and wait for a common head")
    up.add_argument("nodes", type=int, metavar="N")
    up.add_argument("--slot-duration", type=int, choices=(1, 2), default=1, help="seconds (default 1)")
    up.add_argument("--no-validators", action="store_true", help="no block is proposed until `vc`")
    add("down", "kill everything and remove the data")
    for name, about in (
        ("kill", "SIGKILL node I"),
        ("freeze", "SIGSTOP node I"),
        ("thaw", "SIGCONT node I"),
        ("restart", "start node I again on its data and link it"),
    ):
        add(name, about).add_argument("node", type=int, metavar="I")
    for name, about in (
        ("peer", "link nodes I and J again"),
        ("unpeer", "cut the link of I and J; nodes apart from the largest group get no more blocks"),
    ):
        pair = add(name, about)
        pair.add_argument("node", type=int, metavar="I")
        pair.add_argument("other", type=int, metavar="J")
    el = add("el", "break or mend the execution engine of node I")
    el.add_argument("node", type=int, metavar="I")
    el.add_argument("mode", choices=get_args(Execution))
    vc = add(
        "vc",
        "start the validator client if it does not run; with I…, start it again on these nodes, best first",
    )
    vc.add_argument("nodes", type=int, metavar="I", nargs="*")
    add("urls", "print the nodes' base URLs")
    add("status", "print what each process does")
    add("install", "install Lodestar's npm modules, which `up` does by itself")
    return parser


def _up(arguments: argparse.Namespace) -> None:
    devnet = Devnet(arguments.dir, nodes=arguments.nodes, slot_duration=arguments.slot_duration)
    devnet.up(validators=not arguments.no_validators)
    print(f"{arguments.nodes} nodes with {arguments.slot_duration} s slots up: {' '.join(devnet.urls)}")


def _down(arguments: argparse.Namespace) -> None:
    print("down" if Devnet(arguments.dir).down() else "nothing was up")


def _kill(arguments: argparse.Namespace) -> None:
    Devnet(arguments.dir).kill(arguments.node)
    print(f"node {arguments.node} killed")


def _freeze(arguments: argparse.Namespace) -> None:
    Devnet(arguments.dir).freeze(arguments.node)
    print(f"node {arguments.node} frozen")


def _thaw(arguments: argparse.Namespace) -> None:
    Devnet(arguments.dir).thaw(arguments.node)
    print(f"node {arguments.node} thawed")


def _restart(arguments: argparse.Namespace) -> None:
    Devnet(arguments.dir).restart(arguments.node)
    print(f"node {arguments.node} restarted")


def _peer(arguments: argparse.Namespace) -> None:
    Devnet(arguments.dir).peer(arguments.node, arguments.other)
    print(f"nodes {arguments.node} and {arguments.other} linked")


def _unpeer(arguments: argparse.Namespace) -> None:
    Devnet(arguments.dir).unpeer(arguments.node, arguments.other)
    print(f"nodes {arguments.node} and {arguments.other} cut apart")


def _el(arguments: argparse.Namespace) -> None:
    Devnet(arguments.dir).execution(arguments.node, arguments.mode)
    print(f"execution engine of node {arguments.node}: {arguments.mode}")


def _vc(arguments: argparse.Namespace) -> None:
    if Devnet(arguments.dir).validator_client(arguments.nodes):
        print(f"validator client started on {' '.join(map(str, arguments.nodes)) or 'its own node'}")
    else:
        print("the validator client is running already")


def _urls(arguments: argparse.Namespace) -> None:
    print("\n".join(Devnet(arguments.dir).urls))


def _status(arguments: argparse.Namespace) -> None:
    devnet = Devnet(arguments.dir)
    print(f"slot {devnet.slot_now()}, {devnet.slot_duration} s slots, genesis at {devnet.genesis_time}")
    for number in (*devnet.numbers, 0):
        what: str = devnet.condition(number)
        if what == "running":
            try:
                head = devnet.head(number)
            except RestError as error:
                what += f", does not answer: {error}"
            else:
                what += f", head {head.slot} {head.root}{' (optimistic)' if head.optimistic else ''}"
        print(f"{'validators’ node' if number == 0 else f'node {number}'} {devnet.url(number)}: {what}")
    print(f"validator client: {'running' if devnet.validators_running() else 'dead'}")


def _install(_: argparse.Namespace) -> None:
    print(f"Lodestar is in {ensure_modules()}")


COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "up": _up,
    "down": _down,
    "kill": _kill,
    "freeze": _freeze,
    "thaw": _thaw,
    "restart": _restart,
    "peer": _peer,
    "unpeer": _unpeer,
    "el": _el,
    "vc": _vc,
    "urls": _urls,
    "status": _status,
    "install": _install,
}


def _terminate(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it did what it says, 1 when it failed, 2 when it was misused."""
    # As other commands do: `status | head -1` ends quietly, and `up` tidies when it is told to end. A shell's
    # background job starts with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, _terminate)
    arguments = _parser().parse_args(words)
    arguments.dir = arguments.dir or default_directory()
    try:
        COMMANDS[arguments.command](arguments)
    except DevnetError as error:
        print(f"devnet: {error}", file=sys.stderr)
        if error.detail:
            print(error.detail, file=sys.stderr)
        return MISUSED if error.misuse else FAILED
    except (RestError, OSError) as error:
        print(f"devnet: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
