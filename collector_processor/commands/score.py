"""``redfirst score``: read OTLP files, judge each run once, print one object or one line per run."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from redfirst.collector_processor.links import Links
from redfirst.collector_processor.prices_file import prices_of
from redfirst.collector_processor.recorded.files import Stream, read_files
from redfirst.collector_processor.rules_file import checks_of
from redfirst.collector_processor.showing.explained import explained
from redfirst.collector_processor.showing.origins import origin_lines
from redfirst.collector_processor.showing.view import View
from redfirst.collector_processor.terminal import WIDTH, Screen, clean, counted, fit, tell
from redfirst.evaluators.check import judge
from redfirst.evaluators.prices import cost_of, cost_record
from redfirst.evaluators.provenance import provenance
from redfirst.evaluators.reading import read
from redfirst.evaluators.record import errors_of, repeats_of, run_record
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.trajectory import Trajectory
from redfirst.evaluators.verdict import Outcome, Severity, Verdict, flagged
from redfirst.replay.project import load_project

_HEADER = ("TRACE", "AGENT", "ENDED", "CALLS", "ERRORS", "REPEATS", "FLAGGED BY")
_WIDTHS = (8, 16, 11, 5, 6, 7)


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="OTLP files, or directories of them; .gz is unpacked"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per run, one per line")
    parser.add_argument(
        "--rules",
        metavar="FILE",
        help="a rules file (default: rules: of redfirst.yaml); its rules may name functions and the checks that "
        "packages installed, which doctor lists",
    )
    parser.add_argument(
        "--prices",
        metavar="FILE",
        help="a table of model prices (default: prices: of redfirst.yaml, or ours)",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="under each run, for each check, why it failed or did not, and which attributes each fact was read from",
    )
    parser.add_argument(
        "--fail-on-flag", action="store_true", help="exit 1 when a run is flagged, 3 when no run was found"
    )


def execute(options: argparse.Namespace) -> int:
    """Score everything under the paths. 0 when all was read; 1 and 3 only with ``--fail-on-flag``."""
    project = load_project(Path.cwd())
    checks = checks_of(project, options.rules)
    prices = prices_of(project, options.prices)
    links = Links.of_project(project)
    stream = read_files(options.paths)
    found = read(stream.spans, stream.logs)
    flags = 0
    unsure: Counter[str] = Counter()
    traces = _by_trace(stream) if options.explain else {}
    screen = Screen()
    if not options.json:
        print(_row(_HEADER))
    for run in found.runs:
        verdicts = judge(run, checks)
        flags += flagged(verdicts)
        unsure.update(
            one.check
            for one in verdicts
            if one.outcome is Outcome.INCONCLUSIVE and one.severity >= Severity.FLAG
        )
        if options.json:
            metrics = {"cost": cost_record(cost_of(run, prices), prices)}
            record = {**run_record(run, verdicts, metrics), **links.beside(run.run_id, _trace_of(run))}
            print(json.dumps(record, ensure_ascii=True, allow_nan=False))
        else:
            url = links.to(run.run_id, _trace_of(run))
            screen.line(_line(run, verdicts), link=None if url is None else (_trace_of(run)[:8], url))
            if options.explain:
                origins = provenance(run, *_of(run, traces))
                _explain(View(run=run, checks=checks, verdicts=verdicts, origins=origins))
    _report(stream, len(found.runs), flags, found.not_a_run, unsure)
    if not options.fail_on_flag:
        return 0
    return 1 if flags else 0 if found.runs else 3


def _explain(view: View) -> None:
    screen = Screen()
    print(file=screen.out)
    for line in [*explained(view), (), *origin_lines(view.origins)]:
        print("".join(screen.paint(text, *style.split()) for text, style in line).rstrip(), file=screen.out)
    print(file=screen.out)


_Trace = tuple[list[Span], list[LogRecord]]


def _by_trace(stream: Stream) -> dict[str, _Trace]:
    """What each trace was read from."""
    traces: dict[str, _Trace] = {}
    for span in stream.spans:
        traces.setdefault(span.trace_id, ([], []))[0].append(span)
    for record in stream.logs:
        if record.trace_id in traces:
            traces[record.trace_id][1].append(record)
    return traces


def _of(run: Trajectory, traces: Mapping[str, _Trace]) -> _Trace:
    """The spans and log records of the run's traces."""
    mine = [traces[trace_id] for trace_id in run.trace_ids]
    return [span for spans, _ in mine for span in spans], [record for _, logs in mine for record in logs]


def _trace_of(run: Trajectory) -> str:
    """The trace that a person looks the run up by."""
    return run.trace_ids[0] if run.trace_ids else run.run_id


def _line(run: Trajectory, verdicts: Iterable[Verdict]) -> str:
    """One run in at most ``WIDTH`` columns."""
    found = tuple(verdicts)
    repeats = repeats_of(found)
    failed = [verdict.check for verdict in found if verdict.flags]
    return _row(
        (
            _trace_of(run)[:8],
            run.agents[0] if run.agents else "-",
            run.termination.reason.value,
            str(len(run.tool_calls)),
            str(errors_of(run)),
            "?" if repeats is None else str(repeats),
            ", ".join(failed),
        )
    )


def _row(cells: Sequence[str]) -> str:
    fixed = [fit(cell, width).ljust(width) for cell, width in zip(cells, _WIDTHS, strict=False)]
    return fit(" ".join([*fixed, cells[-1]]).rstrip(), WIDTH)


def _report(stream: Stream, runs: int, flags: int, not_a_run: int, unsure: Mapping[str, int]) -> None:
    """What was read and what was not, and which checks that could have flagged a run cannot tell, on stderr."""
    parts = [f"{counted(runs, 'run')} in {counted(stream.files, 'file')}, {flags} flagged"]
    if not_a_run:
        parts.append(f"{counted(not_a_run, 'trace')} without an agent, a model or a tool call")
    for noun, verb, reasons in (("record", "refused", stream.refused), ("file", "skipped", stream.skipped)):
        parts += [f"{counted(n, noun)} {verb}: {reason}" for reason, n in sorted(Counter(reasons).items())]
    if unsure:
        told = (f"{clean(check)} in {counted(number, 'run')}" for check, number in sorted(unsure.items()))
        parts.append(f"inconclusive: {', '.join(told)}")
    tell("; ".join(parts))
