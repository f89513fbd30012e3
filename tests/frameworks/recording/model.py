"""A scripted model on loopback: chat completions and responses, streamed or not, and an OTLP endpoint beside it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.frameworks.recording.scenarios import Scenario, Turn

MODEL = "gpt-4o-mini"


def usage_of(number: int) -> dict[str, int]:
    """What the request with this number, from 1, costs: of each another, so that counting twice shows."""
    return {
        "input": 90 + 31 * number,
        "output": 12 + 7 * number,
        "cached": 48 if number > 1 else 0,
        "reasoning": 4,
    }


@dataclass
class Answered:
    """One request, as it was answered."""

    number: int
    api: str
    turn: Turn
    ids: list[str]
    stream: bool
    usage: dict[str, int] | None


@dataclass
class Server:
    """Plays a scenario, and keeps what it answered and every OTLP body it was sent."""

    scenario: Scenario
    final_tool: str | None = None
    """The tool by which the framework lets a model answer."""
    coded: bool = False
    """The model writes its calls as Python code."""
    answered: list[Answered] = field(default_factory=list)
    bodies: list[tuple[str, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    def take(self, api: str, body: dict[str, Any]) -> Answered:
        """The next turn of the scenario."""
        with self._lock:
            number = len(self.answered) + 1
            scenario = self.scenario
            turn = scenario.turns[min(number, len(scenario.turns)) - 1]
            if scenario.capped is not None and not body.get("tools"):
                turn = Turn(text=scenario.capped)
            if turn.text is not None and self.final_tool and body.get("tools"):
                turn = Turn(calls=((self.final_tool, {"answer": turn.text}),))
            if self.coded:
                turn = _in_code(turn)
            stream = bool(body.get("stream"))
            counted = turn.status == 200 and (
                not stream
                or api == "openai.responses"
                or bool((body.get("stream_options") or {}).get("include_usage"))
            )
            ids = [f"call_{number}_{place}" for place in range(len(turn.calls))]
            done = Answered(number, api, turn, ids, stream, usage_of(number) if counted else None)
            self.answered.append(done)
            return done


def _in_code(turn: Turn) -> Turn:
    """The same turn as text with a block of code."""
    lines = [
        f"print({name}({', '.join(f'{k}={v!r}' for k, v in given.items())}))" for name, given in turn.calls
    ]
    block = "\n".join(lines) if turn.calls else f"final_answer({turn.text!r})"
    return Turn(text=f"Thought: this comes next.\n<code>\n{block}\n</code>")


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self._body()
            if self.path in ("/v1/traces", "/v1/logs", "/v1/metrics"):
                server.bodies.append((self.path, raw))
                self._send(200, b"", "application/x-protobuf")
                return
            api = {"/v1/chat/completions": "openai.chat", "/v1/responses": "openai.responses"}.get(self.path)
            if api is None:
                self._send(404, b"{}", "application/json")
                return
            done = server.take(api, json.loads(raw))
            if done.turn.status != 200:
                fault = {
                    "error": {
                        "message": "scripted fault",
                        "type": "invalid_request_error",
                        "code": "scripted",
                    }
                }
                self._send(done.turn.status, json.dumps(fault).encode(), "application/json")
            elif done.stream:
                self._send(200, b"".join(_events(done)), "text/event-stream")
            else:
                speak = _completion if api == "openai.chat" else _response
                self._send(200, json.dumps(speak(done)).encode(), "application/json")

        def _body(self) -> bytes:
            length = self.headers["content-length"]
            if length is not None:
                return self.rfile.read(int(length))
            parts: list[bytes] = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _send(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    return Handler


def _calls(done: Answered) -> list[dict[str, Any]]:
    return [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for call_id, (name, given) in zip(done.ids, done.turn.calls, strict=True)
    ]


def _finish(done: Answered) -> str:
    return done.turn.finish or ("tool_calls" if done.turn.calls else "stop")


def _chat_usage(number: int) -> dict[str, Any]:
    used = usage_of(number)
    return {
        "prompt_tokens": used["input"],
        "completion_tokens": used["output"],
        "total_tokens": used["input"] + used["output"],
        "prompt_tokens_details": {"cached_tokens": used["cached"]},
        "completion_tokens_details": {"reasoning_tokens": used["reasoning"]},
    }


def _completion(done: Answered) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": done.turn.text}
    if done.turn.calls:
        message["tool_calls"] = _calls(done)
    return {
        "id": f"chatcmpl-{done.number}",
        "object": "chat.completion",
        "created": 1_900_000_000,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(done)}],
        "usage": _chat_usage(done.number),
    }


def _events(done: Answered) -> Iterator[bytes]:
    def event(value: object, name: str | None = None) -> bytes:
        head = f"event: {name}\n" if name else ""
        return f"{head}data: {json.dumps(value)}\n\n".encode()

    if done.api == "openai.responses":
        whole = _response(done)
        yield event(
            {
                "type": "response.created",
                "sequence_number": 0,
                "response": {**whole, "status": "in_progress", "output": []},
            },
            "response.created",
        )
        number = 1
        for place, item in enumerate(whole["output"]):
            yield event(
                {
                    "type": "response.output_item.added",
                    "sequence_number": number,
                    "output_index": place,
                    "item": item,
                },
                "response.output_item.added",
            )
            if item["type"] == "message":
                yield event(
                    {
                        "type": "response.output_text.delta",
                        "sequence_number": number + 1,
                        "output_index": place,
                        "content_index": 0,
                        "item_id": item["id"],
                        "delta": done.turn.text,
                    },
                    "response.output_text.delta",
                )
            yield event(
                {
                    "type": "response.output_item.done",
                    "sequence_number": number + 2,
                    "output_index": place,
                    "item": item,
                },
                "response.output_item.done",
            )
            number += 3
        yield event(
            {"type": "response.completed", "sequence_number": number, "response": whole}, "response.completed"
        )
        return
    base = {
        "id": f"chatcmpl-{done.number}",
        "object": "chat.completion.chunk",
        "created": 1_900_000_000,
        "model": MODEL,
    }

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in (done.turn.text or "").partition(" "):
        if piece:
            yield chunk({"content": piece})
    for place, call in enumerate(_calls(done)):
        yield chunk({"tool_calls": [{"index": place, **call}]})
    yield chunk({}, _finish(done))
    if done.usage is not None:
        yield event({**base, "choices": [], "usage": _chat_usage(done.number)})
    yield b"data: [DONE]\n\n"


def _response(done: Answered) -> dict[str, Any]:
    calls: list[dict[str, Any]] = [
        {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            "name": name,
            "arguments": json.dumps(given),
            "status": "completed",
        }
        for call_id, (name, given) in zip(done.ids, done.turn.calls, strict=True)
    ]
    said = {"type": "output_text", "text": done.turn.text, "annotations": []}
    output = calls or [
        {
            "type": "message",
            "id": f"msg_{done.number}",
            "role": "assistant",
            "status": "completed",
            "content": [said],
        }
    ]
    used = usage_of(done.number)
    return {
        "id": f"resp_{done.number}",
        "object": "response",
        "created_at": 1_900_000_000,
        "status": "completed",
        "model": MODEL,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": used["input"],
            "input_tokens_details": {"cached_tokens": used["cached"]},
            "output_tokens": used["output"],
            "output_tokens_details": {"reasoning_tokens": used["reasoning"]},
            "total_tokens": used["input"] + used["output"],
        },
    }
