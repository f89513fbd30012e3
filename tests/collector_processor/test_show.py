"""What a person sees of a run: every witness at its line, nothing wider than the screen, nothing left out silently."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redfirst.collector_processor.cli import main
from redfirst.collector_processor.showing.page import page
from redfirst.collector_processor.showing.scenario import scenario_lines
from redfirst.collector_processor.showing.view import View
from redfirst.evaluators import (
    MISSING,
    Completeness,
    Coverage,
    Gap,
    Handoff,
    Message,
    ModelCall,
    RequestedCall,
    RunEvent,
    Severity,
    Source,
    Span,
    Tokens,
    Trajectory,
)
from redfirst.evaluators.check import Check, check_from_spec, default_checks, judge
from redfirst.evaluators.otlp_encode import encode_traces
from redfirst.evaluators.reading import read_runs
from redfirst.evaluators.record import run_record
from redfirst.evaluators.testing import a_run, call
from redfirst.evaluators.verdict import Evidence, Finding, Outcome, Verdict, failed, inconclusive, passed
from redfirst.replay.freezing import RecordedRun, freeze
from redfirst.replay.scenario import Folder
from redfirst.replay.standing import Standing

VERIFY = check_from_spec(
    {"kind": "require_before", "id": "verify-before-cancel", "call": "cancel", "needs": "verify"}
)
CHECKS = (*default_checks(), VERIFY)
HOSTILE = "\x1b[2J\x1b[31mred\x07\r\n\tnext‮evil⁦\u2028\x9b0m\x00\ud800日本語" + "a\u0301" * 40


def shown(
    run: Trajectory, checks: Sequence[Check] = CHECKS, *, explain: bool = False, **view: Any
) -> list[str]:
    """The lines of the page, as a pipe gets them."""
    found = View(run=run, checks=checks, verdicts=judge(run, checks), **view)
    return ["".join(text for text, _ in line).rstrip() for line in page(found, explain=explain)]


def judged(run: Trajectory, *verdicts: Verdict) -> list[str]:
    """The lines of a run that was given these verdicts."""
    return [
        "".join(t for t, _ in line).rstrip() for line in page(View(run=run, checks=(), verdicts=verdicts))
    ]


def fails(name: str, *evidence: Evidence, severity: Severity = Severity.FLAG) -> Verdict:
    """A failed verdict that points at these places."""
    finding = Finding(subject=name, because=f"{name} because", evidence=evidence)
    return replace(failed(finding.because, findings=[finding]), check=name, severity=severity)


def line_with(lines: Sequence[str], *words: str) -> str:
    """The one line that has all the words."""
    found = [line for line in lines if all(word in line for word in words)]
    assert len(found) == 1, (words, found)
    return found[0]


def turns(run: Trajectory, *said: str | None) -> Trajectory:
    """The run with a model turn for each text; a turn asks for the calls that name it."""
    models = tuple(
        ModelCall(
            index=index,
            span_id=f"{0xB00 + index:016x}",
            start_ns=1_000 * (index + 1) - 500,
            end_ns=1_000 * (index + 1) - 100,
            output=Message(
                role="assistant",
                content=text,
                tool_calls=tuple(RequestedCall(name=c.name) for c in run.tool_calls if c.turn == index),
            ),
            finish_reason="stop",
        )
        for index, text in enumerate(said)
    )
    return replace(run, model_calls=models, agents=("support",), models=("m-1",))


def corpus() -> list[Trajectory]:
    """Runs of every shape, and runs whose every text is hostile."""
    plain = a_run(call("get", id=1), call("cancel", id=1, effect="write"), states=[{"a": 1}, {"a": 2}])
    nasty = a_run(
        call(HOSTILE, args={HOSTILE: HOSTILE, "n": [HOSTILE, {HOSTILE: None}]}, result=HOSTILE),
        call("t", error=HOSTILE, status="tool_error"),
        call("t", args=None, result=MISSING, status="unknown"),
        request=HOSTILE,
        answer=HOSTILE * 50,
        states=[{HOSTILE: HOSTILE}, {HOSTILE: 1, "list": [1, {HOSTILE: 2}]}],
        stop="error",
    )
    nasty = replace(
        turns(nasty, HOSTILE, HOSTILE, None, HOSTILE),
        agents=(HOSTILE, "b"),
        agent_version=HOSTILE,
        models=(HOSTILE,),
        run_id=HOSTILE,
        handoffs=(Handoff(source=HOSTILE, target=HOSTILE, span_id="x", start_ns=1_600),),
        events=(RunEvent(name=HOSTILE, time_ns=2_600, attributes={HOSTILE: HOSTILE}, span_id="y"),),
        termination=replace(nasty.termination, because=HOSTILE),
        coverage=Coverage(missing=(Gap(fact=HOSTILE, because=HOSTILE), Gap(fact="x[²].y", because="z"))),
        completeness=Completeness.INCOMPLETE,
        start_ns=1_795_987_798_433_900_032,
    )
    wide = a_run(
        call("検索" * 40, args={"語": "漢字" * 200}),
        request="ملاحظة " * 60 + "日本語" * 90,
        answer="🙂" * 500,
    )
    many = a_run(
        *(call("get", turn=0, page=n) for n in range(12)), *(call("get", same="x") for _ in range(90))
    )
    return [
        plain,
        nasty,
        wide,
        many,
        a_run(request=None, answer=None, stop="unknown"),
        a_run(stop="step_cap", cap=12),
    ]


@pytest.mark.parametrize("explain", [False, True])
def test_no_line_is_wider_than_the_screen(explain: bool) -> None:
    """Every line of every run fits 80 columns, counted as a terminal counts, and holds no control character."""
    for run in corpus():
        for line in shown(run, explain=explain):
            wide = sum(unicodedata.east_asian_width(char) in "WF" for char in line)
            assert len(line) + wide <= 80, line
            assert line.isprintable(), repr(line)


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    ),
    st.text(),
)
def test_any_value_keeps_to_its_line(value: object, text: str) -> None:
    """Whatever a trace holds, lines stay within 80 columns and printable."""
    run = a_run(
        call(text, args={text: value}, result=value), states=[{}, {text: value}], request=text, answer=text
    )

    for line in shown(run):
        assert len(line) + sum(unicodedata.east_asian_width(char) in "WF" for char in line) <= 80
        assert line.isprintable()


def test_a_value_of_ten_megabytes_is_cut() -> None:
    """A huge argument, result or answer costs its own line and no more."""
    huge = "x" * 10_000_000
    lines = shown(a_run(call("put", args={"body": huge}, result={"echo": [huge]}), request=huge, answer=huge))

    assert len(lines) < 40
    assert line_with(lines, "#1 put body=xxx").endswith("…")


def test_a_witness_is_marked_at_its_line() -> None:
    """The call that broke the rule carries the rule's name, and no other line of the timeline does."""
    lines = shown(a_run(call("get", order="A-1"), call("cancel", order="A-1", effect="write")))

    assert line_with(lines, "◀ verify-before-cancel").split()[:5] == [
        "turn",
        "2",
        "#2",
        "cancel",
        "order=A-1",
    ]
    assert "write" in line_with(lines, "#2 cancel")
    assert "FLAGGED  verify-before-cancel" in lines


