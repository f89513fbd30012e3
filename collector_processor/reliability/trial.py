"""One trial of one task, from whatever file or store it was read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from redfirst.evaluators.errors import ConfigurationError, UnreadableInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of one task. What the source does not say is ``None``: it is never counted as 0 or as a pass."""

    task: str
    trial: int
    passed: bool | None
    """The verdict as the source gives it; ``None`` when there is none (infrastructure, an inconclusive check)."""
    goal: bool | None = None
    """Whether the outcome was right, whatever the way there."""
    violations: tuple[str, ...] | None = None
    """Names of the rules that were broken on the way; ``None`` when nothing looked for any."""
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    steps: int | None = None
    """Model turns or calls, whichever the source counts."""
    group: str | None = None
    """Tasks of one group are related: uncertainty is computed between groups."""
    cap: str | None = None
    """The limits the run was given, as text: runs under different limits are not comparable."""
    ended: str | None = None
    """Why the run ended, in the words of the source."""
    source: str = ""
    """File and place, for messages."""

    @property
    def strict(self) -> bool | None:
        """Right outcome and no violation; ``None`` where either is not known and the other does not decide."""
        outcome = self.passed if self.goal is None else self.goal
        if outcome is False or self.violations:
            return False
        if outcome is None or self.violations is None:
            return None
        return True


def distinct(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    """The trials, each (task, trial) once.

    Raises:
        UnreadableInput: two have the same task and number: one run counted twice would narrow every interval.
    """
    seen: dict[tuple[str, int], Trial] = {}
    for one in trials:
        first = seen.setdefault((one.task, one.trial), one)
        if first is not one:
            raise UnreadableInput(
                f"{one.source}: task {one.task!r} trial {one.trial} was read already ({first.source}). A run counts "
                f"once: leave one out, or pass --renumber if these are further runs of the task."
            )
    return tuple(seen.values())


def renumbered(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    """The trials numbered per task in the order given, for runs whose numbers begin anew in every file."""
    counts: dict[str, int] = {}
    numbered = []
    for one in trials:
        number = counts.get(one.task, 0)
        counts[one.task] = number + 1
        numbered.append(_with_number(one, number))
    return tuple(numbered)


def _with_number(one: Trial, number: int) -> Trial:
    return one if one.trial == number else replace(one, trial=number)


def caps(trials: Iterable[Trial]) -> tuple[str, ...]:
    """The different limits the trials were run under, as far as they are known."""
    return tuple(sorted({one.cap for one in trials if one.cap is not None}))


def require_one_cap(trials: Iterable[Trial], what: str) -> None:
    """Let trials through that were run under one limit, as far as it is known.

    Raises:
        ConfigurationError: there are several.
    """
    found = caps(trials)
    if len(found) > 1:
        raise ConfigurationError(
            f"{what}: the runs had different limits ({', '.join(found[:4])}), and a higher limit passes more. "
            f"Give files of one limit, or pass --unequal-caps."
        )
