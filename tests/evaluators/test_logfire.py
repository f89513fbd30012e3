"""Logfire's spans: streamed calls in two pieces, and the OpenAI Agents SDK by message templates.

Keys and templates are those of Logfire's own expected spans (MIT); names, arguments and numbers are made up here.
"""

from __future__ import annotations

import itertools
import json

import pytest

from redfirst.evaluators.provenance import Origin, provenance
from redfirst.evaluators.reading import read, read_runs, read_trajectory
from redfirst.evaluators.span import Span, SpanEvent, StatusCode
from redfirst.evaluators.trajectory import CallStatus, Stop

ONE, OTHER = "4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"
STREAMED = "streaming response from {request_data[model]!r} took {duration:.2f}s"


def span(
    number: int,
    template: str,
    at: tuple[int, int],
    parent: int | None = None,
    trace: str = ONE,
    /,
    **more: object,
) -> Span:
    attributes = {
        key.replace("__", "."): value if isinstance(value, str | int | float) else json.dumps(value)
        for key, value in more.items()
    }
    return Span(
        trace_id=trace, span_id=f"{number:016x}", parent_id=None if parent is None else f"{parent:016x}", name=template,
        scope="logfire.x", start_ns=at[0], end_ns=at[1], attributes={"logfire.span_type": "span", **attributes},
    )  # fmt: skip


def asked(
    number: int, question: str, at: tuple[int, int], *, parent: int | None = None, trace: str = ONE
) -> Span:
    """The span of a streamed request: it ends when the stream begins."""
    return span(
        number, "Chat Completion with {request_data[model]!r}", at, parent, trace,
        gen_ai__operation__name="chat", gen_ai__request__model="m-1", gen_ai__response__model="m-1",
        gen_ai__input__messages=[{"role": "user", "parts": [{"type": "text", "content": question}]}],
    )  # fmt: skip


def streamed(
    number: int, question: str, said: str, at: int, *, parent: int | None = None, trace: str = ONE
) -> Span:
    """What is written when the stream is over."""
    return span(
        number, STREAMED, (at, at), parent, trace, logfire__span_type="log", duration=1.0, operation__cost=0.25,
        gen_ai__operation__name="chat", gen_ai__request__model="m-1", gen_ai__response__model="m-1",
        gen_ai__usage__input_tokens=19, gen_ai__usage__output_tokens=9,
        gen_ai__input__messages=[{"role": "user", "parts": [{"type": "text", "content": question}]}],
        gen_ai__output__messages=[
            {"role": "assistant", "parts": [{"type": "text", "content": said}], "finish_reason": "end_turn"}
        ],
    )  # fmt: skip


def test_a_streamed_call_is_one_call() -> None:
    """The request's span and what is written at the stream's end are one call, in any order."""
    spans = [
        span(1, "work", (0, 90)),
        asked(2, "4+5?", (10, 20), parent=1),
        streamed(3, "4+5?", "9", 60, parent=1),
    ]

    for order in itertools.permutations(spans):
        run = read_trajectory(order)
        (call,) = run.model_calls
        assert (call.span_id, call.start_ns, call.end_ns) == (f"{2:016x}", 10, 60)
        assert (call.output and call.output.content, call.finish_reason) == ("9", "end_turn")
        assert (run.tokens.input, run.tokens.output, run.cost_usd) == (19, 9, 0.25)
        assert (run.request, run.answer, run.termination.reason) == ("4+5?", "9", Stop.COMPLETED)
        assert run.coverage.missing == ()


def test_what_a_stream_gave_is_traced_to_where_it_is_written() -> None:
    """The call has the id of its request; its output stands on the other span."""
    spans = [
        span(1, "work", (0, 90)),
        asked(2, "4+5?", (10, 20), parent=1),
        streamed(3, "4+5?", "9", 60, parent=1),
    ]

    found = provenance(read_trajectory(spans), spans)

    assert Origin(f"{3:016x}", "gen_ai.output.messages") in found["model_calls[0].output"]
    assert Origin(f"{3:016x}", "gen_ai.usage.input_tokens") in found["model_calls[0].tokens.input"]
    assert Origin(f"{2:016x}", "gen_ai.input.messages") in found["model_calls[0].input_messages"]


def test_a_streamed_call_without_anything_around_it_is_one_run() -> None:
    """Logfire then writes a trace for each of the two."""
    found = read([asked(2, "4+5?", (10, 20)), streamed(3, "4+5?", "9", 60, trace=OTHER)])

    (run,) = found.runs
    assert found.not_a_run == 0
    assert (run.run_id, run.trace_ids, len(run.model_calls)) == (ONE, (ONE, OTHER), 1)
    assert (run.answer, run.tokens.input) == ("9", 19)


