"""Keys that the devnets of all clients share, and signatures with them."""

from dataclasses import dataclass, field
from hashlib import sha256

from py_arkworks_bls12381 import G1Point, G2Point, Scalar

SUITE = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_"
"""How a message becomes a point of the curve (consensus specification)."""


@dataclass(frozen=True, slots=True)
class Key:
    """A private key, which is never shown, and its public key of 48 bytes."""

    secret: Scalar = field(repr=False)
    pubkey: bytes

    def sign(self, root: bytes) -> bytes:
        """Return the signature of a root, 96 bytes. It stops all threads of the program for 2 to 5 ms."""
        return bytes((G2Point.hash_to_curve(root, SUITE) * self.secret).to_compressed_bytes())


def interop_key(number: int) -> Key:
    """Return the key of a number: the number's sha256, modulo the order of the curve. It is worth nothing elsewhere."""
    secret = Scalar.from_le_bytes_mod_order(sha256(number.to_bytes(32, "little")).digest())
    return Key(secret, bytes((G1Point() * secret).to_compressed_bytes()))
