"""What redfirst says of recorded benchmark runs, against what their harness and human annotators say.

    python benchmarks/agreement.py DATA [--json FILE]

DATA holds ``tau_bench/``, ``tau2_bench/runs/`` and ``agentrx_tau_retail/`` with their JSON lines (``{"raw": record, …}``);
what is not there is left out. Prints tables and, with ``--json``, everything as one object. Needs no network.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redfirst.collector_processor.importing.documents import documents
from redfirst.collector_processor.importing.formats import Document, Format, Place, Record
from redfirst.collector_processor.importing.tau2_bench import Tau2Bench
from redfirst.collector_processor.importing.tau_bench import STEP_CAP, TauBench
from redfirst.evaluators import Trajectory
from redfirst.evaluators.assignment import assign
from redfirst.evaluators.canonical import equal
from redfirst.evaluators.check import default_checks, judge
from redfirst.evaluators.reading import read_trajectory
from redfirst.evaluators.trajectory import CallStatus, Stop, ToolCall
from redfirst.evaluators.verdict import Verdict, flagged

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Imported:
    """A run as it was published and as redfirst reads it."""

    name: str
    raw: Mapping[str, Any]
    beside: Mapping[str, Any]
    run: Trajectory


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    tau = list(imported(options.data / "tau_bench", TauBench()))
    tau2 = list(imported(options.data / "tau2_bench" / "runs", Tau2Bench()))
    labelled = list(imported(options.data / "agentrx_tau_retail", TauBench()))
    found: Json = {
        "runs": {"tau_bench": len(tau), "tau2_bench": len(tau2), "agentrx": len(labelled)},
        "termination": termination(tau, tau2),
        "actions": actions(tau2),
        "labelled": annotated(labelled),
        "flags": {"tau_bench": flags(tau), "tau2_bench": flags(tau2), "agentrx": flags(labelled)},
    }
    show(found)
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


def imported(folder: Path, form: Format) -> Iterator[Imported]:
    """Each record of the folder's files that the format claims."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        lines = [item for item in documents(path) if isinstance(item, Document) and form.claims(item.value)]
        for line in lines:
            for record in form.records([line]):
                yield _imported(path, form, record)


def _imported(path: Path, form: Format, record: Record) -> Imported:
    spans = form.spans(record, Place(source=path.name, number=0))
    if not isinstance(record.value, Mapping):
        raise TypeError(path)
    name = str(record.context.get("run_id", f"{path.name} {record.where}"))
    return Imported(name, record.value, record.context, read_trajectory(spans))


# --- 1. how runs ended


def termination(tau: Sequence[Imported], tau2: Sequence[Imported]) -> Json:
    """Every run that its harness cut off at a cap, and what redfirst makes of each reason."""
    at_cap = [item for item in tau if sum(m["role"] == "assistant" for m in item.raw["traj"]) >= STEP_CAP]
    own_end = [item for item in at_cap if "###STOP###" in str(item.raw["traj"][-1].get("content"))]
    cut = [item for item in at_cap if item not in own_end]
    cut2 = [item for item in tau2 if item.raw["termination_reason"] == "max_steps"]
    reasons = Counter(
        (str(item.raw["termination_reason"]), item.run.termination.reason.value) for item in tau2
    )
    return {
        "tau_bench": _of(cut, tau)
        | {"ended by the user in the last step allowed": [i.name for i in own_end]},
        "tau2_bench": _of(cut2, tau2),
        "reasons": {f"{said} -> {ours}": count for (said, ours), count in sorted(reasons.items())},
    }


def _of(cut: Sequence[Imported], every: Sequence[Imported]) -> Json:
    named = {item.name for item in cut}
    capped = {item.name for item in every if item.run.termination.reason is Stop.STEP_CAP}
    failed = {
        item.name
        for item in cut
        if any(v.check == "termination" and v.flags for v in judge(item.run, default_checks()))
    }
    return {
        "cut at the cap": len(named),
        "reported as step_cap": len(named & capped),
        "flagged by termination": len(failed),
        "missed": sorted(named - capped),
        "wrongly reported": sorted(capped - named),
    }


