"""From a run to a draft: what is recorded, what is derived, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from redfirst.evaluators import ConfigurationError, Span, semconv
from redfirst.evaluators.check import check_from_spec, judge
from redfirst.evaluators.reading import read_runs
from redfirst.instrumentation import agent, tool
from redfirst.replay.freezing import FreezeRefused, RecordedRun, freeze, same_task
from redfirst.replay.scenario import load, parse

from .conftest import CHECKS

Record = Callable[..., RecordedRun]


def without(run: RecordedRun, *keys: str) -> RecordedRun:
    """The run as it would be read if these attributes had not been recorded."""
    spans: list[Span] = [
        replace(span, attributes={k: v for k, v in span.attributes.items() if not k.startswith(keys)})
        for span in run.spans
    ]
    (read,) = read_runs(spans)
    return RecordedRun(run=read, spans=spans, verdicts=judge(read, CHECKS))


def test_a_write_carries_its_effect_and_a_read_any_number_of_answers(
    shop: ModuleType, recorded: Record
) -> None:
    """The effect is the difference of the snapshots around the write."""
    scenario = freeze(recorded(shop.bad()), CHECKS).scenario

    assert scenario.tools["cancel"].responses[0].put == {"/orders/A-1/status": "cancelled"}
    assert scenario.tools["lookup"].responses[0].times == "any"
    assert scenario.completeness.model_dump() == dict.fromkeys(
        ("request", "model", "tools", "state"), "recorded"
    )


def test_the_failed_check_is_the_target_and_the_passed_ones_are_guards(
    shop: ModuleType, recorded: Record
) -> None:
    """Every scenario has a goal check beside its target; what is only a note in production fails no scenario."""
    scenario = freeze(recorded(shop.bad()), CHECKS).scenario

    assert [check.id for check in scenario.targets()] == ["verify-before-cancel"]
    assert {check.id for check in scenario.guards()} == {"repeats", "termination"}


def test_code_is_no_part_of_a_scenario(shop: ModuleType, recorded: Record) -> None:
    """A check that is a function is left out beside others, and refused where it is all that failed."""
    code = replace(CHECKS[-1], id="mine", spec={"kind": "python", "id": "mine", "function": "a:b"})
    incident = recorded(shop.bad())
    both = replace(incident, verdicts=judge(incident.run, (*CHECKS, code)))
    draft = freeze(both, (*CHECKS, code))

    assert [check.id for check in draft.scenario.targets()] == ["verify-before-cancel"]
    assert "mine" not in {check.id for check in draft.scenario.guards()}
    assert "check mine is code, which a scenario does not carry" in draft.notes
    with pytest.raises(FreezeRefused, match="'mine' failed, and it is code"):
        freeze(both, (*CHECKS, code), only=["mine"])


def test_a_run_without_a_failure_is_refused(shop: ModuleType, recorded: Record) -> None:
    """Nothing failed, so there is nothing to prove."""
    with pytest.raises(FreezeRefused, match="no check of severity flag failed"):
        freeze(recorded(shop.with_careful_model()), CHECKS)


def test_a_check_that_did_not_fail_cannot_be_the_target(shop: ModuleType, recorded: Record) -> None:
    """The message lists what each check said."""
    with pytest.raises(FreezeRefused, match=r"check 'repeats' did not fail on this run .*repeats passed"):
        freeze(recorded(shop.bad()), CHECKS, only=["repeats"])


@pytest.mark.parametrize(
    ("keys", "lacks"),
    [
        (("output.value", "gen_ai.output.messages", "llm.output_messages"), r"the reply of model call \d"),
        (
            (semconv.TOOL_CALL_RESULT, "output.value", "input.value", "llm.", "gen_ai.input.messages"),
            "the result of lookup",
        ),
        (
            (
                semconv.TOOL_CALL_ARGUMENTS,
                "input.value",
                "output.value",
                "llm.",
                "gen_ai.input",
                "gen_ai.output",
            ),
            "the arguments of lookup",
        ),
        (("input.", "llm.", "gen_ai.input.messages"), "the request was not recorded"),
    ],
)
def test_a_trace_that_could_not_be_executed_is_refused_and_says_what_it_lacks(
    shop: ModuleType, recorded: Record, keys: tuple[str, ...], lacks: str
) -> None:
    """Missing content is named; it is never invented."""
    incident = without(recorded(shop.bad()), *keys)

    with pytest.raises(FreezeRefused, match=lacks):
        freeze(incident, CHECKS, only=["verify-before-cancel"])


def test_a_state_target_without_snapshots_is_refused(shop: ModuleType, recorded: Record) -> None:
    """Without ``run.state`` around the writes a replay could not know what they changed."""
    about_state = check_from_spec({"kind": "forbid", "id": "state.no-cancel", "call": "cancel"})
    incident = recorded(shop.bad())
    spans = [replace(span, events=()) for span in incident.spans]
    (run,) = read_runs(spans)
    bare = RecordedRun(run=run, spans=spans, verdicts=judge(run, [about_state]))

    with pytest.raises(FreezeRefused, match="the run reported no state"):
        freeze(bare, [about_state])


def test_a_state_that_was_cut_is_no_state(shop: ModuleType, recorded: Record) -> None:
    """With one snapshot lost, a change cannot be laid to the write that made it."""
    about_state = check_from_spec({"kind": "forbid", "id": "state.no-cancel", "call": "cancel"})
    incident = recorded(shop.bad())
    spans = [
        replace(
            span,
            events=tuple(replace(event, attributes={semconv.STATE_VALUE: '{"a'}) for event in span.events),
        )
        if span.events
        else span
        for span in incident.spans
    ]
    (run,) = read_runs(spans)

    with pytest.raises(FreezeRefused, match="states is missing"):
        freeze(RecordedRun(run=run, spans=spans, verdicts=judge(run, [about_state])), [about_state])


def test_a_recorded_error_keeps_its_type_and_message(shop: ModuleType, recorded: Record) -> None:
    """Errors are recorded as errors."""
    check = check_from_spec({"kind": "forbid", "id": "no-lookup", "call": "lookup"})
    scenario = freeze(recorded(shop.bad(), "please cancel A-9", (check,)), (check,)).scenario
    (response,) = scenario.tools["lookup"].responses

    assert response.error is not None
    assert response.error.model_dump() == {"type": "shop.NoSuchOrder", "message": "no order A-9"}


def test_a_token_made_by_the_code_is_not_compared(shop: ModuleType, recorded: Record) -> None:
    """An argument no model asked for that looks generated is ignored when a call looks for its recording."""
    draft = freeze(recorded(shop.token()), CHECKS)

    assert draft.scenario.tools["cancel"].match.ignore == ["note"]
    assert any("note is generated by the code" in note for note in draft.notes)


def test_a_passing_run_gives_the_control_and_its_answers(shop: ModuleType, recorded: Record) -> None:
    """What only the good run called is on the tape as the control's."""
    bad, good = recorded(shop.bad()), recorded(shop.with_careful_model())
    draft = freeze(bad, CHECKS, control=good)

    assert same_task(bad.run, good.run)
    assert "good.jsonl" in draft.files
    assert [r.source for r in draft.scenario.tools["verify"].responses] == ["control"]
    assert [r.source for r in draft.scenario.tools["lookup"].responses] == ["incident"]


