# {"framework": "google-adk", "instrumentor": "native-schema1", "environment": "adk", "versions": "google-adk 2.13.0, google-genai 2.34.0, opentelemetry-sdk 1.44.0", "env": {"ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN": "1"}, "session": true, "nocontent": {"ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS": "false"}, "handoff": ["transfer", "transfer_to_agent", {"agent_name": "refunds_agent"}], "scenarios": ["happy", "happy_nocontent", "no_tool", "parallel", "tool_error", "loop_cap", "llm_fail", "policy_break", "multi_turn", "handoff"]}
"""See adk_run."""

import adk_run  # noqa: F401
