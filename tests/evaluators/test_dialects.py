"""One smallest span for each way of writing a fact down."""

from __future__ import annotations

import json

import pytest

from redfirst.evaluators import MISSING, CallStatus, Effect, Outcome, Stop, semconv
from redfirst.evaluators.check import judge
from redfirst.evaluators.dialects.facts import Kind, SpanFacts
from redfirst.evaluators.dialects.messages import messages_of, one_output
from redfirst.evaluators.dialects.registry import facts_of
from redfirst.evaluators.dialects.values import arguments_of, error_in_result, outcome_of
from redfirst.evaluators.reading import read_runs, read_trajectory
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.span import Span, SpanEvent, StatusCode

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def span(
    attributes: dict[str, object],
    *,
    name: str = "",
    scope: str = "",
    number: int = 1,
    parent: int | None = None,
    at: tuple[int, int] = (10, 20),
    events: tuple[SpanEvent, ...] = (),
    error: str | None = None,
) -> Span:
    return Span(
        trace_id=TRACE,
        span_id=f"{number:016x}",
        parent_id=None if parent is None else f"{parent:016x}",
        name=name,
        scope=scope,
        start_ns=at[0],
        end_ns=at[1],
        attributes=attributes,
        events=events,
        status=StatusCode.UNSET if error is None else StatusCode.ERROR,
        status_message=error or "",
    )


def event(name: str, **attributes: object) -> SpanEvent:
    return SpanEvent(name=name, time_ns=1, attributes=attributes)


def facts(*arguments: object, **fields: object) -> SpanFacts:
    return facts_of(span(*arguments, **fields), ())  # type: ignore[arg-type]


# -- values


@pytest.mark.parametrize(
    ("recorded", "named", "bare"),
    [
        ('{"k": 1}', {"k": 1}, None),
        ({"k": (1, 2)}, {"k": [1, 2]}, None),
        ('{"kwargs": {"k": 1}}', {"k": 1}, None),
        ('{"args": [], "kwargs": {"k": 1}}', {"k": 1}, None),
        ('{"args": ["A-42"], "sanitize_inputs_outputs": true, "kwargs": {}}', None, ("A-42",)),
        ("{'k': 'v'}", {"k": "v"}, None),
        ('{"input_str": "x", "inputs": {"k": 1}, "kwargs": {}}', {"k": 1}, None),
        ('{"input_str": "{\'k\': 1}"}', {"k": 1}, None),
        ("A-42", None, ("A-42",)),
        ("{}", {}, None),
        ("", None, None),
        (None, None, None),
    ],
)
def test_arguments_are_found_in_their_envelope(recorded: object, named: object, bare: object):
    """Whatever wraps them, arguments are by name, or bare values, or missing; never guessed."""
    found = arguments_of(recorded)

    assert (found.named, found.bare) == (named, bare)


@pytest.mark.parametrize(
    ("recorded", "result", "failed"),
    [
        ("plain", "plain", False),
        ('{"a": 1}', {"a": 1}, False),
        ("42", "42", False),
        ({"type": "tool", "data": {"content": '{"a": 1}', "tool_call_id": "c"}}, {"a": 1}, False),
        ({"lc": 1, "kwargs": {"content": "no", "status": "error"}}, "no", True),
        ({"output": {"lc": 1, "kwargs": {"content": "ok"}}}, "ok", False),
        ({"type": "text", "text": "hi"}, "hi", False),
        (
            {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "isError": True},
            "a\nb",
            True,
        ),
        ({"blocks": [], "raw_output": '{"a": 1}', "is_error": False}, {"a": 1}, False),
        ({"id": "c", "name": "t", "response": {"result": "done"}}, "done", False),
        ({"content": "a field of the tool's own"}, {"content": "a field of the tool's own"}, False),
        (None, MISSING, False),
    ],
)
def test_results_are_found_in_their_envelope(recorded: object, result: object, failed: bool):
    """A result is what the tool gave back, not the message a framework made of it."""
    found = outcome_of(recorded)

    assert found.result == result
    assert (found.error is not None) == failed


@pytest.mark.parametrize(
    ("result", "wrong"),
    [
        ("Error: no such order", True),
        ('"Error: quoted"', True),
        ("ValueError: bad", True),
        ({"error": "down"}, True),
        ({"error": None, "ok": True}, False),
        ({"error": 0.01}, False),
        ({"isError": True}, True),
        ("Errors were found in 3 files", False),
        ("No error", False),
        (["Error"], False),
    ],
)
def test_an_error_in_a_result_is_recognised(result: object, wrong: bool):
    """A text that begins with an error, or an error field that says something, is an error; a number is not."""
    assert (error_in_result(result) is not None) == wrong


