"""The rules file: YAML in, checks out, with a file name and a line in every complaint.

Every check is built from a declaration (``Check.spec``), so that a scenario can carry a rule and judge by
exactly the same one. The ids of a task's checks name the task: ``recall:TASK``, ``state.required:TASK``.
What tasks and the top-level ``state`` allow is one check, ``state.collateral``, because a run may be of two
tasks at once and each change need only be allowed by one; there is none where nothing forbids a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from pydantic import ValidationError

from redfirst.evaluators.check import Check, Spec
from redfirst.evaluators.declared import declared_check, first_problem
from redfirst.evaluators.file_shapes import RulesFile
from redfirst.evaluators.python_check import UnusableFunction, python_check
from redfirst.evaluators.reference.checks import QUESTIONS
from redfirst.evaluators.rule_tests import RuleTest, tests_of
from redfirst.evaluators.strict_yaml import Document, read

RESERVED = frozenset(
    {
        *("repeats", "termination", "tool_errors", "arguments", "unverified_claim", "recovery", "recall"),
        *("precision", "tool_selection", "argument_validity", "efficiency", "policy", "state", "budget"),
        *("outcome", "judge", "state.required", "state.collateral", "match", "recall.facts"),
        "ungrounded_argument",
        *("learned.recall", "learned.tool_selection"),
    }
)
"""Names of checks that are no rules of a file."""


def load_rules(text: str, source: str) -> tuple[Check, ...]:
    """The checks of a rules file, in its order; ``source`` is the name that complaints give it.

    Raises:
        ConfigurationError: the file is wrong; the message has its name, a line and what to do.
    """
    return read_rules(text, source).checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """A rules file: its checks, the tests of them, and where each stands."""

    document: Document
    shape: RulesFile
    checks: tuple[Check, ...]
    tests: tuple[RuleTest, ...]


def read_rules(text: str, source: str) -> Rules:
    """A rules file with all that stands in it.

    Raises:
        ConfigurationError: the file is wrong; the message has its name, a line and what to do.
    """
    document = read(text, source)
    if not isinstance(document.data, Mapping):
        raise document.fault((), "a rules file is a mapping; begin with schema: redfirst.rules/1")
    try:
        shape = RulesFile.model_validate(document.data)
    except ValidationError as error:
        where, what = first_problem(error)
        raise document.fault(where, what) from error
    data = cast("dict[str, object]", document.data)
    _refuse_taken_ids(document, data)
    _refuse_unusable_functions(document, data)
    checks = tuple(declared_check(spec) for spec in _specs(data))
    tests = tests_of(document, shape.tests, [check.id for check in checks])
    return Rules(document=document, shape=shape, checks=checks, tests=tests)


def _items(data: Mapping[str, object], name: str) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", data.get(name, []))


def _refuse_taken_ids(document: Document, data: Mapping[str, object]) -> None:
    for section in ("rules", "tasks"):
        first: dict[object, int] = {}
        for place, item in enumerate(_items(data, section)):
            where, name = (section, place, "id"), item["id"]
            if section == "rules" and (name in RESERVED or ":" in str(name)):
                raise document.fault(
                    where,
                    f"the id {name!r} is taken by a check of redfirst; choose another, as in id: my-rule",
                )
            if name in first:
                raise document.fault(
                    where,
                    f"the id {name!r} stands on line {first[name]} already; choose another, as in id: {name}-2",
                )
            first[name] = document.line_of(where)


def _refuse_unusable_functions(document: Document, data: Mapping[str, object]) -> None:
    """Import what the file names, so that a mistake has its line."""
    named: list[tuple[tuple[str | int, ...], dict[str, object]]] = [
        (("rules", place), rule) for place, rule in enumerate(_items(data, "rules"))
    ]
    named += [
        (("tasks", place, "outcome"), cast("dict[str, object]", task["outcome"]))
        for place, task in enumerate(_items(data, "tasks"))
        if "outcome" in task
    ]
    for where, holder in named:
        if "function" in holder:
            try:
                python_check(str(holder["function"]), cast("dict[str, object]", holder.get("params", {})))
            except UnusableFunction as problem:
                raise document.fault((*where, "function"), str(problem)) from problem


def _specs(data: Mapping[str, object]) -> list[Spec]:
    specs: list[Spec] = list(_items(data, "rules"))
    scopes: list[dict[str, object]] = []
    if isinstance(top := data.get("state"), Mapping):
        scopes.append({"allowed": [], "collateral": "fail", **top})
    for task in _items(data, "tasks"):
        common = {"when": task["when"], "severity": task.get("severity", "flag")}
        if task.get("required_calls") is not None:
            specs.append(
                {
                    "kind": "recall",
                    "id": f"recall:{task['id']}",
                    **common,
                    "required_calls": task["required_calls"],
                }
            )
        specs += _beside_reference(task, common)
        if isinstance(wanted := task.get("outcome"), Mapping):
            specs.append({"kind": "outcome", "id": f"outcome:{task['id']}", **common, **wanted})
        if isinstance(state := task.get("state"), Mapping):
            if state.get("required"):
                specs.append(
                    {
                        "kind": "state.required",
                        "id": f"state.required:{task['id']}",
                        **common,
                        "required": state["required"],
                    }
                )
            scopes.append({**common, **state})
    if data.get("learned") is not None:
        for kind in ("learned.recall", "learned.tool_selection"):
            specs.append({"kind": kind, "id": kind, "learned": data["learned"]})
    if any(_forbids(scope) for scope in scopes):
        specs.append({"kind": "state.collateral", "id": "state.collateral", "scopes": scopes})
    return specs


def _beside_reference(task: Mapping[str, object], common: Mapping[str, object]) -> Iterator[Spec]:
    """The checks of a task's reference and facts; a ratio is a note, or less where the task matters less."""
    if task.get("reference") is not None:
        lower = {**common, "severity": "info" if common["severity"] == "info" else "note"}
        for kind in QUESTIONS:
            what = common if kind in ("recall", "match") else lower
            yield {"kind": kind, "id": f"{kind}:{task['id']}", **what, "reference": task["reference"]}
    if task.get("facts") is not None:
        yield {"kind": "recall.facts", "id": f"recall.facts:{task['id']}", **common, "facts": task["facts"]}


def _forbids(scope: Mapping[str, object]) -> bool:
    """Whether a change can be wrong, or right, by this scope; the file that ignores changes says nothing."""
    if "when" not in scope:
        return scope["collateral"] != "ignore"
    return "allowed" in scope or "collateral" in scope
