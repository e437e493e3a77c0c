"""Several real beacon nodes (Lodestar 1.5.1) and a validator client on one chain, on this machine.

Only the standard library is needed. Nodes are numbered from 1. Number 0 is one more node, which only the validators
use. So blocks are proposed whatever is done to the others; without it the chain would end for good as soon as all
nodes had paused for an epoch.
"""

import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from scripts.lodestar import launch, links, processes, rest
from scripts.lodestar.errors import MisuseError
from scripts.lodestar.launch import SECOND_VC, VC, Condition, node_name
from scripts.lodestar.modules import ensure_modules, locked
from scripts.lodestar.processes import ProcessId
from scripts.lodestar.rest import Head, RestError
from scripts.lodestar.state import FILE, State, default_directory, free_ports, load

Execution = Literal["ok", "syncing", "error", "invalid"]
MOST_NODES = 8
# How long one command waits for another one that works on the same devnet; `up` is the longest.
LOCK_LIMIT = 150.0
LOCK = ".lock"
# A node with new links fetches 40 slots a second; one that has not come on after this needs other new ones. Each time
# it is given twice as long: on a busy machine it takes its time to begin.
CATCH_UP_LIMIT = 8.0


class Devnet:
    """A devnet in one directory; any number of objects and commands may work on the same one in turn.

    `slot_duration` is 1 or 2 seconds and `nodes` 1 to 8; both matter to `up` only. Time limits are in seconds. Every
    method raises `DevnetError` when it cannot do what it says, or not within its time limit.
    """

    def __init__(self, directory: Path | None = None, *, slot_duration: int = 1, nodes: int = 3) -> None:
        if slot_duration not in (1, 2):
            raise MisuseError(f"the slot duration must be 1 or 2 seconds, not {slot_duration}")
        if not 1 <= nodes <= MOST_NODES:
            raise MisuseError(f"the number of nodes must be 1 to {MOST_NODES}, not {nodes}")
        self.directory = (directory or default_directory()).absolute()
        self._slot_duration = slot_duration
        self._nodes = nodes

    def up(self, *, validators: bool = True, genesis_time: int | None = None, timeout: float = 120.0) -> None:
        """Start and link the nodes, start the validators, and wait until all nodes have the same new head.

        Lodestar's modules are installed before that, outside of `timeout`. When it fails nothing is left running, and
        the error's `detail` is the end of a log. Without `validators` there is no block until
        `validator_client` or `other_client` is called. The chain begins at `genesis_time` (Unix seconds), or as soon
        as the nodes can be there.
        """
        modules = ensure_modules()
        deadline = time.monotonic() + timeout
        self.directory.mkdir(parents=True, exist_ok=True)
        names = {entry.name for entry in self.directory.iterdir()}
        if names - {LOCK} and FILE not in names:
            raise MisuseError(f"{self.directory} holds something that is not a devnet")
        with locked(self.directory / LOCK, LOCK_LIMIT):
            old = load(self.directory)
            if old is not None and any(processes.is_running(process) for process in old.processes.values()):
                raise MisuseError(f"a devnet is running in {self.directory} already")
            self._remove_data()
            ports = free_ports(2 * (self._nodes + 1))
            state = State(
                slot_duration=self._slot_duration,
                nodes=self._nodes,
                # Each process needs about 2 s of processor time to start; the tests' machines have two cores.
                genesis_time=genesis_time or int(time.time()) + 4 + 2 * self._nodes,
                rest_ports=ports[::2],
                p2p_ports=ports[1::2],
            )
            try:
                for number in range(self._nodes + 1):
                    launch.start_node(self.directory, state, number, modules)
                launch.await_rest(self.directory, state, 0, deadline)
                if validators:
                    launch.start_validators(self.directory, state, [0], modules)
                for number in range(1, self._nodes + 1):
                    launch.await_rest(self.directory, state, number, deadline)
                self._make_links(state, deadline)
                if validators:
                    self._settle(state, range(state.nodes + 1), deadline)
            except BaseException:
                self._kill_all(state)
                raise

    def down(self) -> bool:
        """Kill everything and remove the data; says whether there was anything."""
        if not (self.directory / FILE).exists():
            return False
        with locked(self.directory / LOCK, LOCK_LIMIT):
            state = load(self.directory)
            if state is None:
                return False
            self._kill_all(state)
            self._remove_data()
            (self.directory / LOCK).unlink()
            if not any(self.directory.iterdir()):
                self.directory.rmdir()
            return True

    def kill(self, number: int) -> None:
        """SIGKILL a node."""
        with self._working(number) as state:
            if not processes.kill(state.processes[node_name(number)]):
                raise MisuseError(f"node {number} is not running")

    def freeze(self, number: int) -> None:
        """SIGSTOP a node: its connections stay, nothing is answered."""
        with self._working(number) as state:
            if not processes.freeze(state.processes[node_name(number)]):
                raise MisuseError(f"node {number} is not running")

    def thaw(self, number: int, *, timeout: float = 60.0) -> None:
        """SIGCONT a frozen node. Returns when it follows the chain again."""
        deadline = time.monotonic() + timeout
        with self._working(number) as state:
            if not processes.send(state.processes[node_name(number)], signal.SIGCONT):
                raise MisuseError(f"node {number} is not running")
            launch.await_rest(self.directory, state, number, deadline)
            self._make_links(state, deadline)
            self._await_following(state, number, deadline)

    def restart(self, number: int, *, timeout: float = 60.0) -> None:
        """Start a killed node (kill and start a running one) with the same data, genesis time, ports and links.

        Where the kill has broken its data it begins anew without them. Returns when it follows the chain again.
        """
        modules = ensure_modules()
        deadline = time.monotonic() + timeout
        with self._working(number) as state:
            processes.kill(state.processes[node_name(number)])
            launch.start_node(self.directory, state, number, modules)
            launch.await_rest(self.directory, state, number, deadline)
            self._make_links(state, deadline)
            self._await_following(state, number, deadline, returned=True)

    def peer(self, one: int, other: int, *, timeout: float = 30.0) -> None:
        """Link two nodes again."""
        with self._working(one, other) as state:
            self._relink(state, state.cut - {_pair(one, other)}, timeout)

    def unpeer(self, one: int, other: int, *, timeout: float = 30.0) -> None:
        """Cut the link between two nodes.

        Nodes that end up apart from the largest group of linked nodes get no more blocks: they lose their link to the
        validators' node too. Of groups of the same size the one with the lowest number counts as the largest.
        """
        with self._working(one, other) as state:
            self._relink(state, state.cut | {_pair(one, other)}, timeout)

    def isolate(self, number: int, *, timeout: float = 30.0) -> None:
        """Cut all links of a node."""
        with self._working(number) as state:
            pairs = {_pair(number, other) for other in range(1, state.nodes + 1) if other != number}
            self._relink(state, state.cut | pairs, timeout)

    def rejoin(self, number: int, *, timeout: float = 30.0) -> None:
        """Link a node with all others again."""
        with self._working(number) as state:
            self._relink(state, {pair for pair in state.cut if number not in pair}, timeout)

    def execution(self, number: int, mode: Execution, *, timeout: float = 60.0) -> None:
        """Break or mend a node's execution engine, from its next call on; a restart does not mend it.

        With "ok" it returns when the node follows the chain again.
        """
        deadline = time.monotonic() + timeout
        with self._working(number) as state:
            file = launch.engine_file(self.directory, number)
            if mode == "ok":
                file.unlink(missing_ok=True)
                if number in launch.awake(state):
                    self._await_following(state, number, deadline)
            else:
                file.write_text(mode)

    def validator_client(self, numbers: Sequence[int] = (), *, timeout: float = 60.0) -> bool:
        """Start Lodestar's validator client, or start it again on the nodes given, the preferred one first.

        Node 0 comes last in any case, so that the chain goes on. Without `numbers` a running client is left alone.
        Returns when there is a new block; says whether the client was started.
        """
        modules = ensure_modules()
        deadline = time.monotonic() + timeout
        with self._working(*numbers, lowest=0) as state:
            if not numbers and self.validators_running():
                return False
            self._end_validators(state)
            launch.start_validators(self.directory, state, dict.fromkeys((*numbers, 0)), modules)
            launch.await_common_head(self.directory, state, [0], deadline, minimum=launch.slot_now(state) + 1)
            links.renew_links(state, launch.awake(state), range(state.nodes + 1), deadline)
            return True

    def other_client(self, command: Sequence[str] | None = None) -> ProcessId:
        """Start a validator client on nodes 1 to N alone, the first one preferred, and return without waiting.

        It is Lodestar's own, or else `command`, which is watched and ended by the devnet in the same way. It is the
        caller's child.
        """
        modules = ensure_modules()
        with self._working() as state:
            if self.validators_running():
                raise MisuseError("a validator client is running already")
            if command is None:
                launch.start_validators(self.directory, state, range(1, state.nodes + 1), modules)
            else:
                launch.start_client(self.directory, state, command)
            return state.processes[VC]

    def split_validators(self, number: int, *, timeout: float = 90.0) -> None:
        """Give half of the validators to a client of their own, on one node alone.

        So the chain forks while that node is cut off: each side has blocks in its validators' slots. Returns when all
        nodes follow the chain again; `validator_client` with nodes and `heal` undo it.
        """
        modules = ensure_modules()
        deadline = time.monotonic() + timeout
        half = launch.VALIDATORS // 2
        with self._working(number) as state:
            self._end_validators(state)
            launch.start_validators(self.directory, state, [0], modules, validators=range(half))
            others = range(half, launch.VALIDATORS)
            launch.start_validators(self.directory, state, [number], modules, name=SECOND_VC, validators=others)
            minimum = launch.slot_now(state) + 1
            launch.await_common_head(self.directory, state, [0], deadline, minimum=minimum)
            # Nodes that had no block for an epoch have left the gossip.
            self._settle(state, range(state.nodes + 1), deadline)

    @property
    def client_output(self) -> Path:
        """What the validator client has printed."""
        return launch.log_file(self.directory, VC)

    def heal(self, *, timeout: float = 90.0) -> Head:
        """Undo every fault: all nodes and the validators run, nothing is frozen, broken or cut.

        Returns the head that all nodes have in the end.
        """
        modules = ensure_modules()
        deadline = time.monotonic() + timeout
        with self._working() as state:
            everyone = range(state.nodes + 1)
            returned = False
            state.cut = set()
            state.save(self.directory)
            for number in everyone:
                launch.engine_file(self.directory, number).unlink(missing_ok=True)
                match launch.condition(state, number):
                    case "frozen":
                        processes.send(state.processes[node_name(number)], signal.SIGCONT)
                    case "dead":
                        launch.start_node(self.directory, state, number, modules)
                        returned = True
                    case "running":
                        pass
            for number in everyone:
                launch.await_rest(self.directory, state, number, deadline)
            if not self.validators_running() or SECOND_VC in state.processes:
                self._end_validators(state)
                launch.start_validators(self.directory, state, [0], modules)
            self._make_links(state, deadline)
            return self._settle(state, everyone, deadline, returned=returned)

    def await_common_head(self, numbers: Sequence[int] | None = None, *, timeout: float = 60.0) -> Head:
        """Wait until the nodes given (all by default) report the same head, at most one slot old."""
        state = self._load()
        deadline = time.monotonic() + timeout
        return launch.await_common_head(self.directory, state, numbers or range(1, state.nodes + 1), deadline)

    def head(self, number: int, *, timeout: float = 2.0) -> Head:
        """The head a node reports.

        :raises RestError: it does not answer.
        """
        return rest.head(self._load(number).rest_ports[number], timeout)

    def url(self, number: int) -> str:
        """A node's base URL."""
        return f"http://{rest.HOST}:{self._load(number).rest_ports[number]}"

    def condition(self, number: int) -> Condition:
        """What the system says about a node's process."""
        return launch.condition(self._load(number), number)

    def validators_running(self) -> bool:
        """True while the validator client runs."""
        process = self._load().processes.get(VC)
        return process is not None and processes.is_running(process)

    @property
    def urls(self) -> list[str]:
        """Base URLs of nodes 1 to N."""
        return [self.url(number) for number in self.numbers]

    @property
    def numbers(self) -> range:
        """1 to N."""
        return range(1, self._load().nodes + 1)

    @property
    def genesis_time(self) -> int:
        """Unix seconds."""
        return self._load().genesis_time

    @property
    def slot_duration(self) -> int:
        """Seconds."""
        return self._load().slot_duration

    def slot_now(self) -> int:
        """The slot of this moment; negative before genesis."""
        return launch.slot_now(self._load())

    def _load(self, *numbers: int) -> State:
        """The present state; node numbers are checked, 0 being allowed."""
        state = load(self.directory)
        if state is None:
            raise MisuseError(f"no devnet in {self.directory}")
        for number in numbers:
            if not 0 <= number <= state.nodes:
                raise MisuseError(f"there is no node {number}: the devnet has nodes 1 to {state.nodes}")
        return state

    @contextmanager
    def _working(self, *numbers: int, lowest: int = 1) -> Iterator[State]:
        """Alone on the devnet, with its state."""
        self._load(*numbers)
        with locked(self.directory / LOCK, LOCK_LIMIT):
            state = self._load(*numbers)
            if any(number < lowest for number in numbers):
                raise MisuseError(f"there is no node 0: the devnet has nodes 1 to {state.nodes}")
            yield state

    def _relink(self, state: State, cut: set[tuple[int, int]], timeout: float) -> None:
        state.cut = cut
        state.save(self.directory)
        self._make_links(state, time.monotonic() + timeout)

    def _await_following(self, state: State, number: int, deadline: float, *, returned: bool = False) -> None:
        """Wait until a node has the head of the validators' node, unless another fault keeps it from that."""
        linked = (0, number) in links.wanted_links(state.nodes, state.cut)
        broken = launch.engine_file(self.directory, number).exists()
        if linked and not broken and self.validators_running():
            self._settle(state, [0, number], deadline, returned=returned)

    def _settle(self, state: State, numbers: Sequence[int], deadline: float, *, returned: bool = False) -> Head:
        """Wait for a common head, with new links for those of the nodes that do not follow.

        `returned` says that one of them was started just now, and has blocks to fetch.
        """
        known: dict[int, int] = {}
        lost: dict[int, float] = {}
        next_look, patience, caught_up = time.monotonic(), CATCH_UP_LIMIT, returned
        next_count = next_look

        def renew_links() -> None:
            nonlocal next_look, next_count, patience, caught_up
            if time.monotonic() >= next_count:
                self._replace_lost(state, numbers, lost, deadline)
                next_count = time.monotonic() + 1
            if time.monotonic() >= next_look and links.renew_links(
                state, launch.awake(state), numbers, deadline, known
            ):
                next_look = time.monotonic() + patience
                patience, caught_up = 2 * patience, True

        head = launch.await_common_head(self.directory, state, numbers, deadline, meanwhile=renew_links)
        if caught_up:
            # A node that fetched what it lacked has the newest head once, before new ones come to it by themselves.
            next_head = head.slot + 2
            head = launch.await_common_head(
                self.directory, state, numbers, deadline, minimum=next_head, meanwhile=renew_links
            )
        return head

    def _replace_lost(self, state: State, numbers: Sequence[int], lost: dict[int, float], deadline: float) -> None:
        """Start those of the nodes without their data that have had no block of their head for too long.

        `lost` says since when. Such a node may come to its senses when it hears of its peers' heads next, which is
        every five minutes; without its data it fetches the chain from genesis, 40 blocks a second.
        """
        now = time.monotonic()
        for number in launch.awake(state).intersection(numbers):
            with suppress(RestError):
                if not rest.has_lost_its_head(state.rest_ports[number]):
                    lost.pop(number, None)
                elif now >= lost.setdefault(number, now) + CATCH_UP_LIMIT:
                    del lost[number]
                    processes.kill(state.processes[node_name(number)])
                    shutil.rmtree(self.directory / node_name(number) / "data")
                    launch.start_node(self.directory, state, number, ensure_modules())
                    launch.await_rest(self.directory, state, number, deadline)
                    self._make_links(state, deadline)

    def _make_links(self, state: State, deadline: float) -> None:
        links.make_links(state, launch.awake(state), deadline)

    def _end_validators(self, state: State) -> None:
        for name in (VC, SECOND_VC):
            if name in state.processes:
                processes.kill(state.processes.pop(name))

    def _kill_all(self, state: State) -> None:
        for process in state.processes.values():
            processes.kill(process)

    def _remove_data(self) -> None:
        """Remove what a devnet leaves in its directory, and only that."""
        for name in (*map(node_name, range(MOST_NODES + 1)), VC, SECOND_VC):
            shutil.rmtree(self.directory / name, ignore_errors=True)
            launch.log_file(self.directory, name).unlink(missing_ok=True)
        (self.directory / FILE).unlink(missing_ok=True)


def _pair(one: int, other: int) -> tuple[int, int]:
    if one == other:
        raise MisuseError("a link needs two different nodes")
    return min(one, other), max(one, other)
