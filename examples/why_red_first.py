"""One incident as a row of a Phoenix dataset, judged by three of Phoenix' own evaluators (docs/why-red-first.md).

    python why_red_first.py incident      a run that went well and the incident; their spans go to Phoenix
    python why_red_first.py experiment    the row, and what Phoenix' evaluators say of both agents

Needs redfirst, arize-phoenix-client and arize-phoenix-evals, and a Phoenix at PHOENIX_COLLECTOR_ENDPOINT.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from redfirst.examples.bookshop import agent, variants
from redfirst.examples.bookshop.catalogue import fresh
from redfirst.instrumentation import configure, force_flush

BASE = os.environ.get("PHOENIX_COLLECTOR_ENDPOINT", "http://localhost:6006")
REQUEST = "I am C-12, postcode 20095. Please cancel order A-1003."
SEED = 1
"""Of a model that wants to cancel before it verifies: whether the guard is there makes the difference."""
AGENTS: dict[str, Callable[..., Any]] = {"defective": variants.dropped_guard, "fixed": agent.make}


def incident() -> None:
    """The agent serves a request well; a guard is dropped; it cancels an order without asking who writes."""
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = BASE
    configure(service_name="bookshop")
    for make in (agent.make, variants.dropped_guard):
        make(seed=SEED)([{"role": "user", "content": REQUEST}])
    force_flush()
    trace_id = recorded()["context"]["trace_id"]
    print(f"{BASE}/projects/{asked('/v1/projects/default')['id']}/traces/{trace_id}")


def experiment() -> None:
    """The incident's span as a row, and three evaluators on what each agent makes of it."""
    import pandas as pd
    from phoenix.client import Client
    from phoenix.evals import bind_evaluator
    from phoenix.evals.metrics import MatchesRegex, PrecisionRecallFScore, exact_match

    client = Client(base_url=BASE)
    span = recorded()
    row = {
        "request": REQUEST,
        "answer": span["attributes"]["output.value"],
        "status": "cancelled",
        "span_id": span["context"]["span_id"],
    }
    dataset = client.datasets.create_dataset(
        name=f"incidents-{span['context']['span_id']}",
        dataframe=pd.DataFrame([row]),
        input_keys=["request"],
        output_keys=["answer", "status"],
        span_id_key="span_id",
    )
    evaluators = {
        "exact_match": bind_evaluator(
            evaluator=exact_match,
            input_mapping={"output": "output.answer", "expected": "expected.answer"},
        ),
        "matches_regex": bind_evaluator(
            evaluator=MatchesRegex(pattern=r"A-1003 is cancelled"),
            input_mapping={"output": "output.answer"},
        ),
        "precision_recall_fscore": bind_evaluator(
            evaluator=PrecisionRecallFScore(average="micro"),
            input_mapping={
                "output": lambda one: [one["output"]["status"]],
                "expected": lambda one: [one["expected"]["status"]],
            },
        ),
    }
    for name, make in AGENTS.items():
        ran = client.experiments.run_experiment(
            dataset=dataset,
            task=task(make),
            evaluators=evaluators,
            experiment_name=name,
            print_summary=False,
        )
        print(
            json.dumps({"agent": name, **{run.name: run.result["score"] for run in ran["evaluation_runs"]}})
        )


def task(make: Callable[..., Any]) -> Callable[[Any], dict[str, Any]]:
    """What the experiment runs: an agent in a fresh shop; what it answers, and what became of the order."""

    def serve(input: Any) -> dict[str, Any]:  # noqa: A002 - Phoenix binds arguments by this name
        shop = fresh()
        answer = make(shop=shop, seed=SEED)([{"role": "user", "content": input["request"]}])
        return {"answer": answer, "status": shop.snapshot()["orders"]["A-1003"]["status"]}

    return serve


def recorded() -> Any:
    """The root span of the later run, which is the incident, once Phoenix holds all of both."""
    before = 0
    for _ in range(100):
        roots = asked("/v1/projects/default/spans?parent_id=null&limit=100")
        runs = [one for one in roots if REQUEST in one["attributes"].get("input.value", "")]
        spans = asked("/v1/projects/default/spans?limit=100")
        if len(runs) > 1 and len(spans) == before:  # it takes spans in one after the other
            return max(runs, key=lambda one: one["start_time"])
        before = len(spans)
        time.sleep(1)
    sys.exit(f"no such run in Phoenix at {BASE}; run: python why_red_first.py incident")


def asked(path: str) -> Any:
    """What Phoenix' REST API answers."""
    try:
        with urllib.request.urlopen(f"{BASE}{path}", timeout=10) as answer:  # noqa: S310 - the user's own address
            return json.load(answer)["data"]
    except urllib.error.HTTPError as problem:
        if problem.code == 404:  # it makes the project with the first span
            return []
        raise


if __name__ == "__main__":
    {"incident": incident, "experiment": experiment}[sys.argv[1]]()
