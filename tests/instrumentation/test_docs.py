"""The page says what is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from redfirst.evaluators import semconv
from redfirst.instrumentation import agent, capture, current_run, model, tool

PAGE = (Path(__file__).parents[2] / "docs" / "instrumentation.md").read_text("utf-8")


def test_every_attribute_and_event_that_is_written_is_on_the_page(
    spans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attribute that no page explains is noise in somebody's backend."""
    monkeypatch.setattr(capture, "MAX_CHARACTERS", 300)

    @tool(effect="write", idempotent=True, poll=True, schema={})
    def look(x: str) -> str:
        """Look."""
        raise KeyError(x)

    @model(provider="p")
    def chat(messages: Any, tools: Any, model: str) -> Any:
        calls = [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]
        counts = {"cached_tokens": 1}, {"reasoning_tokens": 1}
        return {
            "id": "r",
            "model": "m",
            "choices": [{"message": {"content": "x", "tool_calls": calls}, "finish_reason": "stop"}],
            "usage": {
                "input_tokens": 1,
                "output_tokens": 1,
                "input_tokens_details": counts[0],
                "output_tokens_details": counts[1],
            },
        }

    @agent(step_cap=1, version="1")
    def handle(text: str) -> str:
        current_run().state({})
        current_run().event("e")
        current_run().stop("step_cap", cap=1)
        with pytest.raises(KeyError):
            look("x" * 1000)
        chat([{"role": "tool", "tool_call_id": "c", "content": "x"}], [], "m")
        return text

    handle("x")
    tool(lambda: 1)()

    keys = {key for span in spans.all() for key in span.attributes}
    keys |= {key for span in spans.all() for event in span.events for key in (event.name, *event.attributes)}
    for key in keys:
        flat = re.match(r"llm\.(?:in|out)put_messages\.\d+\.message", key)
        said = key.rpartition("tool_call.")[2].rpartition("message.")[2] if flat else key
        assert re.search(rf"[`.]{re.escape(said)}`", PAGE), key


def test_every_name_on_the_page_is_one_we_write() -> None:
    """A name that is renamed in the code is renamed here."""
    known = {value for name, value in vars(semconv).items() if name.isupper()}
    for name in re.findall(r"`((?:gen_ai|redfirst|tool|agent|input|output|error)\.[a-z_.]+)`", PAGE):
        if not name.startswith(("redfirst.instrumentation", "redfirst.evaluators")):
            assert name in known, name


def test_every_variable_we_read_is_on_the_page() -> None:
    """A switch nobody knows of does not exist."""
    room = Path(str(capture.__file__)).parent
    for module in room.glob("*.py"):
        for name in re.findall(r'"((?:OTEL|REDFIRST)_[A-Z_]+)"', module.read_text("utf-8")):
            assert f"`{name}" in PAGE, name
