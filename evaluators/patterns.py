"""Regular expressions that cannot hang: short, on short texts, with no repetition inside a repetition.

Python's engine backtracks: ``(a+)+$`` on 30 characters takes minutes, and the text comes from whoever
talks to the agent. Refused when a pattern is loaded: a repeated group that holds a repetition or an
alternative, a back reference, more than three open repetitions. Each open repetition adds a power of the
text's length to the time, so the more of them, the shorter the text that a pattern is tried on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_PATTERN = 200
LONGEST_SUBJECTS = (10_000, 10_000, 1_000, 250)
"""How long a text may be, by the number of open repetitions: with n of them the time grows as length ** (n + 1)."""
LARGEST_BOUND = 50
"""A repetition bounded above this counts as open."""

_TOKEN = re.compile(
    r"""(?P<reference>\\[1-9]|\(\?P=|\(\?\()
      | (?P<verbose>\(\?[a-zA-Z-]*x[a-zA-Z-]*[:)])
      | (?P<plain>\\.|\(\?[a-zA-Z-]+\)|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?\#[^)]*\))
      | (?P<open>\((?:\?(?:P<\w+>|<?[=!]|>|[a-zA-Z-]*:))?)
      | (?P<close>\))
      | (?P<either>\|)
      | (?P<repeat>(?:[*+?]|\{(?:(?P<fixed>\d+)|\d*,(?P<most>\d*))\})[?+]?)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression that was found safe to run on foreign text."""

    text: str
    compiled: re.Pattern[str]
    longest_subject: int

    def found_in(self, subject: str) -> bool | None:
        """Whether it matches anywhere; unknown for a text beyond the limit."""
        return None if len(subject) > self.longest_subject else self.compiled.search(subject) is not None


def compile_pattern(text: str) -> Pattern:
    """The pattern, ready to run.

    Raises:
        ValueError: it is no regular expression, too long, or may take exponential time.
    """
    if len(text) > LONGEST_PATTERN:
        raise ValueError(f"a pattern of {len(text)} characters; the limit is {LONGEST_PATTERN}")
    try:
        compiled = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"pattern {text!r} is no regular expression: {error}") from error
    repetitions = _open_repetitions(text)
    if repetitions >= len(LONGEST_SUBJECTS):
        raise ValueError(
            f"pattern {text!r} has {repetitions} open repetitions (*, +, {{n,}}); write it with fewer"
        )
    return Pattern(text, compiled, LONGEST_SUBJECTS[repetitions])


def _open_repetitions(text: str) -> int:
    """How many repetitions without a near end a pattern has.

    Raises:
        ValueError: it has something that may take exponential time.
    """
    varied = [False]
    """For the whole pattern and every open group: whether it holds a repetition or an alternative."""
    closed = False
    """Whether the token before closed such a group."""
    repetitions = 0
    for token in _TOKEN.finditer(text):
        before, closed = closed, False
        if token["reference"]:
            raise _dangerous(text, "refers back to a group")
        if token["verbose"]:
            raise _dangerous(text, "has the flag x, which hides what is repeated")
        if token["open"]:
            varied.append(False)
        elif token["close"]:
            closed = varied.pop()
            varied[-1] = varied[-1] or closed
        elif token["either"]:
            varied[-1] = True
        elif token["repeat"]:
            if before and token["repeat"][0] != "?":
                raise _dangerous(text, "repeats a group that holds a repetition or an alternative")
            varied[-1] = varied[-1] or token["fixed"] is None
            repetitions += _is_open(token)
    return repetitions


def _dangerous(text: str, why: str) -> ValueError:
    return ValueError(f"pattern {text!r} {why} (it may take exponential time); write it without")


def _is_open(repeat: re.Match[str]) -> bool:
    if repeat["fixed"] or repeat["repeat"][0] == "?":
        return False
    return not repeat["most"] or int(repeat["most"]) > LARGEST_BOUND
