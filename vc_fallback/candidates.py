"""The candidate list and its generation, as one immutable value in one `Watch` (G1)."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from vc_fallback.base.errors import ConfigurationError
from vc_fallback.base.redact import Mask
from vc_fallback.base.types import NodeId, Role, Tier
from vc_fallback.base.urls import BaseURL
from vc_fallback.base.watch import Watch

ALL_ROLES = frozenset(Role)

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"(?:[!-~](?:[ -~\t]*[!-~])?)?")
_FRAMING = frozenset({"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})


@dataclass(frozen=True, slots=True)
class TLSSettings:
    """Whom to trust and who we are: PEM files of a certificate authority, of our certificate and of its key.

    Without `ca` the system's authorities are trusted. Candidates with equal settings share one TLS context.
    """

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One configured beacon node.

    :param url: base URL; a path prefix, a query and user-info are kept (Q16).
    :param name: the node id; derived from the URL where it is `None` (I3).
    :param priority: lower is preferred within a tier; list order decides between equals.
    :param headers: sent with every request and stream.
    """

    url: BaseURL
    name: str | None = None
    tier: Tier = Tier.PRIMARY
    roles: frozenset[Role] = ALL_ROLES
    priority: int = 0
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    tls: TLSSettings = TLSSettings()

    @property
    def connection(self) -> tuple[object, ...]:
        """What a connection depends on; equal before and after a change of the list = the connection goes on (G2)."""
        return (self.url, self.headers, self.tls)

    @property
    def mask(self) -> Mask:
        """What takes this candidate's secrets out of a text (rule 11)."""
        values = [value for _, value in self.headers]
        # Of `Bearer …` and of cookies a node repeats the part that counts; base64 ends in `=`.
        parts = [part for value in values for ends in ("[ ;,]+", "[ ;,=]+") for part in re.split(ends, value)]
        return Mask([*self.url.secrets, *values, *parts])


@dataclass(frozen=True, slots=True)
class Member:
    """A candidate in a list: with its node id and its place."""

    node_id: NodeId
    index: int
    candidate: Candidate

    @property
    def tier(self) -> Tier:
        """The candidate's tier."""
        return self.candidate.tier

    def has(self, role: Role) -> bool:
        """Whether the candidate may be used for a role."""
        return role in self.candidate.roles


@dataclass(frozen=True, slots=True)
class CandidateList:
    """An immutable list of candidates with its generation. `members` is by node id, in list order."""

    generation: int
    members: Mapping[NodeId, Member]

    def __contains__(self, node_id: NodeId) -> bool:
        return node_id in self.members

    def __len__(self) -> int:
        return len(self.members)

    def get(self, node_id: NodeId) -> Member | None:
        """Return the member of a node id, or `None`."""
        return self.members.get(node_id)

    def listed(self, node_id: NodeId) -> Member:
        """Return the member of a node id.

        :raises KeyError: for a node that is not in the list; it says which are.
        """
        try:
            return self.members[node_id]
        except KeyError:
            raise KeyError(f"no node is named {node_id!r}; nodes are {', '.join(self.members) or 'none'}") from None

    def of(self, role: Role, tier: Tier | None = None) -> list[Member]:
        """Return the members with a role (and in a tier), in list order."""
        return [m for m in self.members.values() if m.has(role) and (tier is None or m.tier is tier)]


@dataclass(frozen=True, slots=True)
class ListChange:
    """What distinguishes one list from the one before."""

    added: tuple[NodeId, ...]
    removed: tuple[NodeId, ...]
    changed: tuple[NodeId, ...]
    kept: tuple[NodeId, ...]


class Candidates:
    """Holds the present list. An update is checked whole before anything changes."""

    def __init__(self, candidates: Iterable[Candidate] = ()) -> None:
        """Make generation 1.

        :raises ConfigurationError: as :meth:`update`.
        """
        self.watch: Watch[CandidateList] = Watch(CandidateList(1, _members(list(candidates))))

    @property
    def current(self) -> CandidateList:
        """The present list."""
        return self.watch.value

    @property
    def generation(self) -> int:
        """The present generation."""
        return self.watch.value.generation

    def update(self, candidates: Iterable[Candidate]) -> ListChange:
        """Replace the list and bump the generation, also when nobody watches.

        :raises ConfigurationError: for two candidates of one name, or one URL in two tiers; nothing has changed then.
        """
        old = self.current
        new = CandidateList(old.generation + 1, _members(list(candidates)))
        change = compare(old, new)
        self.watch.set(new)
        return change


