"""``redfirst rules lint|explain|test|learn``: whether a rules file can be meant, what it means, whether it does that,
and what passing runs have in common."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from redfirst.collector_processor.home import Home
from redfirst.collector_processor.recorded.every_run import runs_of
from redfirst.collector_processor.rules_file import checks_of, rules_text
from redfirst.collector_processor.terminal import Screen, tell
from redfirst.evaluators.check import judge
from redfirst.evaluators.declared import declared_shape
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.explaining import explained
from redfirst.evaluators.linting import Level, lint
from redfirst.evaluators.reference.learned import RUNS_AT_LEAST, learn, learned_data
from redfirst.evaluators.rule_shapes import SCHEMA
from redfirst.evaluators.rule_tests import RuleTest
from redfirst.evaluators.rules import Rules, read_rules
from redfirst.evaluators.trajectory import Trajectory
from redfirst.evaluators.verdict import Outcome, Verdict, flagged
from redfirst.evaluators.yaml_writer import dump
from redfirst.replay.project import Project, load_project

PASS, FAIL, NO_VERDICT = 0, 1, 3


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    verbs = parser.add_subparsers(dest="rules_verb", metavar="lint|explain|test|learn", required=True)
    for name, summary in (
        ("lint", "tools and paths that no run has, demands that nothing can meet"),
        ("explain", "each rule in one sentence"),
        ("test", "run the tests in the file, or the rules over traces"),
    ):
        verb = verbs.add_parser(name, help=summary, description=summary)
        verb.add_argument(
            "file", nargs="?", metavar="FILE", help="a rules file (default: rules: of redfirst.yaml)"
        )
        verb.add_argument("--json", action="store_true", help="one JSON object a line")
        if name == "explain":
            continue
        verb.add_argument(
            "--traces",
            action="append",
            metavar="PATH",
            help="OTLP files or folders" + (" (default: the store)" if name == "lint" else ""),
        )
    learned = "print what runs that were not flagged have in common, as a rules file"
    learner = verbs.add_parser("learn", help=learned, description=learned)
    learner.add_argument(
        "traces", nargs="*", metavar="PATH", help="OTLP files or folders (default: the store)"
    )
    learner.add_argument(
        "--by",
        choices=["request", "first_tools"],
        default="request",
        help="what makes runs one kind of task (default: %(default)s)",
    )
    learner.add_argument("--rules", metavar="FILE", help="a rules file (default: rules: of redfirst.yaml)")
    verbs.choices["lint"].add_argument("--strict", action="store_true", help="exit 1 for a warning too")


def execute(options: argparse.Namespace) -> int:
    """Run one of the four.

    Raises:
        ConfigurationError: there is no rules file, or it is wrong.
    """
    project = load_project(Path.cwd())
    if options.rules_verb == "learn":
        return _learn(project, options)
    given = rules_text(project, options.file)
    if given is None:
        raise ConfigurationError("no rules file: name one, or set rules: in redfirst.yaml.")
    rules = read_rules(*given)
    if options.rules_verb == "explain":
        return _explain(rules, options)
    return _lint(project, rules, options) if options.rules_verb == "lint" else _test(rules, options)


def _explain(rules: Rules, options: argparse.Namespace) -> int:
    screen = Screen()
    for check in rules.checks:
        sentence = explained(declared_shape(check.spec))
        severity = check.severity.name.lower()
        if options.json:
            _print(
                {"check": check.id, "severity": severity, "class": check.check_class.value, "means": sentence}
            )
            continue
        screen.line(f"{check.id}  {severity}", "bold")
        screen.para(sentence, indent="  ")
    return PASS


def _lint(project: Project, rules: Rules, options: argparse.Namespace) -> int:
    runs = runs_of(Home(project.home), options.traces)
    found = lint(rules, runs)
    source = rules.document.source
    screen = Screen()
    for one in found:
        if options.json:
            _print(
                {
                    "file": source,
                    "line": one.line,
                    "level": one.level.value,
                    "what": one.what,
                    "message": one.message,
                }
            )
        else:
            style = "red" if one.level is Level.ERROR else "yellow"
            screen.para(f"{source}:{one.line}: {one.level.value}: {one.message}", style, hang="  ")
    errors = sum(one.level is Level.ERROR for one in found)
    _tell(f"{len(rules.checks)} check(s), {errors} error(s), {len(found) - errors} warning(s)", of=len(runs))
    if not runs:
        _tell("no runs to compare with, so tools and paths were not looked at; pass --traces PATH")
    return FAIL if errors or (found and options.strict) else PASS


def _test(rules: Rules, options: argparse.Namespace) -> int:
    if options.traces:
        return _over_runs(rules, runs_of(Home(Path()), options.traces), options)
    if not rules.tests:
        _tell(f"{rules.document.source} has no tests: write some under tests:, or pass --traces PATH")
        return NO_VERDICT
    wrong = untold = 0
    for test in rules.tests:
        runs = _runs_of(test, Path(rules.document.source).parent)
        if not runs:
            untold += 1
            _report(rules, test, options, because=f"{test.trace} holds no run")
        misses = [miss for run in runs for miss in _misses(test, judge(run, rules.checks))]
        if runs:
            wrong += bool(misses)
            _report(rules, test, options, misses=misses)
    _tell(
        f"{len(rules.tests)} test(s), {wrong} not as expected"
        + (f", {untold} without a run" if untold else "")
    )
    untested = sorted(
        {check.id for check in rules.checks} - {name for test in rules.tests for name in test.expect}
    )
    if untested:
        _tell(f"without a test: {', '.join(untested)}")
    return FAIL if wrong else NO_VERDICT if untold else PASS


def _learn(project: Project, options: argparse.Namespace) -> int:
    """Print the rules file; no verdict where nothing could be learned."""
    checks = checks_of(project, options.rules)
    runs = runs_of(Home(project.home), options.traces)
    passing = [run for run in runs if _passes(judge(run, checks))]
    found = learn(passing, options.by)
    _tell(f"{len(found)} kind(s) of task learned from {len(passing)} passing runs", of=len(runs))
    if not found:
        return NO_VERDICT
    if few := sum(support.runs < RUNS_AT_LEAST for support in found.values()):
        _tell(
            f"{few} of them with fewer than {RUNS_AT_LEAST} passing runs: nothing is asked of these until more is"
            " learned, or runs_at_least says so"
        )
    print(dump({"schema": SCHEMA, "learned": learned_data(found, options.by)}), end="")
    return PASS


def _passes(verdicts: Sequence[Verdict]) -> bool:
    """Whether nothing flags a run and it is known to have ended well."""
    ended = any(one.check == "termination" and one.outcome is Outcome.PASSED for one in verdicts)
    return ended and not flagged(verdicts)


def _runs_of(test: RuleTest, folder: Path) -> list[Trajectory]:
    if test.run is not None:
        return [test.run]
    return runs_of(Home(folder), [str(folder / str(test.trace))])


def _misses(test: RuleTest, verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts that are not as expected."""
    return [one for one in verdicts if one.check in test.expect and one.outcome is not test.expect[one.check]]