def test_what_should_have_been_called_has_a_line() -> None:
    """An absence, which no call can carry, is said in a line of its own with the check that misses it."""
    root = a_run().root_span_id
    lines = judged(
        a_run(), fails("recall:t", Evidence(span_id=root, pointer="/tool_calls", note="no get_order"))
    )

    assert line_with(lines, "absent   no get_order").endswith("◀ recall:t")


def test_the_end_the_answer_and_a_span_are_marked() -> None:
    """Evidence that names a part of the run, or a span alone, is marked at that part and at that span."""
    run = turns(a_run(call("get"), stop="step_cap", cap=3), "looking", "still looking")
    lines = judged(
        run,
        fails("termination", Evidence(span_id=run.root_span_id, pointer="/termination")),
        fails("unverified_claim", Evidence(span_id=run.root_span_id, pointer="/answer")),
        fails("by-span", Evidence(span_id=run.model_calls[1].span_id)),
        fails("by-turn", Evidence(span_id="", pointer="/model_calls/0/output")),
        fails("by-call", Evidence(span_id=run.tool_calls[0].span_id)),
        fails("nowhere", Evidence(span_id="feed", note="a span of its own")),
    )

    assert "◀ termination" in line_with(lines, "ended    step_cap of 3")
    assert lines[lines.index("answer   done") + 1].strip() == "◀ unverified_claim"
    assert "still looking" in line_with(lines, "◀ by-span")
    assert 'says "looking"' in line_with(lines, "◀ by-turn")
    assert "#1 get" in line_with(lines, "◀ by-call")
    assert "a span of its own" in line_with(lines, "◀ nowhere")


