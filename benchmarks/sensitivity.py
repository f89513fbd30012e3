"""Rules of τ²-bench, written from its policies alone, against breaks planted in its passing runs.

    python benchmarks/sensitivity.py DIR [--json FILE] [--runs 25]

DIR is a checkout of recorded τ²-bench runs: ``runs/airline__*.jsonl.gz`` and ``runs/retail__*.jsonl.gz``, one
run a line with ``run_id``, ``reward`` and ``raw``. Of each domain the first runs by ``run_id`` with reward 1 are
taken. Every difference is planted by ``redfirst.evaluators.sensitivity``, whose operators say beforehand which
check must notice it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agreement import Imported, imported

from redfirst.collector_processor.importing.tau2_bench import Tau2Bench
from redfirst.evaluators.check import default_checks
from redfirst.evaluators.rules import read_rules
from redfirst.evaluators.sensitivity.measuring import Fate, Sensitivity, sensitivity
from redfirst.evaluators.sensitivity.mutant import Expected
from redfirst.evaluators.sensitivity.rule_operators import RuleResult, rule_results

RULES = Path(__file__).parents[1] / "examples" / "tau2"
DOMAINS = ("airline", "retail")


@dataclass(frozen=True, slots=True)
class Measured:
    """One domain."""

    domain: str
    runs: Sequence[Imported]
    found: Sensitivity
    rules: Sequence[RuleResult]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--runs", type=int, default=25, help="passing runs of each domain")
    options = parser.parse_args()
    every = list(imported(options.data / "runs", Tau2Bench()))
    measured = [measure(domain, passing(every, domain, options.runs)) for domain in DOMAINS]
    for one in measured:
        show(one)
    if options.json:
        Path(options.json).write_text(
            json.dumps([data(one) for one in measured], indent=1, ensure_ascii=False) + "\n", "utf-8"
        )
    return 0


def passing(every: Sequence[Imported], domain: str, count: int) -> list[Imported]:
    """The first runs of a domain that its harness gave a reward of 1."""
    mine = [one for one in every if one.beside.get("domain") == domain and one.beside.get("reward") == 1]
    return sorted(mine, key=lambda one: one.name)[:count]


def measure(domain: str, runs: Sequence[Imported]) -> Measured:
    """Plants every break, and changes every rule."""
    path = RULES / f"{domain}.rules.yaml"
    rules = read_rules(path.read_text("utf-8"), path.name)
    began = time.process_time()
    found = sensitivity([one.run for one in runs], (*default_checks(), *rules.checks))
    print(f"{domain}: {time.process_time() - began:.1f} CPU s")
    return Measured(domain, runs, found, list(rule_results(rules.checks, rules.tests, ())))


def show(one: Measured) -> None:
    """The tables of one domain."""
    found = one.found
    breaks = found.of(Expected.KILLED)
    print(f"\n{one.domain}: {len(one.runs)} passing runs, {len(found.results)} mutants")
    print(f"{'break':<20} {'meant for':<30} {'n':>5} {'killed':>6} {'other':>5} {'open':>4} {'none':>4}")
    for row in found.rows():
        fates = [row.fates.get(fate, 0) for fate in Fate]
        name = row.operator + (" (evidence)" if row.expected is Expected.OPEN else "")
        aim = row.aimed_at or "(equivalent)"
        print(f"{name[:20]:<20} {aim[:30]:<30} {row.mutants:>5} " + "{:>6} {:>5} {:>4} {:>4}".format(*fates))
    intended = sum(r.fate is Fate.KILLED for r in breaks)
    print(f"breaks {len(breaks)}: by the intended check {intended}, score {found.score:.4f}")
    for expected in Expected:
        off = [r for r in found.of(expected) if not r.as_expected]
        print(f"{expected.value}: {len(found.of(expected))}, not as expected {len(off)}")
        for r in off[:20]:
            aim, by = sorted(r.intended), sorted(r.killed_by)
            print(f"   {name_of(one, r.run_id)} {r.operator} -> {aim}: {r.fate.value} {by} | {r.place}")
    unique, kills = found.unique_kills(), found.kills()
    aimed = {name for r in breaks for name in r.intended}
    print("checks without a place in these runs:", ", ".join(sorted(set(found.checks) - aimed)) or "none")
    print(
        "checks that alone kill nothing:",
        ", ".join(sorted(name for name in aimed if not unique[name])) or "none",
    )
    print("kills:", ", ".join(f"{name} {count}" for name, count in kills.most_common()))
    print(
        f"changed rules {len(one.rules)}: told by a test of the file {sum(r.by_test is not None for r in one.rules)}"
    )
    for rule in one.rules:
        if rule.by_test is None:
            print(f"   not told: {rule.check} {rule.operator} {rule.place}")
    print("failed before any change:")
    for run_id, verdict in found.failed_before:
        print(
            f"   {name_of(one, run_id)} {verdict.check} ({verdict.severity.name.lower()}): {verdict.because[:200]}"
        )


def name_of(one: Measured, run_id: str) -> str:
    """The name that the benchmark gives a run."""
    return next(item.name for item in one.runs if item.run.run_id == run_id)


def data(one: Measured) -> dict[str, Any]:
    """All of it as plain data."""
    found = one.found
    return {
        "domain": one.domain,
        "runs": [item.name for item in one.runs],
        "score": found.score,
        "killed": found.killed,
        "survived": found.survived,
        "kills": dict(found.kills()),
        "unique": dict(found.unique_kills()),
        "not as expected": [
            {
                "run": name_of(one, r.run_id),
                "operator": r.operator,
                "meant": sorted(r.intended),
                "killed by": sorted(r.killed_by),
                "fate": r.fate.value,
                "place": r.place,
            }
            for r in found.results
            if not r.as_expected
        ],
        "failed before any change": [
            {
                "run": name_of(one, run_id),
                "check": v.check,
                "severity": v.severity.name.lower(),
                "because": v.because,
            }
            for run_id, v in found.failed_before
        ],
        "rules changed": [
            {"rule": r.check, "operator": r.operator, "place": r.place, "test": r.by_test} for r in one.rules
        ],
    }


if __name__ == "__main__":
    raise SystemExit(main())
