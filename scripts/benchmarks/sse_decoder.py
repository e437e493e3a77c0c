"""The event stream decoder alone, without sockets: megabytes a second on 400-byte head events.

Beside it, interleaved so that all share the machine's noise: httpx-sse reading the same bytes out of a response that
has them already, and a bare `bytes.split`, which is the floor for anything that looks at every line in Python.
"""

from collections.abc import Callable, Sequence
from time import perf_counter

import httpx
import httpx_sse

from vc_fallback.wire.sse import SSEDecoder

RUNS = 9
EVENTS = 5_000
CHUNKS = {"one event": 0, "1460 B": 1460, "16 KiB": 16 * 2**10, "64 KiB": 64 * 2**10}


def head_event(slot: int) -> bytes:
    """A head event of 400 bytes, framed as most nodes do."""
    roots = [f"{slot * 7 + n:064x}" for n in range(4)]
    data = (
        f'{{"slot":"{slot}","block":"0x{roots[0]}","state":"0x{roots[1]}","epoch_transition":false,'
        f'"previous_duty_dependent_root":"0x{roots[2]}","current_duty_dependent_root":"0x{roots[3][:22]}'
    )
    return f"event: head\ndata: {data}".encode().ljust(396, b"0") + b'"}\n\n'


def ours(chunks: Sequence[bytes]) -> int:
    """Decode with the package's decoder; the number of events."""
    decoder = SSEDecoder()
    return sum(len(decoder.feed(chunk)) for chunk in chunks)


def theirs(chunks: Sequence[bytes]) -> int:
    """Decode with httpx-sse; the number of events."""
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=iter(chunks))
    return sum(1 for _ in httpx_sse.EventSource(response).iter_sse())


def floor(chunks: Sequence[bytes]) -> int:
    """Split into lines and look at none; the number of ends of blocks, more or less."""
    return sum(len(chunk.split(b"\n")) for chunk in chunks) // 3


def run() -> dict[str, float]:
    """Measure; megabytes a second and ratios of the best of `RUNS` interleaved runs, by name."""
    events = [head_event(slot) for slot in range(10_000_000, 10_000_000 + EVENTS)]
    stream = b"".join(events)
    decoders: dict[str, Callable[[Sequence[bytes]], int]] = {"ours": ours, "httpx-sse": theirs, "split": floor}
    result: dict[str, float] = {}
    for size_name, size in CHUNKS.items():
        chunks = [stream[at : at + size] for at in range(0, len(stream), size)] if size else events
        best = dict.fromkeys(decoders, float("inf"))
        for _ in range(RUNS):
            for name, decode in decoders.items():
                start = perf_counter()
                count = decode(chunks)
                best[name] = min(best[name], perf_counter() - start)
                if name != "split" and count != EVENTS:
                    raise RuntimeError(f"{name} found {count} of {EVENTS} events")
        for name, seconds in best.items():
            result[f"{size_name}: {name}, MB/s"] = len(stream) / seconds / 1e6
        result[f"{size_name}: ours to httpx-sse, time"] = best["ours"] / best["httpx-sse"]
        result[f"{size_name}: ours to split, time"] = best["ours"] / best["split"]
    return result


def main() -> None:
    """Print what `run` measures."""
    for name, value in run().items():
        print(f"{name:40} {value:10.2f}")


if __name__ == "__main__":
    main()
