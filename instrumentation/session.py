"""Whose conversation a run belongs to: session and user, inherited by everything that happens inside.

The keys are those under which OpenInference keeps them in the context, so that its instrumentors write what we
were told, and we what ``using_session`` was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import context as otel_context
from opentelemetry.context import Context

from redfirst.evaluators import semconv
from redfirst.instrumentation.opened import Opened

_NAMES = {
    semconv.SESSION_ID: (semconv.SESSION_ID, semconv.CONVERSATION_ID),
    semconv.USER_ID: (semconv.USER_ID,),
}


@contextmanager
def session(session_id: str | None = None, *, user: str | None = None) -> Iterator[None]:
    """Put ``session.id`` and ``user.id`` on every span that begins inside. ``None`` leaves what is known."""
    context = otel_context.get_current()
    for key, value in ((semconv.SESSION_ID, session_id), (semconv.USER_ID, user)):
        if value is not None:
            context = otel_context.set_value(key, str(value), context)
    token = otel_context.attach(context)
    try:
        yield
    finally:
        otel_context.detach(token)


def identity(context: Context) -> dict[str, str]:
    """Session and user of a context, by attribute name."""
    found: dict[str, str] = {}
    for key in (semconv.SESSION_ID, semconv.USER_ID):
        value = context.get(key)
        if isinstance(value, str) and value:
            found[key] = value
    return found


def write_identity(opened: Opened, context: Context) -> None:
    """Write session and user under the names of both vocabularies."""
    for key, value in identity(context).items():
        opened.say(value, *_NAMES[key])
