"""Spans in, trajectory out, verdicts over it. Pure: no files, no network, no OpenTelemetry SDK.

Each name is imported when it is first used, because the instrumentation of a live agent imports this
module for the names of attributes and must not pay for trajectories and verdicts.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redfirst.evaluators.errors import ConfigurationError, RedfirstError, UnreadableInput
    from redfirst.evaluators.span import LogRecord, Span, SpanEvent, SpanLink, StatusCode
    from redfirst.evaluators.trajectory import (
        MISSING,
        CallStatus,
        Completeness,
        Coverage,
        Effect,
        Gap,
        Handoff,
        Message,
        ModelCall,
        RequestedCall,
        RunEvent,
        Source,
        StateSnapshot,
        Stop,
        Termination,
        Tokens,
        ToolCall,
        Trajectory,
        precedes,
    )
    from redfirst.evaluators.verdict import (
        CheckClass,
        Evidence,
        Finding,
        Outcome,
        Severity,
        Verdict,
        failed,
        flagged,
        inconclusive,
        not_applicable,
        passed,
    )

_HOMES = {
    "errors": "ConfigurationError RedfirstError UnreadableInput",
    "span": "LogRecord Span SpanEvent SpanLink StatusCode",
    "trajectory": (
        "MISSING CallStatus Completeness Coverage Effect Gap Handoff Message ModelCall "
        "RequestedCall RunEvent Source StateSnapshot Stop Termination Tokens ToolCall Trajectory "
        "precedes"
    ),
    "verdict": (
        "CheckClass Evidence Finding Outcome Severity Verdict failed flagged inconclusive "
        "not_applicable passed"
    ),
}
"""Module → the names it gives to this one."""
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "MISSING",
    "CallStatus",
    "CheckClass",
    "Completeness",
    "ConfigurationError",
    "Coverage",
    "Effect",
    "Evidence",
    "Finding",
    "Gap",
    "Handoff",
    "LogRecord",
    "Message",
    "ModelCall",
    "Outcome",
    "RedfirstError",
    "RequestedCall",
    "RunEvent",
    "Severity",
    "Source",
    "Span",
    "SpanEvent",
    "SpanLink",
    "StateSnapshot",
    "StatusCode",
    "Stop",
    "Termination",
    "Tokens",
    "ToolCall",
    "Trajectory",
    "UnreadableInput",
    "Verdict",
    "failed",
    "flagged",
    "inconclusive",
    "not_applicable",
    "passed",
    "precedes",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
