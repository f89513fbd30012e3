"""A Google ADK agent with its own spans, its model behind LiteLLM."""

from __future__ import annotations

import asyncio
import os
import sys

from desk import ASKED, REFUNDS, SYSTEM, TOOLS, cancel_order, finish, provider, verify_identity
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from opentelemetry._logs import set_logger_provider
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource

scenario = sys.argv[1]
made = provider(scenario)
logs = LoggerProvider(resource=Resource({"service.name": "support-desk"}))
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
set_logger_provider(logs)


def agent(name: str, prompt: str, tools: list[object], under: list[LlmAgent]) -> LlmAgent:
    model = LiteLlm("openai/gpt-4o-mini", api_base=os.environ["MODEL_URL"], api_key="sk-fake", num_retries=0, max_retries=0)
    return LlmAgent(name=name, model=model, instruction=prompt, description=prompt, tools=tools, sub_agents=under)


async def main() -> None:
    sessions = InMemorySessionService()
    if scenario == "handoff":
        refunds = agent("refunds_agent", REFUNDS, [verify_identity, cancel_order], [])
        first = agent("triage_agent", SYSTEM, [], [refunds])
    else:
        first = agent("support_agent", SYSTEM, list(TOOLS), [])
    await sessions.create_session(app_name="desk", user_id=os.environ["USER_ID"], session_id=os.environ["SESSION"])
    runner = Runner(agent=first, app_name="desk", session_service=sessions)
    config = RunConfig(
        max_llm_calls=4 if scenario == "loop_cap" else 20,
        streaming_mode=StreamingMode.SSE if scenario == "happy_stream" else StreamingMode.NONE,
    )
    for asked in ASKED:
        async for _ in runner.run_async(
            user_id=os.environ["USER_ID"], session_id=os.environ["SESSION"], run_config=config,
            new_message=types.Content(role="user", parts=[types.Part(text=asked)]),
        ):  # fmt: skip
            pass


stopped, error = "self", None
try:
    asyncio.run(main())
except Exception as problem:  # noqa: BLE001 - told to the recorder
    stopped, error = ("cap" if "LlmCallsLimit" in type(problem).__name__ else "error"), problem
logs.shutdown()
finish(made, stopped, error)
