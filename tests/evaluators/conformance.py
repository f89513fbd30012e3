"""The table of what is read from which recorded framework: ``python -m tests.evaluators.conformance`` writes it.

Each mark is what ``test_recorded`` finds when it compares a recorded body with what happened; the table in
``docs/dialects.md`` is made of them and a test compares the two.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from redfirst.evaluators.reading import read_runs
from tests.evaluators.agreement import ABSENT, FACTS, READ, WRONG, agreement, recorded

PAGE = Path(__file__).parents[2] / "docs" / "dialects.md"
BEGIN, END = "<!-- matrix: made by `make matrix` -->", "<!-- end of matrix -->"
_MARKS = {READ: "yes", ABSENT: "–", WRONG: "wrong"}


def matrix() -> str:
    """A row for each dialect and framework, a column for each fact."""
    rows: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for one in recorded():
        runs = read_runs(one.spans, one.logs)
        dialects = ", ".join(sorted({dialect for run in runs for dialect in run.dialects}))
        row = rows[
            dialects, f"{one.truth['framework']} ({one.truth['instrumentor']}), {one.truth['scenario']}"
        ]
        for fact, mark in agreement(one, runs).items():
            row[fact].append(mark)
    head = ["| dialect | recorded from | " + " | ".join(FACTS) + " |", "|---|---|" + "---|" * len(FACTS)]
    lines = [
        f"| {dialects} | {source} | " + " | ".join(_mark(row[fact]) for fact in FACTS) + " |"
        for (dialects, source), row in sorted(rows.items())
    ]
    return "\n".join([*head, *lines])


def _mark(found: list[str]) -> str:
    return _MARKS[WRONG if WRONG in found else ABSENT if ABSENT in found else READ]


def page_with(table: str) -> str:
    """The page with this table in its place."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page_with(matrix()))
