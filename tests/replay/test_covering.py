"""A failure that a scenario keeps already is known by what failed, not by which run it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from redfirst.evaluators.check import check_from_spec
from redfirst.evaluators.record import run_record
from redfirst.instrumentation import agent, tool
from redfirst.replay.covering import covers, frozen_already, recorded_signature
from redfirst.replay.freezing import RecordedRun, freeze, sample
from redfirst.replay.redaction import Redaction

from .conftest import CHECKS

Record = Callable[..., RecordedRun]


def test_the_same_failure_of_another_run_is_covered(
    shop: ModuleType, recorded: Record, tmp_path: Path
) -> None:
    """A run recorded anew has other ids and times; a right one, and one of another agent, is not covered."""
    incident, again = recorded(shop.bad()), recorded(shop.bad())
    freeze(incident, CHECKS).write(tmp_path / "cancelled")
    known = covers(tmp_path)
    cover = known.of_run(again.run, again.verdicts)

    assert again.run.run_id != incident.run.run_id
    assert cover is not None
    assert cover.said == "covered by scenario cancelled (draft)"
    right = recorded(shop.with_careful_model())
    assert known.of_run(right.run, right.verdicts) is None
    assert known.of_run(replace(again.run, agents=("sales",)), again.verdicts) is None


def test_a_rule_that_means_something_else_covers_nothing(
    shop: ModuleType, recorded: Record, tmp_path: Path
) -> None:
    """The revision is part of what is kept."""
    incident = recorded(shop.bad())
    freeze(incident, CHECKS).write(tmp_path / "cancelled")
    changed = [replace(one, revision="0" * 12) for one in incident.verdicts]

    assert covers(tmp_path).of_run(incident.run, changed) is None


def test_a_scenario_of_two_failures_is_not_the_failure_of_one(
    shop: ModuleType, recorded: Record, tmp_path: Path
) -> None:
    """Only who fails in all that the scenario is about fails it again."""
    incident = recorded(shop.bad())
    freeze(incident, CHECKS).write(tmp_path / "cancelled")
    (cover,) = covers(tmp_path).known
    known = replace(covers(tmp_path), known=(replace(cover, signature=cover.signature | {("b", "r", "s")}),))

    assert known.of_run(incident.run, incident.verdicts) is None


def test_what_is_stored_of_a_run_is_enough(shop: ModuleType, recorded: Record, tmp_path: Path) -> None:
    """The record's verdicts name check, revision and subject; those of an older version name no subject."""
    incident = recorded(shop.bad())
    freeze(incident, CHECKS).write(tmp_path / "cancelled")
    verdicts = run_record(incident.run, incident.verdicts)["verdicts"]
    assert isinstance(verdicts, list)
    failed = [one for one in verdicts if one["outcome"] == "failed"]
    older = [{key: value for key, value in one.items() if key != "subjects"} for one in failed]

    assert covers(tmp_path).of(incident.run.agents[0], recorded_signature(failed)) is not None
    assert covers(tmp_path).of(incident.run.agents[0], recorded_signature(older)) is None


REDACTION = Redaction(key=b"k", personal=("email",))
PAYS = (
    check_from_spec({"id": "pays-none", "kind": "max_calls", "call": "pay", "max": 0, "same": ["args.to"]}),
)
MAIL = "ann.b@example.org"


def paid(recorded: Record, to: str = MAIL) -> RecordedRun:
    """A run that pays somebody, which no run may."""

    @tool(effect="write")
    def pay(to: str) -> str:
        return "paid"

    @agent(name="shop")
    def handle(asked: str) -> str:
        return pay(asked)

    return recorded(handle, to, PAYS)


