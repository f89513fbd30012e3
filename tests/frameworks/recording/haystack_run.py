"""A Haystack agent instrumented by OpenInference."""

from __future__ import annotations

import os
import sys

from desk import ASKED, SYSTEM, TOOLS, finish, provider
from openinference.instrumentation.haystack import HaystackInstrumentor

scenario = sys.argv[1]
made = provider(scenario)

from haystack.components.agents import Agent  # noqa: E402
from haystack.components.generators.chat import OpenAIChatGenerator  # noqa: E402
from haystack.dataclasses import ChatMessage  # noqa: E402
from haystack.tools import create_tool_from_function  # noqa: E402
from haystack.utils import Secret  # noqa: E402
from openinference.instrumentation import using_attributes  # noqa: E402

HaystackInstrumentor().instrument(tracer_provider=made)  # it wraps the components that were imported by then

stopped, error = "self", None
try:
    generator = OpenAIChatGenerator(
        api_key=Secret.from_token("sk-fake"), model="gpt-4o-mini", api_base_url=os.environ["MODEL_URL"], max_retries=0,
        **({"streaming_callback": lambda _: None} if scenario == "happy_stream" else {}),
    )  # fmt: skip
    agent = Agent(
        chat_generator=generator, tools=[create_tool_from_function(one) for one in TOOLS], system_prompt=SYSTEM,
        max_agent_steps=4 if scenario == "loop_cap" else 8,
    )  # fmt: skip
    messages: list[ChatMessage] = []
    with using_attributes(session_id=os.environ["SESSION"], user_id=os.environ["USER_ID"]):
        for asked in ASKED:
            messages = [m for m in messages if not m.is_from("system")] + [ChatMessage.from_user(asked)]
            messages = agent.run(messages=messages)["messages"]
    if messages[-1].tool_call_results or messages[-1].tool_calls:
        stopped = "cap"
except Exception as problem:  # noqa: BLE001 - told to the recorder
    stopped, error = "error", problem
finish(made, stopped, error)