# -- messages

CALL = [("get", {"k": 1}, "c1")]


@pytest.mark.parametrize(
    "message",
    [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "function": {"name": "get", "arguments": '{"k": 1}'}}],
        },
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "get", "arguments": {"k": 1}}],
        },
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "get", "arguments": '{"k": 1}'}],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "get", "input": {"k": 1}}],
        },
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "c1", "name": "get", "input": {"k": 1}}}],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "get", "input": {"k": 1}}],
        },
        {"role": "model", "parts": [{"function_call": {"name": "get", "args": {"k": 1}}, "id": "c1"}]},
        {"type": "function_call", "call_id": "c1", "name": "get", "arguments": '{"k": 1}'},
        {
            "type": "ai",
            "content": "",
            "tool_calls": [{"name": "get", "args": {"k": 1}, "id": "c1", "type": "tool_call"}],
        },
        {
            "type": "ai",
            "data": {"content": "", "tool_calls": [{"name": "get", "args": {"k": 1}, "id": "c1"}]},
        },
        {
            "lc": 1,
            "kwargs": {
                "type": "ai",
                "content": "",
                "tool_calls": [{"name": "get", "args": {"k": 1}, "id": "c1"}],
            },
        },
        {
            "role": "assistant",
            "parts": [
                {
                    "type": "text",
                    "content": "ResponseFunctionToolCall(arguments='{\"k\": 1}', call_id='c1', name='get')",
                }
            ],
        },
    ],
)
def test_a_requested_call_is_the_same_in_every_shape(message: dict[str, object]):
    """OpenAI, Anthropic, Bedrock, Google, LangChain and the conventions all ask for the same call."""
    output = one_output(messages_of([message]))

    assert output is not None
    assert [(call.name, call.arguments, call.call_id) for call in output.tool_calls] == CALL


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "done"}]},
        {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "result": "done"}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "done"}]}
            ],
        },
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "done"}]}}]},
        {
            "role": "tool",
            "content": [
                {"type": "tool-result", "toolCallId": "c1", "output": {"type": "text", "value": "done"}}
            ],
        },
        {"type": "function_call_output", "call_id": "c1", "output": "done"},
        {"type": "tool", "content": "done", "tool_call_id": "c1"},
    ],
)
def test_an_answer_is_the_same_in_every_shape(message: dict[str, object]):
    """The answer of a tool carries the call's id, whoever's message it stands in."""
    (found,) = messages_of([message]) or ()

    assert (found.role, found.tool_call_id, found.content) == ("tool", "c1", "done")


def test_broken_arguments_stay_as_they_were_written():
    """Arguments that are no JSON object are kept as text, and are not an empty object."""
    output = one_output(
        messages_of(
            [{"role": "assistant", "parts": [{"type": "tool_call", "name": "get", "arguments": '{"k"'}]}]
        )
    )

    assert output is not None
    assert [(call.arguments, call.raw_arguments) for call in output.tool_calls] == [(None, '{"k"')]


# -- dialects that no fixture holds


def test_strands_tells_a_tool_call_in_span_events():
    """Arguments and result may stand in message events of the tool's span."""
    found = facts(
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get"},
        events=(
            event("gen_ai.tool.message", role="tool", content='{"k": 1}', id="c1"),
            event("gen_ai.choice", message='[{"text": "done"}]', id="c1"),
        ),
    )

    assert (found.kind, found.name, found.arguments, found.result, found.call_id) == (
        Kind.TOOL,
        "get",
        {"k": 1},
        "done",
        "c1",
    )


