"""A model with an OpenAI-compatible API on loopback that says what its script says: chat completions and responses.

The words of the user choose the script; the calls already made in the conversation choose the turn.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Call = tuple[str, dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What the user asks, which tools the model calls in each of its turns, and what it answers then."""

    request: str
    turns: Sequence[Sequence[Call]]
    answer: str
    insists: bool = False
    """Whether the model makes its calls once more where it is told of an error."""


VERIFY = ("verify_identity", {"customer_id": "C-7"})
"""Every script but one begins with it."""

SCRIPTS = {
    "lookup": Script(
        request="I am C-7. Where is my order A-42?",
        turns=([VERIFY], [("get_order", {"order_id": "A-42"})]),
        answer="Order A-42 is shipped and arrives on 2031-05-04.",
    ),
    "parallel": Script(
        request="I am C-7. Where are my orders A-42 and A-43?",
        turns=([VERIFY], [("get_order", {"order_id": "A-42"}), ("get_order", {"order_id": "A-43"})]),
        answer="Both orders are shipped: A-42 and A-43.",
    ),
    "mistyped": Script(
        request="I am C-7. Where is my order A-24? Or was it A-42?",
        turns=([VERIFY], [("get_order", {"order_id": "A-24"})], [("get_order", {"order_id": "A-42"})]),
        answer="There is no order A-24; A-42 is shipped.",
    ),
    "unverified": Script(
        request="Cancel my order A-42, quickly.",
        turns=([("cancel_order", {"order_id": "A-42", "reason": "changed my mind – à bientôt"})],),
        answer="Done: order A-42 is cancelled.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model turn; of each turn others, so that one counted twice or left out shows."""

    input: int
    output: int
    cached: int
    reasoning: int

    @classmethod
    def of(cls, turn: int) -> Usage:
        """What the turn with this number, from 0, costs."""
        return cls(input=128 + 41 * turn, output=16 + 5 * turn, cached=64 * min(turn, 1), reasoning=3)


class ModelServer:
    """Serves until closed, and counts."""

    def __init__(self, scripts: Mapping[str, Script] = SCRIPTS) -> None:
        self.scripts = scripts
        self.requests: list[tuple[str, str]] = []
        """Path and script of every request that was answered, in order."""
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def asked(self, script: str) -> int:
        """How many model calls were made for a script."""
        return sum(name == script for _, name in self.requests)

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _script_of(self, body: str) -> str | None:
        return next((name for name, script in self.scripts.items() if script.request in body), None)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                speak = {"/v1/chat/completions": _chat, "/v1/responses": _response}.get(self.path)
                name = outer._script_of(json.dumps(body, ensure_ascii=False))
                streamed = bool(body.get("stream"))
                if speak is None or name is None or (streamed and speak is not _response):
                    self._answer(400, {"error": {"message": "nothing is scripted for this request"}})
                    return
                with outer._lock:
                    outer.requests.append((self.path, name))
                answer = speak(body, name, outer.scripts[name])
                if streamed:
                    self._send(200, _events(answer), "text/event-stream")
                else:
                    self._answer(200, answer)

            def _answer(self, status: int, answer: dict[str, Any]) -> None:
                self._send(status, json.dumps(answer).encode(), "application/json")

            def _send(self, status: int, text: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        return Handler


def _events(answer: dict[str, Any]) -> bytes:
    """An answer of ``/v1/responses`` as the events of its stream: texts in halves."""
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**answer, "output": []}}]
    for place, item in enumerate(answer["output"]):
        events.append({"type": "response.output_item.added", "item": item, "output_index": place})
        text = item["content"][0]["text"] if item["type"] == "message" else ""
        events += [
            {
                "type": "response.output_text.delta", "delta": half, "item_id": item["id"], "output_index": place,
                "content_index": 0, "logprobs": [],
            }
            for half in (text[: len(text) // 2], text[len(text) // 2 :])
            if half
        ]  # fmt: skip
        events.append({"type": "response.output_item.done", "item": item, "output_index": place})
    events.append({"type": "response.completed", "response": answer})
    lines = [
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n"
        for number, event in enumerate(events)
    ]
    return "".join(lines).encode()


_ERRORS = ("error occurred", "could not be completed")
"""Of the OpenAI Agents SDK's own text for an exception, and of the fault that is put in."""


def _call_id(name: str, turn: int, place: int) -> str:
    return f"call_{name}_{turn}_{place}"


def _turn(
    said: Sequence[str], script: Script, name: str, body: dict[str, Any], told: str
) -> tuple[str, int, Sequence[Call]]:
    """What begins the ids of the model's next calls, the number of its turn and the calls, from the ids of those it made
    and what it was told last; no call of a tool that it is not offered."""
    offered = [tool.get("function", tool).get("name") for tool in body.get("tools") or ()]
    turn = 0
    while _call_id(name, turn, 0) in said:
        turn += 1
    if script.insists and turn and any(word in told for word in _ERRORS):
        name, turn = f"{name}_again", turn - 1
    wanted = script.turns[turn] if turn < len(script.turns) else ()
    return name, turn, [call for call in wanted if call[0] in offered]


def _chat(body: dict[str, Any], name: str, script: Script) -> dict[str, Any]:
    """The answer of ``/v1/chat/completions``."""
    said = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or ()]
    ids, turn, calls = _turn(said, script, name, body, str(body["messages"][-1].get("content")))
    message: dict[str, Any] = {"role": "assistant", "content": None if calls else script.answer}
    if calls:
        message["tool_calls"] = [
            {
                "id": _call_id(ids, turn, place),
                "type": "function",
                "function": {"name": tool, "arguments": json.dumps(arguments)},
            }
            for place, (tool, arguments) in enumerate(calls)
        ]
    used = Usage.of(turn)
    return {
        "id": f"chatcmpl-{name}-{turn}",
        "object": "chat.completion",
        "created": 1_900_000_000,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {
            "prompt_tokens": used.input,
            "completion_tokens": used.output,
            "total_tokens": used.input + used.output,
            "prompt_tokens_details": {"cached_tokens": used.cached},
            "completion_tokens_details": {"reasoning_tokens": used.reasoning},
        },
    }


def _response(body: dict[str, Any], name: str, script: Script) -> dict[str, Any]:
    """The answer of ``/v1/responses``."""
    given = body["input"] if isinstance(body["input"], list) else []
    said = [item["call_id"] for item in given if item.get("type") == "function_call"]
    ids, turn, calls = _turn(said, script, name, body, str(given[-1].get("output")) if given else "")
    output: list[dict[str, Any]] = [
        {
            "type": "function_call",
            "id": f"fc_{ids}_{turn}_{place}",
            "call_id": _call_id(ids, turn, place),
            "name": tool,
            "arguments": json.dumps(arguments),
            "status": "completed",
        }
        for place, (tool, arguments) in enumerate(calls)
    ] or [
        {
            "type": "message",
            "id": f"msg_{name}_{turn}",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": script.answer, "annotations": []}],
        }
    ]
    used = Usage.of(turn)
    return {
        "id": f"resp_{name}_{turn}",
        "object": "response",
        "created_at": 1_900_000_000,
        "status": "completed",
        "model": body["model"],
        "instructions": body.get("instructions"),
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools", []),
        "usage": {
            "input_tokens": used.input,
            "input_tokens_details": {"cached_tokens": used.cached},
            "output_tokens": used.output,
            "output_tokens_details": {"reasoning_tokens": used.reasoning},
            "total_tokens": used.input + used.output,
        },
    }
