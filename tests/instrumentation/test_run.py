"""What an agent can say about its run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry import trace

from redfirst.evaluators import Stop
from redfirst.instrumentation import Run, agent, capture, configure, current_run, door, tool


def events(span: Any) -> list[tuple[str, dict[str, Any]]]:
    """Name and attributes of each event."""
    return [(event.name, dict(event.attributes)) for event in span.events]


def test_a_run_reports_states_events_and_why_it_ended(spans: Any) -> None:
    """From inside a tool, too: the run is the agent's, not the tool's."""

    @tool
    def approve() -> None:
        current_run().event("approval", order="A-1", name="Ann", self="x")

    @agent
    def handle() -> None:
        current_run().state({"orders": {"A-1": "new"}})
        approve()
        current_run().stop("token_cap", cap=900)

    handle()

    assert events(spans.one("invoke_agent handle")) == [
        ("redfirst.state", {"redfirst.state.value": '{"orders":{"A-1":"new"}}'}),
        (
            "redfirst.event",
            {
                "redfirst.event.name": "approval",
                "redfirst.event.attributes": '{"order":"A-1","name":"Ann","self":"x"}',
            },
        ),
    ]
    assert spans.attributes("invoke_agent handle")["redfirst.stop.reason"] == "token_cap"
    assert spans.attributes("invoke_agent handle")["redfirst.stop.cap"] == 900
    assert not spans.one("execute_tool approve").events


@pytest.mark.parametrize(
    ("reason", "recorded"), [(Stop.STEP_CAP, "step_cap"), ("loop_cut", "loop_cut"), ("bored", "bored")]
)
def test_a_stop_reason_is_recorded_as_it_stands(reason: str, recorded: str, spans: Any) -> None:
    """A word of the agent's own is kept; reading it is another matter."""

    @agent
    def handle() -> None:
        current_run().stop(reason)

    handle()

    assert spans.attributes()["redfirst.stop.reason"] == recorded
    assert "redfirst.stop.cap" not in spans.attributes()


def test_the_trace_id_is_that_of_the_span(spans: Any) -> None:
    """32 hex digits that find the trace."""

    @agent
    def handle() -> str:
        return current_run().trace_id

    found = handle()

    assert found == f"{spans.one().context.trace_id:032x}"
    assert len(found) == 32


def test_outside_everything_a_run_does_nothing() -> None:
    """Helper code may report without knowing who calls it."""
    run = current_run()
    run.state({"a": 1})
    run.event("e")
    run.stop("completed", cap=1)

    assert run.trace_id == ""
    assert isinstance(run, Run)


def test_outside_an_agent_a_run_speaks_of_the_current_span(spans: Any) -> None:
    """An agent that another instrumentation traces can still report."""
    tracer = trace.get_tracer("host", tracer_provider=configure())
    with tracer.start_as_current_span("host"):
        current_run().state({"a": 1})
        assert len(current_run().trace_id) == 32

    assert events(spans.one()) == [("redfirst.state", {"redfirst.state.value": '{"a":1}'})]


def test_a_huge_state_is_cut_and_the_event_says_so(spans: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left is no state; the note tells it from a broken one."""
    monkeypatch.setattr(capture, "MAX_CHARACTERS", 300)

    @agent
    def handle() -> None:
        current_run().state({"a": "x" * 400})
        current_run().event("e", a="x" * 400)

    handle()

    for (_, attributes), key in zip(
        events(spans.one()), ("redfirst.state.value", "redfirst.event.attributes"), strict=True
    ):
        (note,) = json.loads(attributes["redfirst.truncated"])
        assert note["attribute"] == key
        assert note["length"] == 408
        assert attributes[key].endswith("]")
        assert len(attributes[key]) == 300


def test_odd_words_do_not_spoil_the_export(spans: Any) -> None:
    """Lone surrogates in names and reasons are escaped."""

    @agent
    def handle() -> None:
        current_run().event("\ud800", a="\ud800")
        current_run().stop("\ud800")

    handle()

    assert events(spans.one())[0][1] == {
        "redfirst.event.name": "\\ud800",
        "redfirst.event.attributes": '{"a":"\\ud800"}',
    }
    assert spans.attributes()["redfirst.stop.reason"] == "\\ud800"


def test_in_a_replay_the_snapshot_of_the_real_world_is_replaced(spans: Any) -> None:
    """What stands in the door says what the world looks like."""

    class World:
        def call(self, call: door.DoorCall) -> door.Answer:
            raise AssertionError(call)

        def state(self, snapshot: Any) -> Any:
            return {**snapshot, "replayed": True}

    @agent
    def handle() -> None:
        current_run().state({"a": 1})

    with door.occupied(World()):
        handle()

    assert events(spans.one()) == [("redfirst.state", {"redfirst.state.value": '{"a":1,"replayed":true}'})]
