"""Each defect of the bookshop on many seeds: what flags it, and what becomes of its proof.

    python benchmarks/defects.py [--seeds 20] [--json FILE] [--live]

Prints a table and, with ``--json``, one object per defect. Needs no network.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider

from redfirst.evaluators import flagged
from redfirst.evaluators.check import default_checks, judge
from redfirst.evaluators.otlp import decode
from redfirst.evaluators.reading import read_runs
from redfirst.evaluators.rules import load_rules
from redfirst.instrumentation import configure
from redfirst.replay.freezing import RecordedRun, freeze
from redfirst.replay.project import load_project
from redfirst.replay.proof import prove
from redfirst.replay.report import Level

FIXED = "bookshop.agent:make"
IN_CODE = frozenset({"dropped_guard", "retried_refund", "early_cap"})


def main() -> int:
    """Play, score, freeze and prove; print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument(
        "--live", action="store_true", help="prove the first scenario of each defect live as well (n=10)"
    )
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="redfirst-defects-") as folder:
        rows = measure(Path(folder), options.seeds, options.live)
    show(rows)
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return 0


def measure(root: Path, seeds: int, live: bool) -> list[dict[str, Any]]:
    """One row per defect."""
    with resources.as_file(resources.files("redfirst.examples.bookshop")) as source:
        shutil.copytree(source, root / "bookshop", ignore=shutil.ignore_patterns("__pycache__"))
    sys.path.insert(0, str(root))
    from bookshop import tasks

    (root / "redfirst.yaml").write_text(f'agents:\n  support: {{call: "{FIXED}", input: messages}}\n')
    project = load_project(root)
    rules = root / "bookshop" / "rules.yaml"
    checks = (*default_checks(), *load_rules(rules.read_text("utf-8"), str(rules)))

    def recorded(variant: str, task: str, seed: int) -> RecordedRun:
        path = root / "traces.jsonl"
        path.unlink(missing_ok=True)
        provider = TracerProvider()
        configure(file=path, provider=provider)
        tasks.play(tasks.Conversation(tasks.task(task), variant, seed))
        provider.shutdown()
        spans = decode(path.read_bytes()).spans
        (run,) = read_runs(spans)
        return RecordedRun(run=run, spans=spans, verdicts=judge(run, checks))

    rows = []
    for variant, task in tasks.DEFECTIVE.items():
        in_code = variant in IN_CODE
        began = time.monotonic()
        good = next(
            run for s in range(100) if not flagged((run := recorded(tasks.HEALTHY, task, s)).verdicts)
        )
        shown = [seed for seed in range(10_000) if tasks.fires(variant, seed)][:seeds]
        cases: list[Path] = []
        by: Counter[str] = Counter()
        unflagged = 0
        for seed in shown:
            incident = recorded(variant, task, seed)
            by.update(v.check for v in incident.verdicts if v.flags)
            if not flagged(incident.verdicts):
                unflagged += 1
                continue
            draft = freeze(incident, checks, control=good)
            draft.write(root / "scenarios" / draft.scenario.id, replace=True)
            cases.append(root / "scenarios" / draft.scenario.id)

        agent, control = (f"bookshop.variants:{variant}", FIXED) if in_code else (None, None)
        with ThreadPoolExecutor(2) as pool:
            reports = list(pool.map(partial(prove, project=project, agent=agent, control=control), cases))
        row: dict[str, Any] = {
            "defect": variant,
            "where": "code" if in_code else "model",
            "seeds": len(shown),
            "flagged": len(cases),
            "unflagged": unflagged,
            "by": dict(by),
            "proven": sum(r.proven for r in reports),
            "refused": dict(Counter(r.refusal.value for r in reports if r.refusal is not None)),
            "decisions_live": dict(
                Counter(len(r.red.execution.live_decisions) for r in reports if r.red is not None)
            ),
            "controls": dict(Counter(r.control for r in reports if r.control)),
            "seconds": round(time.monotonic() - began, 1),
        }
        if live and cases:
            report = prove(
                cases[0],
                project,
                agent=f"bookshop.variants:{variant}",
                control=control,
                level=Level.LIVE,
                runs=10,
            )
            row["live"] = report.steps[-3].said if report.proven else f"{report.refusal}: {report.because}"
        rows.append(row)
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """The table."""
    print(
        f"{'defect':<21}{'where':<7}{'flagged':<9}{'proven':<9}{'refused':<14}{'live decisions':<16}flagged by"
    )
    for row in rows:
        decisions = ", ".join(f"{n}×{count}" for n, count in sorted(row["decisions_live"].items())) or "-"
        refused = ", ".join(f"{k} {n}" for k, n in row["refused"].items()) or "-"
        by = ", ".join(f"{check} {n}" for check, n in row["by"].items())
        print(
            f"{row['defect']:<21}{row['where']:<7}{row['flagged']}/{row['seeds']:<7}{row['proven']}/{row['flagged']:<7}"
            f"{refused:<14}{decisions:<16}{by}"
        )
        if "live" in row:
            print(f"{'':<21}live: {row['live']}")


if __name__ == "__main__":
    raise SystemExit(main())
