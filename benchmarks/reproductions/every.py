"""All reproductions by letter; each takes the number of seeds of its simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reproductions import (
    agent_lab,
    eight_tasks,
    error_bars,
    flakes,
    mixed_tasks,
    scoreboards,
    step_model,
    two_scores,
)
from reproductions.line import Reproduction

ALL: Mapping[str, Callable[[int], Reproduction]] = {
    "a": scoreboards.reproduce,
    "b": step_model.reproduce,
    "c": mixed_tasks.reproduce,
    "d": flakes.reproduce,
    "e": two_scores.reproduce,
    "f": eight_tasks.reproduce,
    "g": error_bars.reproduce,
    "h": agent_lab.reproduce,
}
