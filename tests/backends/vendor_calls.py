"""One score of one run through a vendor's own SDK: ``python vendor_calls.py VENDOR URL``, in the environment of the
SDKs. What it sends is recorded by whoever listens at the URL."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

GIVEN: dict[str, Any] = json.loads(os.environ["GIVEN"])
"""``trace_id``, ``span_id``, ``padded``, ``session_id``, ``score_id``, ``project``, ``name``, ``value``, ``label``,
``because``."""


def langfuse(url: str) -> None:
    from langfuse import Langfuse

    client = Langfuse(public_key="pk", secret_key="sk", host=url)
    client.create_score(
        name=GIVEN["name"],
        value=GIVEN["value"],
        trace_id=GIVEN["trace_id"],
        score_id=GIVEN["score_id"],
        data_type="NUMERIC",
        comment=GIVEN["because"],
        metadata={"version": 1},
    )
    client.flush()
    client.api.scores.delete(GIVEN["score_id"])
    client.shutdown()


def langsmith(url: str) -> None:
    from langsmith import Client
    from langsmith.integrations.otel import langsmith_run_id_from_otel_span_id

    client = Client(api_url=url, api_key="key", auto_batch_tracing=False)
    run_id = langsmith_run_id_from_otel_span_id(int(GIVEN["span_id"], 16))
    client.create_feedback(
        run_id=run_id,
        key=GIVEN["name"],
        score=GIVEN["value"],
        value=GIVEN["label"],
        comment=GIVEN["because"],
        feedback_id=GIVEN["score_id"],
        source_info={"version": 1},
    )
    client.update_feedback(
        GIVEN["score_id"], score=GIVEN["value"], value=GIVEN["label"], comment=GIVEN["because"]
    )
    client.delete_feedback(GIVEN["score_id"])


def opik(url: str) -> None:
    from opik.rest_api import OpikApi
    from opik.rest_api.types import FeedbackScoreBatchItem, FeedbackScoreBatchItemThread

    api = OpikApi(base_url=url)
    said = {
        "project_name": GIVEN["project"],
        "name": GIVEN["name"],
        "value": GIVEN["value"],
        "category_name": GIVEN["label"],
        "reason": GIVEN["because"],
        "source": "sdk",
    }
    api.traces.score_batch_of_traces(scores=[FeedbackScoreBatchItem(id=GIVEN["score_id"], **said)])
    thread = FeedbackScoreBatchItemThread(thread_id=GIVEN["session_id"], **said)
    api.traces.score_batch_of_threads(scores=[thread])
    api.traces.delete_trace_feedback_score(GIVEN["score_id"], name=GIVEN["name"])
    api.traces.delete_thread_feedback_scores(
        project_name=GIVEN["project"], thread_id=GIVEN["session_id"], names=[GIVEN["name"]]
    )


def braintrust(url: str) -> None:
    import braintrust as sdk

    logger = sdk.init_logger(project_id=GIVEN["project"], api_key="key", app_url=url)
    logger.log_feedback(
        id=GIVEN["span_id"],
        scores={GIVEN["name"]: GIVEN["value"]},
        metadata={"version": 1},
        source="external",
    )
    logger.flush()


def datadog(url: str) -> None:
    os.environ |= {
        "DD_LLMOBS_OVERRIDE_ORIGIN": url,
        "DD_TRACE_ENABLED": "false",
        "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
        "DD_REMOTE_CONFIGURATION_ENABLED": "false",
    }
    from ddtrace.llmobs import LLMObs

    LLMObs.enable(ml_app=GIVEN["project"], api_key="key", site="datadoghq.com", agentless_enabled=True)
    LLMObs.submit_evaluation(
        label=GIVEN["name"].replace(".", "_"),
        metric_type="score",
        value=GIVEN["value"],
        span={"span_id": GIVEN["span_id"], "trace_id": GIVEN["trace_id"]},
        ml_app=GIVEN["project"],
        timestamp_ms=1,
        assessment="fail",
        reasoning=GIVEN["because"],
        eval_scope="trace",
        tags={"version": "1"},
    )
    LLMObs.flush()
    LLMObs.disable()


VENDORS: dict[str, Callable[[str], None]] = {
    "langfuse": langfuse,
    "langsmith": langsmith,
    "opik": opik,
    "braintrust": braintrust,
    "datadog": datadog,
}

if __name__ == "__main__":
    VENDORS[sys.argv[1]](sys.argv[2])
