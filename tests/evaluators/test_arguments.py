"""Arguments against the schemas that a trace carries, which come from anyone."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from redfirst.evaluators import Message, ModelCall, Outcome, RequestedCall, ToolCall, Trajectory
from redfirst.evaluators.arguments import arguments
from redfirst.evaluators.schemas import MOST_STEPS, UnusableSchema, schema_of
from redfirst.evaluators.testing import a_run, call
from redfirst.evaluators.tool_schemas import offered

ORDER: Mapping[str, Any] = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}, "amount": {"type": "number", "minimum": 0}},
    "required": ["order_id"],
    "additionalProperties": False,
}


def refund(schema: Mapping[str, Any] | None = ORDER, **given: Any) -> ToolCall:
    return replace(call("refund", **given), schema=schema)


def asked(
    run: Trajectory, *tools: Mapping[str, Any], written: Any = None, raw: str | None = None
) -> Trajectory:
    """The run with one model turn that was offered the tools and asked for its first call."""
    first = run.tool_calls[0]
    request = RequestedCall(name=first.name, arguments=written, raw_arguments=raw, call_id=first.call_id)
    turn = ModelCall(
        index=0,
        span_id="00",
        tools=tools,
        output=Message(role="assistant", content="", tool_calls=(request,)),
    )
    return replace(run, model_calls=(turn,), tool_calls=(replace(first, turn=0), *run.tool_calls[1:]))


def test_every_call_fits() -> None:
    """Two calls that could be checked, and one of a tool without a schema, which is in no share."""
    verdict = arguments(a_run(refund(order_id="A-1", amount=2.5), refund(order_id="A-2"), call("other", x=1)))

    assert (verdict.outcome, verdict.numerator, verdict.denominator) == (Outcome.PASSED, 2, 2)
    assert verdict.because == "2 call(s), each fits the schema of its tool; 1 of tools without one"


def test_a_misfit_names_the_argument_and_the_demand_and_no_value() -> None:
    """The subject repeats from run to run; the evidence points at the value."""
    verdict = arguments(a_run(refund(order_id="A-1"), refund(amount=-4, order_id="A-1"), refund(amonut=1)))

    assert (verdict.outcome, verdict.numerator, verdict.denominator) == (Outcome.FAILED, 1, 3)
    assert [finding.subject for finding in verdict.findings] == [
        "refund|amount:minimum",
        "refund|(all):additionalProperties,(all):required",
    ]
    assert verdict.evidence[0].pointer == "/tool_calls/1/arguments/amount"
    assert verdict.evidence[0].span_id == "0000000000000002"


def test_what_was_refused_counts() -> None:
    """A call that the tool's guard turned away was asked for with these arguments."""
    assert arguments(a_run(refund(status="denied", amount=1))).outcome is Outcome.FAILED


def test_arguments_that_are_no_object_fit_no_schema() -> None:
    """What the model wrote cannot be read, so the call never ran; no schema is needed to say so."""
    run = asked(a_run(call("refund", args=None, status="not_executed")), raw='{"order_id": ')
    verdict = arguments(run)

    assert (verdict.outcome, verdict.numerator, verdict.denominator) == (Outcome.FAILED, 0, 1)
    assert verdict.findings[0].subject == "refund|(all):type"


def test_a_model_is_held_to_what_it_was_offered() -> None:
    """The span also records what the agent's code added, which the model was never asked for."""
    run = asked(
        a_run(call("refund", order_id="A-1", session="s")),
        {"type": "function", "function": {"name": "refund", "parameters": ORDER}},
        written={"order_id": "A-1"},
    )

    assert arguments(run).outcome is Outcome.PASSED
    assert arguments(a_run(refund(order_id="A-1", session="s"))).outcome is Outcome.FAILED


