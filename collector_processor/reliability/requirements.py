"""Gates: ``pass_hat[4]>=.5``, ``success.low>=0.8``, ``infra<=.02``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.strict_yaml import nearest

_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_FORM = re.compile(
    r"\s*([a-z_0-9.:-]+(?:\[\d+\])?(?:\.low|\.high)?)\s*(>=|<=|>|<)\s*(-?[0-9]*\.?[0-9]+)\s*(%?)\s*"
)


class Gate(Enum):
    """How a requirement stands."""

    MET = "met"
    NOT_MET = "not met"
    NO_VERDICT = "no verdict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One condition on one figure."""

    text: str
    figure: str
    compare: str
    bound: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A requirement and the figure it was held against."""

    requirement: str
    gate: Gate
    because: str


def parsed(text: str) -> Requirement:
    """A requirement as it is written on the command line.

    Raises:
        ConfigurationError: it is not FIGURE OPERATOR NUMBER.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise ConfigurationError(
            f"--require {text!r}: give it as FIGURE>=NUMBER with >=, <=, > or <, as in pass_hat[4]>=.5 or success.low>=0.8."
        )
    figure, compare, bound, percent = found.groups()
    return Requirement(
        text=text.strip(), figure=figure, compare=compare, bound=float(bound) / (100 if percent else 1)
    )


def checked(requirements: Sequence[Requirement], known: Mapping[str, float | None]) -> list[Verdict]:
    """Each requirement against the figures; a figure that is ``None`` gives no verdict.

    Raises:
        ConfigurationError: there is no figure of that name.
    """
    return [_checked(one, known) for one in requirements]


def at_least(what: str, count: int, least: int) -> Verdict:
    """Whether there are as many tasks, or runs, as a gate asks for: with fewer it has no verdict."""
    gate = Gate.MET if count >= least else Gate.NO_VERDICT
    return Verdict(requirement=f"{what}>={least}", gate=gate, because=f"there are {count}")


def exit_code(verdicts: Sequence[Verdict]) -> int:
    """3 when a requirement has no verdict, else 1 when one is not met, else 0."""
    gates = {one.gate for one in verdicts}
    if Gate.NO_VERDICT in gates:
        return 3
    return 1 if Gate.NOT_MET in gates else 0


def gates_json(verdicts: Sequence[Verdict]) -> list[dict[str, str]]:
    """How each requirement stands, as plain JSON values."""
    return [
        {"requirement": one.requirement, "gate": one.gate.value, "because": one.because} for one in verdicts
    ]


def _checked(one: Requirement, known: Mapping[str, float | None]) -> Verdict:
    if one.figure not in known:
        meant = nearest(one.figure, [name for name in known if "[" not in name or "[1]" in name])
        raise ConfigurationError(f"--require {one.text}: there is no figure {one.figure}; {meant}")
    value = known[one.figure]
    if value is None:
        return Verdict(
            requirement=one.text, gate=Gate.NO_VERDICT, because=f"{one.figure} is not defined here"
        )
    met = _OPERATORS[one.compare](value, one.bound)
    return Verdict(
        requirement=one.text,
        gate=Gate.MET if met else Gate.NOT_MET,
        because=f"{one.figure} is {value:.4g}",
    )
