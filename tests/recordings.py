"""Reads the recordings of real Lodestar 1.5.1 nodes in `tests/data/lodestar`.

A recording has one line a socket read: Unix time, seconds since the request was sent, and the bytes as a Python
literal, HTTP head and chunk framing included. `reorg_n1`: a partition heals; `el_n2`: the execution engine breaks;
`restart_resync_n3`: a killed node comes back and resyncs; `n1_repeated_head_and_unknown`: an unknown
topic beside `head`.
"""

import ast
from pathlib import Path

RECORDINGS = Path(__file__).parent / "data" / "lodestar"


def load(name: str) -> list[tuple[float, bytes]]:
    """(seconds since the request, bytes of one socket read) of the recording `name`, as they were received."""
    reads = []
    for line in (RECORDINGS / f"{name}.txt").read_text().splitlines():
        _, _, rest = line.partition(" ")
        elapsed, _, literal = rest.partition(" ")
        if literal.startswith(("b'", 'b"')):
            reads.append((float(elapsed), ast.literal_eval(literal)))
    return reads


def load_body(name: str) -> list[tuple[float, bytes]]:
    """As `load`, with the HTTP head and the chunk framing taken away; reads without a byte of the body are left out."""
    body = []
    buffer = b""
    in_head = True
    wanted = 0  # bytes still to come of the begun chunk and the CRLF after it
    for elapsed, data in load(name):
        buffer += data
        if in_head:
            head, end, rest = buffer.partition(b"\r\n\r\n")
            if not end:
                continue
            assert b"\r\ntransfer-encoding: chunked" in head.lower()
            in_head, buffer = False, rest
        out = b""
        while buffer:
            if not wanted:
                size, end, rest = buffer.partition(b"\r\n")
                if not end:
                    break
                wanted, buffer = int(size, 16) + 2, rest
            part = buffer[:wanted]
            buffer = buffer[len(part) :]
            out += part[: max(0, wanted - 2)]
            wanted -= len(part)
        if out:
            body.append((elapsed, out))
    return body
