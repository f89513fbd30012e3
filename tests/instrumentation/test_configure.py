"""Where spans go."""

from __future__ import annotations

import http.server
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from redfirst.evaluators import ConfigurationError
from redfirst.evaluators.otlp import decode
from redfirst.instrumentation import configure, force_flush, instrumentors, provider, shutdown, tool


def exporters(tracing: Any) -> list[str]:
    """What stands behind a provider, by class name."""
    found = tracing._active_span_processor._span_processors
    return [type(one.span_exporter).__name__ for one in found if hasattr(one, "span_exporter")]


def written(path: Path) -> int:
    """How many spans the file holds."""
    return len(decode(path.read_bytes()).spans)


@pytest.fixture
def nothing_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No span is made, so nothing is sent; endpoints may be anywhere."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")


def test_a_provider_is_made_when_there_is_none(nothing_sent: None) -> None:
    """It becomes the global one, so that the host's own spans join ours, and exports by OTLP."""
    made = configure("shop")

    assert trace.get_tracer_provider() is made
    assert made.resource.attributes["service.name"] == "shop"
    assert exporters(made) == ["OTLPSpanExporter"]
    assert configure() is made
    assert exporters(made) == ["OTLPSpanExporter"]


def test_the_service_is_named_by_its_variable_unless_code_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OTEL_SERVICE_NAME."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "from-env")

    assert configure(file=tmp_path / "f").resource.attributes["service.name"] == "from-env"


