"""What becomes of a run from its first span to its tombstone, by a clock that only the test moves."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from captures import Driven, captures, driven, expected
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redfirst.collector_processor.cli import main
from redfirst.collector_processor.commands.changing import resolved
from redfirst.collector_processor.home import Home
from redfirst.collector_processor.journal.format import Position
from redfirst.collector_processor.receiving.request import HEAD
from redfirst.collector_processor.recorded.in_store import RunsInStore
from redfirst.collector_processor.scoring import joining, worker
from redfirst.collector_processor.scoring.assembly import Assembly, AssemblyLimits
from redfirst.collector_processor.scoring.process import Job
from redfirst.collector_processor.storing.store import Owner, Query, RunState
from redfirst.evaluators import Span
from redfirst.evaluators.check import default_checks
from redfirst.evaluators.otlp_encode import encode_traces
from redfirst.evaluators.span import SpanEvent, StatusCode

FIXTURES = captures(Path(__file__).parent.parent / "fixtures" / "otlp")
LIMITS = AssemblyLimits()
"""As they are by default: settle 10 s, idle 180 s, abandon 1 h, park 24 h, age 24 h, seal 7 days."""
A = "aa" * 16
HOUR, DAY = 3600.0, 86_400.0
NS = 10**9


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Driven]:
    made = Driven(tmp_path)
    yield made
    made.end()


def agent(*, trace: str = A, start: int = 1, end: int = 100, **more: object) -> Span:
    """The root."""
    return span("01", None, "AGENT", trace=trace, start=start, end=end, **more)


def tool(name: str = "02", *, trace: str = A, parent: str | None = "01", start: int = 10) -> Span:
    return span(name, parent, "TOOL", trace=trace, start=start, end=start + 1)


def span(
    name: str,
    parent: str | None,
    kind: str,
    *,
    trace: str = A,
    start: int = 10,
    end: int = 11,
    **more: object,
) -> Span:
    attributes = {"openinference.span.kind": kind, "input.value": "hello", "output.value": "done"}
    attributes |= {"tool.name": "look"} if kind == "TOOL" else {"agent.name": "support"}
    made = Span(
        trace_id=trace,
        span_id=name * 8,
        parent_id=parent and parent * 8,
        name=kind.lower(),
        start_ns=start * NS,
        end_ns=end * NS,
        attributes=attributes,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def send(running: Driven, *spans: Span) -> None:
    running.send(encode_traces(spans), "traces")


def states(running: Driven) -> dict[str, tuple[str, int, str]]:
    """By the beginning of the trace id: state, version and why it was released, of the latest version."""
    found = running.store.runs(Query(states=tuple(RunState)))
    return {one.run_id[:2]: (one.state.value, one.version, one.cut) for one in found}


def ending(running: Driven, trace: str = A) -> str:
    record = running.store.versions(trace)[-1].record
    assert record is not None
    return str(record["termination"]["reason"])


@pytest.mark.parametrize("name", [name for name in FIXTURES if "logs" not in name])
def test_recorded_bodies_span_by_span_are_judged_as_their_files_are(name: str, tmp_path: Path):
    """In any order, some spans twice, with a stop in between: the objects that ``score`` prints."""
    wanted = expected(FIXTURES[name])
    assert driven(FIXTURES[name], tmp_path, random.Random(name)) == wanted


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chance=st.randoms(use_true_random=False), name=st.sampled_from(sorted(FIXTURES)))
def test_any_order_split_repetition_and_restart_end_in_the_same(chance, name, tmp_path_factory):
    """What is stored in the end is what all spans at once give."""
    folder = tmp_path_factory.mktemp("home")
    assert driven(FIXTURES[name], folder, chance) == expected(FIXTURES[name])


def test_after_a_start_senders_have_their_time_to_try_again(tmp_path: Path):
    """Fault 4: open runs are not said to have gone quiet within the grace time, however short the idle time; a run whose
    root comes then is whole."""
    running = Driven(tmp_path, limits=replace(LIMITS, idle=5.0))
    send(running, tool(), tool(trace="bb" * 16))
    running.restart()
    running.wait(LIMITS.grace - 2)
    assert states(running) == {}
    send(running, agent())
    running.wait(11)
    assert states(running) == {"aa": ("scored", 1, "root_ended"), "bb": ("scored", 1, "went_quiet")}
    assert running.store.versions(A)[-1].spans == 2
    running.end()


def test_a_root_that_comes_ten_minutes_late_makes_the_verdict_complete(run: Driven):
    """Fault 18: provisional after the idle time, then of the whole run."""
    send(run, tool())
    run.wait(181)
    assert states(run) == {"aa": ("scored", 1, "went_quiet")}
    run.wait(420)
    send(run, agent())
    run.wait(11)

    assert states(run) == {"aa": ("scored", 2, "came_late")}
    assert run.store.versions(A)[-1].spans == 2
    run.wait(2 * HOUR)
    assert states(run)["aa"][1] == 2, "a root came: nobody abandoned it"


def test_a_run_whose_root_never_comes_is_abandoned_also_over_a_restart(run: Driven):
    """Its own ending, an hour after the idle time; told once."""
    send(run, tool())
    run.wait(181)
    assert ending(run) != "abandoned"
    run.wait(1800)
    run.restart()
    run.wait(1700)
    assert states(run)["aa"][1] == 1
    run.wait(200)

    assert states(run) == {"aa": ("scored", 2, "abandoned")}
    assert ending(run) == "abandoned"
    failed = {
        one["check"] for one in run.store.versions(A)[-1].record["verdicts"] if one["outcome"] == "failed"
    }
    assert "termination" in failed
    assert run.metrics.value("redfirst_abandoned_total") == 1
    run.restart()
    run.wait(DAY)
    assert states(run)["aa"][1] == 2


def test_an_agent_that_was_called_from_elsewhere_is_not_abandoned(run: Driven):
    """Its parent is in another backend: it waits the idle time, and is a whole run."""
    send(run, agent(parent_id="77" * 8), tool())
    run.wait(181)
    run.wait(2 * HOUR)

    assert states(run) == {"aa": ("scored", 1, "went_quiet")}


@pytest.mark.parametrize("how", ["interrupt", "event"])
def test_a_pause_of_six_hours_is_one_run_and_no_error(run: Driven, how: str):
    """Fault 19: parked at once, then judged as it went on; neither a failure nor a late span. The process changes."""
    error = SpanEvent(
        name="exception",
        time_ns=50 * NS,
        attributes={"exception.type": "GraphInterrupt", "exception.message": "Interrupt(value='ok?')"},
    )
    told = SpanEvent(name="redfirst.event", time_ns=50 * NS, attributes={"redfirst.event.name": "paused"})
    send(
        run,
        agent(end=60, events=(error,), status=StatusCode.ERROR, status_message="GraphInterrupt")
        if how == "interrupt"
        else replace(own_agent(), events=(told,)),
        tool(),
    )
    run.wait(11)
    assert ending(run) == "parked"
    assert not run.store.versions(A)[-1].flagged
    run.wait(6 * HOUR)
    run.restart()
    resumed = SpanEvent(name="redfirst.event", time_ns=70 * NS, attributes={"redfirst.event.name": "resumed"})
    later = own_agent() if how == "event" else agent()
    events = (resumed,) if how == "event" else ()
    send(run, replace(later, span_id="07" * 8, start_ns=65 * NS, end_ns=90 * NS, events=events))
    model = span("08", "07", "LLM", start=75, end=76)
    send(run, model)
    run.wait(11)

    assert states(run) == {"aa": ("scored", 2, "went_on")}
    assert ending(run) != "parked"
    assert run.store.known(A).late == 0


def test_a_pause_that_ends_in_another_trace_is_one_run(run: Driven):
    """Fault 19: the execution id says so. Parked; six hours and a process later the other trace comes, and the two are
    one run that ended; another execution is not."""
    named = {"gen_ai.agent.execution.id": "x-1"}
    told = SpanEvent(name="redfirst.event", time_ns=50 * NS, attributes={"redfirst.event.name": "paused"})
    first = own_agent()
    send(run, replace(first, events=(told,), attributes={**first.attributes, **named}), tool())
    run.wait(11)
    assert (states(run), ending(run)) == ({"aa": ("scored", 1, "root_ended")}, "parked")
    run.wait(6 * HOUR)
    run.restart()
    later = replace(
        first, trace_id="bb" * 16, span_id="07" * 8, start_ns=65 * NS, end_ns=90 * NS,
        attributes={**first.attributes, **named},
    )  # fmt: skip
    other = {"gen_ai.agent.execution.id": "x-2"}
    answered = model(8, TOLD, "It has shipped.")
    send(
        run,
        later,
        replace(answered, trace_id="bb" * 16, parent_id="07" * 8, start_ns=75 * NS, end_ns=76 * NS),
    )
    send(run, replace(later, trace_id="cc" * 16, attributes={**first.attributes, **other}))
    run.wait(60)

    one, two = sorted(run.store.runs(Query(records=True)), key=lambda found: found.spans)
    assert one.run_id == "cc" * 16
    assert two.record is not None
    assert two.record["trace_ids"] == [A, "bb" * 16]
    assert (two.spans, two.record["termination"]["reason"]) == (4, "completed")
    assert {run.store.known(name * 16).part_of for name in ("aa", "bb")} == {two.run_id}


def own_agent() -> Span:
    return Span(
        trace_id=A,
        span_id="01" * 8,
        name="invoke_agent support",
        start_ns=NS,
        end_ns=60 * NS,
        scope="redfirst.instrumentation",
        attributes={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "support",
            "openinference.span.kind": "AGENT",
        },
    )


def test_an_endless_run_is_judged_at_the_age_cap_and_then_every_hour(tmp_path: Path):
    """Its versions do not use up those that late spans may make, and its end is judged when it comes."""
    running = Driven(tmp_path, limits=replace(LIMITS, age=10_000.0, age_again=3_600.0))
    for number in range(200):
        send(running, tool(f"{number + 16:02x}"))
        running.wait(99.9, steps=1)
    assert [one.cut for one in running.store.versions(A)] == [
        "too_old"
    ] * 3  # at 10,000 s, and each hour after
    running.restart()
    send(running, agent())
    running.wait(11)

    assert states(running) == {"aa": ("scored", 4, "went_on")}
    assert (running.store.known(A).late, running.store.versions(A)[-1].spans) == (0, 201)
    running.end()


def test_spans_after_the_seal_are_kept_and_make_no_version(run: Driven):
    """Fault 17, sealed: counted, stored, not judged."""
    send(run, agent())
    run.wait(11)
    run.wait(8 * DAY)
    send(run, tool())
    run.wait(11)

    assert states(run) == {"aa": ("scored", 1, "root_ended")}
    assert run.metrics.value("redfirst_late_total", outcome="sealed") == 1
    assert len(run.store.positions(A)) == 2


@pytest.mark.parametrize("how", ["deleted", "expired"])
def test_spans_after_the_end_do_not_bring_a_run_back(run: Driven, how: str):
    """Fault 17, deleted: a tombstone, a counter, no row."""
    send(run, agent())
    run.wait(11)
    if how == "deleted":
        assert run.store.delete(A, at_ns=run.wall_ns())
    else:
        assert run.store.expire(run.wall_ns() + 1, at_ns=run.wall_ns(), limit=10) == 1
    send(run, tool())
    run.wait(11)

    assert states(run) == {}
    assert run.metrics.value("redfirst_late_total", outcome=how) == 1


def test_late_spans_of_a_run_whose_records_are_gone_leave_its_verdict(run: Driven, monkeypatch):
    """Half a run is no reason to take back what was said of the whole."""
    send(run, agent())
    run.wait(11)
    segment = run.store.positions(A)[0].segment
    run.restart()
    (run.journal.folder / f"{segment:010d}.segment").unlink()
    run.scoring._source.close()
    send(run, tool())
    run.wait(11)

    assert states(run) == {"aa": ("scored", 1, "root_ended")}
    assert run.metrics.value("redfirst_late_total", outcome="spans_gone") == 1


class Held:
    """A scorer that answers when the test says so."""

    def __init__(self, running: Driven) -> None:
        self._scoring = running.scoring
        self.jobs: list[Job] = []
        running.pipeline._scoring = self

    def submit(self, jobs: Sequence[Job]) -> None:
        self.jobs.extend(jobs)

    def answer(self, job: Job) -> None:
        self.jobs.remove(job)
        self._scoring.submit([job])

    def close(self) -> None:
        """Nothing to end."""


def test_an_older_answer_does_not_take_the_place_of_a_newer_one(run: Driven):
    """Judged again under other checks by one process, and meanwhile with a late span by the other, which is faster."""
    send(run, agent(), tool())
    run.wait(11)
    held = Held(run)
    assert run.store.judge_again(since_ns=0, revision="of other checks", segments=range(99)).noted == 1
    run.wait(2)
    send(run, tool("03"))
    run.wait(11)
    again, late = held.jobs
    assert (again.again, late.again) == (True, False)

    held.answer(late)
    run.wait(1)
    held.answer(again)
    run.wait(1)
    assert [one.spans for one in run.store.versions(A)] == [2, 3]
    assert run.store.left_to_judge_again() == 0


def test_a_run_whose_newer_answer_is_not_stored_yet_is_not_judged_again_by_its_older_spans(run: Driven):
    """It was noted while it was at the scorer."""
    send(run, agent(), tool())
    run.wait(11)
    held = Held(run)
    send(run, tool("03"))
    run.wait(11)
    run.store.judge_again(since_ns=0, revision="of other checks", segments=range(99))
    held.answer(held.jobs[0])
    run.wait(24)

    assert held.jobs == []
    assert [one.spans for one in run.store.versions(A)] == [2, 3]


def test_a_run_that_is_too_large_is_judged_in_part_and_says_so(tmp_path: Path, monkeypatch):
    """Fault 23: incomplete, with how much was left out, and a counter; nothing of it is passed."""
    from redfirst.collector_processor.scoring import span_source

    monkeypatch.setattr(span_source.SpanSource.gather, "__kwdefaults__", {"spans": 50, "size": 1 << 20})
    running = Driven(tmp_path, limits=replace(LIMITS, spans=40))
    for number in range(60):
        send(running, tool(f"{number + 16:02x}"))
    send(running, agent())
    running.wait(11)

    (stored,) = running.store.versions(A)
    assert stored.record is not None
    assert (stored.record["completeness"], stored.spans) == ("incomplete", 50)
    assert "11 spans and log records" in stored.because
    assert ("spans", stored.because) in [
        (gap["fact"], gap["because"]) for gap in stored.record["coverage"]["missing"]
    ]
    assert running.metrics.value("redfirst_truncated_spans_total") == 11
    assert "passed" not in {
        one["outcome"] for one in stored.record["verdicts"] if one["check"] in ("termination",)
    }
    running.end()


def test_cycles_and_several_roots_end(run: Driven):
    """Fault 25: finite, and one verdict each."""
    send(run, span("01", "02", "AGENT"), span("02", "01", "TOOL"), span("03", "03", "TOOL"))
    send(
        run,
        agent(trace="bb" * 16),
        replace(agent(trace="bb" * 16), span_id="05" * 8, start_ns=200 * NS, end_ns=300 * NS),
    )
    run.wait(181)

    assert states(run) == {"aa": ("scored", 1, "went_quiet"), "bb": ("scored", 1, "root_ended")}


def model(number: int, messages: list[tuple[str, str]], said: str, *, session: str = "s-1") -> Span:
    """A trace that is one model call of a conversation."""
    attributes: dict[str, object] = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m",
        "session.id": session,
        "user.id": "u-7",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": said,
    }
    for place, (role, content) in enumerate(messages):
        attributes[f"llm.input_messages.{place}.message.role"] = role
        attributes[f"llm.input_messages.{place}.message.content"] = content
        if role == "assistant":
            call = f"llm.input_messages.{place}.message.tool_calls.0.tool_call"
            attributes |= {
                f"{call}.id": "c1",
                f"{call}.function.name": "get_order",
                f"{call}.function.arguments": "{}",
            }
        if role == "tool":
            attributes[f"llm.input_messages.{place}.message.tool_call_id"] = "c1"
    return Span(
        trace_id=f"{number:02x}" * 16,
        span_id=f"{number:02x}" * 8,
        name="ChatCompletion",
        start_ns=number * NS,
        end_ns=number * NS + 1,
        attributes=attributes,  # type: ignore[arg-type]
        resource={"service.name": "shop"},
    )


TOLD = [("user", "Where is order 7731?"), ("assistant", ""), ("tool", "shipped")]


def test_a_run_over_several_traces_is_one_row_and_its_traces_are_parts(run: Driven, tmp_path: Path):
    """The first call is a run by itself until the second comes: then its row is taken back and the run told."""
    send(run, asking(1))
    run.wait(11)
    assert states(run) == {"01": ("scored", 1, "root_ended")}
    send(run, model(2, TOLD, "It has shipped."))
    run.wait(40)

    (whole,) = run.store.runs(Query(records=True))
    assert whole.record is not None
    assert whole.record["trace_ids"] == ["01" * 16, "02" * 16]
    assert run.store.traces_of(whole.run_id) == ["01" * 16, "02" * 16]
    assert states(run)["01"][0] == "part"
    bodies = [row.body for row in run.store.outbox_due("alerts", 2**62, 99)]
    told = [(body["run_id"][:2], body["state"], body["version"]) for body in bodies]
    assert told[0] == ("01", "scored", 1)
    assert ("01", "part", 2) in told
    shown = RunsInStore(Home(tmp_path), default_checks()).named("0101")
    assert (shown.run.run_id, len(shown.spans)) == (whole.run_id, 2)

    assert resolved(Home(tmp_path), "0202") == whole.run_id
    run.restart()
    assert run.store.delete(whole.run_id, at_ns=1)
    assert states(run) == {}
    send(run, model(2, TOLD, "It has shipped."))
    run.wait(60)
    assert states(run) == {}


@pytest.mark.parametrize(
    ("module", "limit", "because"),
    [
        (worker, "MOST_SPANS", "1 spans and log records beyond what one run may have were left out"),
        (joining, "MOST_TRACES", "traces older than the newest 1 of the conversation were left out"),
    ],
)
def test_a_conversation_that_is_too_large_is_not_judged_as_whole(
    run: Driven, monkeypatch, module, limit, because
):
    """Whether its spans are too many or its traces: what there was no room for is not passed over."""
    monkeypatch.setattr(module, limit, 1)
    send(run, asking(1))
    run.wait(11)
    send(run, model(2, TOLD, "It has shipped."))
    run.wait(40)

    stored = run.store.versions("02" * 16)[-1]
    assert stored.record is not None
    assert (stored.record["trace_ids"], stored.record["completeness"]) == (["02" * 16], "incomplete")
    assert stored.because == because


def asking(number: int) -> Span:
    first = model(number, TOLD[:1], "")
    call = "llm.output_messages.0.message.tool_calls.0.tool_call"
    more = {f"{call}.id": "c1", f"{call}.function.name": "get_order", f"{call}.function.arguments": "{}"}
    return replace(first, attributes={**first.attributes, **more})


def test_the_words_of_a_run_are_found_by_its_latest_version_only(run: Driven):
    """Requests and answers; a phrase in quotes; nothing in the text is taken for syntax."""
    send(run, agent())
    run.wait(11)
    found = {
        text: len(run.store.runs(Query(text=text))) for text in ("hello", "HELLO done", "bye", '"', "x AND (")
    }
    assert found == {"hello": 1, "HELLO done": 1, "bye": 0, '"': 0, "x AND (": 0}
    send(run, replace(tool(), attributes={"openinference.span.kind": "TOOL", "tool.name": "look"}))
    run.wait(11)
    assert states(run)["aa"][1] == 2
    assert len(run.store.runs(Query(text="hello"))) == 1
    run.store.delete(A, at_ns=1)
    assert run.store.runs(Query(text="hello")) == []


def test_three_deliveries_are_one(run: Driven):
    """Fault 15: the same rows, and one version."""
    bodies = [encode_traces([agent(), tool()]), encode_traces([tool("03")])]
    for body in bodies * 3:
        run.send(body, "traces")
    run.wait(11)
    once = run.records()
    for body in bodies:
        run.send(body, "traces")
    run.wait(11)

    assert run.records() == once
    assert states(run) == {"aa": ("scored", 1, "root_ended")}
    assert json.dumps(once, sort_keys=True) == json.dumps(run.records(), sort_keys=True)


def test_a_users_runs_are_erased_together(run: Driven, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """By user or session, those of one trace and those of several; the others stay."""
    send(run, asking(1), model(2, TOLD, "It has shipped."), agent())
    send(
        run,
        replace(
            model(3, TOLD[:1], "Hello.", session="s-2"),
            attributes={**model(3, TOLD[:1], "Hello.", session="s-2").attributes, "user.id": "u-8"},
        ),
    )
    run.wait(60)
    assert len(run.store.runs(Query())) == 3
    run.end()

    assert main(["delete", "--home", str(tmp_path), "--user", "u-7", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert main(["delete", "--home", str(tmp_path), "--user", "nobody"]) == 0
    assert capsys.readouterr().out.startswith("0 runs erased")
    assert main(["delete", "--home", str(tmp_path)]) == 2
    run._begin()
    assert sorted(states(run)) == ["03", "aa"]
    assert run.store.known("01" * 16).state is RunState.DELETED


def test_runs_that_are_open_when_their_user_is_erased_go_when_they_end(run: Driven):
    """Of one trace and of several, also over a restart; what the user does afterwards is judged."""
    root = replace(agent(), attributes={**agent().attributes, "user.id": "u-7"})
    send(run, tool())
    send(run, asking(1), model(2, TOLD, "It has shipped."))
    assert run.store.erase_all(Owner(what="user", name="u-7"), at_ns=run.pipeline._wall_ns()) == []
    run.restart()
    run.wait(1)
    send(run, root)
    run.wait(60)
    assert run.store.runs(Query(states=tuple(RunState))) == []
    assert {run.store.known(name * 16).state for name in ("aa", "01", "02")} == {RunState.DELETED}

    send(run, replace(root, trace_id="bb" * 16), tool("07"))
    run.wait(60)
    assert [one.run_id for one in run.store.runs(Query())] == ["bb" * 16]


def test_delete_says_what_of_a_user_is_still_to_go(run: Driven, capsys: pytest.CaptureFixture[str]):
    """Without a service the command notes it in the store, for the next one."""
    send(run, agent())
    run.end()
    assert main(["delete", "--home", str(run.folder), "--user", "u-7"]) == 0
    assert capsys.readouterr().out == (
        "0 runs erased; their bytes leave the journal with their segments\n"
        "What is still open is erased when it is judged.\n"
    )
    assert main(["delete", "--home", str(run.folder), "--user", ""]) == 2
    run._begin()


@pytest.mark.parametrize("hours", [1, -1, 24, -24])
def test_a_wall_clock_that_is_set_ends_nothing_early_and_keeps_nothing_open(run: Driven, hours: int):
    """Fault 9: open, rootless and parked runs keep their times, also over a restart after it."""
    send(run, tool())
    send(run, tool(trace="bb" * 16))
    run.wait(100)
    run.wall_set = hours * HOUR
    run.wait(70)
    assert states(run) == {}
    run.wait(11)
    assert states(run) == dict.fromkeys(("aa", "bb"), ("scored", 1, "went_quiet"))
    run.wall_set = -hours * HOUR
    run.restart()
    run.wait(HOUR + 31)
    assert states(run) == dict.fromkeys(("aa", "bb"), ("scored", 2, "abandoned"))


@pytest.mark.parametrize("day", [-1, 1])
def test_a_senders_clock_decides_nothing(run: Driven, day: int):
    """Fault 10: a day off, in both directions within one run: complete when it has come, stored as it was sent."""
    begun = 1_790_000_000 + day * 86_400
    send(run, agent(start=begun, end=begun + 10), tool(start=begun - 2 * day * 86_400))
    run.wait(11)

    assert states(run) == {"aa": ("scored", 1, "root_ended")}
    recorded = RunsInStore(Home(run.folder), default_checks()).named(A)
    assert {span.start_ns // NS for span in recorded.spans} == {begun, begun - 2 * day * 86_400}


def test_a_flood_of_ids_evicts_nothing_and_takes_bounded_memory():
    """Fault 22: 20,000 traces of one span each are all still open, for less than a kilobyte each."""
    assembly = Assembly(LIMITS)
    tracemalloc.start()
    for number in range(20_000):
        heads = {number.to_bytes(16, "big"): HEAD.pack(b"a" * 8, b"b" * 8, True)}
        assembly.add(heads, Position(1, 8 + number), number / 1000)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(assembly) == 20_000
    assert taken / 20_000 < 1000
    assert sum(len(assembly.due(400.0)) for _ in range(80)) == 20_000


@pytest.mark.parametrize("lost", ["first", "all"])
def test_a_run_that_lost_a_trace_keeps_what_was_said_of_it(run: Driven, lost: str):
    """Of a run over several traces whose first records are gone, the verdict stays; what comes is judged by itself."""
    send(run, asking(1))
    if lost == "first":
        run.restart()
    send(run, model(2, TOLD, "It has shipped."))
    run.wait(40)
    (whole,) = run.store.runs(Query())
    segment = run.store.positions("01" * 16)[0].segment
    run.restart()
    (run.journal.folder / f"{segment:010d}.segment").unlink()
    run.restart()
    send(run, model(9, [*TOLD, ("assistant", "It has shipped."), ("user", "Thanks")], "You are welcome."))
    run.wait(60)

    found = {one.run_id[:4]: one.state.value for one in run.store.runs(Query())}
    assert found == {whole.run_id[:4]: "scored", "0909": "scored"}
