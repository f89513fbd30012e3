"""The doctor says what an environment keeps from the checks, and blames nothing that is well."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, TraceIdRatioBased

from redfirst.collector_processor.commands.doctor import examine
from redfirst.collector_processor.doctor.findings import (
    Finding,
    Level,
    content,
    duplicates,
    exporting,
    sampling,
)
from redfirst.collector_processor.doctor.probes import target
from redfirst.collector_processor.doctor.spans import provider_and_spans
from redfirst.collector_processor.home import Home
from redfirst.instrumentation import configure, force_flush, tool
from redfirst.instrumentation.counts import ExporterCounts, SpanCounts

NO_EXPORT = {"OTEL_TRACES_EXPORTER": "console"}
"""An environment that needs no endpoint."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def blind(found: list[Finding]) -> dict[str, Finding]:
    return {one.subject: one for one in found if one.level is Level.BLIND}


def doctor(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command as a person runs it, with nothing of OpenTelemetry's in the environment but what is given."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "REDFIRST_"))}
    return subprocess.run(
        [sys.executable, "-m", "redfirst.collector_processor.cli", "doctor", "--timeout", "1", *options],
        cwd=folder,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def test_a_sound_environment_has_no_findings(home: Home) -> None:
    """Nothing is blamed where nothing is wrong."""
    found = examine(home, NO_EXPORT)

    assert blind(found) == {}
    assert all(one.level is Level.OK for one in found if one.subject != "service")


@pytest.mark.parametrize(
    ("environment", "subject", "blinds"),
    [
        ({"OTEL_SDK_DISABLED": "true"}, "exporter", "all"),
        ({"OTEL_TRACES_EXPORTER": "none"}, "exporter", "all"),
        ({"OTEL_TRACES_EXPORTER": "zipkin_of_old"}, "exporter", "all"),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, "sampling", "all"),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"}, "sampling", "all"),
        ({"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, "sampling", "all"),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "false"}, "content", "repeats"),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "EVENT_ONLY"}, "content", "policy rules"),
        ({"TRACELOOP_TRACE_CONTENT": "false"}, "content", "policy rules"),
        ({"OPENINFERENCE_HIDE_INPUTS": "true"}, "content", "policy rules"),
        ({"OPENINFERENCE_HIDE_OUTPUT_MESSAGES": "true"}, "content", "termination"),
        ({"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "200"}, "limits", "repeats"),
        ({"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "32"}, "limits", "recall"),
    ],
)
def test_what_blinds_a_check_is_found_and_says_which(
    home: Home, environment: Mapping[str, str], subject: str, blinds: str
) -> None:
    """Each bad setting is one finding, with what it means, which checks it is about, and a remedy."""
    (found,) = blind(examine(home, {**NO_EXPORT, **environment})).values()

    assert found.subject == subject
    assert blinds in found.blinds
    assert found.means
    assert found.remedy


@pytest.mark.parametrize(
    "environment",
    [
        {"OTEL_TRACES_SAMPLER": "parentbased_always_on"},
        {"OTEL_TRACES_SAMPLER": "always_on"},
        {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "1.0"},
        {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "all"},
        {"OPENINFERENCE_HIDE_INPUTS": "false"},
        {"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "100000"},
        {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_only"},
    ],
)
def test_what_blinds_nothing_is_left_alone(home: Home, environment: Mapping[str, str]) -> None:
    """Settings that keep everything are no finding."""
    assert blind(examine(home, {**NO_EXPORT, **environment})) == {}


def test_two_instrumentations_of_one_library_are_named() -> None:
    """OpenInference and OpenTelemetry packages for the same library, under whichever of its names."""
    found = duplicates(
        [
            *("openinference-instrumentation-openai", "opentelemetry-instrumentation-openai-v2"),
            *("openinference-instrumentation-langchain", "opentelemetry-instrumentation-httpx"),
            *(
                "openinference-instrumentation-google-genai",
                "opentelemetry-instrumentation-google-generativeai",
            ),
        ]
    )

    assert [one.level for one in found] == [Level.NOTE, Level.NOTE]
    assert found[0].found.startswith("google-genai: ")
    assert found[1].found == (
        "openai: openinference-instrumentation-openai and opentelemetry-instrumentation-openai-v2 "
        "are installed together"
    )
    assert duplicates(["openinference-instrumentation-openai"])[0].level is Level.OK


def test_an_instrumentation_that_is_quiet_by_default_is_named() -> None:
    """OpenTelemetry's own packages capture no content until the variable says so."""
    package = "opentelemetry-instrumentation-openai-v2"
    variable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

    assert content({}, [package])[0].level is Level.BLIND
    assert content({variable: "true"}, [package])[0].level is Level.OK
    assert content({}, [])[0].level is Level.OK


def test_exporters_that_are_installed_are_no_finding() -> None:
    """A name that an entry point knows is fine, and the default is said to be one."""
    assert exporting({"OTEL_TRACES_EXPORTER": "zipkin"}, ["zipkin"])[0].level is Level.OK
    assert exporting({}, [])[0].found == "otlp (default)"


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, ("http://localhost:4318/v1/traces", "http")),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ("http://localhost:4317", "grpc")),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1/x/"}, ("http://h:1/x/v1/traces", "http")),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:1/x"}, ("http://h:1/x", "http")),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "h:1", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"},
            ("h:1", "grpc"),
        ),
    ],
)
def test_the_endpoint_is_the_one_an_exporter_would_use(
    environment: Mapping[str, str], wanted: tuple[str, str]
) -> None:
    """The variables are read as OpenTelemetry specifies them."""
    assert target(environment) == wanted


def test_a_provider_that_is_not_counted_shows_its_exporters_and_what_waits(home: Home) -> None:
    """In a process that never called ``configure``."""
    made = TracerProvider()
    made.add_span_processor(BatchSpanProcessor(InMemorySpanExporter(), schedule_delay_millis=60_000))
    trace.set_tracer_provider(made)
    made.get_tracer("t").start_span("s").end()
    found = examine(home, NO_EXPORT)

    assert "InMemorySpanExporter" in found[0].found
    assert found[1].found == "process: not counted, 1 waiting"
    assert found[1].level is Level.NOTE
    assert blind(found) == {}


def test_a_provider_without_an_exporter_is_blind(home: Home) -> None:
    """Spans that are made and thrown away are a finding."""
    trace.set_tracer_provider(TracerProvider())

    assert blind(examine(home, NO_EXPORT))["provider"].blinds == ("all",)


def test_a_file_alone_asks_for_no_endpoint(home: Home, tmp_path: Path) -> None:
    """``configure(file=…)`` is a whole configuration; its spans are counted in the process that asks."""
    configure(file=tmp_path / "t.jsonl")
    tool(lambda: 1)()
    force_flush()
    found = examine(home, {})

    assert blind(found) == {}
    assert all(one.subject != "endpoint" for one in found)
    assert next(one.counts for one in found if one.subject == "spans") == {
        "started": 1,
        "ended": 1,
        "not_sampled": 0,
    }
    assert any("t.jsonl: 1 exported, 0 dropped, last " in one.found for one in found)


def test_an_endpoint_in_the_code_is_the_one_that_is_asked(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that of the environment."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
    configure(endpoint="http://127.0.0.1:9/v1/traces?key=k3y")
    found = examine(home, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:8"}, timeout=1)

    assert blind(found)["endpoint"].found == "http://127.0.0.1:9: no answer (connection)"
    assert "k3y" not in str(found)


def test_nothing_is_made_or_set_by_looking(home: Home) -> None:
    """Without a provider there is none afterwards; one that a variable names is not made."""
    examine(home, NO_EXPORT)
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    found = examine(home, {**NO_EXPORT, "OTEL_PYTHON_TRACER_PROVIDER": "sdk_tracer_provider"})

    assert found[0].level is Level.NOTE
    assert trace._TRACER_PROVIDER is None


@pytest.mark.parametrize(
    ("sampler", "level"),
    [
        (TraceIdRatioBased(0.1), Level.BLIND),
        (ParentBased(TraceIdRatioBased(0.1)), Level.BLIND),
        (ALWAYS_OFF, Level.BLIND),
        (ParentBased(ALWAYS_OFF), Level.BLIND),
        (TraceIdRatioBased(1.0), Level.OK),
        (TracerProvider(shutdown_on_exit=False).sampler, Level.OK),
    ],
)
def test_a_providers_own_sampler_counts(sampler: Any, level: Level) -> None:
    """A sampler set in code is found like one from the environment."""
    assert sampling({}, str(sampler.get_description()))[0].level is level


def test_an_endpoint_that_is_not_there_is_exit_1(tmp_path: Path) -> None:
    """As a command: the default endpoint is asked, nobody answers, the exit code is 1 and JSON says why."""
    done = doctor(tmp_path, "--json", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9/secret-path?key=k3y")
    found = {one["subject"]: one for one in map(json.loads, done.stdout.splitlines())}

    assert done.returncode == 1, done.stderr
    assert found["endpoint"]["level"] == "blind"
    assert found["endpoint"]["found"] == "http://127.0.0.1:9: no answer (connection)"
    assert found["endpoint"]["blinds"] == ["all"]
    assert "k3y" not in done.stdout + done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize(
    "endpoint", ["localhost:4318", "http://[::1", "http://", "ftp://h", "http://h:99999"]
)
def test_an_endpoint_that_is_no_url_is_said_to_be_none(tmp_path: Path, home: Home, endpoint: str) -> None:
    """Whatever stands in the variable, it is a finding and no traceback."""
    found = blind(examine(home, {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, timeout=0.5))

    assert "no URL" in found["endpoint"].found


def test_a_project_that_reads_files_needs_no_endpoint(tmp_path: Path) -> None:
    """Where nothing asks for one; where something does, it has to answer."""
    (tmp_path / "redfirst.yaml").write_text("traces: [t.jsonl]\n")
    (tmp_path / "t.jsonl").write_text("")
    alone = doctor(tmp_path)
    asked = doctor(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")

    assert alone.returncode == 0, alone.stdout
    assert "exporter: file t.jsonl (0 bytes)" in alone.stdout
    assert asked.returncode == 1


PROGRAM = """
import sys
from redfirst.instrumentation import agent, configure, tool
exec(sys.argv[1])
@tool
def look(): return 1
@agent
def handle(text):
    for _ in range(3): look()
for _ in range(5): handle("x")
print("its own words")
"""
NOBODY = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
JOINED = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
trace.set_tracer_provider(TracerProvider())
configure()
trace.get_tracer_provider().add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
"""


def ran(folder: Path, setting: str, **environment: str) -> tuple[int, dict[str, Finding], dict[str, int]]:
    """Exit code, findings that blind and all counts of 5 runs of 4 spans, run under the doctor."""
    done = doctor(folder, "--json", "--", sys.executable, "-c", PROGRAM, setting, **environment)
    found = [
        Finding(**{**one, "level": Level(one["level"])}) for one in map(json.loads, done.stdout.splitlines())
    ]
    assert "its own words" in done.stderr
    counts = {name: number for one in found for name, number in (one.counts or {}).items() if number}
    return done.returncode, blind(found), counts


def test_a_programs_healthy_export_blinds_nothing(tmp_path: Path) -> None:
    """20 spans begun, ended and exported."""
    code, blinding, counts = ran(tmp_path, "configure(file='t.jsonl')")

    assert (code, blinding) == (0, {})
    assert counts == {"started": 20, "ended": 20, "exported": 20}


@pytest.mark.parametrize("setting", ["configure()", JOINED])
def test_what_a_dead_endpoint_loses_of_a_program_is_counted(tmp_path: Path, setting: str) -> None:
    """To the last flush at its end, on a provider of ours and on one of the host's."""
    code, blinding, counts = ran(tmp_path, setting, **NOBODY)

    assert code == 1
    assert blinding["spans"].blinds == ["all"]
    assert "0 exported, 20 dropped (20 export failed)" in blinding["spans"].found
    assert counts["dropped"] == counts["dropped_export_failed"] == counts["ended"] == 20


def test_what_head_sampling_drops_of_a_program_is_counted(tmp_path: Path) -> None:
    """None of 20 spans began, and no exporter is to blame."""
    code, blinding, counts = ran(tmp_path, "configure(file='t.jsonl')", OTEL_TRACES_SAMPLER="always_off")

    assert code == 1
    assert counts == {"not_sampled": 20}
    assert "the sampler dropped" in blinding["spans"].means


def test_a_program_that_is_killed_leaves_its_counts(tmp_path: Path) -> None:
    """What waited in the queue is lost with it."""
    setting = (
        "import atexit, os, time; configure(file='t.jsonl');"
        "atexit.register(lambda: (print('its own words', flush=True), time.sleep(.3), os.kill(os.getpid(), 9)))"
    )
    code, blinding, counts = ran(tmp_path, setting, OTEL_BSP_SCHEDULE_DELAY="600000")

    assert code == 1
    assert "20 left in the queue" in blinding["spans"].found
    assert counts["dropped"] == 20


def test_a_program_that_does_not_configure_is_told_so(tmp_path: Path) -> None:
    """A command of any language runs; its exit code is told, and alone is no finding of ours."""
    code, blinding, counts = ran(tmp_path, "sys.stdout.write('its own words'); sys.exit(3)")

    assert (code, counts) == (1, {})
    assert "ended with exit code 3 and did not call configure()" in blinding["program"].found


def test_a_command_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    """One line, exit 2."""
    done = doctor(tmp_path, "--", "no-such-command")

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no-such-command: there is no such command" in done.stderr


def test_duplicates_in_a_real_environment(tmp_path: Path) -> None:
    """Distributions that are really installed are compared; a note alone is exit 0."""
    for name in ("openinference_instrumentation_openai", "opentelemetry_instrumentation_openai"):
        folder = tmp_path / "site" / f"{name}-1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    done = doctor(tmp_path, PYTHONPATH=str(tmp_path / "site"), OTEL_TRACES_EXPORTER="console")

    assert done.returncode == 0, done.stdout
    assert "note  instrumentation: openai: openinference-instrumentation-openai and" in done.stdout
    assert "Every check can fire." in done.stdout


def test_a_running_service_is_found_by_its_home(served: Any, home: Home) -> None:
    """Its addresses come from its files; the endpoint that is the service's own takes an empty export."""
    served.post("/v1/traces", b"nonsense", content_type="application/x-protobuf")
    for environment in (
        {"OTEL_EXPORTER_OTLP_ENDPOINT": served.http},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{served.grpc}", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ):
        found = examine(Home(served.home), environment)
        subjects = {one.subject: one for one in found}
        assert blind(found) == {}
        assert subjects["endpoint"].level is Level.OK
        assert served.http in subjects["service"].found
        assert "0 spans accepted, 1 requests or records refused" in subjects["spans"].found
        assert served.runs() == []
    elsewhere = examine(Home(served.home), {**NO_EXPORT, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1"})
    assert any("the exporter here goes to h:1" in one.found for one in elsewhere)


@pytest.mark.parametrize(("key", "level"), [("random", Level.NOTE), ("keyed", Level.OK), (None, None)])
def test_a_redaction_that_holds_within_one_process_only_is_noted(
    key: str | None, level: Level | None
) -> None:
    """A run that spans two processes would not match itself; without redaction there is nothing to say."""
    seen = SpanCounts(provider="p", started=1, ended=1, every_sampler=True, exporters=(), redaction=key)

    found = [one for one in provider_and_spans(seen) if one.subject == "redaction"]
    assert [one.level for one in found] == ([] if level is None else [level])
    assert all("REDFIRST_REDACTION_KEY" in one.remedy for one in found if one.level is Level.NOTE)


def test_what_did_not_fit_the_queue_for_its_size_is_a_reason_of_its_own() -> None:
    """Raising the number of spans would not help there."""
    exporter = ExporterCounts(
        name="E", exported=1, failed=0, queue_full=0, bytes_full=3, waiting=0, exporting=0, restarts=2
    )
    seen = SpanCounts(provider="p", started=4, ended=4, every_sampler=True, exporters=(exporter,))

    (found,) = [one for one in provider_and_spans(seen) if one.counts and "dropped" in one.counts]
    assert "3 queue too large" in found.found
    assert "died 2 times" in found.found
    assert "REDFIRST_MAX_QUEUE_BYTES" in found.remedy
