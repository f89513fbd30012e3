"""The executed red proof, and every way it is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType

import pytest

from redfirst.evaluators import ConfigurationError, RedfirstError
from redfirst.evaluators.check import check_from_spec
from redfirst.replay.freezing import RecordedRun, freeze
from redfirst.replay.project import Project
from redfirst.replay.proof import prove
from redfirst.replay.report import Level, Refusal, Step
from redfirst.replay.running import run
from redfirst.replay.scenario import HASHED_FILES, load
from redfirst.replay.standing import bind, standing

from .conftest import CHECKS, Place


def test_an_agent_that_fails_as_in_production_is_proven(place: Place) -> None:
    """The unmodified agent, executed on its own recordings, fails for the same reason, and that is a proof."""
    report = prove(place.scenario, place.project)

    assert report.proven, report.because
    assert [step.name for step in report.steps] == ["S0", "S1", "S2", "S4", "S3", "S6"]
    assert {(check, subject) for check, _, subject in report.signature} == {
        ("verify-before-cancel", "cancel")
    }
    assert standing(load(place.scenario)).proven
    assert standing(load(place.scenario)).control == report.control == "derived"


def test_a_proof_says_where_it_was_made_and_one_of_an_older_version_stands(place: Place) -> None:
    """Python, platform, and what the agent was kept from, as the report has it; no path and no name of a machine."""
    report = prove(place.scenario, place.project)
    written = (place.scenario / "proof.json").read_text(encoding="utf-8")
    proof = json.loads(written)
    found = proof["environment"]
    by_kernel = "closed by the kernel, too" in " ".join(step.said for step in report.steps)

    assert set(found) == {"redfirst", "python", "implementation", "platform", "isolation"}
    assert found["isolation"]["audit_hook"] == ["files", "network"]
    assert bool(found["isolation"]["kernel"]) == by_kernel
    assert set(found["isolation"]["kernel"]) <= {"files", "tcp"}
    assert str(place.project.root) not in written
    folder = load(place.scenario)
    older = {name: value for name, value in found.items() if name not in ("implementation", "isolation")}
    bind(folder, {**proof, "environment": older})
    assert standing(folder).proven


@pytest.mark.parametrize(
    ("factory", "refusal", "exit_code", "words"),
    [
        ("guarded", Refusal.OFF_TAPE, 3, "redfirst prove --agent BEFORE --control AFTER"),
        ("raising", Refusal.OTHER_REASON, 1, "production failed verify-before-cancel"),
        ("answering_only", Refusal.AGENT_NOT_CALLED, 3, "without calling an instrumented agent"),
        ("off_tape", Refusal.OFF_TAPE, 3, 'differs in order: recorded "A-1", asked "A-2"'),
        ("token", Refusal.NONDETERMINISTIC, 3, "os.urandom in shop"),
        ("dated", Refusal.OFF_TAPE, 3, "differs in note: recorded null"),  # the clock of date is frozen too
        ("set_order", Refusal.NONDETERMINISTIC, 3, "alone was changed: the order of sets"),
        ("swallowing", Refusal.OFF_TAPE, 3, "Not on tape"),
        ("online", Refusal.NETWORK, 3, "127.0.0.1"),
        ("dying", Refusal.CHILD_DIED, 3, "status 7"),
    ],
)
def test_what_is_no_proof_is_refused_by_its_name(
    place: Place, factory: str, refusal: Refusal, exit_code: int, words: str
) -> None:
    """Each agent that does not fail in this way, or cannot be replayed, is refused by name with its exit code."""
    report = prove(place.scenario, place.project, agent=f"shop:{factory}")

    assert (report.refusal, report.exit_code) == (refusal, exit_code), report.because
    assert words in report.because


def test_a_stuck_agent_gives_no_verdict(place: Place) -> None:
    """An agent that does not end is stopped and named, never judged."""
    text = (place.scenario / "scenario.yaml").read_text()
    (place.scenario / "scenario.yaml").write_text(text + "proof:\n  timeout: 1.0\n")

    report = prove(place.scenario, place.project, agent="shop:stuck")

    assert report.refusal is Refusal.TIMED_OUT


def test_an_agent_that_looks_for_its_grader_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the scenario one is judged by is no run of the agent."""
    monkeypatch.setenv("SNOOP_IN", str(place.scenario.parent))

    report = prove(place.scenario, place.project, agent="shop:snooping")

    assert report.refusal is Refusal.GRADER_READ


