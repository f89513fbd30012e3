"""A conversation of several turns is one run: the user's turns are scripted by number, state and clock carry over."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from redfirst.evaluators import Message, ModelCall, Trajectory
from redfirst.evaluators.check import default_checks
from redfirst.evaluators.reading import read_runs, read_trajectory
from redfirst.evaluators.span import Span
from redfirst.replay.outcome import RunOutcome, judged
from redfirst.replay.recording import later_turns, record
from redfirst.replay.runner import Execution, Job, execute
from redfirst.replay.scenario_parts import Request
from redfirst.replay.stop import StopKind

DESK = Path(__file__).with_name("desk.py")
FIRST = "Close A-1."
LATER = [{"turn": 2, "content": "Is it closed?"}]
CLOSED = {"order": "A-1", "status": "closed"}


def said(content: str, *calls: dict[str, str]) -> dict[str, Any]:
    return {"content": content, "tool_calls": list(calls)}


TURNS = [
    said("", {"name": "close", "order": "A-1"}),
    said("Closed."),
    said("", {"name": "look", "order": "A-1"}),
    said("It is."),
]


@pytest.fixture
def played(tmp_path: Path):
    """Plays the desk on a tape that ends after so many turns."""
    shutil.copy(DESK, tmp_path / "desk.py")

    def play(factory: str, request: dict[str, Any], turns: list[dict[str, Any]]) -> Execution:
        return execute(
            Job(
                agent=f"desk:{factory}",
                request={**request, "later": LATER},
                world={"start": 1_700_000_000.0, "tick": 1.0, "seed": 1},
                tools=(
                    {
                        "name": "close", "effect": "write", "args": ["order"], "ignore": [],
                        "responses": [{"when": {"order": "A-1"}, "returns": CLOSED, "set": {"/orders": {"A-1": "closed"}}}],
                    },
                    {
                        "name": "look", "effect": "read", "args": None, "ignore": [],
                        "responses": [
                            {"when": {"order": "A-1"}, "returns": {"status": "open"}},
                            {"when": {"order": "A-1"}, "returns": {"status": "closed"}, "after": ['close {"order":"A-1"}']},
                        ],
                    },
                ),
                sources=("incident",),
                model=tuple({"turn": n, "response": turn} for n, turn in enumerate(turns, 1)),
                state={"orders": {}},
                scenario="turns",
                path=(str(tmp_path),),
            ),
            hash_seed=1,
        )  # fmt: skip

    return play


@pytest.mark.parametrize(
    ("factory", "request_"),
    [("of_text", {"text": FIRST}), ("of_messages", {"messages": [{"role": "user", "content": FIRST}]})],
)
def test_the_second_turn_meets_the_state_and_the_time_that_the_first_left(played, factory, request_) -> None:
    """It is one run, whose last answer is that of the last turn."""
    execution = played(factory, request_, TURNS)

    assert execution.stop is None, execution.stop_message
    (run,) = read_runs(execution.spans)
    assert [call.name for call in run.tool_calls] == ["close", "look"]
    assert [snapshot.state for snapshot in run.states][-1] == {"orders": {"A-1": "closed"}}
    events = [json.loads(line) for line in execution.events]
    assert [event["kind"] for event in events] == [
        "model", "tool", "model", "user", "model", "tool", "model", "end",
    ]  # fmt: skip
    assert execution.answer == "It is."
    # each call moves the frozen clock by a second: one came before the write, three before the second turn
    assert run.tool_calls[0].arguments == {"order": "A-1", "at": "2023-11-14T22:13:21"}
    assert run.model_calls[2].start_ns // 10**9 == 1_700_000_003
    assert judged(execution, default_checks(), ()).outcome is RunOutcome.GREEN


def test_an_agent_of_messages_is_given_its_own_answers(played) -> None:
    """And the user's turns, but not the calls in between."""
    execution = played("of_messages", {"messages": [{"role": "user", "content": FIRST}]}, TURNS)

    (run,) = read_runs(execution.spans)
    asked = [message.content for message in run.model_calls[2].input_messages or ()]
    assert asked == [FIRST, "Closed.", "Is it closed?"]


def test_the_user_says_nothing_more_when_the_tape_has_ended(played) -> None:
    """The recorded conversation went no further: that is no miss."""
    execution = played("of_text", {"text": FIRST}, TURNS[:2])

    assert execution.stop is None
    assert execution.answer == "Closed."
    assert not any('"kind":"user"' in line for line in execution.events)


def test_a_later_turn_that_asks_for_more_than_was_recorded_is_a_miss(played) -> None:
    """The tape has a turn left, and the agent needs two."""
    execution = played("of_text", {"text": FIRST}, TURNS[:3])

    assert execution.stop is StopKind.OFF_TAPE


