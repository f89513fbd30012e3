"""Every example of docs/frameworks.md runs, against a server that answers as the vendors do."""

from __future__ import annotations

import asyncio
import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from redfirst.instrumentation import configure

from .test_vendors import anthropic_message, google_response, openai_chat_chunks, openai_response

PAGE = (Path(__file__).parents[2] / "docs" / "frameworks.md").read_text("utf-8")
ELSEWHERE = {"LiteLLM"}
"""tests/frameworks/test_litellm.py"""
EXAMPLES: dict[str, str] = dict(
    re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?```python\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
)


class Vendor(http.server.BaseHTTPRequestHandler):
    """Answers as the vendor whose path is asked for."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        kind = "application/json"
        if self.path.endswith("/chat/completions"):
            lines = [f"data: {piece.model_dump_json()}\n\n" for piece in openai_chat_chunks()]
            body, kind = "".join([*lines, "data: [DONE]\n\n"]), "text/event-stream"
        elif self.path.endswith("/responses"):
            body = openai_response().model_dump_json()
        elif self.path.endswith("/converse"):
            text = {"role": "assistant", "content": [{"text": "Hello."}]}
            usage = {"inputTokens": 100, "outputTokens": 7, "totalTokens": 107}
            answer = {"output": {"message": text}, "stopReason": "end_turn", "usage": usage}
            body = json.dumps({**answer, "metrics": {"latencyMs": 1}})
        elif self.path.endswith("/messages"):
            message = anthropic_message()
            message.content = message.content[1:]
            body = message.model_dump_json()
        else:
            body = json.dumps(google_response().model_dump(mode="json", by_alias=True, exclude_none=True))
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def vendor(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Vendor)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", url)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    yield url
    server.shutdown()
    server.server_close()


def test_every_section_has_an_example() -> None:
    """None is left out of the test below."""
    assert len(EXAMPLES) == PAGE.count("\n## ")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("heading", sorted(EXAMPLES.keys() - ELSEWHERE))
def test_each_example_runs(heading: str, vendor: str) -> None:
    """And leaves spans that tell of it."""
    code = EXAMPLES[heading]
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    configure(provider=provider)
    names: dict[str, Any] = {}
    exec(compile(code, f"docs/frameworks.md: {heading}", "exec"), names)  # the page's own code
    if "ASGI" in heading:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(names["app"]({"type": "http", "headers": []}, None, send))
        assert sent[0]["headers"][0][0] == b"x-trace-id"
    if "WSGI" in heading:
        told: list[Any] = []
        assert list(names["app"]({}, lambda *given: told.append(given))) == [b"You said hi."]
        assert told[0][1][-1][0] == "x-trace-id"
    spans = exporter.get_finished_spans()
    assert spans
    for span in spans:
        assert span.status.status_code.name == "OK"
        if span.name.startswith("chat"):
            assert span.attributes is not None
            assert span.attributes["gen_ai.usage.input_tokens"] == 100
            assert json.loads(str(span.attributes["gen_ai.input.messages"]))[-1]["role"] == "user"
