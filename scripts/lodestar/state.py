"""What one command of the devnet leaves for the next, as a JSON file in the devnet's directory."""

import json
import os
import random
import socket
from dataclasses import asdict, dataclass, field
from pathlib import Path

from scripts.lodestar.errors import DevnetError
from scripts.lodestar.processes import ProcessId
from scripts.lodestar.rest import HOST

FILE = "devnet.json"
VERSION = 1


@dataclass
class State:
    """Everything that holds from one command to the next.

    Nodes are numbered from 1; 0 is the node that serves the validators. `cut` holds the pairs (lower, higher) whose
    link is cut. Ports are by node number, `vc` stands for the validator client.
    """

    slot_duration: int
    nodes: int
    genesis_time: int
    rest_ports: list[int]
    p2p_ports: list[int]
    processes: dict[str, ProcessId] = field(default_factory=dict)
    cut: set[tuple[int, int]] = field(default_factory=set)

    def save(self, directory: Path) -> None:
        """Replace the file in one step."""
        content = asdict(self) | {"version": VERSION, "cut": sorted(self.cut)}
        unfinished = directory / f"{FILE}.new"
        unfinished.write_text(json.dumps(content, indent=1))
        unfinished.replace(directory / FILE)


def load(directory: Path) -> State | None:
    """The state in `directory`, or None when no devnet was started there.

    :raises DevnetError: the file is damaged or was written by another version.
    """
    try:
        content = json.loads((directory / FILE).read_text())
        if content.pop("version") != VERSION:
            raise ValueError("another version")
        content["processes"] = {name: ProcessId(**entry) for name, entry in content["processes"].items()}
        content["cut"] = {(low, high) for low, high in content["cut"]}
        return State(**content)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DevnetError(f"{directory / FILE} cannot be used: {error}") from error


def default_directory() -> Path:
    """Where a devnet lives unless told otherwise."""
    chosen = os.environ.get("VC_FALLBACK_DEVNET_DIR")
    if chosen:
        return Path(chosen)
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "vc-fallback" / "devnet"


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on, below those the system gives to outgoing connections.

    A port above that line can be taken by any connection while its node is killed, even by one dialling that very
    port, which then talks to itself.
    """
    try:
        line = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        line = 32768
    found: set[int] = set()
    candidates = list(range(10000, max(line, 12000)))
    random.shuffle(candidates)
    for port in candidates:
        if len(found) == count:
            return sorted(found)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        found.add(port)
    raise DevnetError(f"fewer than {count} free ports on {HOST}")
