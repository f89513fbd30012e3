"""Runs are read alike from every dialect, and what a span does not say is missing."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redfirst.evaluators import MISSING, CallStatus, Completeness, Source, Stop, Trajectory
from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.otlp import decode
from redfirst.evaluators.reading import read, read_runs, read_trajectory
from redfirst.evaluators.span import LogRecord, Span, StatusCode

FIXTURES = Path(__file__).parents[1] / "fixtures" / "otlp"
_BODY = re.compile(r"(?P<capture>.+?)(?:\.(?P<order>\d+))?(?:\.logs)?\.otlp\.pb")


def recorded(capture: str) -> tuple[list[Span], list[LogRecord]]:
    """All spans and log records of one capture, in order of arrival."""
    bodies = [
        (int(found["order"] or 0), path)
        for path in FIXTURES.iterdir()
        if (found := _BODY.fullmatch(path.name)) and found["capture"] == capture
    ]
    parts = [decode(path.read_bytes()) for _, path in sorted(bodies)]
    return [span for part in parts for span in part.spans], [log for part in parts for log in part.logs]


CAPTURES = sorted({_BODY.fullmatch(path.name)["capture"] for path in FIXTURES.glob("*.otlp.pb")})  # type: ignore[index]

VERIFY = ("verify_identity", {"customer_id": "C-1001"}, CallStatus.OK)
ORDER = ("get_order", {"order_id": "A-42"}, CallStatus.OK)
CANCEL = ("cancel_order", {"order_id": "A-42", "reason": "changed my mind"}, CallStatus.OK)
BROKEN = ("get_shipping_status", {"order_id": "A-42"}, CallStatus.TOOL_ERROR)
HAPPY = "Order A-42 is shipped and arrives on 2031-05-04."
DOWN = "The carrier is down, but order A-42 was shipped on 2031-05-01."
CANCELLED = "Your order A-42 is cancelled."


@pytest.mark.parametrize(
    ("capture", "calls", "models", "tokens", "answer", "handoffs"),
    [
        ("anthropic-raw__openinference-anthropic__happy", [VERIFY, ORDER], 3, (522, 63), HAPPY, 0),
        ("crewai__openinference-crewai+openai__handoff", [VERIFY, CANCEL], 5, (1055, 130), CANCELLED, 1),
        ("langgraph__langfuse-callback__happy", [VERIFY, ORDER], 3, (522, 63), HAPPY, 0),
        ("langgraph__mlflow-autolog__tool_error", [BROKEN, ORDER], 3, (522, 63), DOWN, 0),
        ("langgraph__openinference-langchain__tool_error", [BROKEN, ORDER], 3, (522, 63), DOWN, 0),
        ("ms-agent-framework__native__handoff", [VERIFY, CANCEL], 5, (1055, 130), CANCELLED, 1),
        (
            "openai-agents-mcp__openinference-openai-agents+mcp__tool_error",
            [BROKEN, ORDER],
            3,
            (522, 63),
            DOWN,
            0,
        ),
        ("openai-agents__openinference-openai-agents__handoff", [VERIFY, CANCEL], 4, (770, 94), CANCELLED, 1),
        ("openai-raw__otel-openai-v2-legacy__tool_error", [BROKEN, ORDER], 3, (522, 63), DOWN, 0),
        ("pydantic-ai__native-v1__happy", [VERIFY, ORDER], 3, (522, 63), HAPPY, 0),
    ],
)
def test_a_recorded_run_is_read_as_it_happened(
    capture: str,
    calls: list[tuple[str, dict[str, object], CallStatus]],
    models: int,
    tokens: tuple[int, int],
    answer: str,
    handoffs: int,
):
    """Calls, turns, tokens, answer and hand-offs are those of the scripted server, however they were written."""
    run = read_trajectory(*recorded(capture))

    assert [(call.name, call.arguments, call.status) for call in run.tool_calls] == calls
    assert len(run.model_calls) == models
    assert (run.tokens.input, run.tokens.output) == tokens
    assert run.answer == answer
    assert len(run.handoffs) == handoffs
    assert run.termination.reason is Stop.COMPLETED
    assert run.completeness is Completeness.COMPLETE
    assert not any(call.by_code for call in run.tool_calls)


def test_parallel_calls_share_a_turn():
    """Two calls of one reply have one turn, in the order the model wrote them."""
    run = read_trajectory(*recorded("openai-raw__traceloop-sdk-decorators__parallel"))

    assert [(call.turn, call.arguments) for call in run.tool_calls] == [
        (0, {"order_id": "A-42"}),
        (0, {"order_id": "B-7"}),
    ]


def test_a_step_limit_is_named_with_its_number():
    """A framework's limit is the reason, with the cap it names."""
    run = read_trajectory(*recorded("openai-agents__openinference-openai-agents__loop_cap"))

    assert (run.termination.reason, run.termination.cap) == (Stop.STEP_CAP, 4)
    assert run.answer is None
    assert {call.name for call in run.tool_calls} == {"get_order"}


