"""``freeze --sample``: what holds is kept, what does not is named, and no request is frozen twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from redfirst.collector_processor.cli import main
from redfirst.evaluators.otlp_encode import encode_traces
from redfirst.replay.freezing import RecordedRun, freeze
from redfirst.replay.project import Project
from redfirst.replay.scenario import load
from redfirst.replay.standing import standing

from .conftest import CHECKS

Record = Callable[..., RecordedRun]


@pytest.fixture
def root(project: Project, shop: ModuleType, recorded: Record, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two runs that went well: the newest by an agent that noted more than today's does."""
    old = recorded(shop.with_careful_model())
    new = recorded(shop.make(chat=shop.careful, note=lambda: "asked"), "please cancel A-1 today")
    (project.root / "day.pb").write_bytes(encode_traces([*old.spans, *new.spans]))
    (project.root / "redfirst.yaml").write_text(
        'agents: {shop: {call: "shop:with_careful_model"}}\ntraces: [day.pb]\n'
    )
    monkeypatch.chdir(project.root)
    return project.root


def test_what_does_not_hold_is_named_and_the_next_is_tried(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One was asked for and one is held; the other leaves nothing behind."""
    assert main(["freeze", "--sample", "1", "-n", "2"]) == 0
    said = capsys.readouterr().out

    (kept,) = (root / "scenarios").iterdir()
    assert standing(load(kept)).held == 2
    assert (
        said.index("not kept: sample-") < said.index("NOT HELD (exit 3): NO_VERDICT") < said.index("wrote ")
    )
    assert "went well: please cancel A-1 today" in said
    assert "passed over: 1 that did not hold" in said


def test_a_request_that_has_a_scenario_is_not_frozen_again(
    root: Path, shop: ModuleType, recorded: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    """Be it a sample or an incident; nothing held is no verdict, and ``--json`` counts the same."""
    freeze(recorded(shop.bad()), CHECKS).write(root / "scenarios" / "incident")  # of the same request

    assert main(["freeze", "--sample", "1", "-n", "2", "--json"]) == 3
    tried, end = map(json.loads, capsys.readouterr().out.splitlines())
    assert (tried["held"], tried["folder"]) == (False, None)
    assert end == {
        "kind": "samples",
        "asked": 1,
        "held": 0,
        "passed_over": {"that did not hold": 1, "whose request has a scenario already": 1},
    }
    assert [path.name for path in (root / "scenarios").iterdir()] == ["incident"]


def test_a_sample_that_cannot_be_replayed_leaves_nothing(root: Path) -> None:
    """The agent cannot be made: 2, and no draft that would be shown as one."""
    (root / "redfirst.yaml").write_text('agents: {shop: {call: "shop:nothing"}}\ntraces: [day.pb]\n')

    assert main(["freeze", "--sample", "1", "-n", "2"]) == 2
    assert not list((root / "scenarios").iterdir())


def test_another_version_of_a_scenario_is_a_wrong_argument(
    root: Path, shop: ModuleType, recorded: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    """As every option that is missing: 2."""
    incident = recorded(shop.make(chat=shop.careful, note=lambda: "x"))
    (root / "one.pb").write_bytes(encode_traces(incident.spans))
    (root / "rules.yaml").write_text(
        "schema: redfirst.rules/1\nrules: [{id: no-cancel, kind: forbid, call: cancel}]\n"
    )
    arguments = ["freeze", incident.run.run_id, "--traces", "one.pb", "--rules", "rules.yaml", "--out", "a"]
    assert main(arguments) == 0
    (root / "a" / "model.jsonl").write_bytes((root / "a" / "model.jsonl").read_bytes() + b"\n")

    assert main(arguments) == 2
    assert "another version of this scenario is there; pass --replace" in capsys.readouterr().err