@pytest.mark.parametrize("factory", ["frozen", "threaded", "asynchronous"])
def test_what_is_frozen_is_deterministic(
    place: Place, shop: ModuleType, recorded: Callable[..., RecordedRun], factory: str
) -> None:
    """Clock, uuids, random numbers, a joined thread and a coroutine replay with equal events."""
    if factory == "frozen":
        text = (place.scenario / "scenario.yaml").read_text()
        with_ignore = text.replace(
            "  cancel:\n    effect: write\n", "  cancel:\n    effect: write\n    match: {ignore: [note]}\n"
        )
        assert with_ignore != text
        (place.scenario / "scenario.yaml").write_text(with_ignore)

    report = prove(place.scenario, place.project, agent=f"shop:{factory}")

    assert report.proven, report.because


def test_a_control_that_is_not_green_refuses_the_proof(place: Place) -> None:
    """A scenario that its control cannot pass proves nothing about the agent."""
    report = prove(place.scenario, place.project, control="shop:raising")

    assert (report.refusal, report.exit_code) == (Refusal.CONTROL_NOT_GREEN, 3)


def test_a_fixed_agent_is_recorded_as_the_control(place: Place) -> None:
    """With ``--control`` the fixed code meets the incident's own decisions, and its way is recorded."""
    text = (place.scenario / "scenario.yaml").read_text()
    fixture = (
        "  verify:\n    effect: read\n    responses:\n"
        "      - when: {customer: C-1}\n        return: {customer: C-1, verified: true}\n        source: authored\n"
    )
    (place.scenario / "scenario.yaml").write_text(text.replace("checks:\n", fixture + "checks:\n", 1))

    report = prove(place.scenario, place.project, control="shop:guarded")

    assert report.proven, report.because
    assert report.control == "agent shop:guarded"
    assert (place.scenario / "good.jsonl").read_text().count("\n") > 3


def test_an_authored_answer_is_never_the_reason_of_a_red(place: Place) -> None:
    """The red run is played from the incident alone."""
    text = (place.scenario / "scenario.yaml").read_text()
    (place.scenario / "scenario.yaml").write_text(
        text.replace("return:", "source: authored\n        return:", 1)
    )

    report = prove(place.scenario, place.project)

    assert report.refusal is Refusal.OFF_TAPE


def test_a_trace_that_does_not_fail_proves_nothing(
    place: Place, shop: ModuleType, recorded: Callable[..., RecordedRun]
) -> None:
    """The production check runs over the recorded trace first, and must be red there."""
    good = freeze_trace_of(place, recorded(shop.with_careful_model()))
    (place.scenario / "trace.otlp.pb.gz").write_bytes(good)

    report = prove(place.scenario, place.project)

    assert (report.refusal, report.exit_code) == (Refusal.TRACE_NOT_RED, 1)


def freeze_trace_of(place: Place, run: RecordedRun) -> bytes:
    """The trace of a passing run under the incident's trace id."""
    import gzip
    from dataclasses import replace

    from redfirst.evaluators.otlp_encode import encode_traces

    trace_id = str(load(place.scenario).scenario.origin["trace_id"])
    return gzip.compress(encode_traces([replace(span, trace_id=trace_id) for span in run.spans]), mtime=0)


