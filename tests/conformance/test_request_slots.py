"""A bound on requests to one node keeps room for what is due: the rest waits behind it (H, rule 6)."""

from functools import partial

import anyio
import httpx
import pytest

from tests.rawserver import RawConnection, answer, serve
from tests.wire_helpers import client_of
from vc_fallback.wire.keepalive import Slots

pytestmark = pytest.mark.anyio


async def test_patient_requests_leave_a_quarter_of_the_slots_to_the_others() -> None:
    """Eight that hang, of which six are let through; what is not patient passes them by."""
    seen: list[str] = []
    six = anyio.Event()

    async def handler(connection: RawConnection) -> None:
        while True:
            seen.append((await connection.request()).target)
            if len(seen) == 6:
                six.set()
            if "/slow" in seen[-1]:
                await anyio.sleep_forever()
            await connection.send(answer(b"ok"))

    async with serve(handler) as server, client_of(server, concurrency=8) as client, anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(partial(client.request, "GET", f"/slow/{number}", patient=True))
        with anyio.fail_after(10):
            await six.wait()
            assert (await client.request("GET", "/due")).status == 200
        assert len([target for target in seen if "/slow" in target]) == 6
        with pytest.raises(httpx.PoolTimeout):
            await client.request("GET", "/patient", patient=True, deadline=anyio.current_time() + 0.05)
        assert not any("/patient" in target for target in seen)
        group.cancel_scope.cancel()


async def test_a_slot_goes_to_who_is_not_patient_first() -> None:
    """And to who is patient only while as many as are kept for the others stay free."""
    slots = Slots(2, reserve=1)
    order: list[str] = []

    async def wait(name: str, patient: bool) -> None:
        await slots.take(patient=patient)
        order.append(name)

    assert slots.take_nowait(patient=True)
    assert not slots.take_nowait(patient=True)
    assert slots.take_nowait()
    assert not slots.take_nowait()
    async with anyio.create_task_group() as group:
        group.start_soon(wait, "patient", True)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(wait, "due", False)
        await anyio.wait_all_tasks_blocked()
        assert slots.waiting == 2
        slots.give()
        await anyio.wait_all_tasks_blocked()
        assert order == ["due"]
        slots.give()
        await anyio.wait_all_tasks_blocked()
        assert order == ["due"]
        assert slots.free == 1
        slots.give()
        await anyio.wait_all_tasks_blocked()
        assert order == ["due", "patient"]
    slots.give()
    assert (slots.free, slots.waiting) == (2, 0)


async def test_whoever_leaves_the_queue_loses_no_slot() -> None:
    """Cancelled while it waits, and just as it is let through."""
    slots = Slots(1, reserve=0)
    assert slots.take_nowait()
    with anyio.move_on_after(0.01):
        await slots.take(patient=True)
    slots.give()
    assert (slots.free, slots.waiting) == (1, 0)
