"""A smolagents agent instrumented by OpenInference: tools by JSON calls, or by code."""

from __future__ import annotations

import os
import sys

from desk import ASKED, REFUNDS, TOOLS, cancel_order, finish, provider, verify_identity
from openinference.instrumentation.smolagents import SmolagentsInstrumentor

scenario = sys.argv[1]
made = provider(scenario)
SmolagentsInstrumentor().instrument(tracer_provider=made)

from openinference.instrumentation import using_attributes  # noqa: E402
from smolagents import CodeAgent, OpenAIServerModel, ToolCallingAgent, tool  # noqa: E402

kind = CodeAgent if "code" in sys.argv else ToolCallingAgent
stopped, error = "self", None
model = OpenAIServerModel(
    "gpt-4o-mini", api_base=os.environ["MODEL_URL"], api_key="sk-fake", client_kwargs={"max_retries": 0}
)
managed = []
tools = [tool(one) for one in TOOLS]
streams = {"stream_outputs": True} if scenario == "happy_stream" else {}
if scenario == "handoff":
    managed = [
        kind(
            tools=[tool(verify_identity), tool(cancel_order)],
            model=model,
            name="refunds_agent",
            description=REFUNDS,
        )
    ]
    tools = []
support = kind(tools=tools, model=model, managed_agents=managed, max_steps=4, name="support_agent", **streams)
try:
    with using_attributes(session_id=os.environ["SESSION"], user_id=os.environ["USER_ID"]):
        for number, asked in enumerate(ASKED):
            result = support.run(asked, reset=number == 0, return_full_result=True)
        if result.state == "max_steps_error":
            stopped = "cap"
except Exception as problem:  # noqa: BLE001 - told to the recorder
    stopped, error = "error", problem
finish(made, stopped, error)
