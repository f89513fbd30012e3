"""The trace of ``node/agent.cjs``, written with OpenTelemetry's SDK for Python and sent by its stock exporter."""

import itertools
import json

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context


class Numbered(IdGenerator):
    """The ids that the other program gives."""

    spans = itertools.count(0xA001)

    def generate_trace_id(self):
        return 0x5E0A7C31B2D94F68A1C3E5079BD2F486

    def generate_span_id(self):
        return next(self.spans)


provider = TracerProvider(resource=Resource.create({"service.name": "support"}), id_generator=Numbered())
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("support", "1.4.0")


def at(milliseconds):
    return 1_900_000_000 * 10**9 + milliseconds * 1_000_000 + 123


def message(role, *parts):
    return {"role": role, "parts": list(parts)}


def text(role, content):
    return message(role, {"type": "text", "content": content})


def as_json(value):
    return json.dumps(value, ensure_ascii=False)


REQUEST = text("user", "Où est ma commande A-42 ? 📦")
ANSWER = text("assistant", "Order A-42 is shipped.")
CALLS = [
    {"type": "tool_call", "id": f"call_{place}", "name": "get_order", "arguments": {"order_id": order}}
    for place, order in enumerate(["A-24", "A-42"])
]
RESULT = {"order_id": "A-42", "status": "shipped", "weight": 0.5, "parcels": 2, "gift": False, "note": None}


def agent():
    about = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "support_agent",
        "gen_ai.agent.version": "7",
    }
    span = tracer.start_span("invoke_agent support_agent", attributes=about, start_time=at(0))
    span.set_attribute("gen_ai.conversation.id", "conversation-9")
    within = set_span_in_context(span)
    chat(within, 10, [REQUEST], message("assistant", *CALLS), "tool_calls", 120)
    tool(within, 30, CALLS[0], LookupError("no order A-24"))
    tool(within, 40, CALLS[1], RESULT)
    answered = [
        {"type": "tool_call_response", "id": call["id"], "response": response}
        for call, response in zip(CALLS, ["no order A-24", RESULT], strict=True)
    ]
    history = [REQUEST, message("assistant", *CALLS), message("tool", *answered)]
    chat(within, 60, history, ANSWER, "stop", 210)
    span.end(at(90))


def chat(within, start, given, output, finish, tokens):
    span = tracer.start_span("chat scripted-1", within, SpanKind.CLIENT, start_time=at(start))
    span.set_attributes(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "scripted-1",
            "gen_ai.request.temperature": 0.0,
            "gen_ai.request.top_p": 0.9,
            "gen_ai.response.finish_reasons": [finish],
            "gen_ai.usage.input_tokens": tokens,
            "gen_ai.usage.output_tokens": tokens // 10,
            "gen_ai.usage.cache_read.input_tokens": 64,
            "gen_ai.input.messages": as_json(given),
            "gen_ai.output.messages": as_json([output]),
        }
    )
    span.end(at(start + 15))


def tool(within, start, call, result):
    span = tracer.start_span("execute_tool get_order", within, start_time=at(start))
    span.set_attributes(
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call["name"],
            "gen_ai.tool.call.id": call["id"],
            "gen_ai.tool.call.arguments": as_json(call["arguments"]),
        }
    )
    if isinstance(result, LookupError):
        span.set_attribute("error.type", "LookupError")
        told = {"exception.type": "LookupError", "exception.message": str(result)}
        span.add_event("exception", told, at(start + 5))
        span.set_status(StatusCode.ERROR, str(result))
    else:
        span.set_attribute("gen_ai.tool.call.result", as_json(result))
    span.end(at(start + 9))


agent()
provider.shutdown()
