"""The formats there are, and which of them a file is in."""

from __future__ import annotations

from redfirst.collector_processor.importing.formats import Format
from redfirst.collector_processor.importing.jaeger import Jaeger
from redfirst.collector_processor.importing.langfuse import Langfuse
from redfirst.collector_processor.importing.langsmith import LangSmith
from redfirst.collector_processor.importing.message_lists import MessageLists
from redfirst.collector_processor.importing.mlflow import MLflow
from redfirst.collector_processor.importing.phoenix import Phoenix
from redfirst.collector_processor.importing.tau2_bench import Tau2Bench
from redfirst.collector_processor.importing.tau_bench import TauBench
from redfirst.collector_processor.importing.tempo import Tempo
from redfirst.evaluators.errors import ConfigurationError

FORMATS: tuple[Format, ...] = (
    Tau2Bench(),
    TauBench(),
    Jaeger(),
    Tempo(),
    MLflow(),
    Phoenix(),
    LangSmith(),
    Langfuse(),
    MessageLists(),
)
"""From the most particular to the most general; the first that claims a file's first record reads it."""
AUTO = "auto"


def format_named(name: str) -> Format | None:
    """The format of that name; ``None`` for ``auto``.

    Raises:
        ConfigurationError: there is none.
    """
    if name == AUTO:
        return None
    for one in FORMATS:
        if one.name == name:
            return one
    known = ", ".join((AUTO, *(one.name for one in FORMATS)))
    raise ConfigurationError(f"format {name}: not known; use one of {known}")


def format_of(document: object) -> Format | None:
    """The first format that claims the value."""
    return next((one for one in FORMATS if one.claims(document)), None)
