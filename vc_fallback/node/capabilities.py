"""What one node does not have, remembered (Q13)."""

from dataclasses import dataclass

from vc_fallback.base.types import Epoch


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that a node does not have, as it said."""

    capability: str
    problem: str


class Capabilities:
    """Lacks of one node. Each holds for the epoch in which it was found, so it is tried again in the next, which a fork
    always begins; and for the version string the node had, so it is tried again after an update.

    Before the chain is known there are no epochs: a lack then holds until there are.
    """

    def __init__(self) -> None:
        self._lacks: dict[str, tuple[Epoch | None, Lack]] = {}
        self._proven: set[str] = set()
        self._version: str | None = None

    @property
    def any(self) -> bool:
        """Whether anything at all is remembered as lacking."""
        return bool(self._lacks)

    def lack(self, capability: str, epoch: Epoch | None) -> Lack | None:
        """Return what is remembered of a capability in an epoch, `None` where it is to be tried."""
        found = self._lacks.get(capability)
        if found is None or found[0] != epoch:
            return None
        return found[1]

    def lacks(self, epoch: Epoch | None) -> tuple[Lack, ...]:
        """Return all that is remembered in an epoch, in the order found."""
        return tuple(lack for since, lack in self._lacks.values() if since == epoch)

    def note(self, capability: str, problem: str, epoch: Epoch | None) -> None:
        """Remember that the node does not have something."""
        self._lacks.pop(capability, None)
        self._lacks[capability] = (epoch, Lack(capability, problem))

    def found(self, capability: str) -> None:
        """Take note that the node has it; a lack that was remembered is forgotten."""
        self._lacks.pop(capability, None)
        self._proven.add(capability)

    def proven(self, capability: str) -> bool:
        """Whether the node has shown, with its present version, that it has it."""
        return capability in self._proven

    def seen_version(self, version: str) -> None:
        """Take note of the node's version string; another than before forgets every lack."""
        if self._version is not None and version != self._version:
            self._lacks.clear()
            self._proven.clear()
        self._version = version


def ssz_answer(operation: str) -> str:
    """Name the capability of answering an operation in SSZ."""
    return f"{operation} answers SSZ"


def ssz_request(operation: str) -> str:
    """Name the capability of taking an operation's request in SSZ."""
    return f"{operation} takes SSZ"


def ssz_request_doubted(operation: str) -> str:
    """Name the capability of taking an operation's request in SSZ, where a failure leaves it in doubt (case 56)."""
    return f"{operation} takes SSZ, perhaps"