def test_traces_of_one_conversation_are_runs_by_user_turn():
    """One trace a model call, one session: a run goes on until a user message follows an answer."""
    runs = read_runs(*recorded("openai-raw__openinference-openai__multi_turn"))

    assert len(runs) == 2
    assert all(len(run.trace_ids) == len(run.model_calls) for run in runs)
    assert len({run.run_id for run in runs}) == 2
    assert {run.session_id for run in runs} == {"sess-7f3a"}


def test_content_switched_off_is_missing_not_empty():
    """Without content, names and numbers are there and arguments, results and texts are missing."""
    run = read_trajectory(*recorded("pydantic-ai__native-v5__happy_nocontent"))

    assert [call.name for call in run.tool_calls] == ["verify_identity", "get_order"]
    assert [call.arguments for call in run.tool_calls] == [None, None]
    assert all(call.result is MISSING for call in run.tool_calls)
    assert run.answer is None
    assert run.request is None
    assert run.tokens.input == 522
    assert {gap.fact for gap in run.coverage.missing} >= {"request", "answer", "tool_calls[0].arguments"}


# -- laws over every capture


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_order_and_repetition_of_spans_decide_nothing(data: st.DataObject):
    """Any permutation of spans and records, some of them sent twice, reads as the same runs."""
    spans, logs = recorded(data.draw(st.sampled_from(CAPTURES)))
    expected = read(spans, logs)
    again = data.draw(st.lists(st.sampled_from(spans), max_size=5))
    more = data.draw(st.lists(st.sampled_from(logs), max_size=3)) if logs else []

    found = read(data.draw(st.permutations([*spans, *again])), data.draw(st.permutations([*logs, *more])))

    assert found == expected


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_lost_attribute_costs_a_fact_and_invents_none(data: st.DataObject):
    """With one attribute gone there are no further calls, no other result and no other answer than before."""
    capture = data.draw(st.sampled_from([c for c in CAPTURES if "multi_turn" not in c]))
    spans, logs = recorded(capture)
    whole = read_trajectory(spans, logs)
    place = data.draw(st.sampled_from([n for n, span in enumerate(spans) if span.attributes]))
    key = data.draw(st.sampled_from(sorted(spans[place].attributes)))
    kept = {name: value for name, value in spans[place].attributes.items() if name != key}
    less = [*spans[:place], dataclasses.replace(spans[place], attributes=kept), *spans[place + 1 :]]

    for run in read_runs(less, logs):
        assert run.answer in (None, whole.answer)
        assert len(run.model_calls) <= len(whole.model_calls)
        assert len(run.tool_calls) + len(run.handoffs) <= len(whole.tool_calls) + len(whole.handoffs)
        true = [(call.name, call.arguments, call.result) for call in whole.tool_calls]
        for call in run.tool_calls:
            assert call.arguments is None or call.arguments in [arguments for _, arguments, _ in true]
            assert call.result is MISSING or call.result in [result for _, _, result in true]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_value_of_an_attribute_breaks_the_reading(data: st.DataObject):
    """Whatever stands in an attribute, the run is read."""
    spans, logs = recorded(data.draw(st.sampled_from(CAPTURES)))
    place = data.draw(st.sampled_from([n for n, span in enumerate(spans) if span.attributes]))
    key = data.draw(st.sampled_from(sorted(spans[place].attributes)))
    odd = data.draw(
        st.sampled_from(
            [
                None,
                1,
                1.5,
                True,
                b"x",
                "",
                "{",
                "[1]",
                (1, "a"),
                {"a": 1},
                '[{"role": 1}]',
                '{"messages": [[]]}',
            ]
        )
        | st.text(max_size=20)
    )
    changed = dataclasses.replace(spans[place], attributes={**spans[place].attributes, key: odd})

    assert isinstance(read([*spans[:place], changed, *spans[place + 1 :]], logs).runs, tuple)


