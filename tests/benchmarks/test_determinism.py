"""The programs of the determinism benchmark are as different as it says, and a few of them are proven here."""

from __future__ import annotations

from pathlib import Path

import pytest
from determinism.__main__ import as_expected, plant, prove_one
from determinism.planted import PLANTED
from determinism.programs import programs

KINDS = {"clock", "uuid", "random", "set order", "thread", "environment"}


def test_there_are_a_hundred_different_programs_and_half_make_calls_at_once() -> None:
    """No two have the same source."""
    made = list(programs(104))

    assert len({one.source for one in made}) == len(made)
    assert sum(one.concurrent for one in made) == len(made) / 2


def test_every_kind_of_chance_is_planted_and_has_a_frozen_twin() -> None:
    """So that neither a refusal of everything nor a proof of everything passes."""
    assert {one.kind for one in PLANTED if one.named is not None} == KINDS
    assert {one.kind for one in PLANTED if one.named is None} == KINDS


@pytest.mark.parametrize("way", ["gather", "threads", "pool"])
def test_a_program_that_makes_calls_at_once_is_proven(tmp_path: Path, way: str) -> None:
    """The benchmark proves all of them: ``make determinism``."""
    one = next(one for one in programs(12) if one.way == way)

    assert prove_one(tmp_path, one).proven


@pytest.mark.parametrize("what", ["as_completed of a pool", "the time of a file"])
def test_what_is_planted_is_named_and_leaves_nothing_behind(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pool's results in the order in which they came; a file that the program makes where it runs."""
    number, one = next((n, one) for n, one in enumerate(PLANTED) if one.what == what)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    proof = plant(tmp_path, number, one)
    assert as_expected(one, proof), proof
    assert not list(Path.cwd().iterdir())
