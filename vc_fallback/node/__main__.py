"""`python -m vc_fallback.node URL`: what one beacon node is, and what its endpoints answer, in what time."""

import argparse
import math
import sys
from collections.abc import Sequence
from typing import NoReturn

import anyio

from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import ConfigurationError
from vc_fallback.base.redact import printable
from vc_fallback.base.types import NodeId, root_hex
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import Candidate
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.look import Look, Looker, scheduled
from vc_fallback.wire.client import HTTPClient


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # The message may repeat a URL with its password.
        raise ConfigurationError("arguments", printable(message))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 when the node was reached, 1 when it was not, 2 for a bad command line."""
    parser = _Parser(prog="python -m vc_fallback.node", description=__doc__)
    parser.add_argument("url", metavar="URL", help="base URL of the node; user-info, path prefix and query are kept")
    parser.add_argument("--timeout", type=float, default=5.0, metavar="SECONDS", help="for each request (default 5)")
    parser.add_argument("--produce-block", action="store_true", help="ask for a block, too: the node builds one")
    try:
        options = parser.parse_args(arguments)
        if not math.isfinite(options.timeout) or options.timeout <= 0:
            raise ConfigurationError("--timeout", "a number of seconds above 0 is needed")
        try:
            url = BaseURL.parse(options.url)
        except ValueError as error:
            raise ConfigurationError("URL", str(error)) from None
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return anyio.run(_run, url, options.timeout, options.produce_block)


async def _run(url: BaseURL, timeout: float, produce: bool) -> int:
    candidate = Candidate(url)
    clock = Clock()
    looker: Looker | None = None
    node = BeaconNode(
        NodeId(f"{url.host}:{url.port}"),
        HTTPClient(url),
        clock=clock,
        connect_timeout=min(1.0, timeout),
        mask=candidate.mask,
        slots=lambda: None if looker is None else looker.slots,
    )
    looker = Looker(node, now=clock.now, offset=clock.offset, timeout=timeout, produce=produce)
    try:
        look = await looker.run()
    finally:
        await node.aclose()
    sys.stdout.write("".join(f"{line}\n" for line in lines(url, look)))
    return 0 if look.reachable else 1


def lines(url: BaseURL, look: Look) -> list[str]:
    """Say what was seen, one line each."""
    written = [f"{'node':<13}{url}"]
    if look.version is not None:
        written.append(f"{'version':<13}{look.version}")
    chain = look.chain
    if chain is not None:
        written.append(
            f"{'chain':<13}genesis {chain.genesis_time:.0f}, validators root {root_hex(chain.genesis_validators_root)}"
        )
        written.append(
            f"{'':<13}{chain.preset or 'unknown'} preset, slots of {chain.slot_duration:g} s, "
            f"{chain.slots_per_epoch} an epoch"
        )
    names = {} if chain is None else {(fork.version, fork.epoch): fork.name for fork in chain.forks}
    for position, fork in enumerate(scheduled(look.forks)):
        name = names.get((fork.current_version, fork.epoch), "")
        written.append(
            f"{'forks' if not position else '':<13}epoch {fork.epoch}: {root_hex(fork.current_version)} {name}".rstrip()
        )
    sync = next((asked for asked in look.asked if asked.route.operation == "getSyncingStatus"), None)
    if sync is not None:
        written.append(f"{'sync':<13}{sync.words}")
    if look.peers is not None:
        written.append(f"{'peers':<13}{look.peers}")
    for position, lack in enumerate(look.lacks):
        written.append(f"{'lacks' if not position else '':<13}{lack.capability}: {lack.problem}")
    width = max(len(f"{asked.route.method} {asked.route.template}") for asked in look.asked)
    written.append("")
    written += [
        f"{f'{asked.route.method} {asked.route.template}':<{width}}  {asked.latency * 1000:>7.1f} ms  "
        f"{'' if asked.good else '! '}{asked.words}{f' ({asked.attempts} requests)' if asked.attempts > 1 else ''}"
        for asked in look.asked
    ]
    return written


if __name__ == "__main__":
    sys.exit(main())