# -- the smallest runs that matter

TRACE = "0af7651916cd43dd8448eb211c80319c"


def span(
    number: int, parent: int | None = None, *, name: str = "", at: tuple[int, int] = (0, 0), **more: object
) -> Span:
    """A span of the one trace; ``at`` is start and end."""
    return Span(
        trace_id=TRACE,
        span_id=f"{number:016x}",
        parent_id=None if parent is None else f"{parent:016x}",
        name=name,
        start_ns=at[0] or number * 10,
        end_ns=at[1] or number * 10 + 5,
        **more,  # type: ignore[arg-type]
    )


def chat(
    number: int, parent: int | None, *parts: dict[str, object], asked: object = None, **more: object
) -> Span:
    """A model call in the conventions' own words."""
    attributes: dict[str, object] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": list(parts)}]),
    }
    if asked is not None:
        attributes["gen_ai.input.messages"] = json.dumps(asked)
    return span(number, parent, attributes=attributes, **more)  # type: ignore[arg-type]


def tool(
    number: int, parent: int | None, name: str, arguments: object, result: object = "done", **more: object
) -> Span:
    """A tool call in the conventions' own words."""
    attributes: dict[str, object] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    attributes["gen_ai.tool.call.arguments"] = json.dumps(arguments)
    if result is not None:
        attributes["gen_ai.tool.call.result"] = result
    attributes |= more.pop("attributes", {})  # type: ignore[operator]
    return span(number, parent, attributes=attributes, **more)  # type: ignore[arg-type]


def wants(name: str, arguments: object, call_id: str | None = None) -> dict[str, object]:
    return {"type": "tool_call", "name": name, "arguments": arguments, "id": call_id}


def says(text: str) -> dict[str, object]:
    return {"type": "text", "content": text}


def facts(run: Trajectory) -> list[tuple[object, ...]]:
    return [(call.name, call.arguments, call.status, call.turn, call.by_code) for call in run.tool_calls]


def test_a_call_may_carry_more_than_was_asked():
    """Code that adds an idempotency key executes the model's call, not one of its own."""
    run = read_trajectory(
        [
            chat(1, None, wants("refund", {"order": 7})),
            tool(2, None, "refund", {"order": 7, "key": "k"}),
            chat(3, None, says("ok")),
        ]
    )

    assert facts(run) == [("refund", {"order": 7, "key": "k"}, CallStatus.OK, 0, False)]


def test_a_call_no_turn_asked_for_is_made_by_code():
    """A tool span without a request, where every turn is recorded, is the code's own."""
    run = read_trajectory([chat(1, None, says("hello")), tool(2, None, "audit", {})])

    assert facts(run) == [("audit", {}, CallStatus.OK, None, True)]


