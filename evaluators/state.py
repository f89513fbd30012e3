"""The state of the world before and after: what had to become true, and what must not have changed.

A run is judged by its first and its last snapshot; of an incomplete run the last may be missing. A change
is *collateral* when nothing allows it: no pattern in ``allowed``, and no ``required`` path of a task the
run is of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redfirst.evaluators.canonical import same
from redfirst.evaluators.conditions import Condition
from redfirst.evaluators.kleene import Truth, all_of, any_of
from redfirst.evaluators.paths import ABSENT, look_up, parse_path, show_path
from redfirst.evaluators.rule_kinds.conclude import and_untold
from redfirst.evaluators.rule_kinds.keys import show
from redfirst.evaluators.rule_kinds.lacking import incomplete, lacks_calls, missing_fact, without_absence
from redfirst.evaluators.rule_kinds.task import When
from redfirst.evaluators.state_diff import Allowed, Change, changes
from redfirst.evaluators.trajectory import MISSING, Effect, Trajectory
from redfirst.evaluators.verdict import (
    Evidence,
    Finding,
    Severity,
    Verdict,
    failed,
    inconclusive,
    not_applicable,
    passed,
)

VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Required:
    """What must stand at a path of the last snapshot."""

    path: tuple[str, ...]
    must: Condition

    def holds(self, value: object) -> bool | None:
        """Whether the value is right. A snapshot is whole, so an absent or odd value is wrong."""
        return None if value is MISSING else self.must.holds(value) is True


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRequired:
    """Every required path holds at the end; ``of`` is (required paths that hold, those that could be judged)."""

    required: tuple[Required, ...]
    when: When

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run. What was true at the start and stayed so holds."""
        refusal = self.when.refusal(run) or _unreported(run)
        if refusal is not None:
            return refusal
        last = run.states[-1]
        values = [look_up(last.state, one.path) for one in self.required]
        truths = [one.holds(value) for one, value in zip(self.required, values, strict=True)]
        unknown = truths.count(None)
        of = (truths.count(True), len(truths) - unknown)
        findings = [
            Finding(
                subject=show_path(one.path),
                because=f"{show_path(one.path)} is {_shown(value)} at the end, not {one.must}",
                evidence=(Evidence(span_id=last.span_id, pointer=_pointer(len(run.states) - 1, one.path)),),
            )
            for one, value, truth in zip(self.required, values, truths, strict=True)
            if truth is False
        ]
        if findings:
            because = "; ".join(finding.because for finding in findings)
            return failed(because + and_untold(unknown), findings=findings, of=of)
        if unknown:
            unread = show_path(self.required[truths.index(None)].path)
            return inconclusive(
                f"{unread} leads into a value that is no object, so what stands there is unknown"
            )
        return passed(f"each of the {len(truths)} required state(s) was reached", of=of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What one part of a rules file allows in the runs it speaks of, and what it says of other changes."""

    allowed: tuple[Allowed, ...] = ()
    when: When | None = None
    """``None`` for what the file says of every run."""
    severity: Severity = Severity.FLAG
    judges: bool = True
    """It forbids what nothing allows; ``False`` for a task that only says what must be reached."""
    alone: bool = False
    """In its runs only scopes that are ``alone`` allow anything."""

    def holds(self, run: Trajectory) -> Truth:
        """Whether it speaks of this run."""
        return True if self.when is None else self.when.holds(run)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCollateral:
    """Nothing changed but what some scope of the run allows; ``of`` is (allowed changes, changes judged)."""

    scopes: tuple[Scope, ...]

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; the evidence is the first snapshot that shows the change."""
        applies = [scope.holds(run) for scope in self.scopes]
        judged = any_of(one for scope, one in zip(self.scopes, applies, strict=True) if scope.judges)
        if judged is False:
            nothing = not_applicable("nothing is said of the changes of this run")
            return without_absence(nothing, incomplete(run))
        if judged is None:
            return inconclusive(
                "whether the run is of a task with a state cannot be told from what was recorded"
            )
        refusal = self._untouched(run, applies) or _unreported(run)
        if refusal is not None:
            return refusal
        found = list(changes(run.states[0].state, run.states[-1].state))
        said = tuple(run.user_texts())
        heard = bool(said) and all(
            message.content is not None for message in run.history or () if message.role == "user"
        )
        truths = [self._allowed(change, applies, said, heard=heard) for change in found]
        if not found:
            return passed("the state did not change")
        good, unknown = truths.count(True), truths.count(None)
        of = (good, len(found) - unknown)
        findings = [
            _finding(change, run) for change, truth in zip(found, truths, strict=True) if truth is False
        ]
        if findings:
            because = "; ".join(finding.because for finding in findings[:3])
            more = ("; …" if len(findings) > 3 else "") + and_untold(unknown)
            return failed(because + more, findings=findings, of=of)
        if unknown:
            return inconclusive(f"{found[truths.index(None)]}, and whether that is allowed cannot be told")
        return passed(f"{len(found)} change(s), each allowed", of=of)

    def severity(self, run: Trajectory) -> Severity:
        """The highest of the tasks that the run may be of and that forbid changes, else that of the file."""
        judging = [scope for scope in self.scopes if scope.judges and scope.holds(run) is not False]
        tasks = [scope.severity for scope in judging if scope.when is not None]
        return max(tasks or [scope.severity for scope in judging], default=Severity.FLAG)

    def _untouched(self, run: Trajectory, applies: Sequence[Truth]) -> Verdict | None:
        """The verdict on a run that reports no state and does nothing that could change one."""
        of_a_task = any(
            scope.when is not None and scope.judges and truth is not False
            for scope, truth in zip(self.scopes, applies, strict=True)
        )
        wrote = any(call.effect is Effect.WRITE and call.ran for call in run.tool_calls)
        if run.states or of_a_task or wrote or missing_fact(run, "states"):
            return None
        nothing = not_applicable("the run reported no state and made no call declared as a write")
        return without_absence(nothing, lacks_calls(run))

    def _allowed(
        self, change: Change, applies: Sequence[Truth], said: Sequence[str], *, heard: bool
    ) -> Truth:
        """Whether the change is allowed, whichever of the tasks that may apply do."""
        each = [
            (scope, truth, any_of(one.allows(change, said, heard=heard) for one in scope.allowed))
            for scope, truth in zip(self.scopes, applies, strict=True)
            if truth is not False
        ]
        alone = [(truth, allows) for scope, truth, allows in each if scope.alone]
        if any(truth for truth, _ in alone):
            return any_of(map(all_of, alone))
        together = any_of(all_of((truth, allows)) for scope, truth, allows in each if not scope.alone)
        return together if all(allows is together for _, allows in alone) else None


def allowed_by(required: Required) -> Allowed:
    """What a required path lets change: itself, and anything under it."""
    return Allowed(segments=(*(show_path((key,)) for key in required.path), "**"))


def required_path(path: str) -> tuple[str, ...]:
    """The keys of a required path.

    Raises:
        ValueError: the path is empty or has a star.
    """
    if not path or "*" in path:
        raise ValueError(f"required path {path!r} must name one place (a key with a star is written ~2)")
    return parse_path(path)


def _unreported(run: Trajectory) -> Verdict | None:
    lack = incomplete(run) or missing_fact(run, "states")
    if lack:
        return inconclusive(f"{lack}, so the last state that was reported may not be the last")
    if not run.states:
        return inconclusive("the run reported no state")
    if len(run.states) == 1:
        return inconclusive("the run reported its state only once, so what it changed is unknown")
    return None


def _finding(change: Change, run: Trajectory) -> Finding:
    path = show_path(change.path)
    old = look_up(run.states[0].state, change.path)
    place = next(
        index
        for index, snapshot in enumerate(run.states)
        if not _equal(old, look_up(snapshot.state, change.path)) or index == len(run.states) - 1
    )
    return Finding(
        subject=path,
        because=f"{change} ({_shown(change.before)} → {_shown(change.after)}), which nothing allows",
        evidence=(
            Evidence(
                span_id=run.states[place].span_id,
                pointer=_pointer(place, change.path),
                note=f"was {_shown(old)}",
            ),
        ),
    )


def _equal(left: object, right: object) -> bool:
    if left is ABSENT or right is ABSENT or left is MISSING or right is MISSING:
        return left is right
    return same(left, right)


def _shown(value: object) -> str:
    return "absent" if value is ABSENT else "unknown" if value is MISSING else show(value)


def _pointer(place: int, path: Sequence[str]) -> str:
    escaped = (key.replace("~", "~0").replace("/", "~1") for key in path)
    return "/".join(("", "states", str(place), "state", *escaped))
