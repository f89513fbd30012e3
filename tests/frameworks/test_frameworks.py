"""Agents on real frameworks, exported by their own instrumentors to a running service, are read as they ran."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .conftest import HERE, Programs, Serve, Served, environment_of
from .model_server import SCRIPTS, ModelServer, Usage

PROGRAMS = {"langgraph": "langgraph_agent.py", "openai-agents": "openai_agents_agent.py"}
API = {"langgraph": "/v1/chat/completions", "openai-agents": "/v1/responses"}

OK = {
    "verify_identity": {"C-7": {"customer_id": "C-7", "verified": True}},
    "get_order": {
        "A-42": {"order_id": "A-42", "status": "shipped", "eta": "2031-05-04"},
        "A-43": {"order_id": "A-43", "status": "shipped", "eta": "2031-05-06"},
    },
    "cancel_order": {
        "A-42": {"order_id": "A-42", "cancelled": True, "reason": "changed my mind – à bientôt"}
    },
}
"""What each tool answers, by its first argument; any other call fails."""
REFUSAL = {
    "langgraph": "no order A-24",
    "openai-agents": "An error occurred while running the tool. Please try again.",
}
"""What the model is told of a failed call: this SDK redacts."""


@dataclass(frozen=True)
class Day:
    """Every script run by one program over one protocol, and what the service made of it."""

    framework: str
    served: Served
    rows: dict[str, dict[str, Any]]
    records: dict[str, dict[str, Any]]


@pytest.fixture(
    scope="module",
    params=[(name, protocol) for name in PROGRAMS for protocol in ("grpc", "http/protobuf")],
    ids="-".join,
)
def day(request: pytest.FixtureRequest, serve: Serve, model: ModelServer, programs: Programs) -> Day:
    framework, protocol = request.param
    python = environment_of("frameworks", "bin/python")
    before = len(model.requests)
    served = serve()
    answers = programs.run(
        [python, HERE / PROGRAMS[framework], *(script.request for script in SCRIPTS.values())],
        OPENAI_BASE_URL=model.url,
        OPENAI_API_KEY="none",
        **served.exporter(protocol),
    )
    assert answers.splitlines() == [script.answer for script in SCRIPTS.values()]
    assert model.requests[before:] == [
        (API[framework], name) for name, script in SCRIPTS.items() for _ in range(len(script.turns) + 1)
    ]
    rows = served.judged(len(SCRIPTS))
    records = [served.shown(row["trace_id"]) for row in rows]
    names = {script.request: name for name, script in SCRIPTS.items()}
    return Day(
        framework=framework,
        served=served,
        rows={names[record["request"]]: row for record, row in zip(records, rows, strict=True)},
        records={names[record["request"]]: record for record in records},
    )


def test_each_request_is_one_run(day: Day) -> None:
    """As many runs as requests: nothing is split, joined, or left over as a trace that is no run."""
    assert set(day.rows) == set(SCRIPTS)
    assert len(day.served.judged(len(SCRIPTS))) == len(SCRIPTS)
    assert {row["state"] for row in day.rows.values()} == {"scored"}
    assert {row["version"] for row in day.rows.values()} == {1}


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_calls_are_those_the_model_made(day: Day, script: str) -> None:
    """Names, arguments, results, statuses and order of the tool calls; each once, from its own span."""
    expected = [(name, arguments) for turn in SCRIPTS[script].turns for name, arguments in turn]
    calls = day.records[script]["tool_calls"]

    assert [(call["name"], call["arguments"]) for call in calls] == expected
    for call in calls:
        result = OK[call["name"]].get(next(iter(call["arguments"].values())))
        assert call["status"] == ("tool_error" if result is None else "ok")
        assert call["result"] == (REFUSAL[day.framework] if result is None else result)
        assert call["agent"] == "support_agent"
        assert call["source"] == "span"
    assert len({call["span_id"] for call in calls}) == len(calls)


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_rest_of_the_run_is_as_the_model_server_saw_it(day: Day, script: str) -> None:
    """Agent, model, turns, tokens, answer and end; nothing counted twice, nothing said to be missing."""
    record, turns = day.records[script], range(len(SCRIPTS[script].turns) + 1)

    assert record["agents"] == ["support_agent"]
    assert record["versions"]["models"] == ["scripted-1"]
    assert record["model_calls"] == len(turns)
    assert record["tokens"] == {
        name: sum(getattr(Usage.of(turn), name) for turn in turns)
        for name in ("input", "output", "cached", "reasoning")
    }
    assert record["answer"] == SCRIPTS[script].answer
    assert record["termination"] == {"reason": "completed", "cap": None}
    assert record["completeness"] == "complete"
    assert record["coverage"]["missing"] == []
    assert record["handoffs"] == []
    assert record["errors"] == (1 if script == "mistyped" else 0)
    assert record["repeats"] == 0


def test_the_broken_rule_alone_flags_its_run(day: Day) -> None:
    """``cancel_order`` without ``verify_identity`` is flagged by the rule: in the list, in the run and on its page."""
    flagged = {name for name, row in day.rows.items() if row["flagged"]}
    record = day.records["unverified"]
    (verdict,) = (found for found in record["verdicts"] if found["check"] == "verify-before-cancel")
    (call,) = record["tool_calls"]

    assert flagged == {"unverified"}
    assert {name for name, found in day.records.items() if found["flagged"]} == flagged
    assert verdict["outcome"] == "failed"
    assert call["span_id"] in {item["span_id"] for item in verdict["evidence"]}
    assert [row["trace_id"] for row in day.served.ask("traces", "--json", "--flagged")] == [
        record["trace_id"]
    ]
    page = day.served.told("show", record["trace_id"])
    assert "FLAGGED" in page
    assert "verify-before-cancel" in page


def test_the_list_agrees_with_the_run(day: Day) -> None:
    """``traces --json`` names the agent and the spans that were sent, and ``show`` the same trace."""
    for name, row in day.rows.items():
        assert row["agent"] == "support_agent"
        assert row["trace_id"] == day.records[name]["trace_id"]
        assert row["spans"] > len(day.records[name]["tool_calls"]) + day.records[name]["model_calls"]


def test_a_program_that_looks_beyond_loopback_is_stopped_and_noted(tmp_path: Path) -> None:
    """The watch over the programs works; what it notes fails the tests of their file."""
    programs = Programs(tmp_path / "notes")

    with pytest.raises(AssertionError, match="beyond loopback"):
        programs.run([sys.executable, "-c", "import socket; socket.create_connection(('192.0.2.1', 9))"])
    assert "192.0.2.1" in programs.notes.read_text()