@pytest.mark.parametrize(
    ("value", "behind"),
    [
        ("none", []),
        ("otlp", ["OTLPSpanExporter"]),
        ("", ["OTLPSpanExporter"]),
        ("console", ["ConsoleSpanExporter"]),
        ("console, otlp,console", ["ConsoleSpanExporter", "OTLPSpanExporter"]),
        ("jaeger", []),
    ],
)
def test_the_exporter_is_chosen_by_its_variable(
    value: str,
    behind: list[str],
    nothing_sent: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """OTEL_TRACES_EXPORTER; one that is not installed is said, and stops nothing."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", value)

    assert exporters(configure()) == behind
    assert ("jaeger, which is not installed" in caplog.text) == (value == "jaeger")


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A collector's address, and what was posted to it."""
    posted: list[tuple[str, bytes]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", posted
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_endpoint_is_that_of_its_variable(
    collector: tuple[str, list[tuple[str, bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OTEL_EXPORTER_OTLP_ENDPOINT, with the path of the signal."""
    address, posted = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    configure("shop")

    tool(lambda: 1)()
    assert force_flush()
    shutdown()

    ((path, body),) = posted
    assert path == "/v1/traces"
    assert [span.name for span in decode(body).spans] == ["execute_tool <lambda>"]


def test_an_endpoint_and_a_file_each_get_every_span(
    collector: tuple[str, list[tuple[str, bytes]]], tmp_path: Path
) -> None:
    """The endpoint is the whole URL."""
    address, posted = collector
    configure(file=tmp_path / "f", endpoint=f"{address}/custom")

    tool(lambda: 1)()
    shutdown()

    assert [path for path, _ in posted] == ["/custom"]
    assert written(tmp_path / "f") == 1


def test_an_existing_provider_is_joined_and_outlives_us(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its own exporter sees our spans, ours sees its; after our shutdown it is still at work."""
    host, seen = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    host.add_span_processor(SimpleSpanProcessor(seen))
    trace.set_tracer_provider(host)

    with caplog.at_level(logging.INFO):
        assert configure("named", file=tmp_path / "f") is host
    assert "service_name='named' is not used" in caplog.text
    assert trace.get_tracer_provider() is host
    tool(lambda: 1)()
    host.get_tracer("host").start_span("own").end()
    shutdown()
    shutdown()
    tool(lambda: 2)()

    assert written(tmp_path / "f") == 2
    assert len(seen.get_finished_spans()) == 3
    host.shutdown()


def test_an_existing_provider_gets_no_exporter_unasked() -> None:
    """A team has its backends already."""
    host = TracerProvider(shutdown_on_exit=False)
    trace.set_tracer_provider(host)

    assert configure() is host
    assert exporters(host) == []


def test_configuring_twice_writes_no_span_twice(tmp_path: Path) -> None:
    """Libraries and notebooks call it again and again."""
    for _ in range(3):
        configure(file=tmp_path / "f")
        configure(file=tmp_path / "." / "f")

    tool(lambda: 1)()
    shutdown()

    assert written(tmp_path / "f") == 1


def test_after_shutdown_it_can_be_configured_again(tmp_path: Path, nothing_sent: None) -> None:
    """The global provider cannot be replaced, so it goes on with a new exporter."""
    made = configure(file=tmp_path / "f")
    tool(lambda: 1)()
    shutdown()
    assert configure(file=tmp_path / "f") is made
    tool(lambda: 2)()
    shutdown()
    assert written(tmp_path / "f") == 2

    configure()
    assert exporters(made)[-1] == "OTLPSpanExporter"


def test_a_provider_of_ones_own_takes_our_spans_only(tmp_path: Path) -> None:
    """The global one stays as it is, and later calls speak of the same provider."""
    own, seen = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    own.add_span_processor(SimpleSpanProcessor(seen))

    assert configure(provider=own) is own
    assert configure(file=tmp_path / "f") is own
    tool(lambda: 1)()
    shutdown()

    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    assert len(seen.get_finished_spans()) == written(tmp_path / "f") == 1
    own.shutdown()


def test_a_provider_of_another_make_is_used_and_never_replaced(tmp_path: Path) -> None:
    """It takes no exporter of ours, which is said when one is asked for."""
    foreign: Any = trace.NoOpTracerProvider()
    trace.set_tracer_provider(foreign)

    assert configure() is foreign
    with pytest.raises(ConfigurationError, match=r"NoOpTracerProvider, takes no exporter\. Give"):
        configure(file=tmp_path / "f")
    assert trace.get_tracer_provider() is foreign
    assert tool(lambda: 1)() == 1
    assert force_flush()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """At the start, not at the first lost span."""
    (tmp_path / "f").mkdir()

    with pytest.raises(
        ConfigurationError, match=r"cannot be appended to .*/f: Is a directory\. Give configure"
    ):
        configure(file=tmp_path / "f")


def test_a_disabled_sdk_traces_nothing(monkeypatch: pytest.MonkeyPatch, nothing_sent: None) -> None:
    """OTEL_SDK_DISABLED."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    configure()

    assert tool(lambda: 1)() == 1
    assert not provider.tracing().tracer.start_span("x").is_recording()


def test_in_a_replay_nothing_leaves_the_process(tmp_path: Path) -> None:
    """An agent that configures and shuts down as in production adds no exporter and loses no span."""
    inside, seen = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    inside.add_span_processor(SimpleSpanProcessor(seen))
    provider.isolate(inside)

    assert configure("shop", file=tmp_path / "f", endpoint="http://192.0.2.1/v1/traces") is inside
    assert configure(provider=TracerProvider(shutdown_on_exit=False)) is not inside
    tool(lambda: 1)()
    shutdown()
    tool(lambda: 2)()

    assert len(seen.get_finished_spans()) == 2
    assert exporters(inside) == ["InMemorySpanExporter"]
    assert not (tmp_path / "f").exists()


def test_a_tracer_follows_the_provider_that_is_set_later() -> None:
    """Decorated at import, configured in ``main``."""
    look = tool(lambda: 1)
    look()
    host, seen = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    host.add_span_processor(SimpleSpanProcessor(seen))
    trace.set_tracer_provider(host)
    look()

    assert len(seen.get_finished_spans()) == 1


def test_spans_are_written_at_exit_without_a_shutdown(tmp_path: Path) -> None:
    """A script that just ends loses nothing."""
    code = (
        "import sys; from redfirst.instrumentation import configure, tool\n"
        "configure(file=sys.argv[1]); tool(lambda: 1)()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "f")], capture_output=True, text=True, check=True
    )

    assert (done.stdout, done.stderr) == ("", "")
    assert written(tmp_path / "f") == 1


@pytest.mark.parametrize(("share", "kept"), [(0.0, 0), (1.0, 1), (None, 1)])
def test_a_share_of_the_traces_is_recorded(share: float | None, kept: int, tmp_path: Path) -> None:
    """Of a provider that is made here; a share that is none is refused."""
    path = tmp_path / "spans.jsonl"
    configure(file=path, sample=share)
    tool(lambda: 1)()
    shutdown()

    assert len(path.read_text("utf-8").splitlines()) == kept
    with pytest.raises(ConfigurationError, match="no share"):
        configure(sample=1.5)


def test_an_isolated_provider_leaves_the_global_one_to_others(tmp_path: Path) -> None:
    """Theirs go nowhere of ours, and ours nowhere of theirs."""
    theirs = TracerProvider(shutdown_on_exit=False)
    trace.set_tracer_provider(theirs)
    path = tmp_path / "spans.jsonl"
    made = configure("ours", file=path, isolated=True)

    assert made is not theirs
    assert trace.get_tracer_provider() is theirs
    assert configure("ours", file=path, isolated=True) is made
    with trace.get_tracer("other").start_as_current_span("theirs"):
        tool(lambda: 1)()
    shutdown()
    assert "theirs" not in path.read_text("utf-8")
    assert len(path.read_text("utf-8").splitlines()) == 1


class Instrumentor:
    """As OpenInference's are."""

    is_instrumented_by_opentelemetry = False

    def instrument(self, *, tracer_provider: object) -> None:
        type(self).is_instrumented_by_opentelemetry = True
        given.append(tracer_provider)


given: list[object] = []


def test_installed_instrumentors_are_switched_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """All of them, once; one that fails costs a line in the log; one that is not there is named."""

    class Entry:
        def __init__(self, name: str) -> None:
            self.name = name

        def load(self) -> type:
            if self.name == "broken":
                raise ImportError("no such library")
            return Instrumentor

    monkeypatch.setattr(instrumentors, "entry_points", lambda group: [Entry("langchain"), Entry("broken")])
    given.clear()
    Instrumentor.is_instrumented_by_opentelemetry = False
    made = configure(instrument="auto", provider=TracerProvider(shutdown_on_exit=False))

    assert given == [made]
    assert provider.settings.instrumentors == ["langchain"]
    assert "broken" in caplog.text
    configure(instrument="auto")
    assert given == [made]
    with pytest.raises(ConfigurationError, match=r"instrument='openai'.*broken, langchain"):
        configure(instrument="openai")
