"""A support agent's run of four seconds that looks one order up again and again, as export requests."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass, field

from redfirst.evaluators.otlp_encode import encode_traces
from redfirst.evaluators.span import Span

SERVICE = "shop"
_SECOND = 10**9


@dataclass
class Run:
    """One trace. ``good`` is its part with a single lookup, ``late`` the lookups that come after it was judged."""

    session: str = field(default_factory=lambda: f"sess-{secrets.token_hex(3)}")
    trace_id: str = field(default_factory=lambda: secrets.token_hex(16))
    root: str = field(default_factory=lambda: secrets.token_hex(8))
    lookups: list[str] = field(default_factory=lambda: [secrets.token_hex(8) for _ in range(4)])
    end_ns: int = field(default_factory=time.time_ns)

    def good(self) -> bytes:
        """The root, two turns of the model and one call."""
        return encode_traces(self._good())

    def late(self) -> bytes:
        """Three more calls, equal to the first."""
        return encode_traces(self._late())

    def whole(self) -> list[bytes]:
        """Both parts, for who looks at all of it."""
        return [self.good(), self.late()]

    def together(self) -> bytes:
        """Both parts as one request."""
        return encode_traces([*self._good(), *self._late()])

    def _good(self) -> list[Span]:
        return [
            self._span(
                self.root,
                "support",
                4.0,
                0.0,
                **{
                    "openinference.span.kind": "AGENT",
                    "agent.name": "support",
                    "input.value": "Where is order A-42?",
                    "output.value": "Order A-42 is on its way.",
                    "session.id": self.session,
                },
            ),
            self._turn(3.9, 3.5, "Where is order A-42?", None),
            self._turn(0.5, 0.1, "Where is order A-42?", "Order A-42 is on its way."),
            self._lookup(0),
        ]

    def _late(self) -> list[Span]:
        return [self._lookup(number) for number in (1, 2, 3)]

    def _lookup(self, number: int) -> Span:
        return self._span(
            self.lookups[number],
            "get_order",
            3.2 - 0.6 * number,
            2.8 - 0.6 * number,
            **{
                "openinference.span.kind": "TOOL",
                "tool.name": "get_order",
                "input.value": json.dumps({"order_id": "A-42"}),
                "input.mime_type": "application/json",
                "output.value": json.dumps({"order_id": "A-42", "status": "shipped"}),
                "output.mime_type": "application/json",
            },
        )

    def _turn(self, start: float, end: float, asked: str, said: str | None) -> Span:
        answer = {"llm.output_messages.0.message.role": "assistant"}
        if said is None:
            call = "llm.output_messages.0.message.tool_calls.0.tool_call"
            answer |= {
                f"{call}.function.name": "get_order",
                f"{call}.function.arguments": json.dumps({"order_id": "A-42"}),
            }
        else:
            answer["llm.output_messages.0.message.content"] = said
        return self._span(
            secrets.token_hex(8),
            "chat",
            start,
            end,
            **{
                "openinference.span.kind": "LLM",
                "llm.model_name": "gpt-4o-mini",
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.content": asked,
                **answer,
            },
        )

    def _span(self, span_id: str, name: str, start: float, end: float, **attributes: str) -> Span:
        """From and to so many seconds before the run's end."""
        return Span(
            trace_id=self.trace_id,
            span_id=span_id,
            parent_id=None if span_id == self.root else self.root,
            name=name,
            start_ns=self.end_ns - int(start * _SECOND),
            end_ns=self.end_ns - int(end * _SECOND),
            attributes=attributes,
            resource={"service.name": SERVICE},
        )
