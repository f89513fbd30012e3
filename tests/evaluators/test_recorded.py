"""Bodies that real frameworks sent are read as what happened, and damage to them makes facts missing, never wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redfirst.evaluators.dialects.registry import facts_of
from redfirst.evaluators.otlp import decode_traces
from redfirst.evaluators.otlp_encode import encode_traces
from redfirst.evaluators.reading import read, read_runs
from redfirst.evaluators.span import Span
from redfirst.evaluators.trajectory import MISSING, Source, ToolCall, Trajectory
from tests.evaluators.agreement import ABSENT, READ, WRONG, Recorded, agreement, load, recorded
from tests.evaluators.conformance import PAGE, matrix, page_with

_HANDFUL = (
    "openinference-smolagents__handoff",
    "native-v6__handoff",
    "native__happy",
    "openinference-autogen+openai__tool_error",
    "traceloop-sdk-decorators__parallel",
    "otel-openai-v2-legacy__tool_error",
    "mlflow-autolog__tool_error",
    "native-v5__happy_stream",
)
"""Of each way to write things down one: flattened, structured, span events, log records, two instrumentors."""
NAMES = [one.name for one in recorded()]
SOME = [name for name in NAMES if name.partition("__")[2] in _HANDFUL]
DAMAGED = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
ODD = st.sampled_from(
    [
        None,
        True,
        7,
        2.5,
        "",
        "{",
        '{"a": ',
        "[1, 2",
        "{'a': 1}",
        "Thing(a=1)",
        "x" * 4_000,
        (1, 2),
        {"a": {"b": 1}},
        b"\xff",
    ]
)
"""Values of a wrong type, half JSON, what Python prints, and what was cut off."""

ANY_RESULT = re.compile(
    r"output\.value|.*tool\.call\.result|.*entity\.output|mlflow\.spanOutputs|ai\.toolCall\.result"
)
"""A tool may answer with anything, so anything there is its result."""
ANY_OBJECT = re.compile(
    r"input\.value|.*tool\.call\.arguments|.*entity\.input|mlflow\.spanInputs|ai\.toolCall\.(args|input)"
)
"""Any object is arguments; of a tool that takes them without names any value is."""
ANY_TEXT = re.compile(
    r".*tool\.name|.*function\.name|ai\.toolCall\.name|.*session\.?[iI]d|gen_ai\.conversation\.id"
    r"|.*message\.content|ai\.response\.text|gen_ai\.agent\.name"
)
"""Any text may be a name or what was said; nothing tells a cut-off one."""
ANY_COUNT = re.compile(r".*(usage|token_count|[tT]okens)\b.*")
"""Any whole number is a count, where no second attribute contradicts it."""


def may_be_meant(key: str, odd: object) -> bool:
    """Whether the value is as good as the true one for such a key, so that the payload cannot tell them apart."""
    return bool(
        ANY_RESULT.fullmatch(key)
        or ANY_OBJECT.fullmatch(key)
        or (isinstance(odd, str) and odd and ANY_TEXT.fullmatch(key))
        or (odd == 7 and ANY_COUNT.fullmatch(key))
    )


@cache
def a_recorded(name: str) -> Recorded:
    return load(name)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_read_that_did_not_happen(name: str) -> None:
    """Whatever is read of a recorded run is the truth that its script and its tools wrote down."""
    found = agreement(a_recorded(name))

    assert [fact for fact, mark in found.items() if mark == WRONG] == []
    assert READ in found.values()


@pytest.mark.parametrize("name", SOME)
@given(data=st.data())
@DAMAGED
def test_order_and_repetition_of_spans_decide_nothing(name: str, data: st.DataObject) -> None:
    """Any permutation of the spans and records, any split over requests and anything sent twice gives the same runs."""
    one = a_recorded(name)
    spans = data.draw(st.permutations(one.spans))
    again = data.draw(st.lists(st.sampled_from(spans), max_size=5))
    logs = data.draw(st.permutations(one.logs))
    cut = data.draw(st.integers(0, len(spans)))

    parts = [
        *decode_traces(encode_traces([*spans[cut:], *again])),
        *decode_traces(encode_traces(spans[:cut])),
    ]

    assert read(parts, logs) == read(decode_traces(encode_traces(one.spans)), one.logs)


@pytest.mark.parametrize("name", SOME)
@given(data=st.data())
@DAMAGED
def test_a_lost_attribute_makes_facts_missing_never_wrong(name: str, data: st.DataObject) -> None:
    """One attribute that a collector dropped turns no fact into another one."""
    one = a_recorded(name)
    place = data.draw(st.sampled_from([n for n, span in enumerate(one.spans) if span.attributes]))
    key = data.draw(st.sampled_from(sorted(one.spans[place].attributes)))

    _never_wrong(one, place, {k: v for k, v in one.spans[place].attributes.items() if k != key})


def test_the_answer_of_a_code_agent_is_no_tool_call_when_its_span_lost_its_name() -> None:
    """What only hands the answer over acts on nothing; the span's own name still says that it is that."""
    one = a_recorded("smolagents-code__openinference-smolagents__parallel")
    (place,) = [n for n, span in enumerate(one.spans) if span.attributes.get("tool.name") == "final_answer"]

    _never_wrong(one, place, {k: v for k, v in one.spans[place].attributes.items() if k != "tool.name"})


