"""All breaks of a run: for each check those that its kind knows, then the differences that mean nothing."""

from __future__ import annotations

from collections.abc import Iterator

from redfirst.evaluators import rule_kind_shapes as shapes
from redfirst.evaluators.check import Check, judge
from redfirst.evaluators.declared import declared_shape
from redfirst.evaluators.file_shapes import RecallShape
from redfirst.evaluators.rule_shapes import StateCollateralShape, StateRequiredShape
from redfirst.evaluators.sensitivity import arguments, built_in, counts, editing, equivalents, needs, states
from redfirst.evaluators.sensitivity.mutant import Mutant, Original
from redfirst.evaluators.sensitivity.places import judged
from redfirst.evaluators.trajectory import Trajectory


def original(run: Trajectory, checks: tuple[Check, ...]) -> Original:
    """The run, its calls numbered by their places, with what each check says of it."""
    numbered = editing.with_calls(run, run.tool_calls)
    return Original(run=numbered, checks=checks, verdicts=judge(numbered, checks))


def mutants(of: Original) -> Iterator[Mutant]:
    """Every mutant of a run. Which there are, and who must notice each, follows from the checks and the run alone."""
    for check in of.checks:
        yield from _breaks(of, check)
    yield from equivalents.equivalents(of)


def _breaks(of: Original, check: Check) -> Iterator[Mutant]:
    match check.spec.get("kind"), "ends" in check.spec:
        case "repeats", _:
            yield from built_in.breaks_of_repeats(of, check)
        case "termination", False:
            yield from built_in.breaks_of_termination(of, check)
        case "tool_errors", _:
            yield from built_in.breaks_of_errors(of, check)
        case _ if check.spec.get("kind") in _DECLARED:
            yield from _declared(of, check)
        case _:
            pass


def _declared(of: Original, check: Check) -> Iterator[Mutant]:
    match declared_shape(check.spec):
        case shapes.RequireBeforeShape() | shapes.ApprovalShape() as shape:
            yield from needs.breaks_of_before(of, check, shape)
            if isinstance(shape, shapes.RequireBeforeShape):
                yield from needs.made_needy(of, check, shape)
            if of.right(check):
                for call in judged(shape.call, shape, of.run)[:1]:
                    yield from arguments.open_keys(of, check, shape, call)
        case shapes.RequireAfterShape() as shape:
            yield from needs.breaks_of_after(of, check, shape)
        case shapes.SequenceShape() as shape:
            yield from needs.breaks_of_sequence(of, check, shape)
        case shapes.ForbidShape() as shape:
            yield from counts.breaks_of_forbid(of, check, shape)
        case shapes.MutuallyExclusiveShape() as shape:
            yield from counts.breaks_of_exclusion(of, check, shape)
        case shapes.MaxCallsShape() as shape:
            yield from counts.breaks_of_max_calls(of, check, shape)
        case shapes.MaxConsecutiveShape() as shape:
            yield from counts.breaks_of_rows(of, check, shape)
        case shapes.BudgetShape() as shape:
            yield from counts.breaks_of_budget(of, check, shape)
        case shapes.ArgsSchemaShape() as shape:
            yield from arguments.breaks_of_arguments(of, check, shape)
        case shapes.NoFlowShape() as shape:
            yield from arguments.breaks_of_flow(of, check, shape)
        case shapes.InvariantShape() as shape:
            yield from states.breaks_of_invariant(of, check, shape)
        case shapes.StateDiffShape() as shape:
            yield from states.breaks_of_state(of, check, shape)
        case shapes.TerminationShape() as shape:
            yield from built_in.breaks_of_termination(of, check, shape)
        case RecallShape() as shape:
            yield from built_in.breaks_of_recall(of, check, shape)
        case StateRequiredShape() as shape:
            yield from states.breaks_of_required(of, check, shape.required)
        case StateCollateralShape() as shape:
            yield from states.breaks_of_collateral(of, check, shape)


_DECLARED = frozenset(
    {
        *("require_before", "require_after", "forbid", "mutually_exclusive", "max_calls", "max_consecutive"),
        *(
            "sequence",
            "invariant",
            "no_flow",
            "args_schema",
            "budget",
            "approval",
            "state_diff",
            "termination",
        ),
        *("recall", "state.required", "state.collateral"),
    }
)
"""Kinds that have breaks; a check of another kind is reported as one that was not put to the test."""