def test_changes_of_state_stand_after_the_write_that_made_them() -> None:
    """A change is shown under its call with old and new value, and a collateral one carries its mark."""
    states = [
        {"orders": {"A": {"s": "new"}, "B": {"s": "new"}}},
        {"orders": {"A": {"s": "gone"}, "B": {"s": "gone"}}},
    ]
    run = a_run(call("cancel", order="A", effect="write"), call("get", order="A"))
    run = replace(
        run,
        states=tuple(
            replace(s, time_ns=t) for s, t in zip(a_run(states=states).states, (0, 1_500), strict=True)
        ),
    )
    lines = judged(
        run, fails("state.collateral", Evidence(span_id="s", pointer="/states/1/state/orders/B/s"))
    )

    place = next(n for n, line in enumerate(lines) if "#1 cancel" in line)
    assert lines[place + 2].strip() == "± orders.A.s: new → gone"
    assert re.fullmatch(r" +± orders\.B\.s: new → gone +◀ state\.collateral", lines[place + 3])


def test_a_state_that_was_never_reached_is_said_where_it_is_missed() -> None:
    """Evidence at a path that did not change shows what stands there."""
    run = a_run(call("get"), states=[{"n": 1}, {"n": 1}])
    lines = judged(run, fails("state.required:t", Evidence(span_id="s", pointer="/states/1/state/n")))

    assert "n is 1" in line_with(lines, "◀ state.required:t")


def test_few_changes_are_shown_and_marked_ones_always() -> None:
    """A write that changes much shows four changes, the number of the others, and each witness."""
    before, after = {f"k{n:02}": 0 for n in range(30)}, {f"k{n:02}": 1 for n in range(30)}
    run = a_run(call("write", effect="write"), states=[before, after])
    lines = judged(run, fails("state.collateral", Evidence(span_id="s", pointer="/states/1/state/k29")))

    assert sum("0 → 1" in line for line in lines) == 5
    assert "k29" in line_with(lines, "◀ state.collateral")
    assert line_with(lines, "and 25 more changes")


def test_a_repeat_names_the_call_it_repeats() -> None:
    """Calls are numbered, so that a repeat can say of which."""
    lines = shown(
        a_run(call("a", x=1, effect="read"), call("b", effect="read"), call("a", x=1, effect="read"))
    )

    assert "repeat of #1  ◀ repeats" in line_with(lines, "#3 a x=1")


def test_the_shape_of_a_turn_is_shown() -> None:
    """Parallel calls, calls by the code, retries and calls that never ran each look different."""
    run = a_run(
        call("get", id=1, turn=0),
        call("get", id=2, turn=0, status="infra_error", error="timed out"),
        replace(call("get", id=2, turn=None), by_code=True),
        call("pay", turn=1, status="not_executed", result=MISSING, effect="write"),
        call("ask", turn=2, status="denied", error="a person said no"),
        call("odd", turn=3, status="unknown", args=None),
    )
    lines = shown(run)

    assert "turn 1   ┌ #1 get id=1" in line_with(lines, "2 at once")
    assert line_with(lines, "└ #2 get id=2")
    assert line_with(lines, "✗ infrastructure: timed out")
    assert "retry of #2" in line_with(lines, "code     #3 get id=2")
    assert line_with(lines, "✗ not run")
    assert line_with(lines, "✗ denied: a person said no")
    assert line_with(lines, "#6 odd (arguments not recorded)")
    assert line_with(lines, "(whether it ran was not recorded)")