def test_nobody_is_accused_where_a_turn_is_missing():
    """When one turn's output was not recorded, no call is said to be the code's own."""
    mute = span(1, attributes={"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 3})

    assert [call.by_code for call in read_trajectory([mute, tool(2, None, "audit", {})]).tool_calls] == [
        False
    ]


def test_a_request_without_a_span_did_not_run():
    """Where tool calls are written as spans, a request without one was not executed."""
    run = read_trajectory(
        [
            chat(1, None, wants("a", {}), wants("b", {"x": 1})),
            tool(2, None, "a", {}),
            chat(3, None, says("ok")),
        ]
    )

    assert facts(run) == [
        ("a", {}, CallStatus.OK, 0, False),
        ("b", {"x": 1}, CallStatus.NOT_EXECUTED, 0, False),
    ]


def test_calls_are_recovered_from_messages():
    """Without any tool span, a call is what one turn asked and a later turn was told."""
    history = [
        {"role": "user", "parts": [says("hi")]},
        {"role": "assistant", "parts": [wants("get", {"k": 1}, "c1")]},
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "c1", "response": "Error: not found"}],
        },
    ]
    run = read_trajectory(
        [chat(1, None, wants("get", {"k": 1}, "c1")), chat(2, None, says("no"), asked=history)]
    )
    (call,) = run.tool_calls

    assert (call.status, call.source, call.error) == (
        CallStatus.TOOL_ERROR,
        Source.MESSAGE,
        "Error: not found",
    )
    assert run.coarse_order
    assert [gap.fact for gap in run.coverage.reconstructed] == ["tool_calls[0].status"]


@pytest.mark.parametrize(
    "told",
    [
        "Tool execution was not approved.",  # the OpenAI Agents SDK
        "The tool call was denied.",  # pydantic-ai
        "User rejected the tool call for `get` with id c1",  # LangChain
    ],
)
def test_a_call_that_nobody_approved_of_is_denied(told: str) -> None:
    """The model was told so; the tool never ran, and made no error."""
    history = [
        {"role": "user", "parts": [says("hi")]},
        {"role": "assistant", "parts": [wants("get", {"k": 1}, "c1")]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": told}]},
    ]
    run = read_trajectory(
        [chat(1, None, wants("get", {"k": 1}, "c1")), chat(2, None, says("no"), asked=history)]
    )
    (call,) = run.tool_calls

    assert (call.status, call.ran, call.result, call.error) == (CallStatus.DENIED, False, MISSING, told)


def test_a_call_that_waited_for_approval_is_one_call() -> None:
    """Its span is written when it is asked for and again when it runs; one that was then rejected never ran."""
    told = [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "done"}]},
        {
            "role": "tool",
            "parts": [
                {"type": "tool_call_response", "id": "c2", "response": "Tool execution was not approved."}
            ],
        },
    ]
    run = read_trajectory(
        [
            chat(1, None, wants("put", {"k": 1}, "c1"), wants("put", {"k": 2}, "c2")),
            tool(2, None, "put", {"k": 1}, None),
            tool(3, None, "put", {"k": 2}, None),
            tool(4, None, "put", {"k": 1}, "done"),
            chat(5, None, says("one"), asked=told),
        ]
    )

    assert facts(run) == [
        ("put", {"k": 1}, CallStatus.OK, 0, False),
        ("put", {"k": 2}, CallStatus.DENIED, 0, False),
    ]
    assert run.tool_calls[0].span_id == f"{4:016x}"


def test_a_span_that_says_the_call_was_rejected_is_no_tool_error() -> None:
    """As OpenInference writes it for the OpenAI Agents SDK; a tool that speaks of a rejection has run."""
    rejected = (
        "Not today.: {'tool_name': 'get', 'error': 'Tool execution for c1 was manually rejected by user.'}"
    )
    spans = [
        chat(1, None, wants("get", {}, "c1"), wants("put", {}, "c2")),
        tool(2, None, "get", {}, None, status=StatusCode.ERROR, status_message=rejected),
        tool(3, None, "put", {}, None, status=StatusCode.ERROR, status_message="the bank rejected it"),
        chat(4, None, says("no")),
    ]
    run = read_trajectory(spans)

    assert [call.status for call in run.tool_calls] == [CallStatus.DENIED, CallStatus.TOOL_ERROR]


def test_call_ids_that_begin_anew_every_turn_are_kept_apart():
    """A server that numbers the calls of every turn from 0 does not mix up their answers."""
    one = [
        {"role": "assistant", "parts": [wants("get", {"k": 1}, "0")]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "0", "response": "first"}]},
    ]
    two = [
        *one,
        {"role": "assistant", "parts": [wants("get", {"k": 2}, "0")]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "0", "response": "second"}]},
    ]
    run = read_trajectory(
        [
            chat(1, None, wants("get", {"k": 1}, "0")),
            chat(2, None, wants("get", {"k": 2}, "0"), asked=one),
            chat(3, None, says("ok"), asked=two),
        ]
    )

    assert [(call.arguments, call.result) for call in run.tool_calls] == [
        ({"k": 1}, "first"),
        ({"k": 2}, "second"),
    ]


