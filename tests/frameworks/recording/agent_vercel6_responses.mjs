// {"framework": "vercel-ai-responses", "instrumentor": "native-v6", "environment": "vercel6", "versions": "ai 6.0.326, @ai-sdk/openai 3.0.141", "env": {"API": "responses"}, "session": true, "user": true, "handoff": ["delegate", "handoff_to_refunds_agent", {"request": "cancel B-17"}], "scenarios": ["happy", "happy_stream", "parallel"]}
import './vercel_run.mjs';
