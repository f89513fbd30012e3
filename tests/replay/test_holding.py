"""Samples of what goes well: guards only, replayed, gating, and never called proven."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from redfirst.evaluators import ConfigurationError
from redfirst.evaluators.check import check_from_spec
from redfirst.replay.freezing import Draft, FreezeRefused, RecordedRun, sample
from redfirst.replay.holding import hold
from redfirst.replay.project import Project
from redfirst.replay.proof import prove
from redfirst.replay.scenario import load, parse
from redfirst.replay.standing import standing

from .conftest import CHECKS

Record = Callable[..., RecordedRun]


@pytest.fixture
def draft(shop: ModuleType, recorded: Record) -> Draft:
    """A run that verified first."""
    return sample(recorded(shop.with_careful_model()), CHECKS)


@pytest.fixture
def folder(project: Project, draft: Draft) -> Path:
    """It in a project."""
    draft.write(project.root / "scenarios" / "well")
    return project.root / "scenarios" / "well"


def test_a_sample_has_guards_only(draft: Draft) -> None:
    """What passed is to pass again; termination is among it, so that there is a goal."""
    assert draft.scenario.kind == "sample"
    assert draft.scenario.targets() == ()
    assert {check.id for check in draft.scenario.guards()} == {
        "verify-before-cancel",
        "repeats",
        "termination",
    }
    assert draft.scenario.title == "went well: please cancel A-1"


def test_a_flagged_run_and_one_that_broke_off_are_no_samples(shop: ModuleType, recorded: Record) -> None:
    """The message names what failed, or how it ended."""
    with pytest.raises(FreezeRefused, match="is no sample of what goes well: verify-before-cancel failed"):
        sample(recorded(shop.bad()), CHECKS)
    check = check_from_spec({"kind": "forbid", "id": "never", "call": "sing"})
    with pytest.raises(FreezeRefused, match="is no sample of what goes well: it ended step_cap"):
        sample(recorded(shop.make(chat=shop.careful, cap=1), checks=(check,)), (check,))


def test_a_sample_that_stays_green_is_held_and_not_proven(project: Project, folder: Path) -> None:
    """It gates; a changed byte ends that, as it does for a proof."""
    assert standing(load(folder)).because == "a sample that no replays have held yet"
    holding = hold(folder, project, agent="shop:with_careful_model", runs=2)
    found = standing(load(folder))

    assert (holding.held, holding.exit_code) == (True, 0)
    assert (found.proven, found.held, found.gates) == (False, 2, True)
    assert "never seen to fail" in found.because
    path = folder / "model.jsonl"
    path.write_bytes(path.read_bytes().replace(b"A-1", b"A-2", 1))
    assert not standing(load(folder)).gates


def test_what_was_written_of_the_replays_cannot_be_edited(project: Project, folder: Path) -> None:
    """Three replays do not become thirty."""
    hold(folder, project, agent="shop:with_careful_model", runs=2)
    path = folder / "held.json"
    path.write_text(
        json.dumps({**json.loads(path.read_text()), "green": 30}, indent=1, sort_keys=True) + "\n"
    )

    assert standing(load(folder)).because == "void: held.json changed since the replays"


def test_an_agent_that_no_longer_does_it_is_not_held(project: Project, folder: Path) -> None:
    """Another way is no verdict; nothing is written."""
    holding = hold(folder, project, agent="shop:off_tape", runs=2)

    assert (holding.held, holding.exit_code) == (False, 3)
    assert not (folder / "held.json").exists()


def test_one_replay_says_nothing_and_a_sample_has_no_target(project: Project, folder: Path) -> None:
    """Both are wrong arguments."""
    with pytest.raises(ConfigurationError, match="give at least 2"):
        hold(folder, project, runs=1)
    text = (folder / "scenario.yaml").read_text().replace("role: guard", "role: target", 1)
    with pytest.raises(
        ConfigurationError, match="a sample was not flagged, so none of its checks has role: target"
    ):
        parse(text, "scenario.yaml")


def test_a_sample_is_not_proven_by_prove(project: Project, folder: Path) -> None:
    """There is no target that could be seen to fail."""
    with pytest.raises(ConfigurationError, match="a sample has no target"):
        prove(folder, project)
