"""The current context, without the detours of the API where it is kept in a context variable, as it is by default."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry.context import Context

standard: Any = getattr(otel_context, "_RUNTIME_CONTEXT", None)
variable: ContextVar[Context] | None = getattr(standard, "_current_context", None)
if not isinstance(variable, ContextVar) or type(standard).__name__ != "ContextVarsRuntimeContext":
    variable = None  # OTEL_PYTHON_CONTEXT names another way


def current() -> Context:
    """The current context."""
    if variable is not None and otel_context._RUNTIME_CONTEXT is standard:  # noqa: SLF001
        return variable.get()
    return otel_context.get_current()


def enter(context: Context) -> Token[Context]:
    """Make it the current one, until the token is given back."""
    if variable is not None and otel_context._RUNTIME_CONTEXT is standard:  # noqa: SLF001
        return variable.set(context)
    return otel_context.attach(context)


def leave(token: Token[Context]) -> None:
    """Put back what was current before."""
    if not isinstance(token, Token):  # a runtime context other than the standard one
        otel_context.detach(token)
        return
    try:
        token.var.reset(token)
    except ValueError:
        return  # closed from another context than it ran in, which is gone, and the value with it
