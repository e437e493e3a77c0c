"""Which head topics a node is asked for, and what a refusal changes (H10)."""

import re

HEAD_TOPICS = ("head", "head_v2", "chain_reorg")
"""The first request always carries both forms of the head: an unknown topic alone gets no answer from some nodes."""

_LADDER = (("head", "head_v2"), ("head", "chain_reorg"), ("head",))


class TopicPlan:
    """The topics of one node; what it refused is remembered while its version is the same, `head` is never given up."""

    __slots__ = ("_named", "_refused", "topics", "version")

    def __init__(self) -> None:
        self.topics: tuple[str, ...] = HEAD_TOPICS
        self.version = ""
        self._refused: set[tuple[str, ...]] = set()
        self._named: set[str] = set()

    @property
    def reduced(self) -> bool:
        """Whether the node refused something."""
        return self.topics != HEAD_TOPICS

    def refuse(self, message: str) -> bool:
        """Take a 400 on the present topics; return whether there is a smaller set to ask for at once.

        Topics that the message names are dropped; where it names none, the sets of the ladder are tried one by one.
        """
        self._refused.add(self.topics)
        named = {topic for topic in self.topics if topic != "head" and re.search(rf"(?<!\w){topic}(?!\w)", message)}
        self._named |= named
        if named:
            self.topics = tuple(topic for topic in self.topics if topic not in named)
            return True
        smaller = [rung for rung in _LADDER if rung not in self._refused and not self._named.intersection(rung)]
        # A node that refuses even `head` alone is asked for that again, with backoff.
        self.topics = smaller[0] if smaller else ("head",)
        return bool(smaller)

    def seen_version(self, version: str) -> None:
        """Ask for everything again where the node's version string is another than when it refused."""
        if version and version != self.version:
            if self.version:
                self.topics = HEAD_TOPICS
                self._refused.clear()
                self._named.clear()
            self.version = version
