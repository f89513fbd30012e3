"""Where a person looks at a run: the address of its trace in the backend that people use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from redfirst.collector_processor.settings import (
    ENVIRONMENT,
    ServeSettings,
    SinkSettings,
    configured,
    in_force,
)
from redfirst.collector_processor.storing.store import StoreReader
from redfirst.replay.project import Project

_KNOWN: Mapping[str, str] = {
    "phoenix": "{endpoint}/redirects/traces/{trace_id}",
    "mlflow": "{endpoint}/#/experiments/{project}/traces?selectedEvaluationId=tr-{trace_id}",
    "langfuse": "{endpoint}/project/{project}/traces/{trace_id}",
}
"""By the kind of a sink."""


@dataclass(frozen=True, slots=True)
class Links:
    """Makes links from a template with ``{trace_id}`` or ``{run_id}`` in it; without one there are none."""

    template: str | None = None

    @classmethod
    def of(cls, settings: ServeSettings, environment: Mapping[str, str] = os.environ) -> Links:
        """By ``trace_url``, or else by the first sink that has a page."""
        if settings.trace_url is not None:
            return cls(settings.trace_url)
        found = (_of_sink(entry, environment) for entry in settings.sinks)
        return cls(next((template for template in found if template is not None), None))

    @classmethod
    def of_project(cls, project: Project) -> Links:
        """By the project's settings, with the environment applied.

        Raises:
            ConfigurationError: a setting is wrong.
        """
        return cls.of(in_force(configured(project)))

    def to(self, run_id: str, trace_id: str | None = None) -> str | None:
        """The address of a run; its trace has the run's id unless another is given."""
        if self.template is None:
            return None
        trace = quote(trace_id or run_id, safe="")
        return self.template.replace("{trace_id}", trace).replace("{run_id}", quote(run_id, safe=""))

    def beside(self, run_id: str, trace_id: str | None = None) -> dict[str, str]:
        """``{"url": …}`` to add to what is printed of a run; empty when there is no link."""
        url = self.to(run_id, trace_id)
        return {} if url is None else {"url": url}

    def beside_stored(self, run_id: str, reader: StoreReader) -> dict[str, str]:
        """As ``beside``, for a stored run; one of several traces is looked at in its last."""
        traces = [] if self.template is None else reader.traces_of(run_id)
        return self.beside(run_id, traces[-1] if traces else None)


NO_LINKS = Links()


def _of_sink(entry: SinkSettings, environment: Mapping[str, str]) -> str | None:
    if entry.link is not None:
        return entry.link
    template, endpoint = _KNOWN.get(entry.kind), entry.endpoint
    if endpoint.startswith(ENVIRONMENT):
        endpoint = environment.get(endpoint.removeprefix(ENVIRONMENT), "")
    if template is None or not endpoint or ("{project}" in template and not entry.project):
        return None
    known = template.replace("{endpoint}", endpoint.rstrip("/"))
    return known.replace("{project}", quote(entry.project, safe=""))