def test_strands_tells_a_turn_in_span_events():
    """Content blocks in message events make the turn: input, output, call and finish reason."""
    found = facts(
        {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
        events=(
            event("gen_ai.user.message", content='[{"text": "hi"}]'),
            event(
                "gen_ai.choice",
                finish_reason="tool_use",
                message='[{"text": "well"}, {"toolUse": {"toolUseId": "c1", "name": "get", "input": {"k": 1}}}]',
            ),
        ),
    )

    assert [(m.role, m.content) for m in found.input or ()] == [("user", "hi")]
    assert found.output is not None
    assert found.output.content == "well"
    assert [(call.name, call.arguments, call.call_id) for call in found.output.tool_calls] == CALL
    assert found.finish == "tool_use"


def test_one_event_may_carry_all_content():
    """Input and output in two events of one name are one turn."""
    name = "gen_ai.client.inference.operation.details"
    found = facts(
        {"gen_ai.operation.name": "chat"},
        events=(
            event(
                name,
                **{
                    "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]'
                },
            ),
            event(
                name,
                **{
                    "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "ho"}]}]'
                },
            ),
        ),
    )

    assert found.input is not None
    assert found.output is not None
    assert (found.input[0].content, found.output.content) == ("hi", "ho")


def test_google_adk_is_read_from_its_own_keys():
    """A model span without an operation, and a tool span with its arguments and wrapped result."""
    request = {
        "model": "g",
        "config": {"system_instruction": "be kind"},
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    }
    response = {
        "content": {
            "role": "model",
            "parts": [{"function_call": {"id": "c1", "name": "get", "args": {"k": 1}}}],
        },
        "finish_reason": "STOP",
    }
    model = facts(
        {
            "gcp.vertex.agent.llm_request": json.dumps(request),
            "gcp.vertex.agent.llm_response": json.dumps(response),
            "gen_ai.usage.input_tokens": 3,
        },
        name="call_llm",
    )
    tool = facts(
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get",
            "gcp.vertex.agent.tool_call_args": '{"k": 1}',
            "gcp.vertex.agent.tool_response": '{"result": "done"}',
        }
    )
    merged = facts(
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)"},
        scope="gcp.vertex.agent",
    )

    assert model.kind is Kind.MODEL
    assert model.output is not None
    assert [(call.name, call.arguments, call.call_id) for call in model.output.tool_calls] == CALL
    assert [m.role for m in model.input or ()] == ["system", "user"]
    assert (tool.arguments, tool.result) == ({"k": 1}, "done")
    assert merged.kind is Kind.STRUCTURE


def test_vercels_sdk_is_read_from_its_own_keys():
    """The outer call is the agent, each ``do…`` a turn, ``ai.toolCall`` a tool call."""
    turn = facts(
        {
            "ai.operationId": "ai.generateText.doGenerate",
            "ai.prompt.messages": '[{"role": "user", "content": [{"type": "text", "text": "hi"}]}]',
            "ai.response.toolCalls": '[{"toolCallId": "c1", "toolName": "get", "input": {"k": 1}}]',
            "ai.usage.inputTokens": 3,
        }
    )
    tool = facts(
        {
            "ai.operationId": "ai.toolCall",
            "ai.toolCall.name": "get",
            "ai.toolCall.args": '{"k": 1}',
            "ai.toolCall.result": '"done"',
        }
    )
    loop = facts(
        {"ai.operationId": "ai.generateText", "ai.prompt": '{"prompt": "hi"}', "ai.response.text": "ho"}
    )

    assert turn.output is not None
    assert [(call.name, call.arguments, call.call_id) for call in turn.output.tool_calls] == CALL
    assert (tool.kind, tool.arguments, tool.result) == (Kind.TOOL, {"k": 1}, "done")
    assert (loop.kind, loop.request, loop.answer) == (Kind.AGENT, "hi", "ho")


def test_the_tool_that_gives_the_answer_is_no_tool_call():
    """A framework's ``final_answer`` ends the run with its argument as the answer."""
    agent = span({"openinference.span.kind": "AGENT"}, name="CodeAgent.run", number=1, at=(1, 99))
    turn = span(
        {
            "openinference.span.kind": "LLM",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "final_answer",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"answer": "42"}',
        },
        number=2,
        parent=1,
    )
    tool = span(
        {"openinference.span.kind": "TOOL", "tool.name": "final_answer", "input.value": '{"answer": "42"}'},
        number=3,
        parent=1,
        at=(30, 40),
    )
    run = read_trajectory([agent, turn, tool])

    assert (run.answer, run.tool_calls, run.termination.reason) == ("42", (), Stop.COMPLETED)


def test_subtracted_token_parts_are_added_back():
    """A sum whose parts were taken out of it is put together again; a sum that was left whole stays."""
    apart = {"input": 110, "output": 18, "total": 195, "input_cache_read": 64, "output_reasoning": 3}
    whole = {"input": 174, "output": 21, "total": 195, "input_cache_read": 64, "output_reasoning": 3}

    for usage in (apart, whole):
        found = facts(
            {
                "langfuse.observation.type": "generation",
                "langfuse.observation.usage_details": json.dumps(usage),
            }
        )
        assert (found.tokens.input, found.tokens.output, found.tokens.cached) == (174, 21, 64)


