"""What the tests of ``redfirst import`` share: fixtures imported and read back."""

from __future__ import annotations

from pathlib import Path

from redfirst.collector_processor.cli import main
from redfirst.collector_processor.recorded.files import read_files
from redfirst.evaluators import Span, Trajectory
from redfirst.evaluators.reading import read

FIXTURES = Path(__file__).parents[1] / "fixtures" / "imports"


def imported(form: str, *paths: Path, out: Path) -> tuple[list[Trajectory], list[Span]]:
    """The runs, in the order of ``score``, and the spans of a command line that used every record."""
    assert main(["import", form, *map(str, paths), "--out", str(out)]) == 0
    stream = read_files([out])
    assert not stream.refused
    return list(read(stream.spans, stream.logs).runs), list(stream.spans)


def fact(run: Trajectory, name: str) -> bool:
    """Whether coverage says that the fact is missing."""
    return any(gap.fact == name for gap in run.coverage.missing)
