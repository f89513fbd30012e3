"""Records of benchmarks: lines that keep the published record beside what a collection knows of it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from redfirst.evaluators import semconv

_NOTHING: Mapping[str, object] = {}


def enveloped(value: object) -> tuple[object, Mapping[str, object]]:
    """The record in ``{"raw": record, …}`` and what stands beside it; any other value as it is."""
    if isinstance(value, Mapping) and isinstance(value.get("raw"), Mapping):
        return value["raw"], {key: item for key, item in value.items() if key != "raw"}
    return value, _NOTHING


def task_attributes(record: Mapping[str, object], *, reward: object = None) -> dict[str, str | int | float]:
    """The task, the trial and the reward of a record, as far as it says them.

    Args:
        reward: the reward where it stands elsewhere than in ``record["reward"]``.
    """
    found: dict[str, str | int | float] = {}
    task, trial = record.get("task_id"), record.get("trial")
    if isinstance(task, str | int) and not isinstance(task, bool) and str(task):
        domain = record.get("domain")
        found[semconv.TASK_ID] = f"{domain}/{task}" if isinstance(domain, str) and domain else str(task)
    if isinstance(trial, int) and not isinstance(trial, bool) and abs(trial) < 2**63:
        found[semconv.TASK_TRIAL] = trial
    given = record.get("reward") if reward is None else reward
    if isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given):
        found[semconv.TASK_REWARD] = float(given)
    return found
