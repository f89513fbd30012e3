"""Runs of benchmarks and lists of messages, imported and read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redfirst.collector_processor.cli import main
from redfirst.evaluators import semconv
from redfirst.evaluators.check import default_checks, judge
from redfirst.evaluators.trajectory import MISSING, CallStatus, Effect, Source, Stop, Termination, Tokens
from redfirst.replay.scenario import load

from .importing import FIXTURES, fact, imported

# --- τ-bench


def test_a_tau_run_has_its_calls_answers_and_end(tmp_path: Path):
    """Calls that share an id are paired within their turn, and an answer that begins with Error is one."""
    runs, _ = imported("tau-bench", FIXTURES / "tau_bench.json", out=tmp_path)
    run = runs[0]

    assert [(c.name, dict(c.arguments or {}), c.status) for c in run.tool_calls] == [
        ("get_order", {"order_id": "#W1"}, CallStatus.OK),
        ("cancel_order", {"order_id": "#W1"}, CallStatus.TOOL_ERROR),
    ]
    assert run.tool_calls[0].result == {"order_id": "#W1", "status": "pending"}
    assert (run.request, run.answer) == ("Cancel my order #W1.", "I could not cancel it.")
    assert run.termination.reason is Stop.COMPLETED
    assert len(run.model_calls) == 4


def test_a_transfer_and_a_failed_run_end_as_what_they_are(tmp_path: Path):
    """The transfer tool ends the environment; a rate limit that ended the run is no fault of the agent."""
    runs, _ = imported("tau-bench", FIXTURES / "tau_bench.json", out=tmp_path)

    assert [run.termination.reason for run in runs] == [Stop.COMPLETED, Stop.HANDOFF, Stop.INFRA]
    assert [call.name for call in runs[1].tool_calls] == ["transfer_to_human_agents"]
    assert not runs[1].handoffs


def _turns(count: int, last: str) -> list[dict[str, str]]:
    talk = [{"role": role, "content": f"{role} {n}"} for n in range(count) for role in ("user", "assistant")]
    return [*talk, {"role": "user", "content": last}]


@pytest.mark.parametrize(
    ("turns", "last", "reason", "cap"),
    [
        (30, "and then?", Stop.STEP_CAP, 30),
        (30, "###STOP###", Stop.COMPLETED, None),
        (29, "and then?", Stop.UNKNOWN, None),
    ],
)
def test_thirty_messages_of_the_model_are_the_cap(
    tmp_path: Path, turns: int, last: str, reason: Stop, cap: int | None
):
    """30 is the cap unless the user is done in that very step; fewer without an end say nothing."""
    record = {"task_id": 1, "reward": 0.0, "info": {}, "trial": 0, "traj": _turns(turns, last)}
    (tmp_path / "runs.json").write_text(json.dumps([record]))
    ((run,), _) = imported("auto", tmp_path / "runs.json", out=tmp_path / "out")

    assert (run.termination.reason, run.termination.cap) == (reason, cap)


def test_a_line_with_the_record_inside_says_the_model(tmp_path: Path):
    """What a collection keeps beside the published record is used: model, domain, reward."""
    record = json.loads((FIXTURES / "tau_bench.json").read_text())[0]
    line = {"raw": record, "model": "gpt-4o", "domain": "retail", "reward": 0.5, "task_id": 3}
    (tmp_path / "runs.jsonl").write_text(json.dumps(line) + "\n")
    ((run,), spans) = imported("auto", tmp_path / "runs.jsonl", out=tmp_path / "out")
    root = next(span for span in spans if span.span_id == run.root_span_id)

    assert run.models == ("gpt-4o",)
    assert root.attributes[semconv.TASK_ID] == "retail/3"
    assert (root.attributes[semconv.TASK_TRIAL], root.attributes[semconv.TASK_REWARD]) == (0, 0.5)
    assert root.attributes[semconv.IMPORTED_FROM] == "runs.jsonl"


def test_times_that_the_record_lacks_are_missing_not_made_up(tmp_path: Path):
    """The spans keep the order of the messages, the coverage says that their times mean nothing, and show shows none."""
    runs, spans = imported("tau-bench", FIXTURES / "tau_bench.json", out=tmp_path)
    begun = [span.start_ns for span in spans if span.trace_id == runs[0].run_id and span.parent_id]

    assert all(fact(run, "times") for run in runs)
    assert begun == sorted(set(begun))
    assert [run.request for run in runs[:2]] == ["Cancel my order #W1.", "Rebook me on the moon."]


def test_show_shows_no_made_up_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A run without times was at no moment."""
    runs, _ = imported("tau-bench", FIXTURES / "tau_bench.json", out=tmp_path)
    capsys.readouterr()
    assert main(["show", runs[0].run_id, "--traces", str(tmp_path)]) == 0

    assert "when     not recorded" in capsys.readouterr().out


