"""Trees of hashes over chunks of 32 bytes."""

import hashlib
from collections.abc import Sequence

CHUNK = 32

_hash = hashlib.sha256


def merkle_root(chunks: Sequence[bytes], limit: int) -> bytes:
    """Return the root of a tree over chunks, filled up with zeros to `limit` of them."""
    depth = max(0, limit - 1).bit_length()
    if not chunks:
        return _ZEROS[depth]
    level = list(chunks)
    for zero in _ZEROS[:depth]:
        if len(level) % 2:
            level.append(zero)
        level = [_hash(left + right).digest() for left, right in zip(level[::2], level[1::2], strict=True)]
    return level[0]


def chunk_count(size: int) -> int:
    """Return how many chunks so many bytes take."""
    return (size + CHUNK - 1) // CHUNK


def chunks_of(data: bytes) -> list[bytes]:
    """Return bytes in chunks, the last filled up with zeros."""
    data = bytes(data) + bytes(-len(data) % CHUNK)
    return [data[place : place + CHUNK] for place in range(0, len(data), CHUNK)]


def with_length(root: bytes, length: int) -> bytes:
    """Return the root of a list of that length whose items have this root."""
    return _hash(root + length.to_bytes(CHUNK, "little")).digest()


def _zeros(depth: int) -> tuple[bytes, ...]:
    zeros = [bytes(CHUNK)]
    for _ in range(depth):
        zeros.append(_hash(zeros[-1] * 2).digest())
    return tuple(zeros)


_ZEROS = _zeros(64)