def _report(
    rules: Rules,
    test: RuleTest,
    options: argparse.Namespace,
    *,
    misses: Sequence[Verdict] = (),
    because: str | None = None,
) -> None:
    if options.json:
        _print(
            {
                "test": test.name,
                "line": test.line,
                "passed": None if because else not misses,
                "because": because,
                "misses": [
                    {
                        "check": one.check,
                        "expected": test.expect[one.check].value,
                        "outcome": one.outcome.value,
                        "because": one.because,
                    }
                    for one in misses
                ],
            }
        )
        return
    screen = Screen()
    if because:
        screen.para(f"{rules.document.source}:{test.line}: {test.name}: {because}", "yellow", hang="  ")
    for one in misses:
        screen.para(
            f"{rules.document.source}:{test.line}: {test.name}: {one.check} {one.outcome.value}, expected"
            f" {test.expect[one.check].value}: {one.because}",
            "red",
            hang="  ",
        )


def _over_runs(rules: Rules, runs: Sequence[Trajectory], options: argparse.Namespace) -> int:
    """How each check comes out over all runs. 1 when one failed, 3 when nothing failed and something is open."""
    counts: Mapping[str, Counter[Outcome]] = {check.id: Counter() for check in rules.checks}
    failed: dict[str, list[str]] = {}
    for run in runs:
        for verdict in judge(run, rules.checks):
            counts[verdict.check][verdict.outcome] += 1
            if verdict.outcome is Outcome.FAILED:
                failed.setdefault(verdict.check, []).append(run.trace_ids[0] if run.trace_ids else run.run_id)
    screen = Screen()
    if not options.json:
        screen.line(f"{'CHECK':40} {'PASS':>5} {'FAIL':>5} {'OPEN':>5} {'N/A':>5}  FAILED IN", "bold")
    for name, count in counts.items():
        numbers = [count[outcome] for outcome in Outcome]
        if options.json:
            by_name = {outcome.value: count[outcome] for outcome in Outcome}
            _print({"check": name, **by_name, "failed_in": failed.get(name, [])})
        else:
            cells = " ".join(f"{number:5}" for number in numbers)
            first = ", ".join(run[:8] for run in failed.get(name, [])[:2])
            screen.line(f"{name[:40]:40} {cells}  {first}", *(["red"] if failed.get(name) else []))
    _tell(f"{len(rules.checks)} check(s)", of=len(runs))
    total = sum(counts.values(), Counter())
    if failed:
        return FAIL
    return NO_VERDICT if total[Outcome.INCONCLUSIVE] or not total[Outcome.PASSED] else PASS


def _print(record: Mapping[str, object]) -> None:
    print(json.dumps(record, ensure_ascii=True, allow_nan=False))


def _tell(text: str, *, of: int | None = None) -> None:
    tell(text + ("" if of is None else f" over {of} run(s)"))
