"""Print every reproduction as a table: ``cd benchmarks && python -m reproductions [--json FILE] [a b …]``.

Results: "hit" is equal after rounding, or within two spreads of it where a seed decides; "fitted" is a hit for
which a parameter was chosen; "ours" has nothing to compare with; a MISS is one. Spread is the standard deviation
over seeds.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

from reproductions import every
from reproductions.line import Line, Relation, Reproduction

_WIDTH = 80


def main() -> int:
    """Compute, print and, if asked, write."""
    parser = argparse.ArgumentParser(
        prog="reproductions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", nargs="*", metavar="LETTER", help="some of a to h (default: all)")
    parser.add_argument("--seeds", type=int, default=20, help="seeds of a simulation (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    options = parser.parse_args()
    if unknown := sorted(set(options.which) - set(every.ALL)):
        parser.error(f"no reproduction {unknown[0]!r}; there are {', '.join(every.ALL)}")
    found: dict[str, Reproduction] = {}
    begun = time.process_time()
    for letter in options.which or every.ALL:
        found[letter] = every.ALL[letter](options.seeds)
        print(shown(letter, found[letter]), flush=True)
    verdicts = Counter(line.verdict.value for one in found.values() for line in one.lines)
    print(", ".join(f"{count} {name}" for name, count in sorted(verdicts.items())), end="; ")
    print(f"{time.process_time() - begun:.0f} s of CPU")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(
            json.dumps(as_json(found, options.seeds), indent=1, ensure_ascii=False) + "\n"
        )
    return 0


def shown(letter: str, one: Reproduction) -> str:
    """A table of at most 80 columns."""
    head = f"{'':<37}{'theirs':>9}{'ours':>9}{'spread':>8}{'diff':>9}  result"
    rows = [f"({letter}) {one.title}", head, *(_row(line) for line in one.lines)]
    fitted = ", ".join(f"{name} {value}" for name, value in one.fitted.items())
    for text in ([f"fitted: {fitted}"] if fitted else []) + list(one.notes):
        rows += textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(rows) + "\n"


def as_json(found: dict[str, Reproduction], seeds: int) -> dict[str, object]:
    """Everything shown, as plain data."""
    return {
        letter: {
            "title": one.title,
            "seeds": seeds,
            "lines": [_rounded(line.as_json()) for line in one.lines],
            "fitted": dict(one.fitted),
            "notes": list(one.notes),
        }
        for letter, one in found.items()
    }


def _rounded(line: dict[str, object]) -> dict[str, object]:
    """So that the last bits of another machine's arithmetic change nothing."""
    return {key: round(value, 9) if isinstance(value, float) else value for key, value in line.items()}


def _row(line: Line) -> str:
    sign = "" if line.relation is Relation.EQUAL else line.relation.value
    theirs = "" if line.theirs is None else f"{sign}{line.theirs:.{line.digits}f}"
    more = line.digits if line.digits > 4 else line.digits + 1
    spread = "" if line.spread is None else f"±{line.spread:.{min(more, 4)}f}"
    diff = "" if line.diff is None or sign else f"{line.diff:+.{more}f}"
    return f"  {line.what:<35}{theirs:>9}{line.ours:>9.{more}f}{spread:>8}{diff:>9}  {line.verdict.value}"


if __name__ == "__main__":
    sys.exit(main())
