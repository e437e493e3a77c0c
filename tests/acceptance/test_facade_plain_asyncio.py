"""The facade in a program that knows nothing of anyio: `asyncio.run`, or uvloop; in real time."""

import asyncio
import gc
import logging
from functools import partial

import pytest
import sniffio
import uvloop

from tests.acceptance.embedding import config_of, descriptors
from tests.acceptance.facade import VERSION, A, version
from vc_fallback.base.types import Slot
from vc_fallback.fallback import BeaconNodeFallback
from vc_fallback.heads.monitor import HeadMonitor
from vc_fallback.node.values.encodings import Encodings
from vc_fallback.node.values.preparations import ProposerPreparation
from vc_fallback.routing.outcomes import AllNodesFailed
from vc_fallback.testing import simulated_devnet

LOOPS = pytest.mark.parametrize("factory", [None, uvloop.new_event_loop], ids=["asyncio", "uvloop"])


async def duties() -> None:
    """Hear heads, and make a call of each way to send, some of them late and some given up."""
    async with simulated_devnet(3, slot_duration=1.0) as net:
        config = config_of(net)
        async with BeaconNodeFallback(config, clock=net.clock) as nodes, nodes.heads.subscribe() as heads:
            async with asyncio.timeout(60):
                await nodes.wait_ready(3)
            async with asyncio.timeout(60):
                delivered = await heads.receive()
            slot = Slot(delivered.head.slot)
            end = nodes.clock.now() + 30
            assert (await nodes.attestation_data(slot, deadline=end)).value.beacon_block_root
            assert (await nodes.attestation_data_by_quorum(slot, deadline=end)).voters
            net[0].hang(VERSION)
            net[1].answer(VERSION, 500)
            late = partial(nodes.first_success, version, prefer=A, next_after=0.02, deadline=end)
            answers = await asyncio.gather(*(late() for _ in range(5)))
            assert {answer.node_id for answer in answers} == {"bn3"}
            net[2].hang(VERSION)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await late()
            result = await nodes.prepare_beacon_proposer([ProposerPreparation(1, bytes(20))])
            await result.settled()
            with pytest.raises(Exception, match="attestations"):
                await nodes.publish_attestations([Encodings(json=b"{}")], "fulu")
            nodes.update_candidates(config.candidate_list()[1:])
            net[2].heal()
            net[2].answer(VERSION, 500)
            with pytest.raises(AllNodesFailed, match="bn2: 500"):
                await late()
            assert not nodes.status().all_unhealthy
            await net[1].kill()
            async with asyncio.timeout(60):
                while (await heads.receive()).head.slot < slot + 3:
                    pass


@LOOPS
def test_a_program_that_runs_asyncio_alone(factory: object, caplog: pytest.LogCaptureFixture) -> None:
    """Callbacks of the event loop are no tasks, by which alone anyio knows where it is: heads come all the same."""
    assert sniffio.current_async_library_cvar.get() is None
    with asyncio.Runner(loop_factory=factory) as runner:  # type: ignore[arg-type]
        runner.run(asyncio.sleep(0))  # what the loop itself opens for good
    gc.collect()  # what other tests left open would be closed meanwhile
    before = descriptors()
    with asyncio.Runner(loop_factory=factory) as runner:  # type: ignore[arg-type]
        runner.run(duties())
        assert not asyncio.all_tasks(runner.get_loop())
    assert descriptors() == before
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@LOOPS
def test_heads_alone(factory: object, caplog: pytest.LogCaptureFixture) -> None:
    """The monitor, in a task that another task made."""

    async def watch() -> list[int]:
        async with (
            simulated_devnet(2, slot_duration=0.5) as net,
            HeadMonitor(config_of(net), clock=net.clock) as heads,
            heads.subscribe() as subscription,
            asyncio.timeout(60),
        ):
            return [(await subscription.receive()).head.slot for _ in range(3)]

    async def main() -> None:
        slots = await asyncio.create_task(watch())
        assert slots == sorted(slots)

    with asyncio.Runner(loop_factory=factory) as runner:  # type: ignore[arg-type]
        runner.run(main())
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@LOOPS
def test_a_program_that_is_interrupted(factory: object, caplog: pytest.LogCaptureFixture) -> None:
    """Ctrl-C: `asyncio.run` cancels all tasks natively, those of requests too; it ends, and nothing is reported."""

    async def main() -> None:
        async with (
            # No check is about to begin: a task that has not had its first step leaves a coroutine that nobody awaits.
            simulated_devnet(2, slot_duration=60.0) as net,
            BeaconNodeFallback(config_of(net), clock=net.clock) as nodes,
        ):
            await nodes.wait_ready(2, timeout=20)
            for node in net:
                node.hang(VERSION)
            asked = [asyncio.ensure_future(nodes.first_success(version, next_after=0.05)) for _ in range(3)]
            await asyncio.sleep(0.2)
            asyncio.get_running_loop().call_soon(_interrupt)
            await asyncio.gather(*asked)

    with pytest.raises(KeyboardInterrupt), asyncio.Runner(loop_factory=factory) as runner:  # type: ignore[arg-type]
        runner.run(main())
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def _interrupt() -> None:
    raise KeyboardInterrupt
