"""One conversation of the sample agent shows equally well in Phoenix and in MLflow, read back through their APIs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import HERE, Programs, environment_of
from .mlflow_server import Mlflow
from .phoenix import Phoenix
from .programs.bookshop_session import QUESTIONS


@pytest.fixture(scope="module")
def phoenix(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix]:
    program = environment_of("phoenix", "bin/phoenix")
    made = Phoenix(program, tmp_path_factory.mktemp("phoenix"), programs.notes)
    try:
        made.start()
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def mlflow(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mlflow]:
    python = environment_of("mlflow", "bin/python")
    made = Mlflow(python, tmp_path_factory.mktemp("mlflow"), programs.notes)
    try:
        made.start()
        yield made
    finally:
        made.end()


def converse(url: str, **more: str) -> int:
    """Have the conversation sent there; how many spans it has."""
    done = subprocess.run(
        [sys.executable, HERE / "programs" / "bookshop_session.py"],
        env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_TIMEOUT": "60", **more},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return int(done.stdout.splitlines()[-1])


def shown_in_phoenix(phoenix: Phoenix) -> list[dict[str, Any]]:
    count = converse(phoenix.url)
    found = []
    for span in phoenix.spans(count):
        attributes = span["attributes"]
        found.append(
            {
                "kind": span["span_kind"],
                "name": span["name"],
                "input": attributes.get("input.value"),
                "output": attributes.get("output.value"),
                "session": attributes.get("session.id"),
                "user": attributes.get("user.id"),
                "tokens": (
                    attributes.get("llm.token_count.prompt"),
                    attributes.get("llm.token_count.completion"),
                ),
            }
        )
    return found


def shown_in_mlflow(mlflow: Mlflow) -> list[dict[str, Any]]:
    converse(mlflow.url, OTEL_EXPORTER_OTLP_HEADERS="x-mlflow-experiment-id=0")
    found = []
    for trace in mlflow.traces():
        for span in trace["spans"]:
            tokens = span["tokens"] or {}
            found.append(
                {
                    "kind": "LLM" if span["kind"] in ("CHAT_MODEL", "LLM") else span["kind"],
                    "name": span["name"],
                    "input": span["inputs"],
                    "output": span["outputs"],
                    "session": trace["metadata"].get("mlflow.trace.session"),
                    "user": trace["metadata"].get("mlflow.trace.user"),
                    "tokens": (tokens.get("input_tokens"), tokens.get("output_tokens")),
                }
            )
    return found


def plain(value: Any) -> Any:
    """A value as data: one backend gives JSON as text, the other taken apart."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def test_both_show_the_same_conversation(phoenix: Phoenix, mlflow: Mlflow) -> None:
    """Kinds, names, inputs, outputs, tokens, session and user."""
    there, here = shown_in_phoenix(phoenix), shown_in_mlflow(mlflow)

    for shown in (there, here):
        kinds = Counter(span["kind"] for span in shown)
        assert kinds["AGENT"] == len(QUESTIONS)
        assert kinds["LLM"] >= len(QUESTIONS)
        assert kinds["TOOL"] >= len(QUESTIONS)
        assert set(kinds) == {"AGENT", "LLM", "TOOL"}
        assert {(span["session"], span["user"]) for span in shown} == {("conversation-1", "customer-7")}
        asked = {plain(span["input"]) for span in shown if span["kind"] == "AGENT"}
        assert asked == set(QUESTIONS)
        for span in shown:
            assert span["input"] is not None, span["name"]
            assert span["output"] is not None, span["name"]
            if span["kind"] == "LLM":
                assert all(isinstance(count, int) for count in span["tokens"]), span["name"]

    def said(shown: list[dict[str, Any]]) -> list[str]:
        keys = ("kind", "name", "tokens", "input", "output")
        return sorted(json.dumps([plain(span[key]) for key in keys], sort_keys=True) for span in shown)

    assert said(there) == said(here)
