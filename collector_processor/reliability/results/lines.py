"""Our own format: one JSON object a line, ``{"task", "trial", "passed", "goal", "violations", "tokens", …}``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from redfirst.collector_processor.reliability.results.fields import amount, name, needed, truth, whole
from redfirst.collector_processor.reliability.trial import Trial
from redfirst.evaluators.errors import UnreadableInput

Json = Any

_MISSPELT = 0.75
"""How alike a key is to one of ours when it is taken for a mistake, and not for one of the user's own."""

_VERDICT = ("task", "trial", "passed", "goal", "violations")
_USED = ("tokens", "cost", "seconds", "steps")
KEYS = (*_VERDICT, *_USED, "group", "cap", "ended")
KEPT = ("outcome", "mode", "because", "stop", "tape_decisions", "live_decisions", "proven")
"""Further keys of a kept run."""


def is_line(record: Mapping[str, Json]) -> bool:
    """Whether a record is of our own format."""
    return "task" in record and "passed" in record


def unread(record: Mapping[str, Json]) -> tuple[str, ...]:
    """The keys that mean nothing here."""
    return tuple(key for key in record if key not in KEYS and key not in KEPT)


def trial_of(record: Mapping[str, Json], place: str) -> Trial:
    """One line as a trial.

    Raises:
        UnreadableInput: a key is misspelt, missing or of the wrong type; the message names it.
    """
    for key in unread(record):
        if meant := difflib.get_close_matches(key, KEYS, n=1, cutoff=_MISSPELT):
            raise UnreadableInput(f"{place}: there is no key {key!r}; did you mean {meant[0]}?")
    passed, goal = truth(record, "passed", place), truth(record, "goal", place)
    if passed and goal is False:
        raise UnreadableInput(f"{place}: passed is true and goal is false; a wrong outcome is no pass.")
    return Trial(
        task=needed(name(record, "task", place), "task", place),
        trial=needed(whole(record, "trial", place), "trial", place),
        passed=passed,
        goal=goal,
        violations=_violations(record, place),
        tokens=whole(record, "tokens", place),
        cost=amount(record, "cost", place),
        seconds=amount(record, "seconds", place),
        steps=whole(record, "steps", place),
        group=name(record, "group", place),
        cap=name(record, "cap", place),
        ended=name(record, "ended", place),
        source=place,
    )


def _violations(record: Mapping[str, Json], place: str) -> tuple[str, ...] | None:
    """Names of rules; a number or a truth value says whether there were any, without names."""
    value = record.get("violations")
    if value is None:
        return None
    if isinstance(value, int):
        return ("(unnamed)",) if whole({"violations": int(value)}, "violations", place) else ()
    if isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(x, str) for x in value):
        return tuple(value)
    raise UnreadableInput(f"{place}: violations is a list of names or their number, or null.")
