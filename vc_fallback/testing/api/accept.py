"""Which of the media types that there are a request's `Accept` prefers (RFC 9110, 12.5.1)."""

from collections.abc import Sequence


def preferred(accept: str | None, offered: Sequence[str]) -> str | None:
    """Return the media type with the highest weight; of equals the first offered. `None` where none is acceptable.

    A range that cannot be read counts as none.
    """
    if accept is None or not accept.strip():
        return offered[0]
    ranges = [found for part in accept.split(",") if (found := _range(part)) is not None]
    weights = {kind: _weight(kind, ranges) for kind in offered}
    best = max(offered, key=lambda kind: weights[kind])
    return best if weights[best] > 0 else None


def _range(text: str) -> tuple[str, float] | None:
    kind, *parameters = (part.strip().lower() for part in text.split(";"))
    weight = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = float(value)
            except ValueError:
                return None
    return (kind, weight) if "/" in kind else None


def _weight(kind: str, ranges: Sequence[tuple[str, float]]) -> float:
    # The most specific range counts, not the heaviest.
    for wanted in (kind, kind.partition("/")[0] + "/*", "*/*"):
        found = [weight for named, weight in ranges if named == wanted]
        if found:
            return found[0]
    return 0.0