def test_each_half_of_a_streamed_call_names_what_it_meets_the_other_by() -> None:
    """Read one at a time they have that in common, so that whoever has one knows to look for the other."""
    request, answer = asked(2, "4+5?", (10, 20)), streamed(3, "4+5?", "9", 60, trace=OTHER)
    other = streamed(4, "5+5?", "10", 60, trace="1" * 32)

    mine, theirs, apart = (
        read([one]).meetings.get(one.trace_id, frozenset()) for one in (request, answer, other)
    )
    assert mine & theirs
    assert not (mine | theirs) & apart
    assert read([span(1, "work", (0, 90)), asked(2, "4+5?", (10, 20), parent=1)]).meetings == {}


def test_answers_of_streams_at_one_time_go_to_their_requests() -> None:
    """The later request is answered first."""
    spans = [
        span(1, "work", (0, 90)),
        asked(2, "a?", (10, 20), parent=1), asked(3, "b?", (11, 21), parent=1),
        streamed(4, "b?", "B", 50, parent=1), streamed(5, "a?", "A", 60, parent=1),
    ]  # fmt: skip

    run = read_trajectory(spans)

    assert [(c.input_messages[0].content, c.output.content) for c in run.model_calls] == [
        ("a?", "A"),
        ("b?", "B"),
    ]  # type: ignore[index,union-attr]
    assert (run.tokens.input, run.tokens.output) == (38, 18)


@pytest.mark.parametrize(
    "request_span",
    [
        asked(2, "another?", (10, 20), parent=1),  # what it asked is another thing
        asked(2, "4+5?", (70, 80), parent=1),  # it began after the answer
        asked(2, "4+5?", (10, 20)),  # it stands elsewhere
    ],
)
def test_an_answer_is_given_to_no_other_request(request_span: Span) -> None:
    """Both are then calls of their own, and the request has no output."""
    run = read_trajectory([span(1, "work", (0, 90)), request_span, streamed(3, "4+5?", "9", 60, parent=1)])

    assert sorted(call.output is None for call in run.model_calls) == [False, True]


def test_an_answer_whose_request_was_not_sent_is_a_call() -> None:
    run = read_trajectory([streamed(3, "4+5?", "9", 60)])

    assert (len(run.model_calls), run.answer, run.request) == (1, "9", "4+5?")


def _agents() -> list[Span]:
    """An agent that calls a tool, hands over, and another one that answers."""
    model = "Responses API with {gen_ai.request.model!r}"
    user = {"event.name": "gen_ai.user.message", "role": "user", "content": "Double a random number."}

    def call(number: int, name: str) -> dict[str, object]:
        function = {"name": name, "arguments": '{"upto": 6}' if number == 1 else "{}"}
        calls = [{"id": f"call_{number}", "type": "function", "function": function}]
        return {"event.name": "gen_ai.assistant.message", "role": "assistant", "tool_calls": calls}

    def told(number: int, text: str) -> dict[str, object]:
        return {"event.name": "gen_ai.tool.message", "role": "tool", "id": f"call_{number}", "content": text}

    first = [user, call(1, "random_number"), call(2, "transfer_to_doubler")]
    last = [*first, told(1, "4"), told(2, '{"assistant": "doubler"}'),
            {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "8"}]  # fmt: skip
    system = {"gen_ai__system": "openai"}
    chat = {"gen_ai__operation__name": "chat", "gen_ai__response__model": "m-1", "gen_ai__system": "openai"}
    return [
        span(1, "OpenAI Agents trace: {name}", (0, 90), name="Agent workflow", group_id="talk-7", agent_trace_id="trace_1"),
        span(2, "Agent run: {name!r}", (10, 50), 1, name="picker", handoffs=["doubler"], **system),
        span(3, model, (11, 20), 2, events=first, gen_ai__usage__input_tokens=50, gen_ai__usage__output_tokens=7, **chat),
        span(4, "Function: {name}", (21, 30), 2, name="random_number", input={"upto": 6}, output="4", **system),
        span(5, "Handoff: {from_agent} → {to_agent}", (31, 40), 2, from_agent="picker", to_agent="doubler", **system),
        span(6, "Agent run: {name!r}", (51, 80), 1, name="doubler", handoffs=[], **system),
        span(7, model, (52, 60), 6, events=last, gen_ai__usage__input_tokens=80, gen_ai__usage__output_tokens=2, **chat),
    ]  # fmt: skip


