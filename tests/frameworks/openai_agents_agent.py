"""A support agent on the OpenAI Agents SDK with its OpenInference instrumentor: answers each request given.

The model's address comes from OPENAI_BASE_URL, the exporter's from OTEL_EXPORTER_OTLP_ENDPOINT and _PROTOCOL.
"""

import os
import sys

from agents import Agent, Runner, function_tool
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

if os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

SHIPPED = {"A-42": "2031-05-04", "A-43": "2031-05-06"}


@function_tool
def verify_identity(customer_id: str) -> dict:
    """Check that the customer is who they say they are."""
    return {"customer_id": customer_id, "verified": True}


@function_tool
def get_order(order_id: str) -> dict:
    """Look an order up."""
    if order_id not in SHIPPED:
        raise LookupError(f"no order {order_id}")
    return {"order_id": order_id, "status": "shipped", "eta": SHIPPED[order_id]}


@function_tool
def cancel_order(order_id: str, reason: str) -> dict:
    """Cancel an order."""
    return {"order_id": order_id, "cancelled": True, "reason": reason}


def main(requests: list[str]) -> None:
    """Answer each in a run of its own."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    OpenAIAgentsInstrumentor().instrument()
    agent = Agent(
        name="support_agent",
        instructions="You help customers of a bookshop.",
        model="scripted-1",
        tools=[verify_identity, get_order, cancel_order],
    )
    for request in requests:
        print(Runner.run_sync(agent, request).final_output)
    provider.shutdown()


main(sys.argv[1:])
