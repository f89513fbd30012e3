"""What importing us costs a host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import redfirst.evaluators
import redfirst.instrumentation

HEAVY = (
    *("pydantic", "pydantic_core", "numpy", "scipy", "yaml", "google.protobuf", "requests", "asyncio"),
    *("opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.proto", "time_machine", "openinference"),
)


def imported(code: str) -> set[str]:
    """The modules that are loaded in a fresh process after this code."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def heavy(modules: set[str]) -> set[str]:
    """Those of them that cost."""
    return {name for name in modules if name.startswith(HEAVY)}


def test_importing_loads_no_heavy_library() -> None:
    """The OpenTelemetry API and orjson; of the evaluators, names and errors only."""
    found = imported("import redfirst.instrumentation")

    assert not heavy(found)
    assert {name for name in found if name.startswith("redfirst.evaluators")} == {
        "redfirst.evaluators",
        "redfirst.evaluators.errors",
        "redfirst.evaluators.semconv",
    }


def test_a_traced_call_loads_no_heavy_library_either() -> None:
    """Nothing is put off to the first request."""
    found = imported(
        "from redfirst.instrumentation import tool, agent, model, current_run, faults\n"
        "@tool(schema={})\ndef look(x: int): return x\n"
        "@model\ndef chat(messages): return {'content': 'x'}\n"
        "@agent\ndef handle(text): current_run().state({}); look(1); chat([]); return text\n"
        "handle('x')\nassert not faults()"
    )

    assert not heavy(found)


def test_the_evaluators_give_each_public_name_when_it_is_asked_for() -> None:
    """Lazy or not, the list of names and what they are is the same."""
    for name in redfirst.evaluators.__all__:
        assert getattr(redfirst.evaluators, name) is not None
        assert name in dir(redfirst.evaluators)
    assert set(redfirst.evaluators._HOME) == set(redfirst.evaluators.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = redfirst.evaluators.Nothing


def test_the_public_surface_is_this() -> None:
    """A new name is a decision, not an accident."""
    assert redfirst.instrumentation.__all__ == [
        *(
            "CallRefused",
            "Guard",
            "Pattern",
            "Redaction",
            "Run",
            "TraceASGI",
            "TraceIds",
            "TraceWSGI",
            "agent",
        ),
        *(
            "chain",
            "configure",
            "current_run",
            "environment",
            "extract",
            "faults",
            "force_flush",
            "guardrail",
        ),
        *(
            "handoff",
            "in_context",
            "inject",
            "model",
            "retriever",
            "session",
            "shutdown",
            "span",
            "span_counts",
        ),
        *("tool", "trace_header", "trace_ids", "wrap_executor"),
    ]


def test_mypy_sees_the_types_of_decorated_functions(tmp_path: Path) -> None:
    """The file beside this one says what they are; a decorator that lost one would fail it."""
    here = Path(__file__)
    (tmp_path / "redfirst").mkdir()
    for module in (redfirst.evaluators, redfirst.instrumentation):
        place = Path(str(module.__file__)).parent
        (tmp_path / "redfirst" / module.__name__.rpartition(".")[2]).symlink_to(place)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--follow-imports=silent",
            f"--config-file={here.parents[2] / 'pyproject.toml'}",
            "--cache-dir=/dev/null",
            "typing_api.py",
        ],
        cwd=here.parent,
        env={"MYPYPATH": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
