"""A Google ADK agent with its own spans, its model the scripted one."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import urllib.request
from collections.abc import AsyncGenerator

from desk import ASKED, REFUNDS, SYSTEM, TOOLS, cancel_order, finish, provider, verify_identity
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
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


class Scripted(BaseLlm):
    """Asks the scripted model as Gemini's client would."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        body = {"model": self.model, "messages": [], "tools": [{}] if llm_request.config.tools else []}
        request = urllib.request.Request(
            f"{os.environ['MODEL_URL']}/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            said = json.load(answer)
        message, used = said["choices"][0]["message"], said["usage"]
        parts = [
            types.Part(function_call=types.FunctionCall(
                id=call["id"], name=call["function"]["name"], args=json.loads(call["function"]["arguments"])))
            for call in message.get("tool_calls") or []
        ] or [types.Part(text=message["content"])]  # fmt: skip
        thought = used["completion_tokens_details"]["reasoning_tokens"]
        yield LlmResponse(
            content=types.Content(role="model", parts=parts),
            model_version=said["model"], finish_reason=types.FinishReason.STOP,
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=used["prompt_tokens"], candidates_token_count=used["completion_tokens"] - thought,
                thoughts_token_count=thought, total_token_count=used["total_tokens"],
                cached_content_token_count=used["prompt_tokens_details"]["cached_tokens"],
            ),
        )  # fmt: skip


def agent(name: str, prompt: str, tools: list[object], under: list[LlmAgent]) -> LlmAgent:
    return LlmAgent(
        name=name,
        model=Scripted(model="gpt-4o-mini"),
        instruction=prompt,
        description=prompt,
        tools=tools,
        sub_agents=under,
    )


async def main() -> None:
    sessions = InMemorySessionService()
    if scenario == "handoff":
        refunds = agent("refunds_agent", REFUNDS, [verify_identity, cancel_order], [])
        first = agent("triage_agent", SYSTEM, [], [refunds])
    else:
        first = agent("support_agent", SYSTEM, list(TOOLS), [])
    await sessions.create_session(
        app_name="desk", user_id=os.environ["USER_ID"], session_id=os.environ["SESSION"]
    )
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
