"""A flagged run that lies in a real Jaeger is frozen out of it by the link of its page, and proven."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from redfirst.collector_processor.backends.jaeger import Jaeger as Backend
from redfirst.evaluators.otlp import decode_traces
from redfirst.evaluators.otlp_encode import encode_traces
from redfirst.replay.scenario import load
from tests.backends.servers import Jaeger, ask
from tests.backends.test_scores import until
from tests.frameworks.conftest import ROOT

INCIDENT = ROOT / "tests" / "fixtures" / "imports" / "shop_incident.otlp.pb"
MONTH = 30 * 24 * 3600 * 10**9
TRACE = "fd04b1e5eaeb9190adaac27e194a4435"
RULE = (
    "schema: redfirst.rules/1\nrules:\n"
    "  - {kind: require_before, id: verify, call: cancel, needs: verify, severity: page}\n"
)


def redfirst(folder: Path, *words: str) -> dict[str, Any]:
    """What a command that passes says as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "redfirst.collector_processor.cli", *words, "--json"],
        cwd=folder,
        env={**os.environ, "NO_PROXY": "*", "REDFIRST_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_what_jaeger_gives_back_is_frozen_as_it_was_and_its_agent_seen_to_fail(
    jaeger: Jaeger, tmp_path: Path
) -> None:
    """Sent over OTLP and read through Jaeger's API: fixtures, turns, state and clock are those of the file, and the
    agent fails them for the reason it failed in production."""
    spans = [
        replace(
            span,
            start_ns=span.start_ns - MONTH,
            end_ns=span.end_ns - MONTH,
            events=tuple(replace(event, time_ns=event.time_ns - MONTH) for event in span.events),
        )
        for span in decode_traces(INCIDENT.read_bytes())
    ]
    incident = tmp_path / "incident.otlp.pb"
    incident.write_bytes(encode_traces(spans))
    ask(f"{jaeger.otlp}/v1/traces", "POST", incident.read_bytes())
    until(lambda: jaeger.trace(TRACE))
    shutil.copy(ROOT / "tests" / "replay" / "shop.py", tmp_path)
    (tmp_path / "rules.yaml").write_text(RULE, encoding="utf-8")
    (tmp_path / "redfirst.yaml").write_text(
        'rules: rules.yaml\nagents:\n  shop: {call: "shop:bad", input: text}\n', encoding="utf-8"
    )
    there = redfirst(tmp_path, "freeze", f"{jaeger.url}/trace/{TRACE}", "--out", "scenarios/there")
    redfirst(tmp_path, "freeze", TRACE, "--traces", str(incident), "--out", "here")

    assert set(there["completeness"].values()) == {"recorded"}
    assert load(tmp_path / "scenarios" / "there").scenario == load(tmp_path / "here").scenario
    assert load(tmp_path / "scenarios" / "there").model == load(tmp_path / "here").model
    proof = redfirst(tmp_path, "prove", "scenarios/there")
    assert proof["proven"]
    assert {check for check, *_ in proof["signature"]} == {"verify"}
    by_name = redfirst(
        tmp_path, "freeze", TRACE, "--traces", f"jaeger+{jaeger.url}", "--out", "scenarios/again"
    )
    assert by_name["covered_by"] == "there"
    beside = Backend(jaeger.url, None, {}).newest(20, spans)
    assert TRACE in set(beside)  # however old: where a control is looked for