def test_a_steering_exception_is_no_error():
    """A framework's exception for a hand-over is no failure; one for a pause is a pause."""
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
    over = facts(agent, error="ParentCommand(Command(goto='b'))")
    paused = facts(agent, error="GraphInterrupt((Interrupt(value='sure?'),))")

    assert (over.failed, over.interrupted) == (False, False)
    assert (paused.failed, paused.interrupted) == (False, True)


# -- our own spans


def ours(number: int, kind: str, attributes: dict[str, object], **fields: object) -> Span:
    return span({semconv.OI_KIND: kind, **attributes}, scope=semconv.SCOPE, number=number, **fields)  # type: ignore[arg-type]


def test_our_own_spans_say_what_only_we_write():
    """Effect, idempotence and polling of a tool; states, events, cap and version of the agent."""
    agent = ours(
        1,
        "AGENT",
        {
            semconv.AGENT_NAME: "support",
            semconv.AGENT_VERSION: "v7",
            semconv.STEP_CAP: 3,
            semconv.INPUT_VALUE: "42",
            semconv.INPUT_MIME_TYPE: semconv.TEXT_MIME,
            semconv.OUTPUT_VALUE: "done",
            semconv.OUTPUT_MIME_TYPE: semconv.TEXT_MIME,
        },
        at=(1, 99),
        events=(
            event(semconv.STATE_EVENT, **{semconv.STATE_VALUE: '{"stock": 1}'}),
            event(
                semconv.RUN_EVENT,
                **{semconv.RUN_EVENT_NAME: "approval", semconv.RUN_EVENT_ATTRIBUTES: '{"order": "7"}'},
            ),
        ),
    )
    tool = ours(
        2,
        "TOOL",
        {
            semconv.TOOL_NAME: "refund",
            semconv.TOOL_CALL_ARGUMENTS: '{"order": "7"}',
            semconv.TOOL_CALL_RESULT: '"paid"',
            semconv.TOOL_EFFECT: "write",
            semconv.TOOL_IDEMPOTENT: False,
            semconv.TOOL_POLL: True,
        },
        parent=1,
    )
    run = read_trajectory([agent, tool])
    (call,) = run.tool_calls

    assert (call.effect, call.idempotent, call.poll, call.result) == (Effect.WRITE, False, True, "paid")
    assert [state.state for state in run.states] == [{"stock": 1}]
    assert [(e.name, e.attributes) for e in run.events] == [("approval", {"order": "7"})]
    assert (run.request, run.answer, run.agent_version, run.agents) == ("42", "done", "v7", ("support",))


def test_a_state_that_was_cut_is_a_gap_and_no_verdict_on_states():
    """What the last snapshot showed is not known, so nothing is concluded from the one before it."""
    cut = f'[{{"attribute": "{semconv.STATE_VALUE}", "length": 408, "sha256": "0"}}]'
    whole = event(semconv.STATE_EVENT, **{semconv.STATE_VALUE: '{"stock": 1}'})
    lost = event(semconv.STATE_EVENT, **{semconv.STATE_VALUE: '{"stock": 0, "x…', semconv.TRUNCATED: cut})
    broken = event(semconv.STATE_EVENT, **{semconv.STATE_VALUE: '{"stock": 0'})
    declared = "schema: redfirst.rules/1\nstate:\n  allowed: [{path: log.**}]\n"
    checks = [check for check in load_rules(declared, "rules.yaml") if check.id == "state.collateral"]
    outcomes = {}
    for name, events in (("whole", (whole, whole)), ("cut", (whole, whole, lost)), ("broken", (broken,))):
        run = read_trajectory([ours(1, "AGENT", {semconv.AGENT_NAME: "support"}, events=events)])
        gaps = [gap.because for gap in run.coverage.missing if gap.fact == "states"]
        outcomes[name] = (judge(run, checks)[0].outcome, gaps)

    assert outcomes == {
        "whole": (Outcome.PASSED, []),
        "cut": (Outcome.INCONCLUSIVE, ["a snapshot was cut when it was recorded"]),
        "broken": (Outcome.INCONCLUSIVE, ["a snapshot cannot be read"]),
    }