@pytest.mark.parametrize(
    ("later", "words"),
    [
        ([{"turn": 3, "content": "x"}], "numbered 2, 3"),
        ([{"turn": 2, "content": "x"}, {"turn": 2, "content": "y"}], "numbered 2, 3"),
        ([{"turn": 1, "content": "x"}], "greater than or equal to 2"),
    ],
)
def test_turns_out_of_order_are_refused(later: list[dict[str, Any]], words: str) -> None:
    """A turn is found by its number."""
    with pytest.raises(ValidationError, match=words):
        Request.model_validate({"text": "x", "later": later})


def message(role: str, content: str) -> Message:
    return Message(role=role, content=content)


def model_call(index: int, *heard: Message) -> ModelCall:
    return ModelCall(index=index, span_id=f"s{index}", start_ns=index, end_ns=index, input_messages=heard)


def conversation(*calls: ModelCall) -> Trajectory:
    return Trajectory(run_id="r", trace_ids=("t",), root_span_id=None, model_calls=calls)


A, B, YES = message("user", "a"), message("user", "b"), message("user", "yes")
OK = message("assistant", "ok")


@pytest.mark.parametrize(
    ("calls", "later"),
    [
        ([(A,), (A, OK, YES), (A, OK, YES, OK, YES)], ["yes", "yes"]),  # the whole conversation each time
        ([(A,), (YES,), (message("tool", "t"),), (YES,)], ["yes", "yes"]),  # what is new
        ([(A,), (A, OK, B), (OK, B, OK, YES)], ["b", "yes"]),  # its last part
        ([(A,), (A, OK, message("tool", "t"))], []),
    ],
)
def test_the_users_later_turns_are_read_from_what_the_model_was_asked(
    calls: list[tuple[Message, ...]], later: list[str]
) -> None:
    """Whether its messages are all, the last or the new ones."""
    assert later_turns(conversation(*(model_call(n, *heard) for n, heard in enumerate(calls)))) == later


def chat(number: int, heard: list[dict[str, Any]], answer: str, *, within: int = 9) -> Span:
    """A model call in the conventions' own words, as another instrumentation records it."""
    return Span(
        trace_id="0af7651916cd43dd8448eb211c80319c",
        span_id=f"{number:016x}",
        parent_id=f"{within:016x}",
        name="chat m",
        start_ns=number * 10,
        end_ns=number * 10 + 5,
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m",
            "gen_ai.input.messages": json.dumps(heard),
            "gen_ai.output.messages": json.dumps([told("assistant", answer)]),
        },
    )


def invoked(number: int, start: int, end: int) -> Span:
    """One call of an agent."""
    return Span(
        trace_id="0af7651916cd43dd8448eb211c80319c",
        span_id=f"{number:016x}",
        name="invoke_agent desk",
        start_ns=start,
        end_ns=end,
        attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"},
    )


def told(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def test_a_run_that_began_in_the_middle_is_frozen_with_what_went_before() -> None:
    """The agent is given the history, without the system prompt, which is its own; then the user's later turns."""
    before = [
        told("system", "help"), told("user", "hi"), told("assistant", "hello"), told("user", "close A-1"),
    ]  # fmt: skip
    after = [*before, told("assistant", "sure?"), told("user", "yes")]
    spans = [
        *(invoked(8, 5, 18), chat(1, before, "sure?", within=8)),
        *(invoked(9, 19, 90), chat(2, after, "closed")),
    ]

    made = record(read_trajectory(spans), spans, source="incident")

    assert made.request == {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "close A-1"},
        ],
        "later": [{"turn": 2, "content": "yes"}],
    }
    assert made.request_grade == "reconstructed"


def test_what_an_agent_asks_the_model_again_is_no_turn_of_the_user() -> None:
    """One span holds both model calls: executed again the program asks by itself, and is not asked twice."""
    heard = [told("user", "close A-1")]
    nudged = [*heard, told("assistant", "sure?"), told("user", "close A-1")]
    for second in (heard, nudged):
        spans = [invoked(9, 1, 90), chat(1, heard, "sure?"), chat(2, second, "closed")]
        made = record(read_trajectory(spans), spans, source="incident")

        assert made.request == {"text": "close A-1"}


def test_a_program_around_two_calls_of_the_agent_asks_by_itself_too() -> None:
    """The span that holds them need not be one of an agent."""
    heard = [told("user", "close A-1")]
    program = replace(invoked(1, 1, 90), name="support", attributes={})
    first, second = (
        replace(invoked(number, *times), parent_id=program.span_id)
        for number, times in ((8, (2, 18)), (9, (19, 80)))
    )
    spans = [program, first, chat(1, heard, "sure?", within=8), second, chat(2, heard, "closed")]
    made = record(read_trajectory(spans), spans, source="incident")

    assert made.request == {"text": "close A-1"}
