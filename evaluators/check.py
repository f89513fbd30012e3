"""Checks: what is asked of every run, and the one place where an answer becomes a signed verdict."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from redfirst.evaluators import (
    arguments,
    recovery,
    repeats,
    termination,
    tool_errors,
    ungrounded_argument,
    unverified_claim,
)
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.trajectory import Trajectory
from redfirst.evaluators.verdict import CheckClass, Severity, Verdict, inconclusive, named

Evaluate = Callable[[Trajectory], Verdict]
Spec = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question to every run. Two checks with the same revision give the same answers."""

    id: str
    check_class: CheckClass
    severity: Severity
    revision: str
    """Hash of the meaning: kind, parameters with their defaults, version of the evaluator."""
    evaluate: Evaluate = field(compare=False, repr=False)
    severity_in: Callable[[Trajectory], Severity] | None = field(default=None, compare=False, repr=False)
    """The severity in one run, where that depends on the run; ``severity`` is then the highest there is."""
    spec: Spec = field(hash=False)
    """The declaration it was built from, as plain JSON data; ``check_from_spec`` builds it again."""


def judge(run: Trajectory, checks: Iterable[Check]) -> tuple[Verdict, ...]:
    """The verdict of every check, in their order. A check that raises, or returns no verdict, harms no other."""
    return tuple(_signed(run, check) for check in checks)


def default_checks() -> tuple[Check, ...]:
    """The checks that need no configuration."""
    return tuple(check_from_spec({"kind": kind}) for kind in _BUILT_IN)


def check_from_spec(spec: Spec) -> Check:
    """The check that a declaration describes: ``Check.spec``, or one rule as it stands in a rules file.

    Raises:
        ConfigurationError: the declaration is wrong.
    """
    kind = spec.get("kind")
    if (
        isinstance(kind, str) and kind in _BUILT_IN and "ends" not in spec
    ):  # a rule on ends is of a rules file
        return _built_in(kind, spec)
    if names_code(spec):
        raise ConfigurationError(
            f"check {spec.get('id', '')!r} names code ({spec.get('function')}), and only a project's rules file may"
        )
    from redfirst.evaluators.declared import declared_check  # pydantic is paid for by those who declare rules

    return declared_check(spec)


def names_code(spec: Spec) -> bool:
    """Whether a declaration names a function to import. Scenarios and traces carry none."""
    return "function" in spec


def revision_of(kind: str, parameters: object, version: int) -> str:
    """The hash of what a check means; its name and severity are no part of it."""
    text = json.dumps([kind, parameters, version], sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def severity_named(name: object) -> Severity:
    """The severity of that name.

    Raises:
        ConfigurationError: there is none.
    """
    if isinstance(name, str) and name.upper() in Severity.__members__:
        return Severity[name.upper()]
    raise ConfigurationError(f"unknown severity {name!r}; use info, note, flag or page, as in severity: page")


_BUILT_IN: Mapping[str, tuple[Evaluate, CheckClass, Severity, int]] = {
    "repeats": (repeats.repeats, CheckClass.TRAJECTORY, Severity.FLAG, repeats.VERSION),
    "termination": (termination.termination, CheckClass.GOAL, Severity.FLAG, termination.VERSION),
    "tool_errors": (tool_errors.tool_errors, CheckClass.TRAJECTORY, Severity.NOTE, tool_errors.VERSION),
    "recovery": (recovery.recovery, CheckClass.TRAJECTORY, Severity.NOTE, recovery.VERSION),
    "arguments": (arguments.arguments, CheckClass.TRAJECTORY, Severity.NOTE, arguments.VERSION),
    "unverified_claim": (
        unverified_claim.unverified_claim,
        CheckClass.TRAJECTORY,
        Severity.NOTE,
        unverified_claim.VERSION,
    ),
    "ungrounded_argument": (
        ungrounded_argument.ungrounded_argument,
        CheckClass.TRAJECTORY,
        Severity.NOTE,
        ungrounded_argument.VERSION,
    ),
}


def _built_in(kind: str, spec: Spec) -> Check:
    evaluate, check_class, severity, version = _BUILT_IN[kind]
    unknown = sorted(set(spec) - {"kind", "id", "severity"})
    if unknown:
        raise ConfigurationError(f"check {kind}: unknown key {unknown[0]!r}; it takes id and severity")
    return Check(
        id=str(spec.get("id", kind)),
        check_class=check_class,
        severity=severity_named(spec["severity"]) if "severity" in spec else severity,
        revision=revision_of(kind, {}, version),
        evaluate=evaluate,
        spec=copy.deepcopy(dict(spec)),
    )


def _signed(run: Trajectory, check: Check) -> Verdict:
    severity = check.severity
    try:
        answer: object = check.evaluate(run)
        severity = severity if check.severity_in is None else check.severity_in(run)
    except Exception as error:  # noqa: BLE001 - whatever a check raises is its own failure, and is reported as such
        answer = inconclusive(f"evaluator error: {type(error).__name__}: {_words(error)}")
    if not isinstance(answer, Verdict):
        kind = "None" if answer is None else f"a value of type {type(answer).__name__}"
        answer = inconclusive(f"evaluator error: returned {kind}; a check returns a Verdict")
    return named(
        answer, check=check.id, check_class=check.check_class, severity=severity, revision=check.revision
    )


def _words(error: Exception) -> str:
    try:
        return " ".join(str(error).split())[:300]
    except Exception as second:  # noqa: BLE001 - an error that cannot say what it is must not become another's
        return f"(its text raised {type(second).__name__})"
