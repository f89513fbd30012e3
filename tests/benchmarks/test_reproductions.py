"""The table of theirs and ours: it computes, it calls a miss a miss, and it fits a terminal."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from reproductions import __main__ as printing
from reproductions import agent, every, flakes
from reproductions.line import Line, Relation, Verdict, over_seeds
from reproductions.scored_runs import broken, scored, sound

RESULTS = Path(every.__file__).parent / "results.json"


@pytest.mark.parametrize("letter", sorted(every.ALL))
def test_each_computes_and_fits_a_terminal(letter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With two seeds and small suites: every figure is a number and no line is wider than 80 columns."""
    monkeypatch.setattr(flakes, "SUITES", 50)

    one = every.ALL[letter](2)
    table = printing.shown(letter, one)

    assert all(math.isfinite(line.ours) for line in one.lines)
    assert len({line.what for line in one.lines}) == len(one.lines)
    assert max(map(len, table.splitlines())) <= 80
    assert all(str(line.what) in table for line in one.lines)
    assert json.loads(json.dumps(printing.as_json({letter: one}, 2)))[letter]["fitted"] == dict(one.fitted)


def test_what_was_written_down_is_what_is_computed() -> None:
    """The figures without a seed stand in ``results.json`` as they come out today."""
    written = json.loads(RESULTS.read_text("utf-8"))

    for letter in ("b", "e", "f"):
        lines = {line["what"]: line for line in written[letter]["lines"]}
        for line in every.ALL[letter](1).lines:
            assert lines[line.what]["ours"] == pytest.approx(line.ours, abs=1e-8)
            assert lines[line.what]["verdict"] == line.verdict


def test_the_one_known_miss_is_called_one() -> None:
    """1 − .2⁸ is .9999974, which is not .99999."""
    missed = [
        line.what for letter in "bef" for line in every.ALL[letter](1).lines if line.verdict is Verdict.MISS
    ]

    assert missed == ["pass@8 at .8"]
    assert "MISS" in printing.shown("b", every.ALL["b"](1))


@pytest.mark.parametrize(
    ("theirs", "ours", "relation", "spread", "fitted", "verdict"),
    [
        (10.0, 10.04, Relation.EQUAL, None, False, Verdict.HIT),
        (10.0, 10.06, Relation.EQUAL, None, False, Verdict.MISS),
        (10.0, 10.06, Relation.EQUAL, 0.01, False, Verdict.HIT),
        (10.0, 10.08, Relation.EQUAL, 0.01, True, Verdict.MISS),
        (10.0, 10.0, Relation.EQUAL, None, True, Verdict.FITTED),
        (10.0, 10.1, Relation.ABOVE, None, False, Verdict.HIT),
        (10.0, 9.9, Relation.ABOVE, None, False, Verdict.MISS),
        (10.0, 10.0, Relation.ABOVE, None, False, Verdict.MISS),
        (10.0, 10.0, Relation.BELOW, None, False, Verdict.MISS),
        (10.0, 9.9, Relation.BELOW, None, False, Verdict.HIT),
        (10.0, 10.1, Relation.BELOW, None, False, Verdict.MISS),
        (None, 1.0, Relation.EQUAL, None, False, Verdict.OURS),
    ],
)
def test_hits_and_misses(
    theirs: float | None,
    ours: float,
    relation: Relation,
    spread: float | None,
    fitted: bool,
    verdict: Verdict,
) -> None:
    """Half a unit of the last published digit, two spreads beside it, and no more."""
    line = Line(what="x", theirs=theirs, ours=ours, digits=1, relation=relation, spread=spread, fitted=fitted)

    assert line.verdict is verdict


def test_seeds_decide_everything() -> None:
    """The same seeds give the same figures, another seed others."""
    assert over_seeds(2, flake_free) == over_seeds(2, flake_free)
    assert over_seeds(1, flake_free)[0] != over_seeds(2, flake_free)[0]


def flake_free(rng):  # type: ignore[no-untyped-def]
    """A small laboratory."""
    return {"right": float(agent.run(agent.Lab(tasks=20), rng).right.mean())}


def test_the_lab_obeys_its_parameters() -> None:
    """Without slips and flakes every run passes in as many turns as it has steps; with a budget below them none does."""
    sure = agent.Lab(tasks=20, margin=60.0, flaky=0.0, shortest=7, longest=7, turn_price=1.0)
    found, _ = over_seeds(1, lambda rng: _shares(sure, rng))
    short, _ = over_seeds(1, lambda rng: _shares(agent.Lab(tasks=20, budget=5), rng))

    assert found == {"right": 1.0, "cost": 7.0}
    assert short["right"] == 0


def _shares(lab, rng):  # type: ignore[no-untyped-def]
    runs = agent.run(lab, rng)
    return {"right": float(runs.right.mean()), "cost": float(runs.cost.mean())}


def test_the_runs_are_read_from_their_spans() -> None:
    """The sound run passes both scores; the one with a repeat only that of its outcome; the looping one neither."""
    fine, again, loops = scored(sound(0)), scored(broken(10)), scored(broken(29))

    assert (fine.outcome, fine.trajectory, fine.calls, fine.repeats, fine.capped) == (True, True, 2, 0, False)
    assert (again.outcome, again.trajectory, again.calls, again.repeats) == (True, False, 3, 1)
    assert (loops.outcome, loops.trajectory, loops.calls, loops.repeats, loops.capped) == (
        False,
        False,
        10,
        8,
        True,
    )
    assert (fine.tokens, again.tokens, loops.tokens) == (829, 990, 1970)


def test_the_command_prints_and_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One letter: its table, the counts of results, and the figures as JSON."""
    monkeypatch.setattr("sys.argv", ["reproductions", "f", "--json", str(tmp_path / "out" / "f.json")])

    assert printing.main() == 0
    printed = capsys.readouterr().out
    assert "pass^8" in printed
    assert "4 hit;" in printed
    assert list(json.loads((tmp_path / "out" / "f.json").read_text("utf-8"))) == ["f"]


def test_an_unknown_letter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the letters there are."""
    monkeypatch.setattr("sys.argv", ["reproductions", "z"])

    with pytest.raises(SystemExit):
        printing.main()