def compare(old: CandidateList, new: CandidateList) -> ListChange:
    """Say which nodes came, left, changed what their connection depends on, or keep their connection."""
    both = [node_id for node_id in new.members if node_id in old]
    changed = [
        node_id
        for node_id in both
        if old.members[node_id].candidate.connection != new.members[node_id].candidate.connection
    ]
    return ListChange(
        added=tuple(node_id for node_id in new.members if node_id not in old),
        removed=tuple(node_id for node_id in old.members if node_id not in new),
        changed=tuple(changed),
        kept=tuple(node_id for node_id in both if node_id not in changed),
    )


def _members(candidates: Sequence[Candidate]) -> Mapping[NodeId, Member]:
    merged = _merge(candidates)
    ids = _node_ids([candidate for _, candidate in merged])
    members: dict[NodeId, Member] = {}
    for (position, candidate), node_id in zip(merged, ids, strict=True):
        if node_id in members:
            raise ConfigurationError(f"candidates[{position}].name", f"the name {node_id!r} is taken")
        members[node_id] = Member(node_id, len(members), candidate)
    return MappingProxyType(members)


def _merge(candidates: Sequence[Candidate]) -> list[tuple[int, Candidate]]:
    """Merge equal URLs of one tier (the first one's settings stand, roles add up), keeping positions for messages."""
    by_url: dict[BaseURL, int] = {}
    merged: list[tuple[int, Candidate]] = []
    for position, candidate in enumerate(candidates):
        _check(position, candidate)
        first = by_url.get(candidate.url)
        if first is None:
            by_url[candidate.url] = len(merged)
            merged.append((position, candidate))
            continue
        kept_at, kept = merged[first]
        if kept.tier is not candidate.tier:
            raise ConfigurationError(f"candidates[{position}].url", "the same URL is in the other tier too")
        if kept.name and candidate.name and kept.name != candidate.name:
            raise ConfigurationError(f"candidates[{position}].url", f"the same URL has the name {kept.name!r} already")
        merged[first] = (
            kept_at,
            replace(kept, name=kept.name or candidate.name, roles=kept.roles | candidate.roles),
        )
    return merged


def _check(position: int, candidate: Candidate) -> None:
    name = candidate.name
    if name is not None and (not name or len(name) > 64 or not name.isprintable() or name != name.strip()):
        raise ConfigurationError(f"candidates[{position}].name", "a name has 1 to 64 printable characters")
    if name is not None and ("://" in name or "@" in name):
        # A URL given as a name would carry its secrets into every log line.
        raise ConfigurationError(f"candidates[{position}].name", "a name is not a URL")
    if not candidate.roles:
        raise ConfigurationError(f"candidates[{position}].roles", "at least one role is needed")
    try:
        check_headers(candidate.headers)
    except ValueError as error:
        raise ConfigurationError(f"candidates[{position}].headers", str(error)) from None
    if candidate.url.authorization is not None and any(h.lower() == "authorization" for h, _ in candidate.headers):
        raise ConfigurationError(f"candidates[{position}].headers", "the URL has user-info, which is Authorization too")


def check_headers(headers: Iterable[tuple[str, str]]) -> None:
    """Check that headers can be sent as they are.

    :raises ValueError: the text holds neither names nor values.
    """
    for name, value in headers:
        if not _TOKEN.fullmatch(name):
            raise ValueError("a header's name is not a token")
        if name.lower() in _FRAMING:
            raise ValueError("a header says how messages are framed, which is not for settings to say")
        if not _VALUE.fullmatch(value):
            raise ValueError("a header's value holds something else than printable ASCII, or blanks at an end")


def _node_ids(candidates: Sequence[Candidate]) -> list[NodeId]:
    """Name each candidate: its own name, else host:port, with a hash where that does not tell it apart (I3)."""
    hosts = Counter(candidate.url.hostport for candidate in candidates)
    digests = Counter((candidate.url.hostport, candidate.url.digest) for candidate in candidates)
    names = {candidate.name for candidate in candidates}
    ids = []
    for candidate in candidates:
        url = candidate.url
        if candidate.name is not None:
            ids.append(NodeId(candidate.name))
        elif url.bare and hosts[url.hostport] == 1 and url.hostport not in names:
            ids.append(NodeId(url.hostport))
        elif digests[url.hostport, url.digest] == 1:
            ids.append(NodeId(f"{url.hostport}-{url.digest}"))
        else:
            ids.append(NodeId(f"{url.hostport}-{url.digest_with_credentials}"))
    return ids
