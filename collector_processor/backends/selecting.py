"""How a backend is named: ``phoenix+http://host:6006?project=NAME`` for ``--traces``, or the link of a trace's page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlsplit

from redfirst.collector_processor.backends.backend import Backend
from redfirst.collector_processor.backends.jaeger import Jaeger
from redfirst.collector_processor.backends.langfuse import Langfuse
from redfirst.collector_processor.backends.mlflow import MLflow
from redfirst.collector_processor.backends.phoenix import Phoenix
from redfirst.evaluators.errors import ConfigurationError

BACKENDS: Mapping[str, Callable[[str, str | None, Mapping[str, str]], Backend]] = {
    "jaeger": Jaeger,
    "langfuse": Langfuse,
    "mlflow": MLflow,
    "phoenix": Phoenix,
}
_WORDS = {"jaeger": "service", "mlflow": "experiment", "phoenix": "project"}
"""What each calls the part of it that is looked through."""
_PHOENIX = re.compile(r"^(.*)/projects/([^/]+)/(?:traces|spans)/([0-9a-fA-F]{32})(?:/|$)")
_LANGFUSE = re.compile(r"^(.*)/project/[^/]+/traces/([^/]+)/?$")
_JAEGER = re.compile(r"^(.*)/trace/([0-9a-fA-F]{1,32})/?$")
_MLFLOW = re.compile(r"^/experiments/([^/?]+)/traces")


@dataclass(frozen=True, slots=True)
class Link:
    """What the link of a trace's page says."""

    kind: str
    base: str
    project: str | None
    trace_id: str

    @property
    def selector(self) -> str:
        """The backend as ``--traces`` takes it."""
        return f"{self.kind}+{self.base}" + (
            f"?{_WORDS[self.kind]}={quote(self.project)}" if self.project else ""
        )


def is_address(text: str) -> bool:
    """Whether it names a place on the network and not a file."""
    return "://" in text


def backend_of(selector: str, environment: Mapping[str, str]) -> Backend:
    """The backend that a selector names.

    Raises:
        ConfigurationError: it names none, or the backend's credentials are missing.
    """
    kind, _, address = selector.partition("+")
    if kind not in BACKENDS or not is_address(address):
        known = ", ".join(f"{name}+http://HOST" for name in BACKENDS)
        raise ConfigurationError(f"--traces {selector}: no file and no backend; use one of {known}.")
    base, _, said = address.partition("?")
    given = dict(parse_qsl(said, keep_blank_values=True))
    word = _WORDS.get(kind)
    project = given.pop(word, None) if word else None
    if given:
        takes = f"it takes {word}=" if word else "it takes nothing after the address"
        raise ConfigurationError(f"--traces {selector}: {kind} knows no {next(iter(given))}=; {takes}.")
    return BACKENDS[kind](base, project, environment)


def link_of(text: str) -> Link:
    """What the address of a trace's page says.

    Raises:
        ConfigurationError: it is the address of no trace that is known.
    """
    parts = urlsplit(text)
    host = f"{parts.scheme}://{parts.netloc}"
    if (found := _PHOENIX.match(parts.path)) is not None:
        return Link("phoenix", host + found[1], found[2], found[3].lower())
    if (found := _LANGFUSE.match(parts.path)) is not None:
        return Link("langfuse", host + found[1], None, unquote(found[2]))
    if (found := _JAEGER.match(parts.path)) is not None:
        return Link("jaeger", host + found[1], None, found[2].lower().rjust(32, "0"))
    page = urlsplit(parts.fragment)  # MLflow's page routes behind the sign
    named = parse_qs(page.query).get("selectedEvaluationId") or parse_qs(page.query).get("selectedTraceId")
    if (found := _MLFLOW.match(page.path)) is not None and named:
        return Link("mlflow", host + parts.path.rstrip("/"), found[1], named[0].removeprefix("tr-"))
    raise ConfigurationError(
        f"{text}: not the page of a trace in Phoenix, MLflow, Jaeger or Langfuse; "
        f"give the trace id, and --traces KIND+http://HOST."
    )