@pytest.mark.parametrize("name", SOME)
@given(data=st.data(), odd=ODD)
@DAMAGED
def test_an_odd_value_makes_facts_missing_never_wrong(name: str, data: st.DataObject, odd: Any) -> None:
    """Whatever stands in an attribute, nothing raises; no fact is another one, but where the value may be meant."""
    one = a_recorded(name)
    place = data.draw(st.sampled_from([n for n, span in enumerate(one.spans) if span.attributes]))
    key = data.draw(st.sampled_from(sorted(one.spans[place].attributes)))

    attributes = {**one.spans[place].attributes, key: odd}
    runs = _runs_with(one, place, attributes)

    if not may_be_meant(key, odd):
        _never_wrong(one, place, attributes)
    assert {span_id for run in runs for span_id in run.span_ids} <= {span.span_id for span in one.spans}


@pytest.mark.parametrize("name", NAMES)
def test_a_second_instrumentor_changes_no_count(name: str) -> None:
    """The same model calls, recorded once more by an instrumentor of the client below, are still the same calls."""
    one = a_recorded(name)
    runs = read_runs(one.spans, one.logs)
    below = [_below(span, run) for run in runs for span in one.spans if span.span_id in _asked(run)]

    again = read_runs([*one.spans, *below], one.logs)

    assert [_counts(run) for run in again] == [_counts(run) for run in runs]


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_second_instrumentor_of_the_tools_changes_no_call(name: str, *, beside: bool) -> None:
    """The same executions, recorded once more inside each tool's span or, where they carry the call's id, beside it."""
    one = a_recorded(name)
    runs = read_runs(one.spans, one.logs)
    spans = {span.span_id: span for span in one.spans}
    again = [
        _of_tool(spans[call.span_id], call, beside=beside)
        for run in runs
        for call in run.tool_calls
        if call.source is Source.SPAN and (_own_id(spans[call.span_id], call) or not beside)
    ]

    both = read_runs([*one.spans, *again], one.logs)

    assert [_counts(run) for run in both] == [_counts(run) for run in runs]
    assert [_told(run) for run in both] == [_told(run) for run in runs]


def _own_id(span: Span, call: ToolCall) -> bool:
    """Whether the span itself says which call it is."""
    return call.call_id is not None and facts_of(span, ()).call_id == call.call_id


def _of_tool(span: Span, call: ToolCall, *, beside: bool) -> Span:
    """The span that an OpenInference instrumentor of the tools would have written."""
    attributes: dict[str, Any] = {"openinference.span.kind": "TOOL", "tool.name": call.name}
    if call.arguments is not None:
        attributes["input.value"] = json.dumps(call.arguments)
    if call.result is not MISSING:
        attributes["output.value"] = json.dumps(call.result)
    if call.call_id is not None:
        attributes["tool_call.id"] = call.call_id
    return replace(
        span, span_id=f"{int(span.span_id, 16) ^ 0xABCD:016x}", parent_id=span.parent_id if beside else span.span_id,
        name=call.name, scope="openinference.instrumentation.tools", attributes=attributes,
    )  # fmt: skip


def _told(run: Trajectory) -> list[tuple[Any, ...]]:
    return [(call.name, call.arguments, call.result, call.turn, call.agent) for call in run.tool_calls]


def _never_wrong(one: Recorded, place: int, attributes: Mapping[str, Any]) -> None:
    before, after = agreement(one), agreement(one, _runs_with(one, place, attributes))
    assert [fact for fact in before if before[fact] in (READ, ABSENT) and after[fact] == WRONG] == []


def _runs_with(one: Recorded, place: int, attributes: Mapping[str, Any]) -> list[Trajectory]:
    spans = list(one.spans)
    spans[place] = replace(spans[place], attributes=attributes)
    return read_runs(spans, one.logs)


def _asked(run: Trajectory) -> set[str]:
    return {
        call.span_id for call in run.model_calls if call.output is not None and call.tokens.input is not None
    }


def _below(span: Span, run: Trajectory) -> Span:
    """The span that an OpenInference instrumentor of the model's client would have written inside this one."""
    call = next(call for call in run.model_calls if call.span_id == span.span_id)
    said = call.output
    attributes: dict[str, Any] = {
        "openinference.span.kind": "LLM",
        "llm.model_name": call.model or "m",
        "llm.token_count.prompt": call.tokens.input,
        "llm.token_count.completion": call.tokens.output,
        "llm.output_messages.0.message.role": "assistant",
    }
    if said is not None and said.content:
        attributes["llm.output_messages.0.message.content"] = said.content
    return replace(
        span, span_id=f"{int(span.span_id, 16) ^ 0xABCD:016x}", parent_id=span.span_id, name="ChatCompletion",
        scope="openinference.instrumentation.client", attributes=attributes, events=(),
    )  # fmt: skip


def _counts(run: Trajectory) -> tuple[Any, ...]:
    return (
        len(run.model_calls),
        [(c.name, c.status) for c in run.tool_calls],
        run.tokens.input,
        run.tokens.output,
        run.answer,
    )


def test_the_page_shows_what_is_read() -> None:
    """The table of the docs is the one that these tests make."""
    assert page_with(matrix()) == PAGE.read_text()