def test_a_frozen_import_says_what_it_could_not_keep(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The draft's reviewer reads that its clock means nothing; what the user said later is said again by the scenario."""
    turns = [*_turns(2, "still nothing?"), {"role": "assistant", "content": "No."}]
    ask = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    again = [
        {"role": "assistant", "content": None, "tool_calls": [ask]},
        {"role": "tool", "tool_call_id": "c", "name": "look", "content": "{}"},
    ]
    record = {"task_id": 1, "reward": 0.0, "trial": 0, "traj": [*turns, *again, *again, *again]}
    (tmp_path / "runs.json").write_text(json.dumps([record]))
    ((run,), _) = imported("auto", tmp_path / "runs.json", out=tmp_path / "out")
    capsys.readouterr()
    code = main(
        ["freeze", run.run_id, "--traces", str(tmp_path / "out"), "--out", str(tmp_path / "s"), "--json"]
    )
    notes = " ".join(json.loads(capsys.readouterr().out)["notes"])

    assert code == 0
    assert "clock starts at a time that means nothing" in notes
    later = load(tmp_path / "s").scenario.request.later
    assert [(said.turn, said.content) for said in later] == [(2, "user 1"), (3, "still nothing?")]


# --- τ²-bench


def test_a_tau2_run_is_the_agents_alone(tmp_path: Path):
    """The user's own tool call is not the agent's, and the greeting is no call of a model."""
    runs, _ = imported("tau2-bench", FIXTURES / "tau2_bench.json", out=tmp_path)
    run = next(run for run in runs if run.session_id == "sim-1")

    assert [(call.name, call.arguments, call.status) for call in run.tool_calls] == [
        ("get_line", {"id": "L1"}, CallStatus.OK),
        ("get_line", {"id": "L9"}, CallStatus.TOOL_ERROR),
    ]
    assert run.tool_calls[1].error == "No line L9"
    assert len({call.turn for call in run.tool_calls}) == 1
    assert len(run.model_calls) == 2
    assert [message.content for message in run.history or ()] == [
        "Hi! How can I help you today?",
        "My phone has no signal.",
    ]
    assert run.tokens == Tokens(input=200, output=20)
    assert (run.agents, run.models) == (("llm_agent",), ("gpt-4.1",))
    assert (run.tool_calls[0].schema or {})["required"] == ["id"]


def test_times_of_the_record_are_kept(tmp_path: Path):
    """A call begins when the model asked and ends when the answer was there; the run lasts from start to end."""
    runs, _ = imported("tau2-bench", FIXTURES / "tau2_bench.json", out=tmp_path)
    run = next(run for run in runs if run.session_id == "sim-1")
    second = 1754065380 * 10**9  # 2025-08-01T16:23:00Z

    assert not fact(run, "times")
    assert run.start_ns == second + 500_000_000
    assert run.end_ns == second + 59_500_000_000
    assert (run.tool_calls[0].end_ns - run.tool_calls[0].start_ns) // 1000 == 10**6


def test_every_reason_of_tau2_means_what_it_says(tmp_path: Path):
    """A cap with its size, an error, and a reason that says nothing of the agent."""
    runs, _ = imported("tau2-bench", FIXTURES / "tau2_bench.json", out=tmp_path)
    ends: dict[str | None, Termination] = {run.session_id: run.termination for run in runs}

    assert (ends["sim-1"].reason, ends["sim-1"].cap) == (Stop.COMPLETED, None)
    assert (ends["sim-2"].reason, ends["sim-2"].cap) == (Stop.STEP_CAP, 200)
    assert (ends["sim-3"].reason, ends["sim-3"].cap) == (Stop.ERROR, 10)
    assert ends["sim-4"].reason is Stop.UNKNOWN


def test_a_call_that_the_harness_cut_off_did_not_run(tmp_path: Path):
    """The harness writes every answer: a call without one was not made."""
    runs, _ = imported("tau2-bench", FIXTURES / "tau2_bench.json", out=tmp_path)
    run = next(run for run in runs if run.session_id == "sim-2")

    assert [call.status for call in run.tool_calls] == [CallStatus.NOT_EXECUTED]


def test_an_effect_is_what_the_record_says_of_the_tool(tmp_path: Path):
    """Newer records say of expected actions whether their tools read or write; of others nothing is known."""
    run = json.loads((FIXTURES / "tau2_bench.json").read_text())["simulations"][0]
    action = {"action_id": "1", "requestor": "assistant", "name": "get_line", "arguments": {}}
    for kind, effect in (("read", Effect.READ), ("write", Effect.WRITE), ("think", None), (None, None)):
        run["reward_info"]["action_checks"] = [{"action": action, "action_match": True, "tool_type": kind}]
        (tmp_path / "run.json").write_text(json.dumps(run))
        ((found,), _) = imported("auto", tmp_path / "run.json", out=tmp_path / str(kind))

        assert {call.effect for call in found.tool_calls} == {effect}


def test_a_user_that_was_transferred_was_handed_over(tmp_path: Path):
    """The user's last word says why it stopped; only an agent that called the transfer handed over."""
    whole = json.loads((FIXTURES / "tau2_bench.json").read_text())
    run = whole["simulations"][0]
    run["messages"][-1]["content"] = "###TRANSFER###"
    (tmp_path / "a.json").write_text(json.dumps(run))
    run["messages"][2]["tool_calls"][1]["name"] = "transfer_to_human_agents"
    (tmp_path / "b.json").write_text(json.dumps(run))
    runs, _ = imported("auto", tmp_path / "a.json", tmp_path / "b.json", out=tmp_path / "out")

    assert sorted(one.termination.reason for one in runs) == [Stop.COMPLETED, Stop.HANDOFF]


# --- lists of messages


def test_a_list_of_openai_messages_is_a_run(tmp_path: Path):
    """Parallel calls, their answers, the model and the tools offered; what is an error is read from its text."""
    runs, _ = imported("messages", FIXTURES / "messages_openai.jsonl", out=tmp_path)
    run = runs[0]

    assert [(call.status, call.turn, call.source) for call in run.tool_calls] == [
        (CallStatus.OK, 0, Source.MESSAGE),
        (CallStatus.TOOL_ERROR, 0, Source.MESSAGE),
    ]
    assert (run.request, run.answer, run.models) == ("Where is A-42?", "A-42 has shipped.", ("gpt-4o-mini",))
    assert run.termination.reason is Stop.COMPLETED
    assert len(run.model_calls[0].tools or ()) == 1
    assert run.tokens.input is None


def test_a_list_that_ends_with_a_call_does_not_say_whether_it_ran(tmp_path: Path):
    """The list may have been cut: unknown, not un-run; arguments that are no JSON were never executable."""
    runs, _ = imported("messages", FIXTURES / "messages_openai.jsonl", out=tmp_path)

    assert [run.tool_calls[0].status for run in runs[1:]] == [CallStatus.NOT_EXECUTED, CallStatus.UNKNOWN]
    assert [run.tool_calls[0].arguments for run in runs[1:]] == [None, {"order_id": "A-42"}]
    assert [run.termination.reason for run in runs[1:]] == [Stop.UNKNOWN, Stop.UNKNOWN]


def test_an_anthropic_result_marked_as_an_error_is_one(tmp_path: Path):
    """``is_error`` says it, whatever the text; the system prompt stands beside the messages."""
    ((run,), _) = imported("auto", FIXTURES / "messages_anthropic.json", out=tmp_path)

    assert [(call.name, call.arguments, call.status, call.error) for call in run.tool_calls] == [
        ("get_order", {"order_id": "A-42"}, CallStatus.TOOL_ERROR, "the warehouse does not answer")
    ]
    assert [message.role for message in run.history or ()] == ["system", "user"]
    assert run.answer == "I cannot see it."
    assert {v.check: v.outcome.value for v in judge(run, default_checks())}["tool_errors"] == "failed"


def test_lines_that_are_messages_are_one_conversation(tmp_path: Path):
    """One message a line is one run, as is one list of them."""
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day."}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(message) + "\n" for message in messages))
    (tmp_path / "b.json").write_text(json.dumps([messages, messages]))
    runs, _ = imported("auto", tmp_path / "a.jsonl", tmp_path / "b.json", out=tmp_path / "out")

    assert [(run.request, run.answer) for run in runs] == [("Hello", "Good day.")] * 3


# --- identity


def test_the_same_records_give_the_same_bytes(tmp_path: Path):
    """Ids and times follow from the records: an import can be made again."""
    for out in ("one", "two"):
        imported("auto", FIXTURES / "tau_bench.json", FIXTURES / "tau2_bench.json", out=tmp_path / out)
    files = sorted(path.name for path in (tmp_path / "one").iterdir())

    assert files == ["tau2_bench.tau2-bench.otlp.pb.gz", "tau_bench.tau-bench.otlp.pb.gz"]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_equal_records_are_as_many_runs(tmp_path: Path):
    """Two trials that went alike are two runs, in one file or in two."""
    record = json.loads((FIXTURES / "tau_bench.json").read_text())[0]
    (tmp_path / "a.json").write_text(json.dumps([record, record]))
    (tmp_path / "b.json").write_text(json.dumps([record]))
    runs, _ = imported("auto", tmp_path / "a.json", tmp_path / "b.json", out=tmp_path / "out")

    assert len({run.run_id for run in runs}) == 3


def test_what_is_absent_stays_missing(tmp_path: Path):
    """No agent's name, no tokens, no session, no schema: none is made up."""
    runs, _ = imported("tau-bench", FIXTURES / "tau_bench.json", out=tmp_path)
    run = runs[0]

    assert (run.agents, run.models, run.session_id, run.agent_version) == ((), (), None, None)
    assert run.tokens == Tokens()
    assert fact(run, "tokens.input")
    assert run.tool_calls[0].schema is None
    assert run.model_calls[0].raw_output is MISSING
