# {"framework": "smolagents-code", "instrumentor": "openinference-smolagents", "environment": "smol", "versions": "smolagents 1.26.0, openinference-instrumentation-smolagents 0.1.43, opentelemetry-sdk 1.45.2", "coded": true, "session": true, "user": true, "scenarios": ["happy", "no_tool", "parallel", "tool_error"]}
"""See smolagents_run."""

from smolagents import CodeAgent
from smolagents_run import run

run(CodeAgent)
