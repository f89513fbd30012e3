"""Results of τ-bench and τ²-bench, as their runners write them, and records that wrap one run each.

Formats: sierra-research/tau-bench ``run.py`` (a list of ``{task_id, reward, info, traj, trial}``) and
sierra-research/tau2-bench ``data_model/simulation.py`` (``{info, tasks, simulations}``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from redfirst.collector_processor.reliability.results.fields import amount, mapping, name, needed, whole
from redfirst.collector_processor.reliability.trial import Trial

Json = Any

FULL_REWARD = 1 - 1e-6
"""Both benchmarks call a run successful from this reward on."""
NOT_THE_AGENT = frozenset({"infrastructure_error", "user_error", "unexpected_error"})
"""Ends of a τ² run that the agent cannot cause; its own errors and caps are failures."""


def is_tau(document: Json) -> bool:
    """Whether a JSON document is a result file of τ-bench."""
    return (
        isinstance(document, list)
        and bool(document)
        and all(isinstance(one, Mapping) and {"task_id", "reward", "trial"} <= one.keys() for one in document)
    )


def is_tau2(document: Json) -> bool:
    """Whether a JSON document is a result file of τ²-bench."""
    return isinstance(document, Mapping) and isinstance(document.get("simulations"), list)


def is_wrapped(record: Mapping[str, Json]) -> bool:
    """Whether a line is one run of either benchmark with its reward beside the record as published."""
    return {"task_id", "trial", "reward", "raw"} <= record.keys()


def tau_trials(document: Sequence[Json], place: str) -> Iterator[Trial]:
    """The runs of a τ-bench result file.

    Raises:
        UnreadableInput: a run is not of the format.
    """
    for number, given in enumerate(document):
        where = f"{place}: run {number}"
        yield tau_trial(mapping(given, where), where)


def tau2_trials(document: Mapping[str, Json], place: str) -> Iterator[Trial]:
    """The runs of a τ²-bench result file.

    Raises:
        UnreadableInput: a run is not of the format.
    """
    info = mapping(document.get("info") or {}, f"{place}: info")
    domain = mapping(info.get("environment_info") or {}, f"{place}: info.environment_info").get("domain_name")
    for number, given in enumerate(document["simulations"]):
        where = f"{place}: simulation {number}"
        yield _tau2(mapping(given, where), info, domain, where)


def wrapped_trial(record: Mapping[str, Json], place: str) -> Trial:
    """One line that holds a run as published under ``raw``, and its reward, domain and limits beside it.

    Raises:
        UnreadableInput: it is not of the format.
    """
    raw = mapping(record["raw"], f"{place}: raw")
    beside = {"task_id": record["task_id"], "trial": record["trial"], "reward": record["reward"]}
    if "messages" in raw:
        reward = mapping(raw.get("reward_info") or {}, f"{place}: reward_info")
        merged = {**raw, **beside, "reward_info": {**reward, "reward": record["reward"]}}
        return _tau2(merged, record, record.get("domain"), place)
    return tau_trial({**raw, **beside}, place, record.get("domain"))


def tau_trial(record: Mapping[str, Json], place: str, domain: str | None = None) -> Trial:
    """One run of τ-bench.

    Raises:
        UnreadableInput: it is not of the format.
    """
    info = record.get("info")
    broke = isinstance(info, Mapping) and "error" in info  # the runner caught an exception and wrote reward 0
    messages = record.get("traj")
    return Trial(
        task=_task(record, domain, place),
        trial=needed(whole(record, "trial", place), "trial", place),
        passed=(verdict := None if broke else _passed(record, place)),
        goal=verdict,
        steps=_turns(messages),
        ended="error" if broke else None,
        source=place,
    )


def _tau2(record: Mapping[str, Json], limits: Mapping[str, Json], domain: str | None, place: str) -> Trial:
    ended = name(record, "termination_reason", place)
    reward = mapping(record.get("reward_info") or {}, f"{place}: reward_info")
    verdict = None if ended in NOT_THE_AGENT else _passed(reward, f"{place}: reward_info")
    messages = record.get("messages")
    return Trial(
        task=_task(record, domain, place),
        trial=needed(whole(record, "trial", place), "trial", place),
        passed=verdict,
        goal=verdict,
        tokens=_tokens(messages),
        cost=amount(record, "agent_cost", place) or None,  # 0 stands for a model without a known price
        seconds=amount(record, "duration", place),
        steps=_turns(messages),
        cap=None if limits.get("max_steps") is None else f"max_steps={limits['max_steps']}",
        ended=ended,
        source=place,
    )


def _task(record: Mapping[str, Json], domain: str | None, place: str) -> str:
    task: str = needed(name(record, "task_id", place), "task_id", place)
    return task if domain is None else f"{domain}/{task}"


def _passed(record: Mapping[str, Json], place: str) -> bool | None:
    reward = amount(record, "reward", place)
    return None if reward is None else reward >= FULL_REWARD


def _turns(messages: Json) -> int | None:
    """Turns of the agent's model."""
    return len(_agents(messages)) or None


def _tokens(messages: Json) -> int | None:
    """Tokens of the agent's model; None when a turn does not report them."""
    used = [one.get("usage") for one in _agents(messages)]
    if not used or not all(isinstance(usage, Mapping) and usage for usage in used):
        return None
    counts = [usage.get(key) for usage in used if usage for key in ("prompt_tokens", "completion_tokens")]
    return sum(count for count in counts if isinstance(count, int))


def _agents(messages: Json) -> list[Mapping[str, Json]]:
    """The messages of the agent's model; a greeting before the user's first word is the benchmark's own."""
    found = [one for one in messages if isinstance(one, Mapping)] if isinstance(messages, list) else []
    if found and found[0].get("role") == "assistant" and not found[0].get("usage"):
        found = found[1:]
    return [one for one in found if one.get("role") == "assistant"]