def test_an_event_whose_attributes_were_cut_is_a_gap():
    """That it happened is known, and what it said is missing rather than empty."""
    key = semconv.RUN_EVENT_ATTRIBUTES
    said = {semconv.RUN_EVENT_NAME: "approval", key: '{"order": "7'}
    cut = event(semconv.RUN_EVENT, **said, **{semconv.TRUNCATED: f'[{{"attribute": "{key}"}}]'})
    run = read_trajectory([ours(1, "AGENT", {semconv.AGENT_NAME: "support"}, events=(cut,))])

    assert [one.name for one in run.events] == ["approval"]
    assert [gap.because for gap in run.coverage.missing if gap.fact == "events"] == [
        "an event's attributes were cut when it was recorded"
    ]


def test_a_null_result_is_not_a_missing_one():
    """A tool that returned nothing has the result null; a tool whose result was not recorded has none."""
    null = read_trajectory([ours(1, "TOOL", {semconv.TOOL_NAME: "t", semconv.TOOL_CALL_RESULT: "null"})])
    none = read_trajectory([ours(1, "TOOL", {semconv.TOOL_NAME: "t"})])

    assert null.tool_calls[0].result is None
    assert none.tool_calls[0].result is MISSING


def test_a_value_that_was_cut_is_missing():
    """What is left of arguments that were cut is not what was given."""
    cut = {
        semconv.TRUNCATED: json.dumps([{"attribute": semconv.TOOL_CALL_RESULT, "length": 9, "sha256": "x"}])
    }
    run = read_trajectory(
        [ours(1, "TOOL", {semconv.TOOL_NAME: "t", semconv.TOOL_CALL_RESULT: '"lon', **cut})]
    )

    assert run.tool_calls[0].result is MISSING
    assert any(semconv.TOOL_CALL_RESULT in gap.because for gap in run.coverage.reconstructed)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("TimeoutError", CallStatus.INFRA_ERROR),
        ("httpx.ReadTimeout", CallStatus.INFRA_ERROR),
        ("ConnectionResetError", CallStatus.INFRA_ERROR),
        ("openai.RateLimitError", CallStatus.INFRA_ERROR),
        ("APIConnectionError", CallStatus.INFRA_ERROR),
        ("ValueError", CallStatus.TOOL_ERROR),
        ("KeyError", CallStatus.TOOL_ERROR),
    ],
)
def test_the_way_to_a_tool_and_the_tool_fail_differently(kind: str, status: CallStatus):
    """A time-out, a lost connection and a rate limit leave the effect unknown; an answer with an error does not."""
    raised = event("exception", **{"exception.type": kind, "exception.message": "it broke"})
    run = read_trajectory(
        [ours(1, "TOOL", {semconv.TOOL_NAME: "t"}, error=f"{kind}: it broke", events=(raised,))]
    )

    assert [(call.status, call.error) for call in run.tool_calls] == [(status, "it broke")]


def turn(number: int, *parts: dict[str, object], at: tuple[int, int]) -> Span:
    output = json.dumps([{"role": "assistant", "parts": list(parts)}])
    return ours(number, "LLM", {semconv.OUTPUT_MESSAGES: output, semconv.OUTPUT_VALUE: "{}"}, parent=1, at=at)


@pytest.mark.parametrize(
    ("attributes", "parts", "error", "reason"),
    [
        ({semconv.STOP_REASON: "loop_cut"}, [{"type": "text", "content": "x"}], None, Stop.LOOP_CUT),
        ({semconv.STOP_REASON: "nonsense"}, [], None, Stop.UNKNOWN),
        ({}, [], "ValueError: bad", Stop.ERROR),
        ({}, [], "TimeoutError: slow", Stop.INFRA),
        ({semconv.OUTPUT_VALUE: "done"}, [], None, Stop.COMPLETED),
        ({}, [{"type": "text", "content": "done"}], None, Stop.COMPLETED),
        ({semconv.STEP_CAP: 1}, [{"type": "tool_call", "name": "t", "arguments": {}}], None, Stop.STEP_CAP),
        ({semconv.STEP_CAP: 2}, [{"type": "tool_call", "name": "t", "arguments": {}}], None, Stop.UNKNOWN),
        ({}, [], None, Stop.UNKNOWN),
    ],
)
def test_why_our_own_run_ended(
    attributes: dict[str, object], parts: list[dict[str, object]], error: str | None, reason: Stop
):
    """What the loop said comes first, then an error, then the last turn; else it is not known."""
    name = error.partition(":")[0] if error else ""
    raised = (event("exception", **{"exception.type": name, "exception.message": "x"}),) if error else ()
    agent = ours(1, "AGENT", {semconv.AGENT_NAME: "a", **attributes}, at=(1, 99), error=error, events=raised)
    spans = [agent, *([turn(2, *parts, at=(10, 20))] if parts else [])]

    assert read_trajectory(spans).termination.reason is reason


