"""From the shape of a rule to its evaluator, its class and the version of the evaluator: one case per kind."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import cast

from redfirst.evaluators import rule_base_shapes as base
from redfirst.evaluators import rule_kind_shapes as shapes
from redfirst.evaluators import state
from redfirst.evaluators.canonical import number_of
from redfirst.evaluators.check import Evaluate
from redfirst.evaluators.conditions import ValueOf, Where, parse_condition, parse_where
from redfirst.evaluators.declared_parts import allowed_of, calls_of, required_of, when_of
from redfirst.evaluators.paths import call_path, parse_path
from redfirst.evaluators.patterns import compile_pattern
from redfirst.evaluators.rule_kinds import (
    approval,
    args_schema,
    budget,
    budget_sum,
    forbid,
    invariant,
    max_calls,
    max_consecutive,
    mutually_exclusive,
    no_flow,
    require_after,
    require_before,
    sequence,
    state_diff,
    termination,
)
from redfirst.evaluators.rule_kinds.calls import EVERY_STATUS, RAN, SUCCEEDED, TOOK_EFFECT, CallPattern
from redfirst.evaluators.rule_kinds.happenings import EVENT
from redfirst.evaluators.rule_kinds.keys import Same
from redfirst.evaluators.rule_kinds.task import When
from redfirst.evaluators.rule_kinds.validity import Cover, Validity
from redfirst.evaluators.shapes import CallShape
from redfirst.evaluators.state_diff import parse_pattern
from redfirst.evaluators.trajectory import Stop, Trajectory
from redfirst.evaluators.verdict import CheckClass, Verdict

Built = tuple[Evaluate, CheckClass, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyWhen:
    """A rule that speaks of some runs only."""

    when: When
    rule: Evaluate

    def __call__(self, run: Trajectory) -> Verdict:
        """The rule's verdict; of another run, that it is not applicable."""
        return self.when.refusal(run) or self.rule(run)


def built_rule(shape: shapes.RULE_SHAPES) -> Built:
    """The evaluator of a rule."""
    evaluate, check_class, version = _built(shape)
    if shape.when is None:
        return evaluate, check_class, version
    return OnlyWhen(when=when_of(shape.when), rule=evaluate), check_class, version


def _built(shape: shapes.RULE_SHAPES) -> Built:
    match shape:
        case shapes.RequireBeforeShape():
            return _need(shape), CheckClass.TRAJECTORY, require_before.VERSION
        case shapes.RequireAfterShape():
            return _followed(shape), CheckClass.TRAJECTORY, require_after.VERSION
        case shapes.ForbidShape():
            return _forbidden(shape), CheckClass.TRAJECTORY, forbid.VERSION
        case shapes.MutuallyExclusiveShape():
            return _exclusive(shape), CheckClass.TRAJECTORY, mutually_exclusive.VERSION
        case shapes.MaxCallsShape():
            return _limited(shape), CheckClass.TRAJECTORY, max_calls.VERSION
        case shapes.MaxConsecutiveShape():
            return _in_a_row(shape), CheckClass.TRAJECTORY, max_consecutive.VERSION
        case shapes.SequenceShape():
            return _steps(shape), CheckClass.TRAJECTORY, sequence.VERSION
        case shapes.InvariantShape():
            return _invariant(shape), CheckClass.PROTECTION, invariant.VERSION
        case shapes.NoFlowShape():
            return _no_flow(shape), CheckClass.TRAJECTORY, no_flow.VERSION
        case shapes.ArgsSchemaShape():
            return _fitting(shape), CheckClass.TRAJECTORY, args_schema.VERSION
        case shapes.BudgetShape():
            return _budget(shape)
        case shapes.ApprovalShape():
            return _approved(shape), CheckClass.TRAJECTORY, approval.VERSION
        case shapes.StateDiffShape():
            return _state(shape), CheckClass.PROTECTION, state_diff.VERSION
    return _ends(shape), CheckClass.GOAL, termination.VERSION


def _need(shape: shapes.RequireBeforeShape) -> require_before.RequireBefore:
    return require_before.RequireBefore(
        call=_judged(shape.call, shape),
        needs=calls_of(shape.needs, SUCCEEDED),
        same=_same(shape),
        once=shape.once,
        covers=_covers(shape.covers),
        validity=_validity(shape),
        order=shape.order,
        missing=shape.missing,
    )


def _followed(shape: shapes.RequireAfterShape) -> require_after.RequireAfter:
    return require_after.RequireAfter(
        call=_judged(shape.call, shape),
        needs=calls_of(shape.needs, SUCCEEDED),
        same=_same(shape),
        once=shape.once,
        validity=_validity(shape),
        order=shape.order,
        missing=shape.missing,
    )


def _forbidden(shape: shapes.ForbidShape) -> forbid.Forbid:
    return forbid.Forbid(
        call=_judged(shape.call, shape),
        after=None if shape.after is None else calls_of(shape.after, SUCCEEDED),
        same=_same(shape),
        narrow=bool(shape.call.where or shape.call.status or shape.after),
        order=shape.order,
        missing=shape.missing,
    )


def _exclusive(shape: shapes.MutuallyExclusiveShape) -> mutually_exclusive.MutuallyExclusive:
    return mutually_exclusive.MutuallyExclusive(
        calls=tuple(_judged(one, shape) for one in shape.calls),
        same=_same(shape),
        order=shape.order,
        missing=shape.missing,
    )