def test_an_unanswered_request_of_a_bare_client_is_unknown():
    """Where no tool spans are written and no later turn tells, nothing says whether the call ran."""
    run = read_trajectory([chat(1, None, wants("get", {}))])

    assert facts(run) == [("get", {}, CallStatus.UNKNOWN, 0, False)]
    assert run.termination.reason is Stop.UNKNOWN


def test_arguments_that_are_no_object_never_ran():
    """A call whose arguments are broken JSON did not run, and its error is kept."""
    told = [
        {"role": "assistant", "parts": [wants("get", '{"k": ', "c1")]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "invalid JSON"}]},
    ]
    run = read_trajectory(
        [chat(1, None, wants("get", '{"k": ', "c1")), chat(2, None, says("sorry"), asked=told)]
    )
    (call,) = run.tool_calls

    assert (call.status, call.arguments, call.error) == (CallStatus.NOT_EXECUTED, None, "invalid JSON")


def test_retries_of_one_call_are_attempts_of_their_own():
    """Two executions with one call id are two attempts of one request."""
    same = {"gen_ai.tool.call.id": "c1"}
    run = read_trajectory(
        [
            chat(1, None, wants("get", {}, "c1")),
            tool(2, None, "get", {}, None, attributes={**same, "error.type": "ReadTimeout"}),
            tool(3, None, "get", {}, attributes=same),
            chat(4, None, says("ok")),
        ]
    )

    assert [(call.status, call.turn) for call in run.tool_calls] == [
        (CallStatus.INFRA_ERROR, 0),
        (CallStatus.OK, 0),
    ]


def test_nested_instrumentors_are_one_call():
    """Two spans about one model call, one inside the other, count once, with what either knows."""
    outer = span(
        1,
        at=(10, 90),
        attributes={
            "openinference.span.kind": "LLM",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": "hi",
        },
    )
    inner = span(
        2,
        1,
        at=(20, 80),
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.input_tokens": 7,
            "gen_ai.usage.output_tokens": 2,
        },
    )
    run = read_trajectory([outer, inner])

    assert [
        (call.output.content if call.output else None, call.tokens.input) for call in run.model_calls
    ] == [("hi", 7)]
    assert run.tokens.input == 7


