# {"framework": "strands", "instrumentor": "native", "environment": "strands", "versions": "strands-agents 1.62.0, opentelemetry-sdk 1.45.1", "env": {"OTEL_SEMCONV_STABILITY_OPT_IN": ""}, "session": true, "user": true, "handoff": ["delegate", "handoff_to_refunds_agent", {"request": "cancel B-17"}], "scenarios": ["happy", "happy_stream", "no_tool", "parallel", "tool_error", "loop_cap", "llm_fail", "policy_break", "multi_turn", "handoff"]}
"""See strands_run."""

import strands_run  # noqa: F401
