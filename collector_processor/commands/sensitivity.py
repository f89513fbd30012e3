"""``redfirst sensitivity``: plants breaks in recorded runs and in rules, and tells which check notices which."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from redfirst.collector_processor.recorded.files import read_files
from redfirst.collector_processor.rules_file import rules_text
from redfirst.collector_processor.terminal import Screen, fit, tell
from redfirst.evaluators.check import default_checks
from redfirst.evaluators.reading import read
from redfirst.evaluators.rules import read_rules
from redfirst.evaluators.sensitivity.measuring import Fate, Row, Sensitivity, sensitivity
from redfirst.evaluators.sensitivity.mutant import Expected
from redfirst.evaluators.sensitivity.rule_operators import RuleResult, rule_results
from redfirst.replay.project import load_project

_NAME, _AIM = 18, 31
_COLUMNS = ("N", "KILLED", "OTHER", "OPEN", "NONE")
_WIDTHS = (5, 7, 6, 5, 5)


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="OTLP files of runs that are right, or directories of them"
    )
    parser.add_argument("--rules", metavar="FILE", help="a rules file (default: rules: of redfirst.yaml)")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def execute(options: argparse.Namespace) -> int:
    """Plant, judge and tell. 0 when everything was read, whatever was found.

    Raises:
        ConfigurationError: the rules file cannot be read or is wrong.
        UnreadableInput: a file is not OTLP.
    """
    given = rules_text(load_project(Path.cwd()), options.rules)
    rules = None if given is None else read_rules(*given)
    stream = read_files(options.paths)
    runs = read(stream.spans, stream.logs).runs
    checks = (*default_checks(), *(rules.checks if rules else ()))
    found = sensitivity(runs, checks)
    changed = list(rule_results(rules.checks, rules.tests, runs)) if rules else []
    if options.json:
        for line in _lines(found, changed):
            print(json.dumps(line, ensure_ascii=True, allow_nan=False))
    else:
        _show(found, changed)
    tell(f"{len(runs)} run(s) in {stream.files} file(s), {len(found.results)} mutant(s)")
    return 0


def _show(found: Sensitivity, changed: Sequence[RuleResult]) -> None:
    screen = Screen()
    rows = found.rows()
    _table(screen, "BREAK", [row for row in rows if row.expected is Expected.KILLED])
    _table(screen, "EVIDENCE TAKEN", [row for row in rows if row.expected is Expected.OPEN])
    _table(screen, "NO FAULT", [row for row in rows if row.expected is Expected.SURVIVES])
    score = "no break had a place" if found.score is None else f"score {found.score:.3f}"
    screen.line(f"{score}: {found.killed} of {found.killed + found.survived} break(s) killed", "bold")
    _listed(screen, "kill nothing that no other kills", _never_alone(found))
    _listed(screen, "no break had a place for", _unplaced(found))
    off = [one for one in found.results if not one.as_expected]
    for one in off:
        by = f"killed by {', '.join(sorted(one.killed_by))}" if one.killed_by else one.fate.value
        aim = ", ".join(sorted(one.intended)) or "no check"
        screen.para(f"{one.run_id[:8]} {one.operator} for {aim}: {by}; {one.place}", "red", hang="  ")
    for run_id, verdict in found.failed_before:
        screen.para(f"{run_id[:8]} failed unchanged: {verdict.check}: {verdict.because}", "yellow", hang="  ")
    _changed(screen, changed)


def _table(screen: Screen, title: str, rows: Sequence[Row]) -> None:
    """One line for each operator and check, and one more where others than the intended did it."""
    if not rows:
        return
    screen.line(_line(title, "MEANT FOR", _COLUMNS), "dim")
    for row in rows:
        counts = [row.mutants, *(row.fates.get(fate, 0) for fate in Fate)]
        screen.line(_line(row.operator, row.aimed_at or "no check", list(map(str, counts))))
        if row.expected is Expected.KILLED and row.smallest and ", ".join(row.smallest) != row.aimed_at:
            screen.para(f"smallest set that kills: {', '.join(row.smallest)}", indent="  ", hang="    ")
    screen.line()


def _line(name: str, aim: str, cells: Sequence[str]) -> str:
    numbers = "".join(cell.rjust(width) for cell, width in zip(cells, _WIDTHS, strict=True))
    return f"{fit(name, _NAME).ljust(_NAME)} {fit(aim, _AIM).ljust(_AIM)}{numbers}"


def _listed(screen: Screen, what: str, names: Sequence[str]) -> None:
    if names:
        screen.para(f"{what}: {', '.join(names)}", hang="  ")


def _changed(screen: Screen, changed: Sequence[RuleResult]) -> None:
    if not changed:
        return
    by_test = sum(one.by_test is not None for one in changed)
    by_run = sum(one.by_run is not None for one in changed)
    screen.line(
        f"{len(changed)} changed rule(s): {by_test} told by a test of the file, {by_run} by a run alone",
        "bold",
    )
    for one in changed:
        if one.by_test is None and one.by_run is None:
            screen.para(f"nothing tells {one.check} with {one.operator}: {one.place}", "yellow", hang="  ")


def _lines(found: Sensitivity, changed: Sequence[RuleResult]) -> Iterator[Mapping[str, object]]:
    for row in found.rows():
        yield {
            "what": "row",
            "operator": row.operator,
            "meant_for": row.aimed_at or None,
            "expected": row.expected.value,
            "mutants": row.mutants,
            **{fate.value: row.fates.get(fate, 0) for fate in Fate},
            "killed_by": dict(row.killed_by),
            "smallest": list(row.smallest),
        }
    kills, alone, aims = found.kills(), found.unique_kills(), found.aims()
    for name in found.checks:
        yield {
            "what": "check",
            "check": name,
            "breaks": aims[name],
            "kills": kills[name],
            "kills_alone": alone[name],
        }
    for one in found.results:
        if not one.as_expected:
            yield {
                "what": "unexpected",
                "run": one.run_id,
                "operator": one.operator,
                "meant_for": sorted(one.intended),
                "expected": one.expected.value,
                "fate": one.fate.value,
                "killed_by": sorted(one.killed_by),
                "place": one.place,
            }
    for run_id, verdict in found.failed_before:
        yield {"what": "failed_before", "run": run_id, "check": verdict.check, "because": verdict.because}
    for rule in changed:
        yield {
            "what": "rule",
            "check": rule.check,
            "operator": rule.operator,
            "place": rule.place,
            "by_test": rule.by_test,
            "by_run": rule.by_run,
        }
    equivalents = found.of(Expected.SURVIVES)
    yield {
        "what": "summary",
        "runs": found.runs,
        "killed": found.killed,
        "survived": found.survived,
        "score": found.score,
        "equivalents": len(equivalents),
        "equivalents_killed": sum(bool(one.killed_by) for one in equivalents),
    }


def _never_alone(found: Sensitivity) -> list[str]:
    alone, aims = found.unique_kills(), found.aims()
    return [name for name in found.checks if aims[name] and not alone[name]]


def _unplaced(found: Sensitivity) -> list[str]:
    aims = found.aims()
    return [name for name in found.checks if not aims[name]]
