# {"framework": "autogen", "instrumentor": "openinference-autogen+openai", "environment": "autogen", "versions": "autogen-agentchat 0.7.5, autogen-ext 0.7.5, openai 3.57.0, opentelemetry-sdk 1.45.2, openinference-instrumentation-autogen-agentchat 0.1.22, openinference-instrumentation-openai 0.1.66", "env": {"INSTRUMENT": "openinference"}, "handoff": ["transfer", "transfer_to_refunds_agent", {}], "scenarios": ["happy", "happy_stream", "no_tool", "parallel", "tool_error", "loop_cap", "llm_fail", "policy_break", "multi_turn", "handoff"]}
"""See autogen_run."""

import autogen_run  # noqa: F401