def test_a_scenario_with_pseudonyms_covers_the_same_failure_of_raw_runs(
    recorded: Record, tmp_path: Path
) -> None:
    """No raw run fails for a pseudonym: it is compared by keyed hashes, which hold no value and are those of one payee."""
    draft = freeze(paid(recorded), PAYS, redaction=REDACTION)
    draft.write(tmp_path / "paid")
    again, other = paid(recorded), paid(recorded, "bob@example.org")
    known = covers(tmp_path, b"k")

    assert MAIL not in draft.files["scenario.yaml"].decode()
    cover = known.of_run(again.run, again.verdicts)
    assert cover is not None
    assert cover.scenario == "paid"
    assert known.of_run(other.run, other.verdicts) is None
    assert known.said_untold == ""
    # another scenario of the same failure has other hashes
    second = freeze(again, PAYS, redaction=REDACTION)
    assert len({one.scenario.origin["failed_as"]["items"][0][2] for one in (draft, second)}) == 2


def test_a_request_that_has_a_scenario_with_pseudonyms_is_known_in_another_run(
    shop: ModuleType, recorded: Record, tmp_path: Path
) -> None:
    """So a sample of the same request is not taken twice; without the key it is, which harms nobody."""
    redaction = replace(REDACTION, patterns={"words": "please cancel"})
    one, again = recorded(shop.with_careful_model()), recorded(shop.with_careful_model())
    draft = sample(one, CHECKS, redaction=redaction)
    draft.write(tmp_path / "well")

    assert "please cancel" not in draft.files["scenario.yaml"].decode()
    assert frozen_already(tmp_path, b"k").has(again.run)
    assert not frozen_already(tmp_path, b"another").has(again.run)
    assert not frozen_already(tmp_path, b"k").has(replace(again.run, request="please cancel A-2"))


@pytest.mark.parametrize("key", [None, b"another"])
def test_without_the_key_of_its_pseudonyms_a_scenario_covers_nothing_and_that_is_said(
    recorded: Record, tmp_path: Path, key: bytes | None
) -> None:
    """Neither a match nor a new failure is claimed."""
    incident = paid(recorded)
    freeze(incident, PAYS, redaction=REDACTION).write(tmp_path / "paid")
    known = covers(tmp_path, key)

    assert known.of_run(incident.run, incident.verdicts) is None
    assert "whether scenario paid covers a run cannot be told" in known.said_untold
    assert known.unreadable == ()


def test_nothing_is_kept_of_a_failure_that_no_pseudonym_changed(shop: ModuleType, recorded: Record) -> None:
    """The scenario's own signature is the raw one."""
    redaction = replace(REDACTION, patterns={"word": "please"}, personal=())

    assert "failed_as" not in freeze(recorded(shop.bad()), CHECKS, redaction=redaction).scenario.origin


def test_a_scenario_whose_trace_is_of_another_run_is_named_and_hides_no_other(
    shop: ModuleType, recorded: Record, tmp_path: Path
) -> None:
    """Its origin was edited, or the trace beside it put there by hand."""
    incident = recorded(shop.bad())
    for name in ("edited", "whole"):
        freeze(incident, CHECKS).write(tmp_path / name)
    text = tmp_path / "edited" / "scenario.yaml"
    text.write_text(text.read_text().replace(incident.run.trace_ids[0], "0" * 32))
    known = covers(tmp_path)

    assert [one.scenario for one in known.known] == ["whole"]
    assert known.unreadable == (
        f"{tmp_path / 'edited'}: the recorded trace holds 0 runs of its trace id; freeze the run again.",
    )


def test_a_broken_scenario_is_named_and_hides_no_other(
    shop: ModuleType, recorded: Record, tmp_path: Path
) -> None:
    """One line for each that cannot be read; no folder at all is no fault."""
    freeze(recorded(shop.bad()), CHECKS).write(tmp_path / "cancelled")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "scenario.yaml").write_text("schema: [")
    known = covers(tmp_path)

    assert [cover.scenario for cover in known.known] == ["cancelled"]
    (problem,) = known.unreadable
    assert "broken" in problem
    assert covers(tmp_path / "none") == type(known)()
