"""Starting Lodestar's nodes and validator client, and waiting for what they should do then."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

from scripts.lodestar import processes, rest
from scripts.lodestar.errors import DevnetError
from scripts.lodestar.modules import HERE
from scripts.lodestar.rest import Head, RestError
from scripts.lodestar.state import State

VALIDATORS = 8
# The validators' node never calls itself syncing, so that a chain goes on after any pause (slots).
TOLERANCE = 1_000_000
# Slots do not wait: where it is allowed (root), the validators go before everything else on a busy machine.
NICENESS = -5
_FIRST = ("nice", "-n", str(NICENESS))
LOG_TAIL = 15
VC = "vc"
# A client for half of the validators, beside the other: see Devnet.split_validators.
SECOND_VC = "vc-2"
Condition = Literal["running", "frozen", "dead"]


def node_name(number: int) -> str:
    """The key of a node among the processes, and its folder's name."""
    return f"node-{number}"


def engine_file(directory: Path, number: int) -> Path:
    """The file that breaks a node's execution engine; see launcher.mjs."""
    return directory / node_name(number) / "engine"


def start_node(directory: Path, state: State, number: int, modules: Path) -> None:
    """Start one node and note its process."""
    extra = {"DEVNET_ENGINE_FILE": str(engine_file(directory, number))}
    if number == 0:
        extra["DEVNET_TOLERANCE"] = str(TOLERANCE)
    arguments = [
        *("dev", "--genesisValidators", str(VALIDATORS), "--genesisTime", str(state.genesis_time)),
        *("--eth1", "false", "--execution.engineMock"),
        *("--rest", "--rest.address", rest.HOST, "--rest.port", str(state.rest_ports[number])),
        *("--rest.namespace", "*"),
        *("--listenAddress", rest.HOST, "--port", str(state.p2p_ports[number])),
        *("--discv5", "false", "--targetPeers", str(state.nodes + 1)),
        # Blocks of eight validators are verified sooner than a worker thread has started.
        "--chain.blsVerifyAllMainThread",
    ]
    _start(directory, state, node_name(number), arguments, extra, modules)


def start_validators(
    directory: Path,
    state: State,
    numbers: Iterable[int],
    modules: Path,
    *,
    name: str = VC,
    validators: range = range(VALIDATORS),
) -> None:
    """Start a validator client on the nodes given, with the keys of these validators, and note its process."""
    urls = [f"http://{rest.HOST}:{state.rest_ports[number]}" for number in numbers]
    arguments = [
        *("validator", "--network", "dev", "--interopIndexes", f"{validators[0]}..{validators[-1]}"),
        *("--beaconNodes", *urls),
    ]
    _start(directory, state, name, arguments, {}, modules)


def start_client(directory: Path, state: State, command: Sequence[str]) -> None:
    """Start another validator client than Lodestar's, in a folder of its own, and note its process."""
    folder = directory / VC
    folder.mkdir(exist_ok=True)
    state.processes[VC] = processes.spawn(
        [*_FIRST, *command], directory=folder, environment=os.environ, log=log_file(directory, VC)
    )
    state.save(directory)


def _start(
    directory: Path, state: State, name: str, arguments: Sequence[str], extra: dict[str, str], modules: Path
) -> None:
    folder = directory / name
    folder.mkdir(exist_ok=True)
    command = [
        *(_FIRST if name in (VC, SECOND_VC, node_name(0)) else ()),
        *("node", str(HERE / "launcher.mjs"), *arguments),
        *("--dataDir", str(folder / "data"), "--logFile", "none"),
        *("--params.SECONDS_PER_SLOT", str(state.slot_duration)),
        *("--params.ALTAIR_FORK_EPOCH", "0", "--params.BELLATRIX_FORK_EPOCH", "0"),
        *("--params.TERMINAL_TOTAL_DIFFICULTY", "0", "--params.CAPELLA_FORK_EPOCH", "0"),
    ]
    # The minimal preset has epochs of 8 slots; NODE_BACKEND spares a native build of bcrypto.
    environment = os.environ | extra
    environment |= {"LODESTAR_PRESET": "minimal", "NODE_BACKEND": "js", "DEVNET_MODULES": str(modules)}
    # Each has a working directory of its own, because `dev` writes genesis.ssz there.
    state.processes[name] = processes.spawn(
        command, directory=folder, environment=environment, log=log_file(directory, name)
    )
    state.save(directory)


def log_file(directory: Path, name: str) -> Path:
    """Where a process writes its output."""
    return directory / f"{name}.log"


def condition(state: State, number: int) -> Condition:
    """What the system says about a node's process."""
    process = state.processes[node_name(number)]
    if not processes.is_running(process):
        return "dead"
    return "frozen" if processes.is_frozen(process) else "running"


def awake(state: State) -> set[int]:
    """The numbers of the nodes that run and are not frozen."""
    return {number for number in range(state.nodes + 1) if condition(state, number) == "running"}


def check_alive(directory: Path, state: State, name: str) -> None:
    """:raises DevnetError: the process ended; with the end of its log."""
    if not processes.is_running(state.processes[name]):
        raise DevnetError(f"{name} ended by itself", log_tail(directory, name))


def log_tail(directory: Path, name: str) -> str:
    """The last lines a process wrote."""
    try:
        lines = log_file(directory, name).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-LOG_TAIL:])


def await_rest(directory: Path, state: State, number: int, deadline: float) -> None:
    """Wait until a node answers requests.

    :raises DevnetError: it ended, or did not answer before `deadline` (monotonic seconds).
    """
    while True:
        check_alive(directory, state, node_name(number))
        try:
            rest.peer_id(state.rest_ports[number])
        except RestError:
            if time.monotonic() >= deadline:
                name = node_name(number)
                raise DevnetError(f"{name} does not answer in time", log_tail(directory, name)) from None
            time.sleep(0.05)
        else:
            return


def slot_now(state: State) -> int:
    """The slot of this moment; negative before genesis."""
    return int((time.time() - state.genesis_time) // state.slot_duration)


def await_common_head(
    directory: Path,
    state: State,
    numbers: Sequence[int],
    deadline: float,
    *,
    minimum: int = 1,
    meanwhile: Callable[[], None] = lambda: None,
) -> Head:
    """Wait until the nodes given report the same head, at most one slot old and of slot `minimum` or later.

    `meanwhile` is called after each look.

    :raises DevnetError: they did not before `deadline` (monotonic seconds), or one of them or the validator client
        ended.
    """
    while True:
        if VC in state.processes:
            check_alive(directory, state, VC)
        heads: dict[int, Head | str] = {}
        for number in numbers:
            check_alive(directory, state, node_name(number))
            try:
                heads[number] = rest.head(state.rest_ports[number])
            except RestError as error:
                heads[number] = str(error)
        first = heads[numbers[0]]
        if (
            isinstance(first, Head)
            and first.slot >= max(minimum, slot_now(state) - 1)
            and all(other == first for other in heads.values())
        ):
            return first
        if time.monotonic() >= deadline:
            seen = ", ".join(
                f"node {number}: {head.slot if isinstance(head, Head) else head}" for number, head in heads.items()
            )
            raise DevnetError(f"no common head in slot {slot_now(state)} ({seen})", log_tail(directory, VC))
        meanwhile()
        time.sleep(0.05)
