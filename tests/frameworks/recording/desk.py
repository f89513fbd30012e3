"""What the recorded Python agents share: the tools with their log, the exporter, and how a run's end is told."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from scenarios import answer_of_tool

ASKED: list[str] = json.loads(os.environ["ASKED"])
SYSTEM = "You are the support agent of a shop."
REFUNDS = "You cancel orders after verifying who asks."


def provider(scenario: str) -> TracerProvider:
    """Sends one span a request for parallel calls, four at a time for loops and hand-offs, else all at the end."""
    made = TracerProvider(resource=Resource({"service.name": "support-desk"}))
    exporter = OTLPSpanExporter()
    if scenario == "parallel":
        made.add_span_processor(SimpleSpanProcessor(exporter))
    elif scenario in ("loop_cap", "handoff"):
        made.add_span_processor(
            BatchSpanProcessor(exporter, max_export_batch_size=4, schedule_delay_millis=600_000)
        )
    else:
        made.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=600_000))
    trace.set_tracer_provider(made)
    return made


def _run(name: str, given: dict[str, Any]) -> str:
    try:
        result, error = answer_of_tool(name, given), None
    except RuntimeError as problem:
        result, error = None, f"RuntimeError: {problem}"
    with Path(os.environ["TOOL_LOG"]).open("a") as log:
        log.write(json.dumps({"name": name, "arguments": given, "result": result, "error": error}) + "\n")
    if result is None:
        raise RuntimeError("carrier API timeout")
    return result


def verify_identity(customer_id: str) -> str:
    """Verify who is asking.

    Args:
        customer_id: the customer's number
    """
    return _run("verify_identity", {"customer_id": customer_id})


def get_order(order_id: str) -> str:
    """Look an order up.

    Args:
        order_id: the order's number
    """
    return _run("get_order", {"order_id": order_id})


def get_shipping_status(order_id: str) -> str:
    """Ask the carrier where a parcel is.

    Args:
        order_id: the order's number
    """
    return _run("get_shipping_status", {"order_id": order_id})


def cancel_order(order_id: str, reason: str) -> str:
    """Cancel an order.

    Args:
        order_id: the order's number
        reason: why
    """
    return _run("cancel_order", {"order_id": order_id, "reason": reason})


TOOLS: list[Callable[..., str]] = [verify_identity, get_order, get_shipping_status, cancel_order]


def finish(made: TracerProvider, stopped: str, error: BaseException | str | None = None) -> None:
    """Send what is left and say how the run ended: ``self``, ``cap`` or ``error``."""
    made.force_flush()
    made.shutdown()
    said = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else error
    print("DONE " + json.dumps({"stopped": stopped, "error": said}), flush=True)
