"""Evaluation logs of Inspect (UK AI Security Institute): ``.eval`` archives and ``.json``.

Format: ``inspect_ai/log/_log.py`` (``EvalLog``, ``EvalSample``, ``EvalSampleSummary``) and
``log/_recorders/eval.py`` (the members of an archive).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from redfirst.collector_processor.reliability.results.archive import Archive
from redfirst.collector_processor.reliability.results.fields import amount, mapping, name, needed, whole
from redfirst.collector_processor.reliability.trial import Trial
from redfirst.evaluators.errors import UnreadableInput

Json = Any

_LIMITS = ("message_limit", "token_limit", "turn_limit", "time_limit", "working_limit", "cost_limit")
_YES = frozenset({"c", "yes", "true"})
_NO = frozenset({"i", "p", "n", "no", "false"})
"""Incorrect, partial and no answer: partial credit is no pass."""


def is_log(document: Json) -> bool:
    """Whether a JSON document is a log of Inspect."""
    return isinstance(document, Mapping) and {"version", "eval", "status"} <= document.keys()


def log_trials(document: Mapping[str, Json], place: str, *, scorer: str | None = None) -> Iterator[Trial]:
    """The samples of a ``.json`` log, one trial an epoch.

    Raises:
        UnreadableInput: it holds no samples, or several scores and no ``scorer`` says which one counts.
    """
    samples = document.get("samples")
    if not samples:
        raise UnreadableInput(f"{place}: an Inspect log without samples (status {document.get('status')!r}).")
    return _trials(mapping(document["eval"], f"{place}: eval"), samples, place, scorer)


def archive_trials(path: str, body: bytes, *, scorer: str | None = None) -> Iterator[Trial]:
    """The samples of an ``.eval`` archive, also of one whose evaluation broke off.

    Raises:
        UnreadableInput: it is no archive of Inspect.
        MissingExtra: it is packed with Zstandard, and nothing here unpacks that.
    """
    archive = Archive(body, path)
    start = archive.first("header.json", "_journal/start.json")
    if start is None:
        raise UnreadableInput(f"{path}: an archive, but no Inspect log: it has no header.json.")
    whole_list = archive.first("summaries.json")
    parts = [whole_list] if whole_list is not None else list(archive.below("_journal/summaries/"))
    samples = [one for part in parts for one in part]
    if not samples:
        raise UnreadableInput(f"{path}: an Inspect log without a finished sample.")
    return _trials(mapping(mapping(start, path)["eval"], f"{path}: eval"), samples, path, scorer)


def _trials(
    evaluation: Mapping[str, Json], samples: Sequence[Json], place: str, scorer: str | None
) -> Iterator[Trial]:
    limits = mapping(evaluation.get("config") or {}, f"{place}: eval.config")
    cap = ", ".join(f"{key}={limits[key]}" for key in _LIMITS if limits.get(key) is not None) or None
    for given in samples:
        sample = mapping(given, f"{place}: sample")
        where = f"{place}: sample {sample.get('id')} epoch {sample.get('epoch')}"
        verdict = _passed(sample, where, scorer)
        tokens, cost = _used(sample, where)
        yield Trial(
            task=f"{evaluation.get('task', 'task')}/{needed(name(sample, 'id', where), 'id', where)}",
            trial=needed(whole(sample, "epoch", where), "epoch", where),
            passed=verdict,
            goal=verdict,
            tokens=tokens,
            cost=cost,
            seconds=amount(sample, "total_time", where),
            steps=whole(sample, "turn_count", where),
            cap=cap,
            ended=_ended(sample),
            source=where,
        )


def _ended(sample: Mapping[str, Json]) -> str | None:
    if sample.get("error") is not None:
        return "error"
    limit = sample.get("limit")
    if limit is None:
        return None
    return f"{limit.get('type') if isinstance(limit, Mapping) else limit} limit"


def _passed(sample: Mapping[str, Json], place: str, scorer: str | None) -> bool | None:
    """The verdict of the one score that counts; None where the sample was not scored or was declared invalid."""
    scores = mapping(sample.get("scores") or {}, f"{place}: scores")
    if not scores or sample.get("invalidation") is not None:
        return None
    if scorer is None and len(scores) > 1:
        raise UnreadableInput(
            f"{place}: has the scores {', '.join(scores)}; say which one counts with --scorer NAME."
        )
    if scorer is not None and scorer not in scores:
        raise UnreadableInput(f"{place}: has no score {scorer!r}; it has {', '.join(scores)}.")
    score = mapping(scores[scorer] if scorer is not None else next(iter(scores.values())), f"{place}: score")
    return _right(score.get("value"), place)


def _right(value: Json, place: str) -> bool | None:
    """Inspect's own reading of a value: C, yes, true and 1 are right; a NaN was not scored."""
    if isinstance(value, str) and value.lower() in _YES | _NO:
        return value.lower() in _YES
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise UnreadableInput(
            f"{place}: the score {value!r} is neither right nor wrong; C or I, true or false, or a number is expected."
        ) from None
    return None if math.isnan(number) else number >= 1


def _used(sample: Mapping[str, Json], place: str) -> tuple[int | None, float | None]:
    """Tokens and dollars over all models of a sample."""
    usage = [
        mapping(one, f"{place}: model_usage")
        for one in mapping(sample.get("model_usage") or {}, place).values()
    ]
    counted = [whole(one, "total_tokens", place) for one in usage]
    priced = [amount(one, "total_cost", place) for one in usage]
    tokens = [count for count in counted if count is not None]
    costs = [cost for cost in priced if cost is not None]
    return (
        sum(tokens) if tokens and len(tokens) == len(usage) else None,
        sum(costs) if costs and len(costs) == len(usage) else None,
    )
