"""A Strands agent with its own spans, in whichever generation of the conventions its environment chooses."""

from __future__ import annotations

import os
import sys

from desk import ASKED, REFUNDS, SYSTEM, TOOLS, cancel_order, finish, provider, verify_identity
from strands import Agent, tool
from strands.models.openai import OpenAIModel

scenario = sys.argv[1]
made = provider(scenario)


def model() -> OpenAIModel:
    return OpenAIModel(
        client_args={"base_url": os.environ["MODEL_URL"], "api_key": "sk-fake", "max_retries": 0},
        model_id="gpt-4o-mini",
    )


def agent(name: str, prompt: str, tools: list[object]) -> Agent:
    return Agent(
        model=model(), name=name, system_prompt=prompt, tools=tools, callback_handler=None,
        trace_attributes={"session.id": os.environ["SESSION"], "user.id": os.environ["USER_ID"]},
    )  # fmt: skip


stopped, error = "self", None
refunds = agent("refunds_agent", REFUNDS, [tool(verify_identity), tool(cancel_order)])
try:
    if scenario == "handoff" and "swarm" in sys.argv[2:]:
        from strands.multiagent import Swarm

        refunds.description = REFUNDS
        Swarm([agent("triage_agent", SYSTEM, []), refunds])(ASKED[0])
    elif scenario == "handoff":

        @tool
        def handoff_to_refunds_agent(request: str) -> str:
            """Let the refunds agent do it.

            Args:
                request: what to do
            """
            return str(refunds(request))

        agent("triage_agent", SYSTEM, [handoff_to_refunds_agent])(ASKED[0])
    else:
        support = agent("support_agent", SYSTEM, [tool(one) for one in TOOLS])
        limits = {"limits": {"turns": 4}} if scenario == "loop_cap" else {}
        for asked in ASKED:
            result = support(asked, **limits)
        if str(result.stop_reason).startswith("limit"):
            stopped = "cap"
except Exception as problem:  # noqa: BLE001 - told to the recorder
    stopped, error = "error", problem
finish(made, stopped, error)