def test_nothing_to_judge_and_nothing_seen_differ() -> None:
    """No call; calls without a schema, which blinds the check; a schema without recorded arguments."""
    assert arguments(a_run()).outcome is Outcome.NOT_APPLICABLE
    without = arguments(a_run(refund(None, order_id="A-1")))
    assert (without.outcome, without.blind) == (Outcome.NOT_APPLICABLE, True)
    assert not arguments(a_run()).blind
    assert arguments(a_run(replace(call("refund", args=None), schema=ORDER))).outcome is Outcome.INCONCLUSIVE
    assert arguments(a_run(refund(order_id="A-1"), complete=False)).outcome is Outcome.INCONCLUSIVE
    assert arguments(a_run(refund(order_id=1), complete=False)).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "function", "function": {"name": "refund", "parameters": ORDER}},
        {"type": "function", "name": "refund", "parameters": ORDER},
        {"name": "refund", "input_schema": ORDER},
        {"name": "refund", "inputSchema": ORDER},
        {"toolSpec": {"name": "refund", "inputSchema": {"json": ORDER}}},
        {"name": "refund", "parameters_json_schema": ORDER},
        {"type": "function", "name": "refund", "inputSchema": {"jsonSchema": ORDER}},
    ],
)
def test_definitions_as_providers_write_them(definition: Mapping[str, Any]) -> None:
    """OpenAI's two, Anthropic's, MCP's, Bedrock's, Google's and Vercel's."""
    assert offered(definition) == ("refund", ORDER)


def test_a_provider_s_own_tool_has_no_schema() -> None:
    """Such as a web search that runs on its side."""
    assert offered({"type": "web_search_preview"}) is None


def test_the_words_of_open_api_are_understood() -> None:
    """Types in capitals and ``nullable``, as Google's models are given them."""
    schema = schema_of(
        {
            "type": "OBJECT",
            "properties": {"n": {"type": "INTEGER", "nullable": True}, "e": {"enum": ["STRING"]}},
        }
    )

    assert schema.misfits({"n": None, "e": "STRING"}) == []
    assert [one.keyword for one in schema.misfits({"n": "1"})] == ["type"]


def doubling(levels: int) -> dict[str, Any]:
    """A schema of a few lines that asks 2 ** levels questions."""
    names = [f"d{n}" for n in range(levels)]
    rows = {
        name: {"allOf": [{"$ref": f"#/$defs/{after}"}] * 2}
        for name, after in zip(names, [*names[1:], "end"], strict=True)
    }
    return {"$defs": {**rows, "end": {"type": "string"}}, "$ref": "#/$defs/d0"}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"$ref": "http://192.0.2.1/x.json"}, "nothing is fetched"),
        ({"$ref": "file:///etc/passwd"}, "nothing is fetched"),
        ({"type": "bogus"}, "not valid"),
        ({"properties": 5}, "is not of type"),
        ({"$dynamicRef": "#x"}, "dynamically"),
        (nested(100), "deeper than 64"),
        (doubling(40), f"beyond {MOST_STEPS} steps"),
    ],
    ids=["remote", "file", "no type", "no schema", "dynamic", "deep", "doubling"],
)
def test_a_hostile_schema_is_not_used(schema: Mapping[str, Any], why: str) -> None:
    """It is fetched from nowhere and costs nothing, and the call it is about is open."""
    with pytest.raises(UnusableSchema, match=why):
        schema_of(schema).misfits({"a": 1})
    verdict = arguments(a_run(refund(schema, a=1)))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.because.startswith("the schema of refund cannot be used: ")


def test_references_within_a_schema_and_patterns_are_followed() -> None:
    """A tree refers to itself; a pattern that would backtrack for hours answers at once."""
    tree = schema_of({"type": "object", "properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}}})
    assert tree.misfits({"child": {"child": {"n": 1}}}) == []
    assert [one.path for one in tree.misfits({"child": {"child": {"n": "1"}}})] == [("child", "child", "n")]
    assert schema_of({"$ref": "#"}).misfits({"a": 1}) == []
    assert schema_of(doubling(5)).misfits("x") == []
    slow = schema_of({"properties": {"a": {"pattern": "^(a+)+$"}}})
    assert [one.keyword for one in slow.misfits({"a": "a" * 5_000 + "b"})] == ["pattern"]
