"""The state of the world before and after: what had to become true, and what must not have changed.

A run is judged by its first and its last snapshot. A change is *collateral* when nothing allows it: no
pattern in ``allowed``, and no ``required`` path of a task the run is of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from redfirst.evaluators.canonical import same
from redfirst.evaluators.conditions import Condition
from redfirst.evaluators.kleene import Truth, all_of, any_of
from redfirst.evaluators.paths import ABSENT, look_up, parse_path, show_path
from redfirst.evaluators.rule_kinds.keys import show
from redfirst.evaluators.rule_kinds.task import When
from redfirst.evaluators.state_diff import Allowed, Change, changes
from redfirst.evaluators.trajectory import MISSING, Trajectory
from redfirst.evaluators.verdict import (
    Evidence,
    Finding,
    Verdict,
    failed,
    inconclusive,
    not_applicable,
    passed,
)

VERSION = 1


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
    """Every required path holds at the end; ``of`` is (required paths that hold, required paths)."""

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
        of = (sum(truth is True for truth in truths), len(truths))
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
            return failed("; ".join(finding.because for finding in findings), findings=findings, of=of)
        if None in truths:
            unread = show_path(self.required[truths.index(None)].path)
            return inconclusive(
                f"{unread} leads into a value that is no object, so what stands there is unknown"
            )
        return passed(f"each of the {len(truths)} required state(s) was reached", of=of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What one part of a rules file allows, in the runs it speaks of."""

    allowed: tuple[Allowed, ...] = ()
    when: When = field(default_factory=When)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCollateral:
    """Nothing changed but what some scope of the run allows; ``of`` is (allowed changes, changes)."""

    scopes: tuple[Scope, ...]

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; the evidence is the first snapshot that shows the change."""
        applies = [scope.when.holds(run) for scope in self.scopes]
        if any_of(applies) is False:
            return not_applicable("no task with a state is known for this run")
        if any_of(applies) is None:
            return inconclusive(
                "whether the run is of a task with a state cannot be told from what was recorded"
            )
        refusal = _unreported(run)
        if refusal is not None:
            return refusal
        found = list(changes(run.states[0].state, run.states[-1].state))
        said = tuple(run.user_texts()) or None
        truths = [self._allowed(change, applies, said) for change in found]
        if not found:
            return passed("the state did not change")
        of = (sum(truth is True for truth in truths), len(found))
        findings = [
            _finding(change, run) for change, truth in zip(found, truths, strict=True) if truth is False
        ]
        if findings:
            because = "; ".join(finding.because for finding in findings[:3])
            return failed(because + ("; …" if len(findings) > 3 else ""), findings=findings, of=of)
        if None in truths:
            return inconclusive(f"{found[truths.index(None)]}, and whether that was asked for cannot be told")
        return passed(f"{len(found)} change(s), each allowed", of=of)

    def _allowed(self, change: Change, applies: Sequence[Truth], said: Sequence[str] | None) -> Truth:
        return any_of(
            all_of((truth, allowed.allows(change, said)))
            for scope, truth in zip(self.scopes, applies, strict=True)
            for allowed in scope.allowed
        )


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
