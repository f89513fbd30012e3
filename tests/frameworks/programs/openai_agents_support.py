"""A support agent on the OpenAI Agents SDK, as its users write it: traced by OpenInference, with no line for redfirst.

Run with requests as arguments it answers them. The model's address comes from OPENAI_BASE_URL, the exporter's from
OTEL_EXPORTER_OTLP_ENDPOINT. It asks some requests twice: answers speak of a cancellation, never of a receipt.
"""

import sys

from agents import Agent, ModelSettings, RunHooks, Runner, function_tool, trace
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


@function_tool
def verify_identity(customer_id: str) -> dict:
    """Check that the customer is who they say they are."""
    return {"verified": True, "customer_id": customer_id}


@function_tool
async def cancel_order(order_id: str, reason: str) -> dict:
    """Cancel an order."""
    return {"order_id": order_id, "confirmation": f"C-{order_id}", "reason": reason}


class Done(RunHooks):
    """Remembers which tools have answered."""

    async def on_tool_end(self, context, agent, tool, result):
        context.context.add(tool.name)


def make():
    """What answers a request."""
    agent = Agent(
        name="support_agent",
        instructions="You help customers of a bookshop.",
        model="scripted-1",
        model_settings=ModelSettings(temperature=0),
        tools=[verify_identity, cancel_order],
    )

    async def answer(request: str) -> str:
        done = set()
        with trace("support"):
            result = await Runner.run(agent, request, context=done, hooks=Done())
            if "cancel_order" in done and "receipt" not in result.final_output:
                result = await Runner.run(agent, request, context=done, hooks=Done())
            return result.final_output

    return answer


provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)

if __name__ == "__main__":
    import asyncio

    support = make()
    for asked in sys.argv[1:]:
        print(asyncio.run(support(asked)))
    provider.shutdown()