def test_turns_handoffs_and_events_stand_in_order_of_time() -> None:
    """What the model said, a hand-off, an event and an agent's name stand where they happened."""
    run = turns(
        a_run(call("get", turn=0, agent="triage"), call("refund", turn=1, agent="refunds")),
        "let me see",
        None,
        "done",
    )
    run = replace(
        run,
        agents=("triage", "refunds"),
        handoffs=(Handoff(source="triage", target="refunds", span_id="h", start_ns=1_300),),
        events=(RunEvent(name="approval", time_ns=2_600, attributes={"order": "A-7"}, span_id="e"),),
    )
    lines = shown(run)
    wanted = [
        *("agent    triage", 'turn 1   says "let me see"', "#1 get", "handoff  triage → refunds"),
        *("turn 2   #2 refund", "event    approval order=A-7", "answer   done"),
    ]

    places = [next(n for n, line in enumerate(lines) if want in line) for want in wanted]
    assert places == sorted(places)
    assert not any("turn 3" in line for line in lines), "the last turn is the answer"
    assert sum(line.startswith("agent") for line in lines) == 2, (
        "the header's and the first; the hand-off names the other"
    )


def test_a_model_that_failed_or_was_cut_off_is_seen() -> None:
    """A failed turn, an odd finish and an output that was not recorded are not passed over."""
    run = turns(a_run(answer=None), "half an ans", None, None)
    models = run.model_calls
    lines = shown(
        replace(
            run,
            model_calls=(
                replace(models[0], finish_reason="length"),
                replace(models[1], failed=True, error="429 slow down"),
                replace(models[2], output=None),
            ),
        )
    )

    assert "length" in line_with(lines, 'turn 1   says "half an ans"')
    assert line_with(lines, "turn 2   ✗ the model failed: 429 slow down")
    assert line_with(lines, "turn 3   (output not recorded)")


def folded(lines: Sequence[str]) -> tuple[set[int], list[tuple[range, str]]]:
    """The calls that have a line, and those that stand behind a count with that line."""
    own = {int(hit.group(1)) for line in lines if (hit := re.match(r".{9}(?:[┌├└] )?#(\d+) ", line))}
    counts = [
        (range(int(hit[1]), int(hit[2]) + 1), line)
        for line in lines
        if (hit := re.search(r"⋮ .*\(#(\d+) to #(\d+)\)", line))
    ]
    return own, counts


def test_a_loop_is_shown_once_and_counted() -> None:
    """Three hundred equal calls take a few lines, and the count carries the mark of those behind it."""
    lines = shown(a_run(*(call("get", order="A-1", effect="read", result={"s": "new"}) for _ in range(300))))

    assert len(lines) < 30
    assert line_with(lines, "⋮ the same 298 times more (#3 to #300)").endswith("◀ repeats")


def test_a_cycle_of_several_calls_is_shown_once() -> None:
    """Rounds of more than one step are folded as rounds."""
    round_ = [
        call("a", effect="read", result=1),
        call("b", effect="read", result=2),
        call("c", effect="read", result=3),
    ]
    lines = shown(a_run(*round_ * 20))

    assert "the same 3 steps" in line_with(lines, "⋮")


def test_a_long_run_of_plain_calls_is_folded_around_its_witness() -> None:
    """In a long run calls of one tool fold whatever their arguments, but never the one that is pointed at."""
    calls = [call("get", page=n, effect="read", result={"items": [n]}) for n in range(200)]
    lines = shown(a_run(*calls[:120], call("cancel", order="A-1", effect="write"), *calls[120:]))

    assert len(lines) < 40
    assert "◀ verify-before-cancel" in line_with(lines, "#121 cancel order=A-1")
    assert line_with(lines, "⋮ 119 more like it, all ok, with other values (#2 to #120)")


def test_a_short_run_of_different_calls_is_shown_whole() -> None:
    """Calls that differ in anything are not folded while a person can read them all."""
    own, counts = folded(shown(a_run(*(call("get", page=n) for n in range(40)))))

    assert own == set(range(1, 41))
    assert counts == []


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from("aabcx"), max_size=90),
    st.sets(st.integers(0, 89), max_size=4),
)
def test_folding_hides_no_witness(tools: list[str], accused: set[int]) -> None:
    """Every call has its line or stands behind a count, exactly once, and so does the mark of each accused one."""
    run = a_run(*(call(name, x=1, status="tool_error" if name == "x" else "ok") for name in tools))
    points = [Evidence(span_id="s", pointer=f"/tool_calls/{n}") for n in sorted(accused) if n < len(tools)]
    lines = judged(run, *([fails("rule", *points)] if points else []), *judge(run, default_checks()))
    own, counts = folded(lines)

    behind = [number for numbers, _ in counts for number in numbers]
    assert sorted([*own, *behind]) == list(range(1, len(tools) + 1))
    for item in points:
        number = int(item.pointer.rpartition("/")[2]) + 1
        near = [n for n, line in enumerate(lines) if re.match(rf".{{9}}#{number} ", line)]
        mine = (
            ["\n".join(lines[near[0] : near[0] + 3])]
            if near
            else [line for numbers, line in counts if number in numbers]
        )
        assert any("◀ rule" in text for text in mine)


