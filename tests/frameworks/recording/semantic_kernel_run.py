"""A Semantic Kernel agent with its own spans, and its messages as log records."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from desk import ASKED, SYSTEM, TOOLS, finish, provider
from opentelemetry._logs import set_logger_provider
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource

scenario = sys.argv[1]
made = provider(scenario)
logs = LoggerProvider(resource=Resource({"service.name": "support-desk"}))
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
set_logger_provider(logs)
handler = LoggingHandler(logger_provider=logs)
handler.addFilter(logging.Filter("semantic_kernel"))
logging.getLogger().addHandler(handler)
logging.getLogger("semantic_kernel").setLevel(logging.INFO)

from openai import AsyncOpenAI  # noqa: E402
from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread  # noqa: E402
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior  # noqa: E402
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion  # noqa: E402
from semantic_kernel.functions import kernel_function  # noqa: E402


async def main() -> None:
    service = OpenAIChatCompletion(
        ai_model_id="gpt-4o-mini",
        async_client=AsyncOpenAI(base_url=os.environ["MODEL_URL"], api_key="sk-fake", max_retries=0),
    )
    from semantic_kernel.functions import KernelPlugin

    plugin = KernelPlugin("desk", functions=[kernel_function(one) for one in TOOLS])
    agent = ChatCompletionAgent(
        service=service, name="support_agent", instructions=SYSTEM, plugins=[plugin],
        function_choice_behavior=FunctionChoiceBehavior.Auto(
            maximum_auto_invoke_attempts=4 if scenario == "loop_cap" else 8
        ),
    )  # fmt: skip
    thread = ChatHistoryAgentThread()
    for asked in ASKED:
        if scenario == "happy_stream":
            async for _ in agent.invoke_stream(messages=asked, thread=thread):
                pass
        else:
            await agent.get_response(messages=asked, thread=thread)


stopped, error = ("cap" if scenario == "loop_cap" else "self"), None
try:
    asyncio.run(main())
except Exception as problem:  # noqa: BLE001 - told to the recorder
    stopped, error = "error", problem
logs.shutdown()
finish(made, stopped, error)
