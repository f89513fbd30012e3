"""Evaluators of other libraries as checks: pydantic-evals' ``Evaluator`` classes and agentevals' evaluators.

Both are installed checks (entry points of ``redfirst.checks``); the libraries are imported when a run is judged and
belong to whoever mounts them.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

from redfirst.evaluators.record import jsonable
from redfirst.evaluators.rule_kinds.lacking import lacks_calls
from redfirst.evaluators.trajectory import MISSING, ToolCall, Trajectory
from redfirst.evaluators.verdict import Evidence, Finding, Verdict, failed, inconclusive, passed

_NOTHING: Mapping[str, Any] = {}


def pydantic_evals(
    run: Trajectory,
    *,
    evaluator: str,
    arguments: Mapping[str, Any] = _NOTHING,
    expected: Any = None,
    at_least: float | None = None,
) -> Verdict:
    """What ``evaluator(**arguments).evaluate_sync`` says of the request (inputs) and the answer (output).

    Args:
        run: the run; its duration is given in seconds, its spans are not.
        evaluator: ``module:Class``.
        arguments: of the class.
        expected: the expected output.
        at_least: the number from which an answer that is a number passes.
    """
    if run.answer is None:
        return inconclusive("the run gave no answer that was recorded")
    from pydantic_evals.evaluators import EvaluatorContext
    from pydantic_evals.otel.span_tree import SpanTree

    context = EvaluatorContext(
        name=run.run_id,
        inputs=run.request,
        metadata=None,
        expected_output=expected,
        output=run.answer,
        duration=(run.end_ns - run.start_ns) / 1e9,
        _span_tree=SpanTree(),
        attributes={},
        metrics={"tool_calls": len(run.tool_calls), "model_calls": len(run.model_calls)},
    )
    answer = _loaded(evaluator)(**arguments).evaluate_sync(context)
    answers = answer if isinstance(answer, Mapping) else {evaluator.rpartition(":")[2]: answer}
    told = {name: (getattr(one, "value", one), getattr(one, "reason", None)) for name, one in answers.items()}
    return _verdict(run, told, at_least, "/answer")


def agentevals(
    run: Trajectory,
    *,
    evaluator: str,
    reference: Sequence[Mapping[str, Any]],
    arguments: Mapping[str, Any] = _NOTHING,
    at_least: float | None = None,
) -> Verdict:
    """What an evaluator of agentevals says of the run's messages against those of the reference.

    Args:
        run: the run.
        evaluator: ``module:factory``, as in ``agentevals.trajectory.match:create_trajectory_match_evaluator``.
        reference: messages in OpenAI's form.
        arguments: of the factory.
        at_least: the number from which a score that is a number passes.
    """
    if lack := lacks_calls(run):
        return inconclusive(lack)
    judge = _loaded(evaluator)(**arguments)
    answer = judge(outputs=chat_messages(run), reference_outputs=[dict(one) for one in reference])
    told = {str(answer["key"]): (answer["score"], answer.get("comment"))}
    return _verdict(run, told, at_least, "/tool_calls")


def chat_messages(run: Trajectory) -> list[dict[str, Any]]:
    """The run as messages in OpenAI's form: the request, each turn's calls and their results, the answer."""
    messages: list[dict[str, Any]] = []
    if run.request is not None:
        messages.append({"role": "user", "content": run.request})
    for turn, calls in groupby(run.tool_calls, key=lambda call: call.turn):
        together = list(calls)
        for group in [together] if turn is not None else [[call] for call in together]:
            messages.extend(_turn(group))
    if run.answer is not None:
        messages.append({"role": "assistant", "content": run.answer})
    return messages


def _turn(calls: Sequence[ToolCall]) -> Iterator[dict[str, Any]]:
    ids = [call.call_id or f"call-{call.index}" for call in calls]
    yield {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(jsonable(call.arguments or {}))},
            }
            for call_id, call in zip(ids, calls, strict=True)
        ],
    }
    for call_id, call in zip(ids, calls, strict=True):
        said = call.error if call.result is MISSING else call.result
        content = said if isinstance(said, str) else json.dumps(jsonable(said))
        yield {"role": "tool", "tool_call_id": call_id, "content": content}


def _loaded(reference: str) -> Callable[..., Any]:
    module, _, name = reference.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{reference} is {type(found).__name__}, which makes no evaluator")
    return cast("Callable[..., Any]", found)


def _verdict(
    run: Trajectory, told: Mapping[str, tuple[object, str | None]], at_least: float | None, pointer: str
) -> Verdict:
    """All answers as one: true or false, or a number that passes from ``at_least`` on."""
    findings, unread = [], []
    for name, (value, reason) in told.items():
        shown = f"{name} says {value}" + (f": {' '.join(reason.split())}" if reason else "")
        right = value if isinstance(value, bool) else None
        if right is None and isinstance(value, int | float) and at_least is not None:
            right = value >= at_least
        if right is None:
            unread.append(f"{shown}, which is neither true nor false (a number needs at_least)")
        elif not right:
            where = Evidence(span_id=run.root_span_id, pointer=pointer, note=shown)
            findings.append(Finding(subject=name, because=shown, evidence=(where,)))
    judged = len(told) - len(unread)
    if findings:
        because = "; ".join(finding.because for finding in findings)
        return failed(because, findings=findings, of=(judged - len(findings), judged))
    if unread:
        return inconclusive(unread[0])
    return passed(", ".join(told), of=(judged, judged))
