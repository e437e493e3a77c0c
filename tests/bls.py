"""Checks BLS signatures, for tests of what signs."""

from collections.abc import Sequence
from functools import reduce
from operator import add

from py_arkworks_bls12381 import GT, G1Point, G2Point

from examples.minimal_vc.keys import SUITE


def verified(pubkeys: Sequence[bytes], root: bytes, signature: bytes) -> bool:
    """Whether it is a signature of a root by all of these, of whom some may be named more than once."""
    by = reduce(add, map(G1Point.from_compressed_bytes, pubkeys))
    points = [G2Point.hash_to_curve(root, SUITE), G2Point.from_compressed_bytes(signature)]
    return GT.pairing_check([by, -G1Point()], points)