# --- 2. expected actions


def actions(tau2: Sequence[Imported]) -> Json:
    """Each expected action of the agent: whether redfirst finds a call that meets it, and whether the harness did."""
    table: Counter[tuple[bool, bool]] = Counter()
    listed: list[Json] = []
    runs = {"judged": 0, "same recall": 0, "same recall, one call for one action": 0}
    calls = made = 0
    for item in tau2:
        checks = [
            check
            for check in item.raw["reward_info"].get("action_checks") or []
            if check["action"].get("requestor", "assistant") == "assistant"
        ]
        if not checks:
            continue
        rows = [[_meets(check["action"], call) for call in item.run.tool_calls] for check in checks]
        ours = [any(row) for row in rows]
        theirs = [bool(check["action_match"]) for check in checks]
        single = len(assign([[place for place, fits in enumerate(row) if fits] for row in rows]))
        runs["judged"] += 1
        runs["same recall"] += sum(ours) == sum(theirs)
        runs["same recall, one call for one action"] += single == sum(theirs)
        calls += single
        made += len(item.run.tool_calls)
        for check, mine, recorded in zip(checks, ours, theirs, strict=True):
            table[mine, recorded] += 1
            if mine != recorded:
                why = _why(check["action"], item.run.tool_calls, recorded)
                listed.append({"run": item.name, "action": check["action"]["name"],
                               "arguments": check["action"]["arguments"],
                               "ours": mine, "recorded": recorded, "why": why})  # fmt: skip
        if single != sum(ours):
            listed.append({"run": item.name, "action": "(all)", "ours": single, "recorded": sum(theirs),
                           "why": "one call was counted for several equal actions by the harness"})  # fmt: skip
    return {
        "actions": sum(table.values()),
        "both found": table[True, True],
        "both missed": table[False, False],
        "only redfirst": table[True, False],
        "only the harness": table[False, True],
        "runs": runs,
        "precision": {"calls matched": calls, "calls made": made},
        "why": dict(Counter(row["why"] for row in listed)),
        "disagreements": listed,
    }


def _meets(action: Mapping[str, Any], call: ToolCall) -> bool:
    """Whether the call succeeded, is of the tool, and has the very arguments by redfirst's equality."""
    return call.status is CallStatus.OK and call.name == action["name"] and _arguments_equal(action, call)


def _arguments_equal(action: Mapping[str, Any], call: ToolCall) -> bool:
    wanted, given, keys = action["arguments"], call.arguments or {}, action.get("compare_args")
    if keys is not None:
        wanted, given = ({k: v for k, v in each.items() if k in keys} for each in (wanted, given))
    return equal(dict(given), dict(wanted)) is True


def _why(action: Mapping[str, Any], calls: Sequence[ToolCall], recorded: bool) -> str:
    """What the two sides mean differently."""
    near = [call for call in calls if call.name == action["name"]]
    if not recorded:
        return "equal by redfirst's equality only (numbers spelt as text, white space)"
    ended = [call.status.value for call in near if _arguments_equal(action, call)]
    if ended:
        return f"the call ended with {ended[0]}; the harness counts what was asked, redfirst what succeeded"
    for call in near:
        given = call.arguments or {}
        if not (set(given) - set(action["arguments"])) and set(given) < set(action["arguments"]):
            return "the call left out an expected argument; the harness compares the arguments given only"
    return "unexplained"


# --- 3. human labels


