"""Checks BLS signatures, for tests of what signs."""

import warnings
from collections.abc import Sequence

with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):
    import milagro_bls_binding as bls


def verified(pubkeys: Sequence[bytes], root: bytes, signature: bytes) -> bool:
    """Whether it is a signature of a root by all of these, of whom some may be named more than once."""
    return bool(bls.FastAggregateVerify([*pubkeys], root, signature))
