"""A program's incident recorded, frozen and proven, in a project folder of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from redfirst.evaluators.check import Check, check_from_spec, default_checks, judge
from redfirst.evaluators.otlp import decode_traces
from redfirst.evaluators.reading import read_runs
from redfirst.instrumentation import configure, shutdown
from redfirst.instrumentation.otlp_file import to_otlp_json
from redfirst.replay.calling import call, load
from redfirst.replay.freezing import RecordedRun, freeze
from redfirst.replay.project import load_project
from redfirst.replay.proof import prove

REQUEST = "Please see to it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """How a program's proof ended."""

    name: str
    proven: bool
    refusal: str | None
    because: str
    seconds: float
    """Of the proof: two executions of the agent and two of its control, each in a fresh process."""
    cpu_seconds: float
    """Of processors, in those four processes: what does not depend on what else the machine does."""


def prove_program(
    folder: Path,
    name: str,
    source: str,
    rule: Mapping[str, object] | None,
    variables: Mapping[str, str] | None = None,
) -> Proof:
    """Record the program's run in this process, freeze it, and have it proven.

    Args:
        folder: an empty folder.
        name: of the program's module; no other program of this process may have it.
        source: of the module.
        rule: what the run breaks beside the default checks.
        variables: environment variables that the project sets for its agent.
    """
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text(source, encoding="utf-8")
    settings = {"agents": {"planted": {"call": f"{name}:make", "environment": dict(variables or {})}}}
    (folder / "redfirst.yaml").write_text(json.dumps(settings), encoding="utf-8")
    checks = (*default_checks(), *([check_from_spec(dict(rule))] if rule else ()))
    scenario = folder / "scenario"
    freeze(_recorded(folder, name, checks), checks).write(scenario)
    begun, used = time.perf_counter(), _children()
    report = prove(scenario, load_project(folder), agent=f"{name}:make")
    return Proof(
        name=name,
        proven=report.proven,
        refusal=None if report.refusal is None else report.refusal.value,
        because=report.because,
        seconds=time.perf_counter() - begun,
        cpu_seconds=_children() - used,
    )


def _children() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


def _recorded(folder: Path, name: str, checks: Sequence[Check]) -> RecordedRun:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    configure(provider=provider)
    try:
        with chdir(folder), _importable(folder, name):
            call(load(f"{name}:make"), {"text": REQUEST})
        spans = decode_traces(json.dumps(to_otlp_json(exporter.get_finished_spans())).encode())
    finally:
        shutdown()
    (run,) = read_runs(spans)
    return RecordedRun(run=run, spans=spans, verdicts=judge(run, checks))


@contextmanager
def _importable(folder: Path, name: str) -> Iterator[None]:
    spec: Any = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield
    finally:
        del sys.modules[name]
