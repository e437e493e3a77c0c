"""The health of one node: healthy, unhealthy, recovering, and how it gets from one to the other (N1, N3, N4)."""

from collections import deque
from dataclasses import dataclass

from vc_fallback.base.health import HealthReason, HealthState
from vc_fallback.decide.error_window import ErrorWindow
from vc_fallback.decide.health_policy import HealthPolicy
from vc_fallback.decide.latency import FEWEST, LatencyDigest
from vc_fallback.decide.tip_consensus import DEMOTED

HEALTHY, UNHEALTHY, RECOVERING = HealthState.HEALTHY, HealthState.UNHEALTHY, HealthState.RECOVERING

MOST_TRANSITIONS = 8
"""Transitions of a node that are kept."""

_LONGEST_PROBLEM = 200


@dataclass(frozen=True, slots=True)
class HealthTransition:
    """A node's health has changed at a moment in loop time: its state, its mark, or what stands against it."""

    at: float
    before: HealthState
    after: HealthState
    suspect: bool
    """The mark after it (N4)."""
    reason: HealthReason
    detail: str

    @property
    def moved(self) -> bool:
        """Whether the state is another one, not only the mark or the reason."""
        return self.before is not self.after


class NodeHealth:
    """A verdict anyone can explain: state, reason, since when; `health_words` says what would change it.

    Fed by checks of `node/syncing` (N2), by outcomes of requests (rule 10 says which) and by what its heads show of
    its lag; never by streams that end or stall (rule 3): those have the node checked sooner. Every method returns the
    transition that it made, if it made one. Moments are loop time in seconds and do not go back.

    Checks count by the row and requests by the window: a failed check is no error of the window. A transport failure of
    a request makes a healthy node *suspect* and is one error of the window; those that follow until a check clears it
    are the same incident and count no more. So a node that goes down is judged by its checks, and one that answers
    every check but breaks off five times in a minute by the window.

    A check is *good* when the node answers it and no limit is broken then: a node whose errors still fill the window,
    or that answers from far behind, does not recover.

    All that is kept of a node is bounded: 5 errors, twice 32 latencies, 8 transitions; 15 kB at the most, by
    measurement on CPython 3.11.
    """

    __slots__ = (
        "_sound",
        "checked",
        "detail",
        "duty_latency",
        "el_offline",
        "errors",
        "failed",
        "history",
        "lag",
        "optimistic",
        "passed",
        "policy",
        "reason",
        "since",
        "state",
        "suspect",
        "suspect_since",
        "sync_latency",
    )

    def __init__(self, policy: HealthPolicy, now: float) -> None:
        """Begin as healthy: nothing speaks against the node yet, and three failed checks are soon made."""
        self.policy = policy
        self.state = HEALTHY
        self.reason = HealthReason.NEW
        self.detail = "not checked yet"
        self.since = now
        """When it came into its state."""
        self.suspect = ""
        """Why it is suspect; empty where it is not (N4)."""
        self.suspect_since = now
        self.checked: float | None = None
        """When the last check ended, good or not."""
        self.failed = 0
        """Failed checks in a row."""
        self.passed = 0
        """Good checks in a row."""
        self.lag: int | None = None
        """Slots behind the tip; `None` is unknown."""
        self.optimistic: bool | None = None
        self.el_offline: bool | None = None
        self.errors = ErrorWindow(policy.most_errors, policy.error_window)
        self.sync_latency = LatencyDigest(policy.latency_memory)
        """Of `node/syncing`."""
        self.duty_latency = LatencyDigest(policy.latency_memory)
        """Of attestation data: the p90 of Q2's delay."""
        self.history: deque[HealthTransition] = deque(maxlen=MOST_TRANSITIONS)
        # A node that is new has nothing to recover from: its first good check is enough.
        self._sound = policy.min_recovery_checks - 1

    def use(self, policy: HealthPolicy) -> None:
        """Take other limits: those of a chain that has become known."""
        self.policy = policy
        self.errors.use(policy.most_errors, policy.error_window)
        self.sync_latency.memory = self.duty_latency.memory = policy.latency_memory

    # --- verdicts

    @property
    def unhealthy(self) -> str:
        """Say why requests should not go to the node; empty while it is healthy."""
        if self.state is HEALTHY:
            return ""
        return f"recovering, {self.detail}" if self.state is RECOVERING else self.detail

    @property
    def answers(self) -> bool:
        """Whether it can be reached as far as is known: a healthy node, or one that answered when it was asked last."""
        return self.state is HEALTHY or not (self.failed or self.reason is HealthReason.REQUEST_FAILED)

    @property
    def checked_soon(self) -> bool:
        """Whether it is checked every 2 s rather than once in a slot (N2, N4)."""
        return self.state is not HEALTHY or bool(self.suspect)

    @property
    def steady(self) -> bool:
        """Whether it can be given duties back (N9).

        It was found usable by as many good checks in a row as a recovery takes, with nothing to the contrary in
        between: a node whose `is_optimistic` or sync flips every few seconds never is (case 31). Before anything was to
        the contrary one is enough.
        """
        return self.state is HEALTHY and self._sound >= self.policy.min_recovery_checks

    def doubt(self) -> None:
        """Have it found usable anew before it can be given duties back: it is, or was, on another chain (N7)."""
        self._sound = 0
        self.lag = None

    def broken(self, now: float) -> tuple[HealthReason, str] | None:
        """Return the first limit that is broken now."""
        policy = self.policy
        if self.lag is not None and self.lag > policy.max_lag:
            return HealthReason.BEHIND, f"{self.lag} slots behind the tip"
        if self.errors.exceeded(now):
            return HealthReason.ERRORS, f"{policy.most_errors} errors in {policy.error_window:g} s"
        if policy.slow is not None:
            for what, digest in (("node/syncing", self.sync_latency), ("attestation data", self.duty_latency)):
                p90 = digest.p90(now)
                if p90 is not None and p90 > policy.slow:
                    return HealthReason.SLOW, f"nine of ten answers of {what} take up to {p90:.2f} s"
        return None

    # --- what happens

    def check_passed(
        self,
        now: float,
        *,
        lag: int | None,
        latency: float | None = None,
        optimistic: bool | None = None,
        el_offline: bool | None = None,
    ) -> HealthTransition | None:
        """Take an answer to a check.

        :param lag: slots behind the tip with the head it names; `None` where there is no tip to measure by.
        :param latency: seconds it took.
        :param optimistic: as it says, `None` where it does not; so for `el_offline`.
        """
        self.checked = now
        self.failed = 0
        self.lag, self.optimistic, self.el_offline = lag, optimistic, el_offline
        if latency is not None:
            self.sync_latency.add(latency, now)
        broken = self.broken(now)
        if broken is not None:
            return self._down(now, *broken)
        self.passed += 1
        self._sound = self._sound + 1 if self._usable else 0
        if self.state is HEALTHY:
            if not self.suspect and self.reason is not HealthReason.NEW:
                return None
            cleared = bool(self.suspect)
            self.suspect = ""
            self.reason, self.detail = HealthReason.CHECK_PASSED, "answers checks"
            return self._changed(now, HEALTHY) if cleared else None
        if self.passed >= self.policy.min_recovery_checks:
            return self._enter(now, HEALTHY, HealthReason.RECOVERED, f"{checks(self.passed, 'good')} in a row")
        known = self.state is RECOVERING
        progress = f"{self.passed} of {checks(self.policy.min_recovery_checks, 'good')} in a row"
        if known:
            self.detail = progress
            return None
        return self._enter(now, RECOVERING, HealthReason.CHECK_PASSED, progress)

    def check_failed(self, now: float, problem: str) -> HealthTransition | None:
        """Take a check that failed, for whatever cause; `problem` says in a few words what went wrong."""
        self.checked = now
        self.failed += 1
        self.passed = self._sound = 0
        detail = f"{checks(self.failed, 'failed')} in a row: {problem[:_LONGEST_PROBLEM]}"
        if self.state is not HEALTHY or self.failed >= self.policy.failed_checks:
            return self._down(now, HealthReason.CHECKS_FAILED, detail)
        return self._suspect(now, HealthReason.CHECKS_FAILED, detail)

    def request_failed(self, now: float, problem: str, *, started: float, transport: bool) -> HealthTransition | None:
        """Take a request that failed in a way that rule 10 counts.

        :param started: loop time at which it was begun.
        :param transport: whether there was no answer: refused, broken off, timed out.
        """
        if not transport:
            self.errors.add(started, now)
        elif self.state is HEALTHY:
            self._sound = 0
            if not self.suspect:
                self.errors.add(started, now)
        elif self.state is RECOVERING:
            return self._down(now, HealthReason.REQUEST_FAILED, problem[:_LONGEST_PROBLEM])
        broken = self.broken(now)
        if broken is not None and self.state is not UNHEALTHY:
            return self._down(now, *broken)
        if transport and self.state is HEALTHY:
            return self._suspect(now, HealthReason.REQUEST_FAILED, problem[:_LONGEST_PROBLEM])
        return None

    def duty_answered(self, now: float, latency: float) -> HealthTransition | None:
        """Take the latency in seconds of attestation data, or of a wait for it that was given up."""
        self.duty_latency.add(latency, now)
        slow = self.policy.slow
        if (slow is None or latency <= slow) and len(self.duty_latency) > FEWEST:
            # It comes with every answer. One that is fast enough breaks no limit that was not broken before.
            return None
        return self._look(now)

    def seen(self, now: float, *, lag: int | None = None, optimistic: bool | None = None) -> HealthTransition | None:
        """Take what a head of the node shows, by its stream or a poll; `None` says nothing new."""
        if lag is not None:
            self.lag = lag
        if optimistic is not None:
            self.optimistic = optimistic
        if not self._usable:
            self._sound = 0
        return self._look(now)

    # --- how it moves

    @property
    def _usable(self) -> bool:
        """Whether nothing that it shows would have its duties taken from it (N6)."""
        return not self.optimistic and not self.el_offline and (self.lag is None or self.lag < DEMOTED)

    def _look(self, now: float) -> HealthTransition | None:
        broken = None if self.state is UNHEALTHY else self.broken(now)
        return None if broken is None else self._down(now, *broken)

    def _down(self, now: float, reason: HealthReason, detail: str) -> HealthTransition | None:
        self.passed = self._sound = 0
        if self.state is not UNHEALTHY:
            return self._enter(now, UNHEALTHY, reason, detail)
        same = self.reason is reason
        self.reason, self.detail = reason, detail
        return None if same else self._changed(now, UNHEALTHY)

    def _suspect(self, now: float, reason: HealthReason, detail: str) -> HealthTransition | None:
        known = bool(self.suspect)
        self.suspect = self.detail = detail
        self.reason = reason
        if known:
            return None
        self.suspect_since = now
        return self._changed(now, HEALTHY)

    def _enter(self, now: float, state: HealthState, reason: HealthReason, detail: str) -> HealthTransition:
        before, self.state = self.state, state
        self.since, self.suspect = now, ""
        self.reason, self.detail = reason, detail
        return self._changed(now, before)

    def _changed(self, now: float, before: HealthState) -> HealthTransition:
        change = HealthTransition(now, before, self.state, bool(self.suspect), self.reason, self.detail)
        self.history.append(change)
        return change


def checks(count: int, kind: str) -> str:
    """Write so many checks of a kind: `1 good check`, `3 failed checks`."""
    return f"{count} {kind} check{'' if count == 1 else 's'}"