def test_the_agents_sdk_is_read_by_its_templates() -> None:
    """Agents, the tool call joined to its request, the handoff, the session and the answer."""
    run = read_trajectory(_agents())

    assert run.agents == ("picker", "doubler")
    assert [(c.name, c.arguments, c.result, c.status, c.agent) for c in run.tool_calls] == [
        ("random_number", {"upto": 6}, "4", CallStatus.OK, "picker")
    ]
    assert [(h.source, h.target) for h in run.handoffs] == [("picker", "doubler")]
    assert [call.agent for call in run.model_calls] == ["picker", "doubler"]
    assert (run.request, run.answer, run.session_id) == ("Double a random number.", "8", "talk-7")
    assert (run.tokens.input, run.tokens.output, run.termination.reason) == (130, 9, Stop.COMPLETED)
    assert run.coverage.missing == ()


def test_the_name_of_a_span_may_be_its_message() -> None:
    """Whoever renames spans to what they say leaves the template in its attribute."""
    renamed = [
        Span(**{
            **{field: getattr(one, field) for field in ("trace_id", "span_id", "parent_id", "scope", "start_ns", "end_ns")},
            "name": "said", "attributes": {**one.attributes, "logfire.msg_template": one.name},
        })
        for one in _agents()
    ]  # fmt: skip

    assert read_runs(renamed) == read_runs(_agents())


def test_a_tool_that_failed_has_the_error_that_was_caught() -> None:
    """The SDK keeps on and gives the model a text; the span carries what it caught."""
    caught = {
        "message": "Error running tool (non-fatal)",
        "data": {"tool_name": "f", "error": "no such order"},
    }
    tool = span(2, "Function: {name}", (1, 2), name="f", input={"id": 1}, output="An error occurred: no such order",
                error=caught, gen_ai__system="openai")  # fmt: skip

    (call,) = read_trajectory([tool]).tool_calls

    assert (call.status, call.error) == (CallStatus.TOOL_ERROR, "no such order")


def test_a_chat_completion_of_the_agents_sdk_is_no_history_of_itself() -> None:
    """``request_data`` lists the answer among what was asked; ``input`` and ``output`` hold them apart."""
    question, answer = (
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "2", "tool_calls": None},
    )
    call = span(1, "Chat completion with {gen_ai.request.model!r}", (1, 2), gen_ai__request__model="m-1",
                gen_ai__system="openai", input=[question], output=[answer], gen_ai__usage__input_tokens=11,
                gen_ai__usage__output_tokens=8, request_data={"messages": [question, answer]})  # fmt: skip

    (read_call,) = read_trajectory([call]).model_calls

    assert [message.content for message in read_call.input_messages or ()] == ["1+1?"]
    assert read_call.output is not None
    assert read_call.output.content == "2"
    assert (read_call.tokens.input, read_call.tokens.output) == (11, 8)


def test_a_call_that_failed_has_no_answer_among_its_events() -> None:
    """An assistant's text that was given to the model is not what it said."""
    events = [
        {"event.name": "gen_ai.user.message", "content": "go on", "role": "user"},
        {"event.name": "gen_ai.assistant.message", "content": "Once upon", "role": "assistant"},
    ]
    failed = Span(
        trace_id=ONE, span_id="1" * 16, start_ns=1, end_ns=2, status=StatusCode.ERROR,
        events=(SpanEvent(name="exception", time_ns=1, attributes={"exception.message": "quota"}),),
        attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", "events": json.dumps(events)},
    )  # fmt: skip

    (call,) = read_trajectory([failed]).model_calls

    assert (call.output, call.error) == (None, "quota")


def test_events_without_names_are_what_their_roles_say() -> None:
    """So Logfire writes what Google's client was asked and said."""
    events = [
        {"content": "Be brief.", "role": "system"},
        {"content": "Is it raining?", "role": "user"},
        {"index": 0, "finish_reason": "STOP", "message": {"role": "assistant", "content": ["Yes."]}},
    ]

    (call,) = read_trajectory([
        span(1, "generate_content m-1", (1, 2), gen_ai__operation__name="chat", gen_ai__request__model="m-1", events=events)
    ]).model_calls  # fmt: skip

    assert [(m.role, m.content) for m in call.input_messages or ()] == [
        ("system", "Be brief."),
        ("user", "Is it raining?"),
    ]
    assert call.output is not None
    assert (call.output.content, call.finish_reason) == ("Yes.", "STOP")
