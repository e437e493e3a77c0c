"""Simulated beacon nodes and virtual time, for the tests of validator clients; imports only base and chain.

A simulated node is a real HTTP server on loopback that runs as tasks of the test's own event loop, follows a simulated
chain, and fails on cue. In virtual time (asyncio and trio) an hour of slots takes seconds, and waits are exact::

    import anyio
    from vc_fallback.testing import run_in_virtual_time, simulated_devnet

    async def scenario():
        async with simulated_devnet(3, slot_duration=12) as net:
            first, second, third = net
            second.silence()                  # its event stream is open and silent
            await third.kill()                # connections end, connects are refused
            await anyio.sleep(12 * 10)        # ten slots, at once
            second.resume()
            third.restart()                   # on the same port
            first.answer("/eth/v1/events", 503, "overloaded", headers={"Retry-After": "24"})
            first.freeze()                    # like SIGSTOP: connects succeed, requests hang
            await anyio.sleep(12)
            first.thaw()
            return net.urls, first.head, first.opens, first.requests

    run_in_virtual_time(scenario, backend="trio")

Code under test takes its time from the event loop, its Unix time from `net.clock`, and dials the IP literals of
`net.urls`; no thread, no subprocess, no uvloop. With `clock=Clock()` the same runs in real time.

What a node can do: `refuse`/`listen`, `kill`/`restart`, `freeze`/`thaw`, `vanish`, `cut_connections` (whole node);
`answer`, `hang`, `inject`, `override` (requests by path); `silence`/`hold`/`resume`, `end_streams`, `publish`,
`comment`, `send_raw` (event streams); `show`, `switch`, `cut_off`/`rejoin` (its head); `heal` ends them all.
`node.state` holds what it knows (optimistic, lag, …), `node.broadcast` how it sends events (duplicates, an end after
each event, …). `node.opens`, `node.streams`, `node.max_streams`, `node.requests` and `node.request_counts` say what
happened.

A node answers everything that a validator client asks of the Beacon API, in JSON and SSZ, from the same chain: states
and validators (`net.chain.registry`), duties with dependent roots that fit its head events, attestation data, blocks to
propose, aggregates of what was published on it. `SimulatedChain(forks={"deneb": 0, "electra": 5}, validators=…)` says
which forks hold when. `node.state.proposal = Proposal(size=1_000_000, blinded=True, execution_value=2 * ETHER)` is the
block it proposes. `node.published` and `node.prepared` hold what it was sent, as :class:`Submission`;
`inject(path, Refusal("invalid signature", items=(0, 2)))` refuses items, `Refusal(status=202)` sends a block on without
importing it; `hear` makes a duplicate of what was published elsewhere. `node.manners` (:class:`Manners`) says how it
deals with requests: as which client, with SSZ or without, which routes it has not got, what it does with duplicates,
how much it checks. `MISSING_IN_LODESTAR_1_5` are the routes of one that is old.

pytest finds the fixtures `simulated_devnet` (makes devnets) and `virtual_time_backend` (gives anyio's plugin virtual
time) by itself once this package is installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc_fallback.testing.blocks import MAIN, SimulatedBlock, SimulatedChain
    from vc_fallback.testing.demo import demo_devnet
    from vc_fallback.testing.devnet import SimulatedDevnet, simulated_devnet
    from vc_fallback.testing.events import TOPICS, attester_slashing, malformed_heads
    from vc_fallback.testing.faults import Cut, Delay, Hang, Injection, Refusal, StreamHeaders, gzipped, redirect
    from vc_fallback.testing.framings import FRAMINGS, Framing, FramingName
    from vc_fallback.testing.http import Answer, Request
    from vc_fallback.testing.manners import MISSING_IN_LODESTAR_1_5, Manners
    from vc_fallback.testing.node import SimulatedNode
    from vc_fallback.testing.pool import Submission
    from vc_fallback.testing.process import serve_devnet
    from vc_fallback.testing.proposal import ETHER, Proposal
    from vc_fallback.testing.registry import Registry, SimulatedValidator
    from vc_fallback.testing.state import REMOVED, NodeState
    from vc_fallback.testing.streams import EventStream, StreamRecord
    from vc_fallback.testing.virtual_time import (
        VirtualTimeError,
        run_in_virtual_time,
        virtual_clock,
        virtual_time_backend,
    )

__all__ = [
    "ETHER",
    "FRAMINGS",
    "MAIN",
    "MISSING_IN_LODESTAR_1_5",
    "REMOVED",
    "TOPICS",
    "Answer",
    "Cut",
    "Delay",
    "EventStream",
    "Framing",
    "FramingName",
    "Hang",
    "Injection",
    "Manners",
    "NodeState",
    "Proposal",
    "Refusal",
    "Registry",
    "Request",
    "SimulatedBlock",
    "SimulatedChain",
    "SimulatedDevnet",
    "SimulatedNode",
    "SimulatedValidator",
    "StreamHeaders",
    "StreamRecord",
    "Submission",
    "VirtualTimeError",
    "attester_slashing",
    "demo_devnet",
    "gzipped",
    "malformed_heads",
    "redirect",
    "run_in_virtual_time",
    "serve_devnet",
    "simulated_devnet",
    "virtual_clock",
    "virtual_time_backend",
]

_HOMES = {
    "blocks": ("MAIN", "SimulatedBlock", "SimulatedChain"),
    "demo": ("demo_devnet",),
    "devnet": ("SimulatedDevnet", "simulated_devnet"),
    "events": ("TOPICS", "attester_slashing", "malformed_heads"),
    "faults": ("Cut", "Delay", "Hang", "Injection", "Refusal", "StreamHeaders", "gzipped", "redirect"),
    "framings": ("FRAMINGS", "Framing", "FramingName"),
    "http": ("Answer", "Request"),
    "manners": ("MISSING_IN_LODESTAR_1_5", "Manners"),
    "node": ("SimulatedNode",),
    "pool": ("Submission",),
    "process": ("serve_devnet",),
    "proposal": ("ETHER", "Proposal"),
    "registry": ("Registry", "SimulatedValidator"),
    "state": ("REMOVED", "NodeState"),
    "streams": ("EventStream", "StreamRecord"),
    "virtual_time": ("VirtualTimeError", "run_in_virtual_time", "virtual_clock", "virtual_time_backend"),
}


def __getattr__(name: str) -> object:
    # pytest imports this package wherever it is installed, so its parts are imported when they are used.
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
