"""A support agent on LangGraph with its OpenInference instrumentor: answers each request given on the command line.

The model's address comes from OPENAI_BASE_URL, the exporter's from OTEL_EXPORTER_OTLP_ENDPOINT and _PROTOCOL.
"""

import os
import sys

from langchain.agents import create_agent
from langchain_core.tools import ToolException, tool
from langchain_openai import ChatOpenAI
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

if os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

SHIPPED = {"A-42": "2031-05-04", "A-43": "2031-05-06"}


@tool
def verify_identity(customer_id: str) -> dict:
    """Check that the customer is who they say they are."""
    return {"customer_id": customer_id, "verified": True}


@tool
def get_order(order_id: str) -> dict:
    """Look an order up."""
    if order_id not in SHIPPED:
        raise ToolException(f"no order {order_id}")
    return {"order_id": order_id, "status": "shipped", "eta": SHIPPED[order_id]}


@tool
def cancel_order(order_id: str, reason: str) -> dict:
    """Cancel an order."""
    return {"order_id": order_id, "cancelled": True, "reason": reason}


get_order.handle_tool_error = True


def main(requests: list[str]) -> None:
    """Answer each in a run of its own."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    LangChainInstrumentor().instrument()
    agent = create_agent(
        ChatOpenAI(model="scripted-1"),
        [verify_identity, get_order, cancel_order],
        system_prompt="You help customers of a bookshop.",
        name="support_agent",
    )
    for request in requests:
        answer = agent.invoke({"messages": [{"role": "user", "content": request}]})
        print(answer["messages"][-1].content)
    provider.shutdown()


main(sys.argv[1:])