@pytest.mark.parametrize(
    "name", [name for name in HASHED_FILES if name not in ("logs.otlp.pb.gz", "good.jsonl")]
)
def test_any_changed_byte_voids_the_proof(place: Place, name: str) -> None:
    """A proof holds for exactly the bytes it was made of."""
    assert prove(place.scenario, place.project).proven
    body = bytearray((place.scenario / name).read_bytes())
    body[len(body) // 2] ^= 1
    (place.scenario / name).write_bytes(bytes(body))

    try:
        state = standing(load(place.scenario))
    except RedfirstError:
        return  # no scenario any more, which is no proof either
    assert not state.proven
    assert name in state.because


def test_a_failed_attempt_leaves_the_earlier_proof(place: Place) -> None:
    """That another agent passes says nothing about the one that was seen to fail."""
    prove(place.scenario, place.project)

    prove(place.scenario, place.project, agent="shop:guarded")

    assert standing(load(place.scenario)).proven


def test_a_live_proof_needs_a_rate_that_holds(place: Place) -> None:
    """With the model live the proof is a lower bound of the red rate, not one lucky run."""
    always = prove(place.scenario, place.project, level=Level.LIVE, runs=5)
    half = prove(place.scenario, place.project, agent="shop:with_careful_model", level=Level.LIVE, runs=3)

    assert always.proven
    assert json.loads((place.scenario / "proof.json").read_text())["level"] == "live"
    assert half.refusal is Refusal.OFF_TAPE  # nobody recorded what verify answers: no verdict, not a pass


def test_an_agent_reference_that_does_not_import_is_a_configuration_error(place: Place) -> None:
    """The message names the reference and what Python said."""
    with pytest.raises(
        ConfigurationError, match=r"agent nowhere:make: it cannot be made: ModuleNotFoundError"
    ):
        prove(place.scenario, place.project, agent="nowhere:make")


def test_the_checks_of_the_scenario_are_those_that_flagged(place: Place) -> None:
    """A rule whose meaning changed since the flag is refused, not silently judged anew."""
    text = (place.scenario / "scenario.yaml").read_text()
    (place.scenario / "scenario.yaml").write_text(text.replace("tool: verify", "tool: verify_customer"))

    with pytest.raises(ConfigurationError, match="means something else than when it flagged the run"):
        prove(place.scenario, place.project)


def test_freezing_again_gives_the_same_bytes(shop: ModuleType, recorded: Callable[..., RecordedRun]) -> None:
    """The same incident is always the same scenario."""
    incident = recorded(shop.bad())

    assert freeze(incident, CHECKS).files == freeze(incident, CHECKS).files


def test_what_was_changed_while_it_was_proven_is_not_proven(place: Place) -> None:
    """A proof binds the bytes that were executed, not those that lie there at the end."""
    path = place.scenario / "scenario.yaml"

    def edit(step: Step) -> None:
        if step.name == "S4":
            path.write_text(path.read_text() + "# edited meanwhile\n")

    with pytest.raises(ConfigurationError, match="changed while it was being proven"):
        prove(place.scenario, place.project, told=edit)
    assert not standing(load(place.scenario)).proven


def test_a_scenario_behind_a_link_is_closed_as_well(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent may read neither the link nor what it points to."""
    away = place.project.root / "elsewhere"
    place.scenario.rename(away)
    place.scenario.symlink_to(away)
    monkeypatch.setenv("SNOOP_IN", str(away))

    report = prove(place.scenario, place.project, agent="shop:snooping")

    assert report.refusal is Refusal.GRADER_READ


@pytest.mark.parametrize("runs", [0, -3])
def test_a_number_of_runs_is_at_least_one(place: Place, runs: int) -> None:
    """Nothing run is no outcome."""
    with pytest.raises(ConfigurationError, match="at least 1"):
        prove(place.scenario, place.project, level=Level.LIVE, runs=runs)
    with pytest.raises(ConfigurationError, match="at least 1"):
        run(place.scenario, place.project, at=0.0, runs=runs)


LOOK_FIRST = check_from_spec({"kind": "recall", "id": "recall:cancel", "required_calls": ["lookup"]})


@pytest.fixture
def unchecked(project: Project, shop: ModuleType, recorded: Callable[..., RecordedRun]) -> Place:
    """An incident whose failure is an absence: the answer was given without a lookup."""
    checks = (*CHECKS, LOOK_FIRST)
    folder = project.root / "scenarios" / "unchecked"
    incident = recorded(shop.answers_unchecked(), checks=checks)
    freeze(incident, checks, control=recorded(shop.with_careful_model(), checks=checks)).write(folder)
    return Place(project, folder)


@pytest.mark.parametrize(
    ("factory", "refusal", "words"),
    [
        ("model_down", Refusal.INCONCLUSIVE, "a failure of the infrastructure, not of the agent"),
        ("model_breaks", Refusal.OTHER_REASON, "termination"),
    ],
)
def test_what_a_run_that_broke_off_left_undone_proves_nothing(
    unchecked: Place, factory: str, refusal: Refusal, words: str
) -> None:
    """A call that was not made because nothing could be made is not the failure of production."""
    broken = prove(unchecked.scenario, unchecked.project, agent=f"shop:{factory}", level=Level.LIVE, runs=3)
    honest = prove(
        unchecked.scenario, unchecked.project, agent="shop:answers_unchecked", level=Level.LIVE, runs=5
    )

    assert broken.refusal is refusal, broken.because
    assert words in broken.because
    assert honest.proven, honest.because


def test_what_the_agent_raised_before_its_first_call_is_said(place: Place) -> None:
    """Why nothing was called is the first thing a developer asks."""
    report = prove(place.scenario, place.project, agent="shop:raises_at_once")

    assert report.refusal is Refusal.AGENT_NOT_CALLED
    assert "it raised ValueError: no such customer" in report.because
