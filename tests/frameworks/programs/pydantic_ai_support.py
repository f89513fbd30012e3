"""A support agent on pydantic-ai, as its users write it: traced by its own spans, with no line for redfirst.

Run with requests as arguments it answers them. The model's address comes from OPENAI_BASE_URL, the exporter's from
OTEL_EXPORTER_OTLP_ENDPOINT. It asks some requests twice: answers speak of a cancellation, never of a receipt.
"""

import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel

agent = Agent(
    OpenAIChatModel("scripted-1"),
    name="support_agent",
    instructions="You help customers of a bookshop.",
    deps_type=set,
    model_settings={"temperature": 0},
)


@agent.tool
def verify_identity(context: RunContext[set], customer_id: str) -> dict:
    """Check that the customer is who they say they are."""
    return {"verified": True, "customer_id": customer_id}


@agent.tool
async def cancel_order(context: RunContext[set], order_id: str, reason: str) -> dict:
    """Cancel an order."""
    return {"order_id": order_id, "confirmation": f"C-{order_id}", "reason": reason}


def make():
    """What answers a request."""

    def answer(request: str) -> str:
        with trace.get_tracer("support").start_as_current_span("support"):
            result = agent.run_sync(request, deps=set())
            if "cancel_order" in str(result.all_messages()) and "receipt" not in result.output:
                result = agent.run_sync(request, deps=set())
            return result.output

    return answer


provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
Agent.instrument_all()

if __name__ == "__main__":
    support = make()
    for asked in sys.argv[1:]:
        print(support(asked))
    provider.shutdown()
