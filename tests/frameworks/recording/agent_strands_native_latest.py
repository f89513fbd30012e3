# {"framework": "strands", "instrumentor": "native-latest", "environment": "strands", "versions": "strands-agents 1.62.0, opentelemetry-sdk 1.45.1", "env": {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"}, "session": true, "user": true, "handoff": ["delegate", "handoff_to_refunds_agent", {"request": "cancel B-17"}], "scenarios": ["happy", "parallel", "tool_error", "handoff"]}
"""See strands_run."""

import strands_run  # noqa: F401