def test_failures_come_first_then_doubts_then_the_rest() -> None:
    """What flags the run, what else failed, what is inconclusive, each with its reason; the rest in one line."""
    run = a_run(call("get"))
    lines = judged(
        run,
        replace(passed("fine"), check="good"),
        replace(inconclusive("nothing was recorded"), check="doubt"),
        fails("minor", Evidence(span_id=run.tool_calls[0].span_id), severity=Severity.NOTE),
        fails("bad", Evidence(span_id=run.tool_calls[0].span_id)),
    )
    wanted = [
        "failed   bad",
        "bad because",
        "failed   minor",
        "unclear  doubt is inconclusive",
        "nothing was recorded",
        "passed   good",
    ]

    places = [next(n for n, line in enumerate(lines) if want in line) for want in wanted]
    assert places == sorted(places)
    assert "FLAGGED  bad" in lines


def test_missing_facts_are_named_and_never_shown_as_empty() -> None:
    """What was not recorded says so at its place and in the coverage; numbers that are unknown are no zeros."""
    gaps = [Gap(fact=f"tool_calls[{n}].result", because="not recorded") for n in (0, 1)]
    run = replace(
        a_run(call("get", result=MISSING), call("put", result=MISSING), request=None, answer=None),
        coverage=Coverage(
            missing=(
                *gaps,
                Gap(fact="model_calls", because="no span records one"),
                Gap(fact="answer", because="no span carries it"),
            ),
            reconstructed=(Gap(fact="tool_calls[1].arguments", because="taken from the model's request"),),
        ),
        completeness=Completeness.INCOMPLETE,
        tokens=Tokens(),
    )
    lines = shown(run, explain=True)

    assert line_with(lines, "missing  result of call #1, 2: not recorded")
    assert line_with(lines, "rebuilt  arguments of call #2: taken from the model's request")
    assert line_with(lines, "missing  spans")
    assert line_with(lines, "turns not recorded, 2 calls, tokens not recorded")
    assert line_with(lines, "request  (not recorded)")
    assert line_with(lines, "answer   (not recorded)")
    assert sum("(result not recorded)" in line for line in lines) == 2


def test_explain_says_of_every_check_what_it_looked_at() -> None:
    """Each check has its reason, its object, class, severity and revision; what could not fail is named."""
    run = a_run(call("cancel", order="A-1", status="unknown"), call("get", args=None), call("get", args=None))
    run = replace(run, coverage=Coverage(missing=(Gap(fact="tool_calls[0].status", because="nothing says"),)))
    lines = shown(run, explain=True)

    for check in CHECKS:
        assert line_with(lines, f"check    {check.id}")
        assert any(check.revision in line for line in lines)
    assert sum(line.startswith("because") for line in lines) == len(CHECKS)
    assert "check    recovery" in " ".join(lines)
    assert lines[lines.index(line_with(lines, "blind ")) :][:2] == [
        "blind    repeats, tool_errors, recovery, arguments, ungrounded_argument: could",
        "         not fail here, whatever the agent did",
    ]
    lacking = [
        place for place, line in enumerate(lines) if line == "lacks    status of call #1: nothing says"
    ]
    of = [line.split()[1] for line in lines if line.startswith("check ")]
    concerned = [
        next(lines[n].split()[1] for n in range(at, 0, -1) if lines[n].startswith("check ")) for at in lacking
    ]
    assert concerned == [name for name in of if name in ("repeats", "tool_errors", "recovery", VERIFY.id)]


def test_a_flagged_run_ends_with_the_command_that_freezes_it() -> None:
    """The command names the run and where it was found; a run that is not flagged has none."""
    flagged = a_run(call("cancel"))
    sources = ["--traces", "a folder/day.jsonl", "--rules", "rules.yaml"]

    assert (
        shown(flagged, sources=sources)[-1]
        == "next     redfirst freeze run --traces 'a folder/day.jsonl' --rules rules.yaml"
    )
    assert (
        shown(flagged, sources=["--traces", "x" * 200])[-1]
        == "next     redfirst freeze run (with the same options)"
    )
    assert not any(line.startswith("next") for line in shown(a_run(call("get"))))


