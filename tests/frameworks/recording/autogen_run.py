"""AutoGen agents with the spans of their own, and of OpenInference where it is asked for."""

from __future__ import annotations

import asyncio
import os
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Handoff
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import Swarm
from autogen_ext.models.openai import OpenAIChatCompletionClient
from desk import ASKED, REFUNDS, SYSTEM, TOOLS, cancel_order, finish, provider, verify_identity

scenario = sys.argv[1]
made = provider(scenario)
if os.environ.get("INSTRUMENT") == "openinference":
    from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor
    from openinference.instrumentation.openai import OpenAIInstrumentor

    AutogenAgentChatInstrumentor().instrument(tracer_provider=made)
    OpenAIInstrumentor().instrument(tracer_provider=made)


def client() -> OpenAIChatCompletionClient:
    return OpenAIChatCompletionClient(
        model="gpt-4o-mini",
        base_url=os.environ["MODEL_URL"],
        api_key="sk-fake",
        max_retries=0,
        parallel_tool_calls=True,
    )


async def main() -> None:
    streams = {"model_client_stream": True} if scenario == "happy_stream" else {}
    if scenario == "handoff":
        triage = AssistantAgent(
            "triage_agent", client(), handoffs=[Handoff(target="refunds_agent")], system_message=SYSTEM
        )
        refunds = AssistantAgent(
            "refunds_agent",
            client(),
            tools=[verify_identity, cancel_order],
            system_message=REFUNDS,
            max_tool_iterations=5,
        )
        await Swarm([triage, refunds], termination_condition=TextMentionTermination("is cancelled")).run(
            task=ASKED[0]
        )
        return
    steps = 4 if scenario == "loop_cap" else 6
    support = AssistantAgent(
        "support_agent",
        client(),
        tools=TOOLS,
        system_message=SYSTEM,
        max_tool_iterations=steps,
        reflect_on_tool_use=False,
        **streams,
    )
    for asked in ASKED:
        await support.run(task=asked)


stopped, error = ("cap" if scenario == "loop_cap" else "self"), None
try:
    asyncio.run(main())
except Exception as problem:  # noqa: BLE001 - told to the recorder
    stopped, error = "error", problem
finish(made, stopped, error)
