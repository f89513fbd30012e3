"""Staying in one trace across threads, processes and services."""

from __future__ import annotations

import contextvars
import functools
import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from opentelemetry import context as otel_context
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from redfirst.instrumentation.guard import guarded
from redfirst.instrumentation.session import identity, session

P = ParamSpec("P")
R = TypeVar("R")

_W3C = TraceContextTextMapPropagator()
_ENVIRONMENT = {"traceparent": "TRACEPARENT", "tracestate": "TRACESTATE"}


def inject(headers: MutableMapping[str, str] | None = None) -> MutableMapping[str, str]:
    """Write the current trace into the headers of an outgoing request, as ``OTEL_PROPAGATORS`` says; gives them back."""
    carrier: MutableMapping[str, str] = {} if headers is None else headers
    with guarded("inject the trace"):
        propagate.inject(carrier)
    return carrier


@contextmanager
def extract(headers: Mapping[str, str]) -> Iterator[None]:
    """Continue the trace that the headers of an incoming request, or of a message, carry."""
    token = None
    with guarded("extract a trace"):
        lowered = {str(key).lower(): value for key, value in headers.items()}
        token = otel_context.attach(propagate.extract(lowered, otel_context.get_current()))
    try:
        yield
    finally:
        if token is not None:
            otel_context.detach(token)


def environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a subprocess that goes on with the current trace: ``TRACEPARENT`` is set."""
    made = dict(os.environ if base is None else base)
    with guarded("inject the trace"):
        carrier: dict[str, str] = {}
        _W3C.inject(carrier)
        made |= {_ENVIRONMENT[key]: value for key, value in carrier.items() if key in _ENVIRONMENT}
    return made


def parent_in_environment() -> Context | None:
    """The trace that this process was started in, if ``TRACEPARENT`` names one."""
    if "TRACEPARENT" not in os.environ:
        return None
    carrier = {key: os.environ[name] for key, name in _ENVIRONMENT.items() if name in os.environ}
    return _W3C.extract(carrier, Context())


def joined(parent: Context, context: Context) -> Context:
    """The context with the parent's span, where it has none of its own."""
    if trace.get_current_span(context).get_span_context().is_valid:
        return context
    return trace.set_span_in_context(trace.get_current_span(parent), context)


def in_context(function: Callable[P, R]) -> Callable[P, R]:
    """The function as it would run here, for a thread that begins with an empty context."""
    context = contextvars.copy_context()

    @functools.wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)  # a context is entered by one thread at a time

    return inside


class _Carried:
    """A function with the trace it was submitted in, for another process."""

    def __init__(self, function: Callable[..., Any], carrier: dict[str, str], known: dict[str, str]) -> None:
        self._function, self._carrier, self._known = function, carrier, known

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with guarded("have spans exported at the end of a process"):
            _flush_at_end()
        with extract(self._carrier), session(self._known.get("session.id"), user=self._known.get("user.id")):
            return self._function(*args, **kwargs)


_flushing: set[int] = set()


def _flush_at_end() -> None:
    """A worker of a pool leaves without running what ``atexit`` was given."""
    if os.getpid() in _flushing:
        return
    _flushing.add(os.getpid())
    from multiprocessing.util import Finalize

    from redfirst.instrumentation.provider import force_flush

    Finalize(None, force_flush, args=(5000,), exitpriority=10)


class _TracedExecutor(Executor):
    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        carried: Callable[..., Any] = function
        with guarded("carry the trace into an executor"):
            if isinstance(self._executor, ProcessPoolExecutor):
                carried = _Carried(function, dict(inject()), identity(otel_context.get_current()))
            else:
                carried = in_context(function)
        return self._executor.submit(carried, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._executor.shutdown(wait=wait, cancel_futures=cancel_futures)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)


def wrap_executor(executor: Executor) -> Executor:
    """The executor with each task in the trace, session and run it was submitted in.

    A process pool carries trace, session and user. Its workers must be configured: a forked one is, one that is
    spawned calls ``configure`` in its initializer.
    """
    return _TracedExecutor(executor)
