"""The published runs as incidents: judged by the published policy's rules and the task's expected writes, and frozen."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redfirst.collector_processor.importing.documents import documents
from redfirst.collector_processor.importing.formats import Document, Format, Place
from redfirst.collector_processor.importing.tau2_bench import Tau2Bench
from redfirst.collector_processor.importing.tau_bench import TauBench
from redfirst.evaluators.check import Check, default_checks, judge
from redfirst.evaluators.reading import read_trajectory
from redfirst.evaluators.rules import load_rules
from redfirst.replay.freezing import Draft, FreezeRefused, RecordedRun, freeze

Json = Any

RULES = Path(__file__).parents[2] / "examples" / "tau2"
FOLDERS: Mapping[str, tuple[str, Format]] = {
    "tau_bench": ("tau_bench", TauBench()),
    "tau2_bench": ("tau2_bench/runs", Tau2Bench()),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A run that failed its task or broke a rule."""

    source: str
    name: str
    failed: bool
    """Whether the benchmark's own reward says so."""
    flagged: tuple[str, ...]
    """The checks that flag it."""
    draft: Draft | None
    refusal: str
    """Why it could not be frozen."""


def incidents(data: Path) -> Iterator[Incident]:
    """Each failed or flagged run of the two benchmarks, in the order of the files."""
    for source, (folder, form) in FOLDERS.items():
        for path in sorted((data / folder).glob("*.jsonl.gz")):
            for item in documents(path):
                if isinstance(item, Document) and form.claims(item.value):
                    yield from _of(source, path, form, item)


def _of(source: str, path: Path, form: Format, item: Document) -> Iterator[Incident]:
    for record in form.records([item]):
        spans = list(form.spans(record, Place(source=path.name, number=0)))
        value: Json = record.value
        reward: Json = record.context.get("reward")
        run = read_trajectory(spans)
        checks = (*default_checks(), *_rules(str(record.context.get("domain"))), *_expected(value))
        verdicts = judge(run, checks)
        flagged = tuple(verdict.check for verdict in verdicts if verdict.flags)
        failed = float(reward or 0) < 1
        if not failed and not flagged:
            continue
        draft, refusal = None, ""
        try:
            draft = freeze(RecordedRun(run=run, spans=spans, verdicts=verdicts), checks)
        except FreezeRefused as problem:
            refusal = str(problem)
        yield Incident(
            source=source,
            name=str(record.context.get("run_id", record.where)),
            failed=failed,
            flagged=flagged,
            draft=draft,
            refusal=refusal,
        )


def _rules(domain: str) -> Sequence[Check]:
    path = RULES / f"{domain}.rules.yaml"
    return load_rules(path.read_text("utf-8"), path.name) if path.is_file() else ()


def _expected(raw: Mapping[str, Json]) -> Sequence[Check]:
    """The actions that the task's author expects of the agent, as required calls."""
    told = (((raw.get("info") or {}).get("task") or {}).get("actions")) or [
        check["action"] for check in ((raw.get("reward_info") or {}).get("action_checks") or ())
    ]
    required = [
        {
            "tool": action["name"],
            "where": {
                f"args.{key}": value
                for key, value in _scalars(action.get("kwargs") or action.get("arguments"))
            },
        }
        for action in told
        if action.get("requestor", "assistant") == "assistant"
    ]
    if not required:
        return ()
    rules = {
        "schema": "redfirst.rules/1",
        "tasks": [{"id": "expected", "when": {"request": {"matches": "(?s).*"}}, "required_calls": required}],
    }
    return load_rules(json.dumps(rules), "the task's expected actions")


def _scalars(arguments: Mapping[str, Json] | None) -> Iterator[tuple[str, Json]]:
    """The arguments that are one value: a list of items may be given in any order."""
    for key, value in (arguments or {}).items():
        if isinstance(value, str | int | float | bool):
            yield key, value
