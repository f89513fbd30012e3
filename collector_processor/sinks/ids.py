"""Ids that a backend is given by us, so that sending twice makes nothing twice."""

from __future__ import annotations

from uuid import UUID, uuid5

_OURS = UUID("5b3f1d0a-6f3c-5c38-9f3e-7d5a0d1c2b4e")


def score_id(run_id: str, name: str) -> str:
    """The id of one score of a run: the same for every version of it."""
    return str(uuid5(_OURS, f"{run_id} {name}"))


def padded(span_id: str) -> str:
    """A span's id as a UUID, with zeros before it, as LangSmith reads OpenTelemetry's."""
    return str(UUID(span_id.rjust(32, "0")))
