# {"framework": "smolagents", "instrumentor": "openinference-smolagents", "environment": "smol", "versions": "smolagents 1.26.0, openinference-instrumentation-smolagents 0.1.43, opentelemetry-sdk 1.45.2", "final_tool": "final_answer", "session": true, "user": true, "nocontent": {"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "true"}, "handoff": ["delegate", "refunds_agent", {"task": "cancel B-17"}], "scenarios": ["happy", "happy_stream", "happy_nocontent", "no_tool", "parallel", "tool_error", "loop_cap", "llm_fail", "policy_break", "multi_turn", "handoff"]}
"""See smolagents_run."""

from smolagents import ToolCallingAgent
from smolagents_run import run

run(ToolCallingAgent)
