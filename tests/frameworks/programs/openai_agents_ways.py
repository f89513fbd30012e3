"""Ways of the OpenAI Agents SDK in one program: streamed, with MCP, with hand-offs and agents as tools, with approvals.

Run with the name of a way and a request it answers it. Nothing here knows of redfirst.
"""

import asyncio
import sys
from pathlib import Path

from agents import Agent, ModelSettings, Runner, function_tool, trace
from agents.mcp import MCPServerStdio
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SETTINGS = {"model": "scripted-1", "model_settings": ModelSettings(temperature=0)}


def cancelled(order_id: str, reason: str) -> dict:
    """Cancel an order."""
    return {"order_id": order_id, "confirmation": f"C-{order_id}", "reason": reason}


def desk(tools, **more):
    return Agent(name="support_agent", instructions="You help customers.", tools=tools, **SETTINGS, **more)


cancel_order = function_tool(cancelled, name_override="cancel_order")


def streamed():
    """The answer as it is said."""
    agent = desk([cancel_order])

    async def answer(request):
        with trace("support"):
            result = Runner.run_streamed(agent, request)
            said = [event.data.delta async for event in result.stream_events() if _is_text(event)]
        return "".join(said)

    return answer


def _is_text(event):
    return event.type == "raw_response_event" and event.data.type == "response.output_text.delta"


def mcp():
    """Its tools are those of a server."""

    async def answer(request):
        server = {"command": sys.executable, "args": [str(Path(__file__).with_name("mcp_desk.py"))]}
        async with MCPServerStdio(params=server, client_session_timeout_seconds=60) as served:
            with trace("support"):
                result = await Runner.run(desk([], mcp_servers=[served]), request)
        return result.final_output

    return answer


def handoff():
    """A first agent asks a colleague as a tool and passes the customer on to another."""
    clerk = Agent(name="clerk", instructions="You know the policy.", **SETTINGS)
    cancels = Agent(name="cancels", instructions="You cancel orders.", tools=[cancel_order], **SETTINGS)
    policy = clerk.as_tool(tool_name="ask_policy", tool_description="Ask what the policy is.")
    agent = desk([policy], handoffs=[cancels])

    async def answer(request):
        with trace("support"):
            return (await Runner.run(agent, request)).final_output

    return answer


def approval():
    """A person approves of each cancellation, and never of A-42's."""
    agent = desk([function_tool(cancelled, name_override="cancel_order", needs_approval=True)])

    async def answer(request):
        with trace("support"):
            result = await Runner.run(agent, request)
            while result.interruptions:
                state = result.to_state()
                for wanted in result.interruptions:
                    (state.reject if "A-42" in wanted.arguments else state.approve)(wanted)
                result = await Runner.run(agent, state)
            return result.final_output

    return answer


provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)

if __name__ == "__main__":
    way, asked = sys.argv[1:]
    print(asyncio.run(globals()[way]()(asked)))
    provider.shutdown()
