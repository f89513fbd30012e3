"""A project folder with one small agent, and its incident frozen once for all tests."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from redfirst.evaluators.check import Check, check_from_spec, default_checks, judge
from redfirst.evaluators.otlp import decode
from redfirst.evaluators.reading import read_runs
from redfirst.instrumentation import provider as tracing
from redfirst.instrumentation.otlp_file import to_otlp_json
from redfirst.replay.freezing import RecordedRun, freeze
from redfirst.replay.project import Project, load_project

SHOP = Path(__file__).with_name("shop.py")
REQUEST = "please cancel A-1"
VERIFY_FIRST = {
    "kind": "require_before",
    "id": "verify-before-cancel",
    "call": "cancel",
    "needs": {"tool": "verify", "where": {"result.verified": True}},
}
CHECKS: tuple[Check, ...] = (*default_checks(), check_from_spec(VERIFY_FIRST))


@pytest.fixture(scope="session")
def shop() -> ModuleType:
    """The agent's module, loaded in this process to record incidents with."""
    spec = importlib.util.spec_from_file_location("shop", SHOP)
    if spec is None or spec.loader is None:
        raise AssertionError(SHOP)
    module = importlib.util.module_from_spec(spec)
    sys.modules["shop"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def recorded() -> Iterator[Callable[..., RecordedRun]]:
    """Runs an agent in this process and gives its run, judged."""
    made: list[TracerProvider] = []
    before = tracing.settings.provider

    def record(
        agent: Callable[[str], str], request: str = REQUEST, checks: tuple[Check, ...] = CHECKS
    ) -> RecordedRun:
        exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        made.append(provider)
        tracing.configure(provider=provider)
        agent(request)
        import json

        spans = decode(json.dumps(to_otlp_json(exporter.get_finished_spans())).encode()).spans
        (run,) = read_runs(spans)
        return RecordedRun(run=run, spans=spans, verdicts=judge(run, checks))

    yield record
    tracing.settings.provider = before
    for provider in made:
        provider.shutdown()


@dataclass(frozen=True)
class Place:
    """A project folder and the scenario in it."""

    project: Project
    scenario: Path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose configured agent is the bad one."""
    monkeypatch.delenv("REDFIRST_HOME", raising=False)
    shutil.copy(SHOP, tmp_path / "shop.py")
    (tmp_path / "redfirst.yaml").write_text('agents:\n  shop: {call: "shop:bad"}\n')
    return load_project(tmp_path)


@pytest.fixture
def place(project: Project, shop: ModuleType, recorded: Callable[..., RecordedRun]) -> Place:
    """The bad agent's incident as a draft."""
    folder = project.root / "scenarios" / "cancelled"
    freeze(recorded(shop.bad()), CHECKS).write(folder)
    return Place(project, folder)