def test_a_frame_around_several_calls_is_none():
    """A model span around two model calls is their frame; its numbers are sums and are not added again."""
    frame = span(1, at=(10, 90), attributes={"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 9})
    parts = [
        span(n, 1, attributes={"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": n})
        for n in (4, 5)
    ]
    run = read_trajectory([frame, *parts])

    assert (len(run.model_calls), run.tokens.input) == (2, 9)


def test_a_sum_with_a_hole_is_missing():
    """When one of two calls reports no tokens, the run's number is missing, not too small."""
    told = chat(1, None, says("a"))
    counted = dataclasses.replace(told, attributes={**told.attributes, "gen_ai.usage.input_tokens": 5})
    run = read_trajectory([counted, chat(2, None, says("b"))])

    assert run.tokens.input is None
    assert "tokens.input" in {gap.fact for gap in run.coverage.missing}


@pytest.mark.parametrize(
    ("name", "arguments", "handed"),
    [
        ("transfer_to_refunds_agent", {}, True),
        ("handoff_to_billing", {"task": "x"}, True),
        ("transfer_to_clerk", {}, True),
        ("transfer_to_savings", {"amount": 5}, False),
        ("transfer_to_human_agents", {"summary": "x"}, False),
    ],
)
def test_a_handoff_is_known_by_its_target(name: str, arguments: dict[str, object], handed: bool):
    """A transfer to an agent is a hand-off; a transfer of money, or to a person, is a tool call."""
    clerk = span(
        1, at=(1, 99), attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"}
    )
    run = read_trajectory(
        [
            clerk,
            chat(2, 1, wants(name, arguments, "c1")),
            tool(3, 1, name, arguments, attributes={"gen_ai.tool.call.id": "c1"}),
        ]
    )

    assert (len(run.handoffs), len(run.tool_calls)) == ((1, 0) if handed else (0, 1))


def test_structured_messages_are_read_like_texts():
    """Messages as nested attribute values, which the conventions ask for, equal those as JSON text."""
    flat = chat(1, None, wants("get", {"k": [1, 2]}, "c1"))
    messages = (
        {
            "role": "assistant",
            "parts": ({"type": "tool_call", "name": "get", "id": "c1", "arguments": {"k": (1, 2)}},),
        },
    )
    nested = dataclasses.replace(flat, attributes={**flat.attributes, "gen_ai.output.messages": messages})

    assert read_trajectory([nested]).tool_calls == read_trajectory([flat]).tool_calls


def test_the_oldest_numbered_attributes_are_read():
    """``gen_ai.prompt.N`` and ``gen_ai.completion.N`` make a turn with its calls and tokens."""
    old = span(
        1,
        attributes={
            "llm.request.type": "chat",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "hi",
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.finish_reason": "tool_calls",
            "gen_ai.completion.0.tool_calls.0.id": "c1",
            "gen_ai.completion.0.tool_calls.0.name": "get",
            "gen_ai.completion.0.tool_calls.0.arguments": '{"k": 1}',
            "gen_ai.usage.prompt_tokens": 4,
            "gen_ai.usage.completion_tokens": 2,
        },
    )
    run = read_trajectory([old])

    assert run.request == "hi"
    assert [(call.name, call.arguments) for call in run.tool_calls] == [("get", {"k": 1})]
    assert (run.tokens.input, run.tokens.output) == (4, 2)


def test_a_trace_without_agent_model_or_tool_is_no_run():
    """Set-up spans and plain HTTP are counted, not read."""
    found = read([span(1, name="GET /"), span(2, 1, attributes={"gen_ai.operation.name": "create_agent"})])

    assert (found.runs, found.not_a_run) == ((), 1)
    with pytest.raises(UnreadableInput, match="found 0 runs and 1 trace"):
        read_trajectory([span(1, name="GET /")])


def test_our_own_verdicts_are_no_spans_of_the_run():
    """Evaluator spans in a trace leave the run as it is."""
    mine = [chat(1, None, says("hi"))]
    verdict = span(9, 1, scope="redfirst.verdict", attributes={"gen_ai.operation.name": "chat"})

    assert read_trajectory([*mine, verdict]) == read_trajectory(mine)


def test_a_missing_parent_makes_a_run_incomplete():
    """Two orphans of a parent that never came are an incomplete run; one top called from elsewhere is whole."""
    assert (
        read_trajectory([chat(2, 1, says("a")), chat(3, 1, says("b"))]).completeness
        is Completeness.INCOMPLETE
    )
    assert read_trajectory([chat(2, 1, says("a"))]).completeness is Completeness.COMPLETE


def test_parents_in_a_circle_are_survived():
    """Spans that name each other as parents are read."""
    assert read_trajectory([chat(1, 2, says("a")), chat(2, 1, says("b"))]).answer == "b"


def test_in_an_incomplete_trace_a_call_without_a_span_is_unknown() -> None:
    """The span of a killed agent's running tool is lost: that the write did not happen is not known."""
    messages = (
        '[{"role":"assistant","parts":[{"type":"tool_call","id":"1","name":"get_order","arguments":{}},'
        '{"type":"tool_call","id":"2","name":"refund","arguments":{}}]}]'
    )
    chat = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": messages}
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_order",
        "gen_ai.tool.call.id": "1",
    }
    spans = [
        Span(
            trace_id="a" * 32,
            span_id=f"{n:016x}",
            parent_id="f" * 16,
            start_ns=n,
            end_ns=n + 1,
            attributes=attributes,
        )
        for n, attributes in ((1, chat), (3, tool))
    ]

    run = read_trajectory(spans)

    assert run.completeness is Completeness.INCOMPLETE
    assert {call.name: call.status for call in run.tool_calls}["refund"] is CallStatus.UNKNOWN