def _limited(shape: shapes.MaxCallsShape) -> max_calls.MaxCalls:
    return max_calls.MaxCalls(
        call=_judged(shape.call, shape),
        limit=shape.limit,
        same=_same(shape),
        attempts=shape.attempts,
        order=shape.order,
        missing=shape.missing,
    )


def _in_a_row(shape: shapes.MaxConsecutiveShape) -> max_consecutive.MaxConsecutive:
    return max_consecutive.MaxConsecutive(
        call=calls_of(shape.call, EVERY_STATUS if shape.attempts else RAN),
        limit=shape.limit,
        same=Same(tuple((pair[0], pair[1]) for pair in shape.same), shape.order),
        attempts=shape.attempts,
        order=shape.order,
        missing=shape.missing,
    )


def _steps(shape: shapes.SequenceShape) -> sequence.Steps:
    return sequence.Steps(
        steps=tuple(calls_of(one, SUCCEEDED) for one in shape.steps),
        judged=tuple(_judged(one, shape) for one in shape.steps),
        same=_same(shape),
        order=shape.order,
        missing=shape.missing,
    )


def _invariant(shape: shapes.InvariantShape) -> invariant.Invariant:
    return invariant.Invariant(
        path=invariant.invariant_path(shape.state),
        must=parse_condition(shape.must, parse_path),
        missing=shape.missing,
    )


def _no_flow(shape: shapes.NoFlowShape) -> no_flow.NoFlow:
    return no_flow.NoFlow(
        sources=None if shape.sources is None else calls_of(shape.sources, RAN),
        to=CallPattern(tuple(shape.to.tool), RAN, parse_where(shape.to.where, call_path)),
        arguments=tuple(shape.to.arg),
        trusted=tuple(shape.trusted),
        mode=shape.mode,
        unless=None if shape.unless is None else calls_of(shape.unless, SUCCEEDED),
        pattern=None if shape.pattern is None else compile_pattern(shape.pattern),
        differs=Same(tuple((pair[0], pair[1]) for pair in shape.differs), shape.order),
        order=shape.order,
        missing=shape.missing,
    )


def _fitting(shape: shapes.ArgsSchemaShape) -> args_schema.ArgsSchema:
    return args_schema.ArgsSchema(
        call=_judged(shape.call, shape),
        must=parse_where(shape.must, call_path),
        schema=shape.json_schema,
        same=_same(shape),
        order=shape.order,
        missing=shape.missing,
    )


def _budget(shape: shapes.BudgetShape) -> Built:
    if shape.limits is not None:
        spent = budget.Budget(limits=shape.limits.given(), missing=shape.missing)
        return spent, CheckClass.BUDGET, budget.VERSION
    (test,) = parse_condition({"le": shape.limit}, call_path).tests
    limit = test.wanted if isinstance(test.wanted, ValueOf) else number_of(test.wanted)
    summed = budget_sum.BudgetSum(
        call=calls_of(cast("CallShape", shape.call), RAN),
        sum=cast("str", shape.sum),
        limit=cast("Decimal | ValueOf", limit),
        by=Same(tuple((pair[0], pair[1]) for pair in shape.by), shape.order),
        within=shape.within,
        order=shape.order,
        missing=shape.missing,
    )
    return summed, CheckClass.BUDGET, budget_sum.VERSION


def _approved(shape: shapes.ApprovalShape) -> approval.Approval:
    granted = shape.approval or CallShape(tool=[f"{EVENT}approval"])
    need = require_before.RequireBefore(
        call=_judged(shape.call, shape),
        needs=calls_of(granted, SUCCEEDED),
        same=_same(shape),
        once=shape.once,
        covers=_covers(shape.covers),
        validity=_validity(shape),
        order=shape.order,
        missing=shape.missing,
    )
    return approval.Approval(need=need, distinct=shape.distinct, approver=shape.approver)


def _state(shape: shapes.StateDiffShape) -> state_diff.StateDiff:
    required = tuple(required_of(one) for one in shape.required)
    parts: list[state.StateRequired | state.StateCollateral | state_diff.Together] = []
    if required:
        parts.append(state.StateRequired(required=required, when=When()))
    if shape.allowed is not None and shape.collateral == "fail":
        allowed = (*(allowed_of(one) for one in shape.allowed), *map(state.allowed_by, required))
        parts.append(state.StateCollateral(scopes=(state.Scope(allowed=allowed),)))
    if shape.together is not None:
        parts.append(state_diff.Together(patterns=tuple(parse_pattern(one) for one in shape.together)))
    return state_diff.StateDiff(parts=tuple(parts), missing=shape.missing)


def _ends(shape: shapes.TerminationShape) -> termination.Ends:
    return termination.Ends(
        ends=frozenset(Stop(name) for name in shape.ends),
        answer=parse_condition(shape.answer) if "answer" in shape.model_fields_set else None,
        no_pending=not shape.pending,
        missing=shape.missing,
    )


def _judged(shape: CallShape, rule: base.OrderedShape) -> CallPattern:
    return calls_of(shape, EVERY_STATUS if rule.attempts else RAN)


def _same(shape: base.OrderedShape) -> Same:
    return Same(tuple((pair[0], pair[1]) for pair in shape.same), shape.order, shape.scope)


def _validity(shape: base.LastingShape) -> Validity:
    return Validity(
        within=shape.within,
        within_steps=shape.within_steps,
        until=None if shape.until is None else calls_of(shape.until, TOOK_EFFECT),
    )


def _covers(covers: object) -> tuple[Cover, ...]:
    where: Where = parse_where(base.covers_as_where(covers), call_path)
    return tuple(Cover(path, condition) for path, condition in where.conditions)
