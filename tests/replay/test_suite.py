"""What counts and what does not: drafts, quarantine, expiry, and the exit code of a suite."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from redfirst.collector_processor.cli import main
from redfirst.collector_processor.commands import run as run_command
from redfirst.evaluators import ConfigurationError
from redfirst.replay import files
from redfirst.replay.answers import _differences
from redfirst.replay.asked import Asked, Mode
from redfirst.replay.capping import CapReading, Caps, UnderCap
from redfirst.replay.drift_file import DRIFT_FILE
from redfirst.replay.injecting import Injected, Recovery, injections, not_put_in
from redfirst.replay.injection import FaultKind, Injection, emptied
from redfirst.replay.outcome import RunOutcome
from redfirst.replay.proof import prove
from redfirst.replay.running import run_all
from redfirst.replay.suite import Suite
from redfirst.replay.upkeep import UPKEEP_FILE, upkeep

from .conftest import Place

DAY = 86_400.0
NOV_30 = datetime(2026, 11, 30, tzinfo=UTC).timestamp()


def test_quarantine_lasts_a_fortnight_at_most_and_then_fails(tmp_path: Path) -> None:
    """From its first day to its last it holds the scenario back, the day after it fails the suite."""
    (tmp_path / UPKEEP_FILE).write_text(
        "expires: 2026-12-01\nowner: payments\n"
        "quarantine: {since: 2026-11-20, until: 2026-11-30, reason: the gateway moved, owner: ana}\n"
    )
    before, last, after = (upkeep(tmp_path, at=NOV_30 + at) for at in (-11 * DAY, DAY - 1, DAY))

    assert (before.quarantine, before.overdue) == (None, None)
    assert before.notes == ("its quarantine begins on 2026-11-20: it counts until then",)
    assert (last.quarantine is not None, last.overdue, last.expired) == (True, None, None)
    assert last.notes == ("quarantined until 2026-11-30 by ana: the gateway moved",)
    assert (after.quarantine, after.overdue is not None) == (None, True)
    assert str(after.expired) == "2026-12-01"
    assert after.notes[1] == "expired on 2026-12-01: confirm that its recorded answers still hold (payments)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "quarantine: {since: 2026-11-20, until: 2026-12-05, reason: r, owner: o}",
            r"upkeep.yaml:1: quarantine: until 2026-12-05 is not within 14 days after since 2026-11-20",
        ),
        ("quarantine: {since: 2026-11-20, until: 2026-11-21, reason: r}", "quarantine.owner: Field required"),
        ("owner: ana\nexpire: 2027-01-01", r"upkeep.yaml:2: expire: Extra inputs"),
        ("expires: soon", r"upkeep.yaml:1: expires: "),
    ],
)
def test_an_upkeep_file_that_is_wrong_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    """A quarantine without an owner, or for a month, is none."""
    (tmp_path / UPKEEP_FILE).write_text(text)

    with pytest.raises(ConfigurationError, match=words):
        upkeep(tmp_path, at=NOV_30)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "damaged .*delete it and run drift again"),
        ('{"schema": "redfirst.drift/2", "moved": []}', "schema is 'redfirst.drift/2'"),
        ('{"schema": "redfirst.drift/1", "seen": "x"}', "damaged .KeyError: 'moved'"),
    ],
)
def test_a_mark_of_drift_that_is_damaged_is_no_clean_bill(tmp_path: Path, text: str, words: str) -> None:
    """Nobody can tell what moved: that is said, not taken for nothing."""
    (tmp_path / DRIFT_FILE).write_text(text)

    with pytest.raises(ConfigurationError, match=words):
        upkeep(tmp_path, at=NOV_30)


def test_what_was_changed_since_its_proof_is_counted_by_itself(place: Place) -> None:
    """A test that somebody took away is no draft like the others."""
    (draft,) = run_all([(place.scenario, Asked())], place.project, at=NOV_30)
    prove(place.scenario, place.project)
    with (place.scenario / "scenario.yaml").open("a") as text:
        text.write("# reviewed\n")
    (edited,) = run_all([(place.scenario, Asked())], place.project, at=NOV_30)

    assert (draft.standing.void, edited.standing.void) == (False, True)
    assert (
        "; 2 drafts not counted (1 void: changed since its proof); " in Suite(outcomes=[draft, edited]).tally
    )
    assert "; 1 draft not counted; " in Suite(outcomes=[draft]).tally


def test_a_quarantined_scenario_is_run_and_counted_and_fails_nothing(place: Place) -> None:
    """Its proof stands all the while: the quarantine is no byte of what was proven."""
    prove(place.scenario, place.project)
    (before,) = run_all([(place.scenario, Asked())], place.project, at=NOV_30)
    (place.scenario / UPKEEP_FILE).write_text(
        "quarantine: {since: 2026-11-30, until: 2026-12-02, reason: flaky, owner: ana}\n"
    )
    (held,) = run_all([(place.scenario, Asked())], place.project, at=NOV_30)
    (late,) = run_all([(place.scenario, Asked())], place.project, at=NOV_30 + 3 * DAY)

    assert [Suite(outcomes=[one]).exit_code for one in (before, held, late)] == [1, 3, 1]
    assert Suite(outcomes=[before, held]).exit_code == 1
    assert (held.outcome, held.standing.proven) == (RunOutcome.RED, True)
    assert Suite(outcomes=[held]).tally == (
        "0 RED, 0 GREEN, 0 NO_VERDICT; 0 drafts not counted; 1 quarantined"
    )


@pytest.mark.parametrize(
    ("stopped", "reading"),
    [
        ((0, 0, 0), CapReading.FITS),
        ((3, 1, 0), CapReading.SLOW),
        ((3, 3, 3), CapReading.STUCK),
        ((3, 3, 2), CapReading.MIXED),
        ((3, None, 0), CapReading.UNCLEAR),
    ],
)
def test_slow_or_stuck_is_read_from_the_highest_cap(
    stopped: tuple[int | None, ...], reading: CapReading
) -> None:
    """Three runs under each of three caps; ``None``: no run has a verdict."""
    under = tuple(
        UnderCap(
            cap=cap, valid=0 if cut is None else 3, green=0 if cut is None else 3 - cut, stopped=cut or 0
        )
        for cap, cut in zip((6, 12, 24), stopped, strict=True)
    )

    assert Caps(scenario="s", under=under).reading is reading


@pytest.mark.parametrize(
    ("stopped", "green", "reading"),
    [
        ((3, 3, 0), (0, 0, 0), CapReading.FAILS),
        ((0, 0, 0), (0, 0, 0), CapReading.FAILS),
        ((3, 3, 2), (0, 0, 0), CapReading.FAILS),
        ((3, 3, 3), (0, 0, 0), CapReading.STUCK),
        ((3, 0, 0), (0, 1, 0), CapReading.SLOW),
    ],
)
def test_what_is_red_under_every_cap_is_not_slow(
    stopped: tuple[int, ...], green: tuple[int, ...], reading: CapReading
) -> None:
    """That more steps let it end says nothing good where it is RED then for another reason."""
    under = tuple(
        UnderCap(cap=cap, valid=3, green=good, stopped=cut)
        for cap, good, cut in zip((6, 12, 24), green, stopped, strict=True)
    )

    assert Caps(scenario="s", under=under).reading is reading


def test_a_scenario_that_is_red_without_cap_and_fault_is_told_so(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One step cuts it, eight do not, and it cancels without verifying under both; no fault is put in."""
    monkeypatch.chdir(place.project.root)
    command = ["run", "--draft", "--mode", "tools", "-n", "1", "--agent", "shop:never_green"]

    assert main([*command, "--step-cap", "1,8"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "fails at every cap: more steps do not help" in told
    assert ": verify-before-cancel: " in told
    assert "slow" not in told

    assert main([*command, "--inject", "error"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "no fault put in: not green without a fault" in told
    assert "0 faults put in; not put in at 1 scenario: not green without a fault" in told


@pytest.mark.parametrize(
    ("agent", "kinds", "code", "readings"),
    [
        ("persistent", "error,timeout,500", 0, ["recovers"] * 3),
        ("persistent", "empty", 0, ["recovers"]),
        ("claims_anyway", "error,timeout,500", 1, ["unnoticed"] * 3),
        ("claims_anyway", "empty", 3, ["unclear"]),
        ("hands_on", "error,timeout,500", 0, ["tells"] * 3),
        ("claims_anyway", "empty,error", 1, ["unnoticed", "unclear"]),
    ],
)
def test_green_all_the_same_is_no_recovery(
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    agent: str,
    kinds: str,
    code: int,
    readings: list[str],
) -> None:
    """One agent asks again until it has the answer, one hands the error on to its user, and one says that the order is
    open whatever it was told.
    """
    monkeypatch.chdir(place.project.root)
    written = ["--junit", "new/junit.xml", "--sarif", "new/red.sarif"]
    command = ["run", "--draft", "--mode", "tools", "-n", "1", "--agent", f"shop:{agent}", "--inject", kinds]

    assert main([*command, "--json", *written]) == code
    baseline, *found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (baseline["outcome"], baseline["recovery"]) == ("GREEN", None)
    assert [one["recovery"] for one in found] == readings
    counts = (readings.count("unnoticed"), readings.count("unclear"))
    assert 'failures="{}" errors="{}"'.format(*counts) in Path("new/junit.xml").read_text()
    results = json.loads(Path("new/red.sarif").read_text())["runs"][0]["results"]
    assert [one["ruleId"] for one in results] == ["recovery"] * counts[0]
    if "unnoticed" in readings:
        said = (
            "green although lookup ended in an error and did not succeed afterwards; it answered: it is open"
        )
        assert found[0]["recovery_because"] == said


def test_a_recorded_model_is_told_of_no_fault_and_none_is_judged_by_it(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tape holds no answer to a fault, which is said once for a tool; turn by turn it would not even notice."""
    text = (place.scenario / "scenario.yaml").read_text()
    fixture = (
        "  verify:\n    effect: read\n    responses:\n"
        "      - when: {customer: C-1}\n        return: {customer: C-1, verified: true}\n        source: authored\n"
    )
    (place.scenario / "scenario.yaml").write_text(text.replace("checks:\n", fixture + "checks:\n", 1))
    assert prove(place.scenario, place.project, control="shop:guarded").proven
    monkeypatch.chdir(place.project.root)
    command = ["run", "--agent", "shop:guarded", "--inject", "error,timeout"]

    assert main([*command, "--mode", "recorded"]) == 3
    told = " ".join(capsys.readouterr().out.split())
    assert (
        "lookup, error, timeout: no verdict, the recorded model was never told of this; see --mode tools"
        in told
    )
    assert main([*command, "--mode", "model"]) == 2
    assert "goes on as it was whatever it is told; give --mode tools" in capsys.readouterr().err


def test_a_summary_that_cannot_be_written_is_known_before_and_hides_no_red(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below a file there is no folder: nothing is run. A disk that fills up meanwhile leaves RED what it is."""
    monkeypatch.chdir(place.project.root)
    Path("file").write_text("")

    for option in ("--junit", "--sarif", "--markdown"):
        assert main(["run", "--draft", option, "file/summary"]) == 2
    assert main(["export", "pytest", "--out", "file/test_them.py"]) == 2
    assert not (place.project.home / "runs").exists()
    capsys.readouterr()

    def full(path: Path, body: bytes) -> None:
        raise files.CannotWrite(f"{path}: cannot be written: {len(body)} bytes")

    with monkeypatch.context() as broken:
        broken.setattr(run_command.files, "write", full)
        monkeypatch.setattr("redfirst.replay.running.keep", lambda *_, **__: None)
        assert main(["run", "--draft", "--junit", "there/junit.xml"]) == 1
        assert "there/junit.xml: cannot be written" in capsys.readouterr().err
        live = ["--mode", "tools", "-n", "1", "--agent", "shop:persistent"]
        assert main(["run", "--draft", "--junit", "there/junit.xml", *live]) == 3
    assert main(["export", "pytest", "--out", "made/test_them.py"]) == 0
    assert Path("made/test_them.py").is_file()


def test_an_agent_under_a_cap_of_its_factory_is_cut_there(place: Place) -> None:
    """Looking up and answering takes two steps: one is too few. A factory that takes no cap is named."""
    asked = [Asked(mode=Mode.TOOLS, runs=1, step_cap=cap, agent="shop:persistent") for cap in (1, 4)]
    one, four = run_all([(place.scenario, each) for each in asked], place.project, at=0.0)

    assert Caps.of({1: one, 4: four}).reading is CapReading.SLOW
    with pytest.raises(ConfigurationError, match=r"bad takes no step_cap; let it: def bad\(\*, step_cap=…\)"):
        run_all([(place.scenario, Asked(mode=Mode.TOOLS, step_cap=2))], place.project, at=0.0)
    with pytest.raises(ConfigurationError, match="a tape holds no turn beyond"):
        run_all([(place.scenario, Asked(step_cap=2))], place.project, at=0.0)


def test_a_fault_is_put_in_once_and_only_where_it_changes_something() -> None:
    """The second call of the tool is answered as recorded; a stale answer needs an earlier, different one."""
    failing, stale = Injection("lookup", FaultKind.TIMEOUT), Injection("lookup", FaultKind.STALE)

    assert failing.failure("cancel") is None
    assert isinstance(failing.failure("lookup"), TimeoutError)
    assert failing.failure("lookup") is None
    assert stale.altered("lookup", {"status": "open"}, {"status": "open"}) == {"status": "open"}
    assert not stale.met
    assert stale.altered("lookup", {"status": "cancelled"}, {"status": "open"}) == {"status": "open"}
    assert stale.met
    assert [emptied(value) for value in ({"a": 1}, [1], "x", 7)] == [{}, [], "", None]


def test_an_agent_that_tries_again_recovers_and_one_that_lets_go_breaks_off(place: Place) -> None:
    """With its model live: the persistent agent asks again after a timeout, the fragile one ends with it."""
    path, project = place.scenario, place.project
    asked = [Asked(mode=Mode.TOOLS, runs=1, agent=f"shop:{name}") for name in ("persistent", "fragile")]
    green = run_all([(path, one) for one in asked], project, at=0.0)
    assert [one.outcome for one in green] == [RunOutcome.GREEN, RunOutcome.GREEN], green[0].said
    work = [item for one in green for item in injections(path, one, [FaultKind.TIMEOUT, FaultKind.STALE])]

    found = [
        Injected(tool=one.inject[0], kind=one.inject[1], outcome=outcome)
        for (_, one), outcome in zip(work, run_all(work, project, at=0.0), strict=True)
        if one.inject is not None
    ]

    assert [(one.tool, one.kind.value, one.recovery) for one in found] == [
        ("lookup", "timeout", Recovery.RECOVERS),
        ("lookup", "stale", Recovery.NOT_MET),
        ("lookup", "timeout", Recovery.BREAKS_OFF),
        ("lookup", "stale", Recovery.NOT_MET),
    ], [one.outcome.said for one in found]
    (red,) = run_all([(path, Asked())], project, at=0.0)
    assert injections(path, red, list(FaultKind)) == []
    assert (not_put_in(red), not_put_in(green[0])) == ("not green without a fault", None)


def test_a_run_that_infrastructure_ends_is_made_again_and_counted_apart(place: Place) -> None:
    """The model cannot be reached: two attempts are lost, and the third is what the run shows."""
    asked = Asked(mode=Mode.TOOLS, runs=1, agent="shop:model_down", infra_retries=2)
    (never,) = run_all([(place.scenario, asked)], place.project, at=0.0)

    assert (never.outcome, never.lost, len(never.results)) == (RunOutcome.NO_VERDICT, 2, 1)
    assert len(list((place.project.home / "runs").iterdir())) == 3


def test_live_reads_that_answer_in_another_shape_are_found(place: Place) -> None:
    """With the model frozen by turn: the same shape is no drift, a key that is gone and one that is new are; the write
    is answered from its recording all the while.
    """
    asked = [Asked(mode=Mode.MODEL, agent=f"shop:{name}") for name in ("bad", "renamed")]
    same, other = run_all([(place.scenario, one) for one in asked], place.project, at=0.0)

    assert (same.outcome, same.moved) == (RunOutcome.RED, ()), same.said
    assert other.moved == ("lookup: state is new", "lookup: status is gone")
    assert Suite(outcomes=[other], with_drafts=True).exit_code == 1


@pytest.mark.parametrize(
    ("recorded", "live", "said"),
    [
        ({"a": 1, "b": [{"c": 1}]}, {"a": 2, "b": [{"c": 2}, {"c": 3}]}, []),
        ({"a": 1}, {"a": "1"}, ["a was a number and is text"]),
        ({"a": None}, {"a": "1"}, []),
        ({"b": [{"c": 1}]}, {"b": [{"c": 1, "d": 1}]}, ["b[].d is new"]),
        ([], {}, ["the answer was a list and is an object"]),
    ],
)
def test_shapes_are_compared_and_values_are_not(recorded: object, live: object, said: list[str]) -> None:
    """By path and type; null says nothing of a type."""
    assert list(_differences([recorded], live)) == said