def annotated(labelled: Sequence[Imported]) -> Json:
    """Every run that failed, with the annotators' categories and what the default checks say."""
    rows: list[Json] = []
    for item in labelled:
        label = item.beside.get("failure_annotation")
        if not label:
            continue
        verdicts = judge(item.run, default_checks())
        root = (label.get("root_cause") or {}).get("failure_id")
        failures = label["failures"]
        cause = next((f for f in failures if f["failure_id"] == root), failures[0])
        rows.append(
            {
                "run": item.name,
                "root cause": cause["failure_category"],
                "categories": [failure["failure_category"] for failure in failures],
                "summary": label.get("failure_summary"),
                "flagged": flagged(verdicts),
                "flags": [v.check for v in verdicts if v.flags],
                "notes": [v.check for v in verdicts if v.outcome.value == "failed" and not v.flags],
                "because": [v.because for v in verdicts if v.outcome.value == "failed"],
            }
        )
    by_category: dict[str, dict[str, int]] = {}
    for row in rows:
        counts = by_category.setdefault(row["root cause"], {"failures": 0, "flagged": 0, "noted": 0})
        counts["failures"] += 1
        counts["flagged"] += row["flagged"]
        counts["noted"] += bool(row["notes"]) and not row["flagged"]
    return {
        "failures": len(rows),
        "flagged": sum(row["flagged"] for row in rows),
        "by root cause": by_category,
        "runs": rows,
    }


def flags(items: Sequence[Imported]) -> Json:
    """Flagged runs by what the benchmark gave for them, and by check."""
    out: Json = {}
    for name, good in (("reward 1", True), ("reward 0", False)):
        mine = [item for item in items if (_reward(item) >= 1) is good]
        failed: list[tuple[str, list[Verdict]]] = [
            (item.name, [v for v in judge(item.run, default_checks()) if v.outcome.value == "failed"])
            for item in mine
        ]
        out[name] = {
            "runs": len(mine),
            "flagged": sum(flagged(verdicts) for _, verdicts in failed),
            "by check": dict(Counter(v.check for _, verdicts in failed for v in verdicts)),
            "flagged runs": {
                run: [v.because for v in verdicts if v.flags] for run, verdicts in failed if flagged(verdicts)
            },
        }
    return out


def _reward(item: Imported) -> float:
    given = item.beside.get("reward")
    return float(given if given is not None else item.raw.get("reward", 0))


# --- tables


def show(found: Json) -> None:
    """The tables."""
    print("runs:", ", ".join(f"{name} {count}" for name, count in found["runs"].items()))
    print("\n1. runs cut at a step cap")
    for name in ("tau_bench", "tau2_bench"):
        row = found["termination"][name]
        print(
            f"  {name:<11} reported as step_cap {row['reported as step_cap']} of {row['cut at the cap']}, "
            f"flagged {row['flagged by termination']}; wrongly reported {len(row['wrongly reported'])}"
        )
        for key in ("missed", "wrongly reported", "ended by the user in the last step allowed"):
            for run in row.get(key, ()):
                print(f"    {key}: {run}")
    for pair, count in found["termination"]["reasons"].items():
        print(f"    {count:>5}  {pair}")
    row = found["actions"]
    print("\n2. expected actions of the agent (tau2_bench)")
    for key in ("actions", "both found", "both missed", "only redfirst", "only the harness"):
        print(f"  {row[key]:>6}  {key}")
    print(f"  runs: {row['runs']}; precision {row['precision']}")
    for why, count in row["why"].items():
        print(f"  {count:>6}  {why}")
    row = found["labelled"]
    print(f"\n3. human-labelled failures (agentrx): {row['flagged']} of {row['failures']} flagged")
    for category, counts in row["by root cause"].items():
        print(
            f"  {category:<36} {counts['flagged']} of {counts['failures']} flagged, {counts['noted']} noted"
        )
    print("\nflags by reward")
    for name, parts in found["flags"].items():
        for reward, part in parts.items():
            print(
                f"  {name:<11} {reward}: {part['flagged']} of {part['runs']} flagged; failed checks {part['by check']}"
            )


if __name__ == "__main__":
    raise SystemExit(main())
