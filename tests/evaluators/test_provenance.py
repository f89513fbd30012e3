"""Each fact of a run is traced to the attributes it was read from."""

from __future__ import annotations

from redfirst.evaluators.provenance import Origin, provenance
from redfirst.evaluators.reading import read_trajectory
from redfirst.evaluators.span import Span
from tests.evaluators.agreement import load

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def keys(found: dict[str, tuple[Origin, ...]], fact: str) -> list[str]:
    return [origin.key for origin in found[fact]]


def test_a_fact_is_traced_to_its_attribute() -> None:
    """Name, arguments and id of a tool call stand each on its own key, and on the operation that makes it one."""
    span = Span(
        trace_id=TRACE, span_id="1" * 16, name="x", start_ns=1, end_ns=2,
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_order",
            "gen_ai.tool.call.arguments": '{"order_id": "A-1"}',
            "session.id": "s-1",
            "unrelated": 7,
        },
    )  # fmt: skip

    found = provenance(read_trajectory([span]), [span])

    assert "gen_ai.tool.call.arguments" in keys(found, "tool_calls[0].arguments")
    assert "gen_ai.tool.name" in keys(found, "tool_calls[0].name")
    assert keys(found, "session_id") == ["session.id"]
    assert "tool_calls[0].result" not in found
    assert not any(origin.key == "unrelated" for origins in found.values() for origin in origins)


def test_of_two_keys_that_say_the_same_one_is_named() -> None:
    """Either of two equal counts would do, so the fact stands on one of them."""
    span = Span(
        trace_id=TRACE, span_id="1" * 16, name="chat m", start_ns=1, end_ns=2,
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.input_tokens": 5,
            "gen_ai.usage.prompt_tokens": 5,
            "gen_ai.usage.output_tokens": 2,
        },
    )  # fmt: skip

    found = keys(provenance(read_trajectory([span]), [span]), "model_calls[0].tokens.input")

    assert len({"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"} & set(found)) == 1


def test_what_the_messages_say_is_traced_to_the_log_records() -> None:
    """Where the content went to log records, they are named."""
    one = load("openai-raw__otel-openai-v2-legacy__tool_error")

    found = provenance(read_trajectory(one.spans, one.logs), one.spans, one.logs)

    assert keys(found, "model_calls[0].output") == ["log gen_ai.choice"]
    assert keys(found, "tool_calls[0].arguments") == ["log gen_ai.choice"]


def test_of_two_ways_to_say_it_the_one_is_named_that_says_what_the_span_is() -> None:
    """The finish reason stands in an attribute and in a record; a count would make it a model's span as well."""
    one = load("openai-raw__otel-openai-v2-legacy__tool_error")

    found = provenance(read_trajectory(one.spans, one.logs), one.spans, one.logs)

    assert keys(found, "model_calls[0].finish_reason") == ["gen_ai.operation.name", "log gen_ai.choice"]
