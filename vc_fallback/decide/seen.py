"""Which events were seen before: a window over slots of the meanings of events, and no more memory than that (T6)."""

from collections import deque
from hashlib import blake2b
from secrets import token_bytes

GENERATIONS = 4
"""Into so many parts a window is divided, each forgotten as a whole: a lookup asks each part, five at most."""


class SeenWindow:
    """The meanings that were seen in the last slots. Each call takes the same time, whatever was seen.

    A copy that comes up to `slots` slots after the first is known as one; half of that later it is not any more.
    What counts is the slot in which an event comes, not one that it names: an exit names an epoch of years ago,
    and what a node writes is not to say what is forgotten.

    Of a meaning 64 bits of a salted hash are kept, about 120 bytes with their place. An event is taken for another one
    with a probability of (remembered / 2^64): with 150,000 remembered and 30,000 in a slot once in 1,500 years.

    :ivar forgotten: meanings given up before their time as there were too many: copies of these are told again.
    """

    __slots__ = ("_ceiling", "_length", "_now", "_old", "_salt", "_size", "_slots", "_until", "forgotten")

    def __init__(self, slots: int, *, ceiling: int) -> None:
        """
        :param slots: how long a meaning is remembered.
        :param ceiling: meanings at most, as a guard.
        :raises ValueError: if either is below 1.
        """
        if slots < 1 or ceiling < 1:
            raise ValueError("slots and ceiling must be at least 1")
        self.forgotten = 0
        self._slots = slots
        self._length = -(-slots // GENERATIONS)
        self._ceiling = ceiling
        self._salt = token_bytes(16)
        self._now: set[bytes] = set()
        self._until: int | None = None
        """The first slot that belongs to the next part."""
        self._old: deque[tuple[int, set[bytes]]] = deque()
        """Parts before the present one, the oldest first, each with the first slot in which it is forgotten."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def first(self, key: bytes, slot: int) -> bool:
        """Take note of a meaning; return whether it is the first time.

        :param key: the meaning of the event in bytes.
        :param slot: the slot that it is now. A clock that was set back is taken as it is: nothing is forgotten for it.
        """
        until = self._until
        if until is None or not until - self._length <= slot < until:
            self._turn(slot)
        short = blake2b(key, digest_size=8, salt=self._salt).digest()
        now = self._now
        if short in now:
            return False
        for _, old in self._old:
            if short in old:
                return False
        if self._size >= self._ceiling:
            self._make_room()
            now = self._now
        now.add(short)
        self._size += 1
        return True

    def _turn(self, slot: int) -> None:
        """Begin a part at a slot, and forget those whose time is over."""
        if self._until is not None and slot < self._until:
            back = self._until - self._length - slot
            self._until -= back
            self._old = deque((end - back, old) for end, old in self._old)
            return
        if self._now and self._until is not None:
            self._old.append((self._until + self._slots, self._now))
            self._now = set()
        self._until = slot + self._length
        while self._old and self._old[0][0] <= slot:
            self._size -= len(self._old.popleft()[1])

    def _make_room(self) -> None:
        """Forget the oldest part before its time."""
        if self._old:
            gone = self._old.popleft()[1]
        else:
            gone, self._now = self._now, set()
        self._size -= len(gone)
        self.forgotten += len(gone)
