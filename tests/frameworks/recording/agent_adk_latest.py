# {"framework": "google-adk", "instrumentor": "native-latest", "environment": "adk", "versions": "google-adk 2.13.0, google-genai 2.34.0, opentelemetry-sdk 1.44.0", "env": {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_AND_EVENT", "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS": "false"}, "session": true, "handoff": ["transfer", "transfer_to_agent", {"agent_name": "refunds_agent"}], "scenarios": ["happy", "parallel", "tool_error", "loop_cap", "handoff"]}
"""See adk_run."""

import adk_run  # noqa: F401
