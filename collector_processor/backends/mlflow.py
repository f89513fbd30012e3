"""MLflow: ``GET /api/3.0/mlflow/traces/get?trace_id=tr-ID``. Credentials: ``MLFLOW_TRACKING_TOKEN``, or
``MLFLOW_TRACKING_USERNAME`` and ``MLFLOW_TRACKING_PASSWORD``."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence

from redfirst.collector_processor.backends.backend import spans_of
from redfirst.collector_processor.backends.getting import JsonApi, NotThere
from redfirst.collector_processor.importing.mlflow import MLflow as MLflowTraces
from redfirst.evaluators.span import Span

_PREFIX = "tr-"
_API = ("api", "3.0", "mlflow", "traces")


class MLflow:
    """One experiment of an MLflow tracking server."""

    name = "mlflow"

    def __init__(self, base: str, project: str | None, environment: Mapping[str, str]) -> None:
        self._api = JsonApi(base, headers=_credentials(environment), name=self.name)
        self._experiment = project or "0"
        self.address = self._api.address

    def trace(self, trace_id: str) -> Sequence[Span]:
        answer = self._api.get(*_API, "get", trace_id=f"{_PREFIX}{trace_id}")
        spans = spans_of(MLflowTraces(), [answer], trace_id)
        if not spans:
            raise NotThere(f"mlflow: trace {trace_id} at {self.address} holds no span.")
        return spans

    def newest(self, most: int, like: Sequence[Span] = ()) -> Iterator[str]:  # noqa: ARG002 - the interface's
        place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": self._experiment}}
        wanted = {"locations": [place], "max_results": most, "order_by": ["timestamp_ms DESC"]}
        for item in self._api.post(*_API, "search", body=wanted).get("traces") or []:
            yield str(item["trace_id"]).removeprefix(_PREFIX)


def _credentials(environment: Mapping[str, str]) -> dict[str, str] | None:
    token = environment.get("MLFLOW_TRACKING_TOKEN")
    if token:
        return {"Authorization": f"Bearer {token}"}
    user, password = (environment.get(f"MLFLOW_TRACKING_{part}") for part in ("USERNAME", "PASSWORD"))
    if user and password:
        return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}
    return None
