"""A request that another instrumentation recorded is found by its facts, and by no more than was recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from redfirst.evaluators import Message, ModelCall, Span
from redfirst.evaluators.trajectory import RequestedCall
from redfirst.replay.asking import asked_in_facts, recorded_in_facts
from redfirst.replay.stop import HarnessStop, StopKind
from redfirst.replay.tape import ModelTape, ModelTurn, recorded_request

TOOL = {"type": "function", "function": {"name": "get", "description": "d", "parameters": {"type": "object"}}}
CALL = RequestedCall(name="get", arguments={"order": 7}, raw_arguments='{"order": 7}', call_id="call_1")
SAID = (
    Message(role="system", content="be kind"),
    Message(role="user", content="where is 7?"),
    Message(role="assistant", content="", tool_calls=(CALL,)),
    Message(role="tool", content='{"b": 1, "a": 2}', tool_call_id="call_1"),
)


def asks(call_id: str = "call_1", **more: Any) -> dict[str, Any]:
    """The same conversation as a client is given it."""
    function = {"name": "get", "arguments": '{"order":7}'}
    return {
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "where is 7?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            },
            {"role": "tool", "content": '{"a":2,"b":1}', "tool_call_id": call_id},
        ],
        "tools": [TOOL],
        "temperature": 0,
        **more,
    }


def a_span(scope: str = "openinference.instrumentation.langchain", **attributes: Any) -> Span:
    return Span(trace_id="1" * 32, span_id="2" * 16, name="chat", scope=scope, attributes=attributes)


def a_tape(call: ModelCall, span: Span) -> ModelTape:
    found = recorded_in_facts(call, span)
    assert found is not None
    return ModelTape([ModelTurn(turn=1, response="hi", request=recorded_request(found, before=[]))])


def the_call(messages: tuple[Message, ...] | None = SAID, tools: Any = (TOOL,)) -> ModelCall:
    return ModelCall(index=0, span_id="2" * 16, input_messages=messages, tools=tools)


ASKED_FOR = {"llm.invocation_parameters": json.dumps({"model": "m-1", "temperature": 0.0, "tools": [TOOL]})}


def test_serialisers_and_fresh_call_ids_make_no_other_request() -> None:
    """White space, order of keys, an empty text and the ids of calls are not what was asked."""
    assert a_tape(the_call(), a_span(**ASKED_FOR)).find(asks("call_9")).response == "hi"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"temperature": 1}, "the model's parameter temperature"),
        ({"top_p": 0.5}, "the model's parameter top_p"),
        ({"model": "m-2"}, "the model changed"),
        ({"tools": []}, "the tools offered"),
    ],
)
def test_what_was_recorded_and_changed_is_stale(change: dict[str, Any], told: str) -> None:
    """A recorded model does not answer a request that it was not asked."""
    with pytest.raises(HarnessStop, match=told) as stop:
        a_tape(the_call(), a_span(**ASKED_FOR)).find(asks(**change))
    assert stop.value.kind is StopKind.RECORDING_STALE


def test_what_was_not_recorded_is_not_compared() -> None:
    """The Agents SDK's spans hold no system prompt where the answer does not name it, and no parameters."""
    scope = "openinference.instrumentation.openai_agents"
    tape = a_tape(the_call(SAID[1:], tools=None), a_span(scope, **ASKED_FOR))

    assert tape.find(asks(temperature=1, model="m-2", tools=[])).response == "hi"


def test_another_answer_of_a_tool_is_another_request() -> None:
    """The difference is shown."""
    other = asks()
    other["messages"][3]["content"] = '{"a":3,"b":1}'

    with pytest.raises(HarnessStop, match=r'messages\[3\].*"a":2.*"a":3') as stop:
        a_tape(the_call(), a_span(**ASKED_FOR)).find(other)
    assert stop.value.kind is StopKind.OFF_TAPE


def test_a_request_without_messages_has_no_facts() -> None:
    """There is nothing to find the turn by; freeze refuses the run."""
    assert recorded_in_facts(the_call(None), a_span()) is None


def test_answers_are_told_apart_by_the_call_they_answer() -> None:
    """Two calls of one turn whose answers are exchanged are another conversation."""
    two = asks()
    first = two["messages"][2]["tool_calls"][0]
    two["messages"][2]["tool_calls"] = [first, {**first, "id": "call_2"}]
    two["messages"].append({"role": "tool", "content": "no", "tool_call_id": "call_2"})
    exchanged = json.loads(json.dumps(two))
    exchanged["messages"][3]["tool_call_id"], exchanged["messages"][4]["tool_call_id"] = "call_2", "call_1"

    assert asked_in_facts(two).keys["messages"] != asked_in_facts(exchanged).keys["messages"]
