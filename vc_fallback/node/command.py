"""`python -m vc_fallback.node URL`: what one beacon node is, and what its endpoints answer, in what time."""

import argparse
import math
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import anyio

from vc_fallback.base.clock import Clock
from vc_fallback.base.errors import ConfigurationError
from vc_fallback.base.redact import Mask, printable
from vc_fallback.base.types import NodeId, root_hex
from vc_fallback.base.urls import BaseURL
from vc_fallback.candidates import Candidate
from vc_fallback.node.client import BeaconNode
from vc_fallback.node.look import Look, Looker, scheduled
from vc_fallback.node.values.attestation import AttestationData
from vc_fallback.wire.client import HTTPClient

_MOST_FORKS = 64


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:  # noqa: ARG002 - it may repeat a URL with its password
        raise ConfigurationError("arguments", " ".join(self.format_usage().split()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 when the node was reached, 1 when it was not, 2 for a bad command line."""
    parser = _Parser(prog="python -m vc_fallback.node", description=__doc__, allow_abbrev=False)
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
    mask = Candidate(url).mask
    look = anyio.run(_look, url, mask, options.timeout, options.produce_block)
    try:
        sys.stdout.write("".join(f"{line}\n" for line in lines(url, mask, look)))
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads it has enough. What is buffered would fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0 if look.reachable else 1


async def _look(url: BaseURL, mask: Mask, timeout: float, produce: bool) -> Look:
    clock = Clock()
    looker: Looker | None = None
    node = BeaconNode(
        NodeId(f"{url.host}:{url.port}"),
        HTTPClient(url),
        clock=clock,
        connect_timeout=min(1.0, timeout),
        mask=mask,
        slots=lambda: None if looker is None else looker.slots,
    )
    # What reads SSZ loads when it is first needed: not within a call whose time is shown.
    AttestationData.from_ssz(bytes(AttestationData.ssz_length))
    looker = Looker(node, now=clock.now, offset=clock.offset, timeout=timeout, produce=produce)
    try:
        return await looker.run()
    finally:
        await node.aclose()


def lines(url: BaseURL, mask: Mask, look: Look) -> list[str]:
    """Say what was seen, one line each."""

    def name(text: str) -> str:
        return printable(mask(text), 40)

    written = [f"{'node':<13}{url}"]
    if look.version is not None:
        written.append(f"{'version':<13}{look.version}")
    chain = look.chain
    if chain is not None:
        written.append(
            f"{'chain':<13}genesis {chain.genesis_time:.0f}, validators root {root_hex(chain.genesis_validators_root)}"
        )
        written.append(
            f"{'':<13}{name(chain.preset) or 'unknown'} preset, slots of {chain.slot_duration:g} s, "
            f"{chain.slots_per_epoch} an epoch"
        )
    names = {} if chain is None else {(fork.version, fork.epoch): fork.name for fork in chain.forks}
    for position, fork in enumerate(scheduled(look.forks)[:_MOST_FORKS]):
        called = name(names.get((fork.current_version, fork.epoch), ""))
        said = f"epoch {fork.epoch}: {root_hex(fork.current_version)} {called}".rstrip()
        written.append(f"{'' if position else 'forks':<13}{said}")
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