def test_what_is_written_reads_back_as_it_was(shop: ModuleType, recorded: Record, tmp_path: Path) -> None:
    """YAML loses nothing."""
    draft = freeze(recorded(shop.bad()), CHECKS)
    draft.write(tmp_path / "s")

    assert load(tmp_path / "s").scenario == draft.scenario
    assert parse(draft.files["scenario.yaml"].decode(), "x") == draft.scenario


def test_another_version_is_not_overwritten_unasked(
    shop: ModuleType, recorded: Record, tmp_path: Path
) -> None:
    """A reviewed scenario is not lost to a second freeze."""
    draft = freeze(recorded(shop.bad()), CHECKS)
    draft.write(tmp_path / "s")
    (tmp_path / "s" / "scenario.yaml").write_text(
        "# reviewed\n" + (tmp_path / "s" / "scenario.yaml").read_text()
    )

    with pytest.raises(ConfigurationError, match="another version of this scenario is there"):
        draft.write(tmp_path / "s")
    draft.write(tmp_path / "s", replace=True)
    assert load(tmp_path / "s").scenario == draft.scenario


def test_a_recorded_null_is_an_answer(recorded: Record, tmp_path: Path) -> None:
    """A tool that returns nothing reads back as one that returns nothing."""
    check = check_from_spec({"kind": "forbid", "id": "no-touch", "call": "touch"})

    @tool(effect="write")
    def touch() -> None:
        """Nothing."""

    @agent(name="shop")
    def handle(request: str) -> str:
        touch()
        return request

    draft = freeze(recorded(handle, checks=(check,)), (check,))
    draft.write(tmp_path / "s")

    (response,) = load(tmp_path / "s").scenario.tools["touch"].responses
    assert "returns" in response.model_fields_set
    assert response.returns is None


def test_what_yaml_cannot_say_is_refused_by_name(recorded: Record) -> None:
    """A lone surrogate in an argument ends in one line, not in a traceback."""
    check = check_from_spec({"kind": "forbid", "id": "no-say", "call": "say"})

    @tool(effect="write")
    def say(word: str) -> str:
        return word

    @agent(name="shop")
    def handle(request: str) -> str:
        return say("\ud800")

    with pytest.raises(FreezeRefused, match="makes no readable scenario: a lone surrogate"):
        freeze(recorded(handle, checks=(check,)), (check,))


def test_what_the_file_could_not_be_read_back_with_is_refused(recorded: Record) -> None:
    """No scenario is written that is beyond the limits of its own reader."""
    check = check_from_spec({"kind": "forbid", "id": "no-nest", "call": "nest"})

    @tool(effect="write")
    def nest() -> list[object]:
        nested: list[object] = []
        for _ in range(80):
            nested = [nested]
        return nested

    @agent(name="shop")
    def handle(request: str) -> str:
        nest()
        return request

    with pytest.raises(FreezeRefused, match=r"makes no readable scenario: .*nested more than \d+ deep"):
        freeze(recorded(handle, checks=(check,)), (check,))


def test_freezing_the_same_run_again_leaves_its_proof_and_its_control(
    shop: ModuleType, recorded: Record, tmp_path: Path
) -> None:
    """What ``prove`` has added since is not lost."""
    draft = freeze(recorded(shop.bad()), CHECKS)
    draft.write(tmp_path / "s")
    for name in ("proof.json", "good.jsonl"):
        (tmp_path / "s" / name).write_text("made by prove")

    draft.write(tmp_path / "s")
    draft.write(tmp_path / "s", replace=True)

    assert {(tmp_path / "s" / name).read_text() for name in ("proof.json", "good.jsonl")} == {"made by prove"}


def test_a_recording_changed_by_hand_is_not_overwritten_unasked(
    shop: ModuleType, recorded: Record, tmp_path: Path
) -> None:
    """Not only ``scenario.yaml`` may have been reviewed."""
    draft = freeze(recorded(shop.bad()), CHECKS)
    draft.write(tmp_path / "s")
    (tmp_path / "s" / "model.jsonl").write_bytes(draft.files["model.jsonl"] + b"\n")

    with pytest.raises(ConfigurationError, match="another version of this scenario is there"):
        draft.write(tmp_path / "s")