# -- the command

TRACE = "ab" * 16
ANSWER = "done \x1b[31mA-1"


def incident() -> list[Span]:
    """A run in OpenInference terms: a model asks for a cancellation, gets it, and answers."""

    def span(number: int, kind: str, start: int, **attributes: object) -> Span:
        named = {key.replace("__", "."): value for key, value in attributes.items()}
        return Span(
            trace_id=TRACE, span_id=f"{number:016x}", parent_id=None if number == 1 else f"{1:016x}", name=kind.lower(),
            start_ns=10**18 + start, end_ns=10**18 + start + (90 if number == 1 else 5), scope="openinference",
            attributes={"openinference.span.kind": kind, **named},
        )  # fmt: skip

    out = "llm.output_messages.0.message."
    asked = f"{out}tool_calls.0.tool_call."
    user = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "cancel A-1"}
    named = {
        f"{asked}id": "c1",
        f"{asked}function.name": "cancel",
        f"{asked}function.arguments": '{"order": "A-1"}',
    }
    ran = {"input.value": '{"order": "A-1"}', "output.value": '{"ok": true}'}
    said = {f"{out}role": "assistant"}
    return [
        span(1, "AGENT", 0, agent__name="support", input__value="cancel A-1", output__value=ANSWER),
        span(2, "LLM", 10, llm__model_name="m-1", **user, **said, **named),
        span(3, "TOOL", 20, tool__name="cancel", tool_call__id="c1", **ran),
        span(4, "LLM", 30, llm__model_name="m-1", **user, **said, **{f"{out}content": ANSWER}),
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one trace and one rule, as the current folder."""
    (tmp_path / "day.pb").write_bytes(encode_traces(incident()))
    (tmp_path / "rules.yaml").write_text(
        "schema: redfirst.rules/1\n"
        "rules: [{id: verify-before-cancel, kind: require_before, call: cancel, needs: verify}]\n"
    )
    (tmp_path / "redfirst.yaml").write_text("traces: [day.pb]\nrules: rules.yaml\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_show_prints_a_run_without_colour_in_a_pipe(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run is found by the beginning of its id and printed plain, with the escapes of its values made harmless."""
    assert main(["show", TRACE[:6]]) == 0

    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "◀ verify-before-cancel" in line_with(out.splitlines(), "#1 cancel order=A-1")
    assert out.splitlines()[-1] == f"next     redfirst freeze {TRACE[:12]}"


def test_explained_a_run_says_which_attribute_gave_which_fact(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Facts that stand on the same keys share a line; flattened messages are numbered once."""
    assert main(["show", TRACE[:6], "--explain"]) == 0
    shown_lines = capsys.readouterr().out.splitlines()
    read_from = [line.removeprefix("read").strip() for line in shown_lines if line.startswith("read ")]
    assert main(["score", "day.pb", "--explain"]) == 0
    scored = capsys.readouterr().out.splitlines()

    assert "model of turn 1, 2 from llm.model_name" in read_from
    assert "name of call #1 from openinference.span.kind, tool.name" in read_from
    assert any(
        line.startswith("output of turn 2 from ") and "llm.output_messages.N." in line for line in read_from
    )
    assert [line for line in scored if line.startswith("read ")] == [
        line for line in shown_lines if line.startswith("read ")
    ]
    assert all(len(line) <= 80 for line in shown_lines)


def test_a_run_that_is_not_explained_does_not_say_where_it_was_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", TRACE[:6]]) == 0

    assert not any(line.startswith("read ") for line in capsys.readouterr().out.splitlines())


def test_show_json_is_the_record_of_score(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--json`` prints one line: the object that ``score --json`` prints of this run."""
    assert main(["show", TRACE, "--json"]) == 0

    (line,) = capsys.readouterr().out.splitlines()
    (run,) = read_runs(incident())
    record = json.loads(line)
    assert record["metrics"]["cost"]["amount"] is None
    assert "its tokens are not recorded" in record["metrics"]["cost"]["because"]
    assert record == run_record(run, judge(run, CHECKS), record["metrics"])


@pytest.mark.parametrize("wanted", ["ffff", "", "no/such/folder", "empty"])
def test_an_unknown_run_is_one_line_and_exit_2(
    folder: Path, capsys: pytest.CaptureFixture[str], wanted: str
) -> None:
    """Neither a run nor a scenario: one line on stderr, nothing on stdout, exit code 2."""
    (folder / "empty").mkdir()

    assert main(["show", wanted]) == 2

    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1


def test_show_reads_a_scenario(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A scenario shows its standing, its checks by role, the incident's timeline and every tool's answers."""
    (run,) = read_runs(incident())
    draft = freeze(RecordedRun(run=run, spans=incident(), verdicts=judge(run, CHECKS)), CHECKS)
    draft.write(folder / "scenarios" / "one")

    assert main(["show", "scenarios/one"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("scenario verify-before-cancel-")
    assert "proof    draft: not proven yet" in lines
    assert "targets  verify-before-cancel" in lines
    assert line_with(lines, "asks     ", "Every call of cancel")
    assert line_with(lines, "guards   ", "termination")
    assert line_with(lines, "incident", TRACE)
    assert "target" in line_with(lines, "failed   verify-before-cancel")
    assert line_with(lines, "tools    cancel: 1 incident")
    assert line_with(lines, "  order=A-1 → ok=true")
    assert lines[-1] == "next     redfirst prove scenarios/one"
    assert main(["show", "scenarios/one/scenario.yaml"]) == 0
    assert capsys.readouterr().out.splitlines() == lines


def test_a_proven_scenario_names_the_control_of_its_proof() -> None:
    """A derived control leaves no recording beside the scenario, and was seen to pass all the same."""
    (run,) = read_runs(incident())
    draft = freeze(RecordedRun(run=run, spans=incident(), verdicts=judge(run, CHECKS)), CHECKS)
    folder = Folder(Path("one"), draft.scenario, draft.files)

    assert _control(folder, Standing(proven=True, control="derived")) == ["control  derived"]
    assert _control(folder, Standing(proven=False)) == ["control  none recorded"]


def _control(folder: Folder, found: Standing) -> list[str]:
    lines = ["".join(text for text, _ in line).rstrip() for line in scenario_lines(folder, found)]
    return [line for line in lines if line.startswith("control")]


def test_a_scenario_of_a_check_that_is_always_there_is_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A target that no rules file declares has no sentence, and is no fault."""
    (run,) = read_runs(incident())
    found = Finding(
        subject="cancel", because="twice", evidence=(Evidence(span_id=run.tool_calls[0].span_id),)
    )
    verdicts = [
        replace(one, outcome=Outcome.FAILED, findings=(found,)) if one.check == "repeats" else one
        for one in judge(run, CHECKS)
    ]
    draft = freeze(RecordedRun(run=run, spans=incident(), verdicts=verdicts), CHECKS, only=["repeats"])
    draft.write(folder / "scenarios" / "one")

    assert main(["show", "scenarios/one"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "targets  repeats" in lines
    assert not [line for line in lines if line.startswith("asks")]


def test_a_scenario_with_a_damaged_trace_is_one_line_and_exit_2(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trace that was cut short is named with its folder, and nothing is shown of it."""
    (run,) = read_runs(incident())
    freeze(RecordedRun(run=run, spans=incident(), verdicts=judge(run, CHECKS)), CHECKS).write(folder / "one")
    trace = folder / "one" / "trace.otlp.pb.gz"
    trace.write_bytes(trace.read_bytes()[:60])

    assert main(["show", "one"]) == 2

    printed = capsys.readouterr()
    assert printed.out == ""
    assert "one: the recorded trace" in line_with(printed.err.splitlines(), "redfirst:")


def test_show_colours_a_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a terminal the flag is red; the text is the same as in a pipe."""
    assert main(["show", TRACE]) == 0
    plain = capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    assert main(["show", TRACE]) == 0

    coloured = capsys.readouterr().out
    assert "\x1b[31;1mverify-before-cancel\x1b[0m" in coloured
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in bare.splitlines()] == plain.splitlines()


def test_a_call_from_a_message_alone_is_shown_as_one() -> None:
    """A call that no span recorded has its line like any other."""
    run = a_run(replace(call("get", id=1, turn=0), source=Source.MESSAGE))

    assert line_with(shown(run), "turn 1   #1 get id=1")
