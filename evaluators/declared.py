"""From a declaration (plain data) to its check: the one builder for rules files and scenarios."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from redfirst.evaluators import outcome, python_check, recall, state
from redfirst.evaluators.check import Check, Evaluate, revision_of, severity_named
from redfirst.evaluators.declared_parts import allowed_of, calls_of, required_of, when_of
from redfirst.evaluators.declared_rules import built_rule
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.file_shapes import Declaration, RecallShape
from redfirst.evaluators.outcome_shapes import OutcomeCheckShape
from redfirst.evaluators.patterns import compile_pattern
from redfirst.evaluators.reference import checks, facts, learned
from redfirst.evaluators.reference.learned_shapes import LearnedCheckShape
from redfirst.evaluators.reference.shapes import MatchShape, RatioShape, RecallFactsShape, ReferenceShape
from redfirst.evaluators.rule_kind_shapes import RULE_SHAPES, PythonShape
from redfirst.evaluators.rule_kinds.calls import SUCCEEDED
from redfirst.evaluators.rule_kinds.task import When
from redfirst.evaluators.rule_kinds.wording import EXPECTED, expected
from redfirst.evaluators.rule_shapes import ScopeShape, StateCollateralShape, StateRequiredShape
from redfirst.evaluators.shapes import WhenShape
from redfirst.evaluators.state_diff import ANY_REST, Allowed
from redfirst.evaluators.strict_yaml import nearest
from redfirst.evaluators.verdict import CheckClass, Severity

_OURS = frozenset(
    {
        *("empty_when", "one_of", "no_new_value", "no_star", "no_such_happening", "no_source"),
        *("budget_form", "approval_once", "empty_state", "one_step", "reference"),
        *("empty_answer", "empty_outcome"),
    }
)
"""Faults that a shape tells in its own words."""
_NOT_MEANT: Mapping[str, Any] = {"id": True, "severity": True, "scopes": {"__all__": {"severity"}}}
"""What a check is called and how much it matters is no part of its meaning."""

_EITHER = ("required_calls", "reference")

DeclaredShape = (
    RULE_SHAPES
    | PythonShape
    | OutcomeCheckShape
    | RecallShape
    | StateRequiredShape
    | StateCollateralShape
    | MatchShape
    | RatioShape
    | RecallFactsShape
    | LearnedCheckShape
)


def declared_check(spec: Mapping[str, object]) -> Check:
    """The check of a declaration.

    Raises:
        ConfigurationError: the declaration is wrong.
    """
    shape = declared_shape(spec)
    evaluate, check_class, version = _built(shape)
    severity = severity_named(shape.severity)
    severity_in = None
    if isinstance(evaluate, state.StateCollateral):
        severity = max((scope.severity for scope in evaluate.scopes if scope.judges), default=severity)
        severity_in = evaluate.severity
    return Check(
        id=shape.id,
        check_class=check_class,
        severity=severity,
        revision=revision_of(shape.kind, _meant(shape, evaluate), version),
        evaluate=evaluate,
        severity_in=severity_in,
        spec=copy.deepcopy(dict(spec)),
    )


def _meant(shape: DeclaredShape, evaluate: Evaluate) -> dict[str, object]:
    """What the revision stands for: what is demanded, the code that is named included; what a recall was not given
    it does not mean."""
    parameters: dict[str, object] = shape.model_dump(by_alias=True, exclude=_NOT_MEANT)
    code = evaluate.function if isinstance(evaluate, outcome.OutcomeReached) else evaluate
    if isinstance(code, python_check.PythonCheck):
        parameters["source"] = code.source
    return {key: value for key, value in parameters.items() if value is not None or key not in _EITHER}


def declared_shape(spec: Mapping[str, object]) -> DeclaredShape:
    """The shape of a declaration.

    Raises:
        ConfigurationError: the declaration is wrong.
    """
    try:
        return _declarations().validate_python(dict(spec))
    except ValidationError as error:
        where, what = first_problem(error)
        place = ".".join(str(part) for part in where)
        raise ConfigurationError(
            f"check {spec.get('id', '')!r}: {place + ': ' if place else ''}{what}"
        ) from error


def first_problem(error: ValidationError) -> tuple[tuple[int | str, ...], str]:
    """Where the first fault of a document is, and what it is, in our words."""
    fault = error.errors(include_url=False)[0]
    where, context = tuple(fault["loc"]), fault.get("ctx", {})
    match fault["type"]:
        case "unknown_key" | "no_value":
            return (*where, str(context["key"])), fault["msg"]
        case "union_tag_invalid":
            tag = fault["input"]["kind"]
            if not isinstance(tag, str):
                return (*where, "kind"), expected("kind", tag)
            known = [name.strip(" '") for name in str(context["expected_tags"]).split(",")]
            return (*where, "kind"), f"unknown kind {tag}; {nearest(tag, known)}"
        case "union_tag_not_found":
            return where, f"kind is missing; add {EXPECTED['kind']}"
        case "missing":
            return where[:-1], f"{where[-1]} is missing; add {EXPECTED[str(where[-1])]}"
        case "value_error":
            return where, str(context["error"])
        case kind if kind in _OURS:
            return where, fault["msg"]
        case _:
            return where, expected(_key(where), fault["input"])


def _key(where: Sequence[int | str]) -> str:
    """The key that a value stands at, also where it stands in a list."""
    return next(str(part) for part in reversed(where) if part in EXPECTED)


@functools.cache
def _declarations() -> TypeAdapter[DeclaredShape]:
    return TypeAdapter(Declaration)


def _built(shape: DeclaredShape) -> tuple[Evaluate, CheckClass, int]:
    match shape:
        case PythonShape():
            made = _function(shape.id, shape.function, shape.params)
            return made, CheckClass(shape.check_class), python_check.VERSION
        case OutcomeCheckShape():
            return _outcome(shape), CheckClass.GOAL, outcome.VERSION
        case RecallShape():
            if shape.reference is not None:
                return _beside(shape.kind, shape.reference, shape.when)
            required = tuple(calls_of(one, SUCCEEDED) for one in shape.required_calls or ())
            return recall.Recall(required=required, when=when_of(shape.when)), CheckClass.GOAL, recall.VERSION
        case MatchShape() | RatioShape():
            return _beside(shape.kind, shape.reference, shape.when)
        case RecallFactsShape():
            asked = facts.Facts(tuple(one.built() for one in shape.facts), when_of(shape.when))
            return asked, CheckClass.GOAL, facts.VERSION
        case LearnedCheckShape():
            habit = learned.LearnedRecall if shape.kind == "learned.recall" else learned.LearnedToolSelection
            return habit(shape.learned.built()), CheckClass.TRAJECTORY, learned.VERSION
        case StateRequiredShape():
            reached = state.StateRequired(
                required=tuple(required_of(one) for one in shape.required), when=when_of(shape.when)
            )
            return reached, CheckClass.GOAL, state.VERSION
        case StateCollateralShape():
            spared = state.StateCollateral(
                scopes=tuple(
                    _scope(one, severity_named(one.severity or shape.severity)) for one in shape.scopes
                )
            )
            return spared, CheckClass.PROTECTION, state.VERSION
    return built_rule(shape)


def _beside(kind: str, reference: ReferenceShape, when: WhenShape | None) -> tuple[Evaluate, CheckClass, int]:
    question = checks.AgainstReference(reference.built(), when_of(when), checks.QUESTIONS[kind])
    return question, CheckClass.GOAL if kind == "recall" else CheckClass.TRAJECTORY, checks.VERSION


def _function(name: str, reference: str, params: Mapping[str, object]) -> python_check.PythonCheck:
    try:
        return python_check.python_check(reference, params)
    except python_check.UnusableFunction as problem:
        raise ConfigurationError(f"check {name!r}: {problem}") from problem


def _outcome(shape: OutcomeCheckShape) -> outcome.OutcomeReached:
    answer, required = shape.answer, shape.state
    return outcome.OutcomeReached(
        when=when_of(shape.when),
        answer=None
        if answer is None
        else outcome.Answer(
            equals=answer.equals,
            contains=tuple(answer.contains or ()),
            matches=None if answer.matches is None else compile_pattern(answer.matches),
        ),
        state=None
        if required is None
        else state.StateRequired(required=tuple(map(required_of, required)), when=When()),
        function=None if shape.function is None else _function(shape.id, shape.function, shape.params),
    )


def _scope(shape: ScopeShape, severity: Severity) -> state.Scope:
    """What a scope says. ``ignore`` in a task allows every change; in the file it says nothing at all."""
    when = None if shape.when is None else when_of(shape.when)
    if shape.collateral == "ignore":
        everything = (Allowed(segments=(ANY_REST,)),)
        return state.Scope(
            allowed=everything if when else (), when=when, severity=severity, judges=when is not None
        )
    listed = shape.allowed is not None
    return state.Scope(
        allowed=(
            *(allowed_of(one) for one in shape.allowed or ()),
            *(state.allowed_by(required_of(one)) for one in shape.required),
        ),
        when=when,
        severity=severity,
        judges=when is None or listed or shape.collateral is not None,
        alone=when is not None and listed and shape.collateral is not None,
    )
