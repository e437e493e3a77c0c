"""Keys that the devnets of all clients share."""

import warnings
from dataclasses import dataclass, field
from hashlib import sha256

with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):
    import milagro_bls_binding as bls

CURVE_ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


@dataclass(frozen=True, slots=True)
class Key:
    """A private key of 32 bytes, which is never shown, and its public key of 48."""

    secret: bytes = field(repr=False)
    pubkey: bytes

    def sign(self, root: bytes) -> bytes:
        """Return the signature of a root, 96 bytes. It stops all threads of the program for 2 to 5 ms."""
        return bytes(bls.Sign(self.secret, root))


def interop_key(number: int) -> Key:
    """Return the key of a number: the number's sha256, modulo the order of the curve. It is worth nothing elsewhere."""
    digest = sha256(number.to_bytes(32, "little")).digest()
    secret = (int.from_bytes(digest, "little") % CURVE_ORDER).to_bytes(32, "big")
    return Key(secret, bytes(bls.SkToPk(secret)))
