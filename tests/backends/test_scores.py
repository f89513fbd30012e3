"""Phoenix and MLflow, the real ones, hold the scores of the newest version, whatever happened on the way."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from tests.backends.runs import Run
from tests.backends.servers import Backend, Gate, PhoenixBackend, Scores, ask
from tests.frameworks.conftest import Serve, Served

KINDS = ("phoenix", "mlflow")
QUICK = {"longest_wait_seconds": 0.5}


@pytest.fixture(params=KINDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    """One after the other."""
    found: Backend = request.getfixturevalue(request.param)
    return found


def told(serve: Serve, backend: Backend, url: str | None = None) -> Served:
    """A service that tells the backend, at the gate's address where one is given."""
    entry = {**backend.entry(url or backend.url), **QUICK}
    return serve(REDFIRST_SINKS=json.dumps([entry]))


def export(served: Served, body: bytes) -> None:
    """Send an export request to the service."""
    ask(f"{served.http}/v1/traces", "POST", body)


def series(served: Served, name: str) -> dict[str, float]:
    """Of a metric, every series by its labels."""
    with urllib.request.urlopen(f"{served.addresses['page']}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)
    }


def delivered(served: Served) -> float:
    """How many versions the backend took."""
    told = series(served, "redfirst_sink_runs_total")
    return sum(count for name, count in told.items() if 'outcome="delivered"' in name)


def until(what: Callable[[], Any], *, within: float = 60) -> Any:
    """The first true answer."""
    deadline = time.monotonic() + within
    while not (answer := what()):
        assert time.monotonic() < deadline, f"last answer {answer!r}"
        time.sleep(0.2)
    return answer


def whole(scores: Scores) -> list[str]:
    """The labels of the run as a whole."""
    return scores.get("redfirst", [])


def single(scores: Scores) -> bool:
    """Whether every score is there once."""
    return all(len(labels) == 1 for labels in scores.values())


def test_scores_are_sent_replaced_by_those_of_a_later_version_and_deleted_with_the_run(
    serve: Serve, backend: Backend
) -> None:
    """Sent, read back, re-scored, replaced, deleted: one score of each name at every moment, in the end none."""
    served, run = told(serve, backend), Run()
    backend.take(run.good())
    export(served, run.good())
    until(lambda: delivered(served) == 1)
    first = backend.scores(run.trace_id)
    assert single(first)
    assert (first["redfirst"], first["redfirst.repeats"]) == (["clean"], ["passed"])

    backend.take(run.late())
    export(served, run.late())
    until(lambda: delivered(served) == 2)
    second = backend.scores(run.trace_id)
    assert single(second)
    assert (second["redfirst"], second["redfirst.repeats"]) == (["flagged"], ["failed"])
    assert set(second) == set(first)
    if isinstance(backend, PhoenixBackend):
        assert backend.annotations("session", run.session) == {"redfirst": ["flagged"]}
        seen = [backend.annotations("span", span_id) for span_id in run.lookups[1:]]
        assert {"redfirst.repeats": ["failed"]} in seen
        assert backend.annotations("span", run.root) == {"redfirst": ["flagged"]}

    ask(f"{served.addresses['page']}/api/runs/{run.trace_id}/delete", "POST", {})
    until(lambda: backend.scores(run.trace_id) == {})
    if isinstance(backend, PhoenixBackend):
        until(lambda: backend.annotations("session", run.session) == {})
        until(lambda: all(not backend.annotations("span", span_id) for span_id in (run.root, *run.lookups)))


def test_a_verdict_that_comes_before_its_trace_waits_for_it(serve: Serve, backend: Backend) -> None:
    """The backend has no such trace for a while; then it has, and the scores are there without anybody's doing."""
    served, run = told(serve, backend), Run()
    export(served, run.good())
    until(lambda: any("not_there" in name for name in series(served, "redfirst_sink_runs_total")))
    assert backend.scores(run.trace_id) == {}

    backend.take(run.good())
    until(lambda: whole(backend.scores(run.trace_id)) == ["clean"])
    assert single(backend.scores(run.trace_id))


def test_a_backend_that_is_down_is_told_when_it_is_back(serve: Serve, backend: Backend, gate: Gate) -> None:
    """Connections are refused while two versions are judged; afterwards the newest is there, and it alone."""
    gate.before(backend.url)
    served, run = told(serve, backend, gate.url), Run()
    for body in run.whole():
        backend.take(body)
    export(served, run.good())
    until(lambda: any("connection" in name for name in series(served, "redfirst_sink_runs_total")))
    export(served, run.late())
    until(lambda: [row["version"] for row in served.judged(1)] == [2])
    time.sleep(2)
    assert backend.scores(run.trace_id) == {}

    gate.open()
    until(lambda: whole(backend.scores(run.trace_id)) == ["flagged"])
    assert single(backend.scores(run.trace_id))
    outcomes = series(served, "redfirst_sink_runs_total")
    assert sum(count for name, count in outcomes.items() if "superseded" in name) == 1


def test_a_backend_that_answers_429_and_500_is_asked_again(
    serve: Serve, backend: Backend, gate: Gate
) -> None:
    """A busy backend's wish to wait is granted, an error of it is no loss, and nothing is doubled."""
    gate.before(backend.url)
    gate.open()
    served, run = told(serve, backend, gate.url), Run()
    for body in run.whole():
        backend.take(body)
    gate.answer((429, {"Retry-After": "2"}), (500, {}), (503, {}), (500, {}))
    begun = time.monotonic()
    export(served, run.good())
    export(served, run.late())
    until(lambda: whole(backend.scores(run.trace_id)) == ["flagged"])

    assert gate.answered == [429, 500, 503, 500]
    assert time.monotonic() - begun >= 2
    assert single(backend.scores(run.trace_id))