@pytest.mark.parametrize("mark", ["__REDACTED__", "<elided>"])
def test_kept_back_content_is_missing(mark: str) -> None:
    """What an instrumentor writes in the place of content is no content."""
    found = facts_of(
        span(
            {"openinference.span.kind": "TOOL", "tool.name": "t", "input.value": mark, "output.value": mark}
        ),
        (),
    )

    assert found.arguments is None
    assert found.bare_arguments is None
    assert found.result is MISSING
    assert [message.content for message in messages_of([{"role": "user", "content": mark}]) or ()] == [None]


def test_a_value_that_was_cut_off_is_missing() -> None:
    """Half an object is neither the arguments nor the result; a text that only looks like it is a text."""
    assert arguments_of('{"order_id": "A-').named is None
    assert arguments_of('{"order_id": "A-').bare is None
    assert outcome_of('[{"order_id": "A-').result is MISSING
    assert outcome_of("[done] all of it").result == "[done] all of it"


def test_numbers_that_contradict_each_other_are_missing() -> None:
    """Two names of one number with two values say nothing; with one value they say it."""
    same = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7, "gen_ai.usage.prompt_tokens": 7}

    assert facts_of(span({**same, "gen_ai.usage.output_tokens": 2}), ()).tokens.input == 7
    (run,) = read_runs([span({**same, "gen_ai.usage.prompt_tokens": 8, "gen_ai.usage.output_tokens": 2})])
    assert run.tokens.input is None
    assert any("contradict" in gap.because for gap in run.coverage.missing if gap.fact == "tokens.input")


def test_no_call_is_free_of_tokens() -> None:
    """0 in and 0 out stands for a count that did not come."""
    found = facts_of(
        span(
            {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0}
        ),
        (),
    )

    assert found.tokens.input is None
    assert found.tokens.output is None


def test_a_span_without_its_operation_is_known_by_its_name() -> None:
    """The conventions begin a span's name with the operation."""
    assert facts_of(span({"gen_ai.agent.name": "a"}, name="invoke_agent a"), ()).kind is Kind.AGENT
    assert facts_of(span({"gen_ai.system": "openai"}, name="chat gpt"), ()).kind is Kind.MODEL
    assert facts_of(span({"gen_ai.agent.name": "a", "gen_ai.request.model": "m"}), ()).kind is Kind.STRUCTURE


def test_a_run_that_broke_off_has_the_agent_its_calls_name() -> None:
    """The agent's span never ended and was never sent; its calls say whose they are."""
    call = {
        "openinference.span.kind": "LLM",
        "metadata": json.dumps({"lc_agent_name": "support"}),
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Wait.",
    }

    run = read_trajectory([span(call, parent=9)])

    assert run.agents == ("support",)
    assert run.model_calls[0].agent == "support"


def test_an_error_that_the_framework_caught_is_an_error() -> None:
    """The outer span passes the text of the tool's error on as its result."""
    outer = span(
        {
            "openinference.span.kind": "TOOL",
            "tool.name": "t",
            "input.value": "{}",
            "output.value": "no carrier",
        },
        at=(1, 9),
    )
    inner = span(
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"},
        number=2, parent=1, at=(2, 8), scope="autogen-core", error="no carrier",
    )  # fmt: skip

    (call,) = read_trajectory([outer, inner]).tool_calls

    assert call.status is CallStatus.TOOL_ERROR
    assert call.error == "no carrier"
    assert call.result is MISSING


def test_digits_without_end_cost_their_own_fact_alone() -> None:
    """Python refuses to read a text of 5,000 digits as a number: no count, no place of a message, and no error."""
    long = "9" * 5000
    run = read_trajectory(
        [
            ours(1, "AGENT", {semconv.AGENT_NAME: "a"}, at=(1, 99)),
            ours(
                2,
                "LLM",
                {
                    "llm.token_count.prompt": long,
                    "llm.token_count.completion": "7",
                    f"llm.input_messages.{long}.message.role": "user",
                    "llm.output_messages.0.message.role": "assistant",
                    "llm.output_messages.0.message.content": "done",
                },
                parent=1,
                at=(2, 3),
            ),
        ]
    )

    assert run.tokens.input is None
    assert run.model_calls[0].tokens.output == 7
    assert run.answer == "done"
