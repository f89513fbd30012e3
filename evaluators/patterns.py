"""Regular expressions that cannot hang: short, on short texts, with no repetition inside a repetition.

Python's engine backtracks: ``(a+)+$`` on 30 characters takes minutes, and the text comes from whoever
talks to the agent. Refused when a pattern is loaded: a repeated group that holds a repetition or an
alternative, a back reference, more than three open repetitions (each adds a power of the text's length).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_PATTERN = 200
LONGEST_SUBJECT = 10_000
MOST_OPEN_REPETITIONS = 3
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

    def found_in(self, subject: str) -> bool | None:
        """Whether it matches anywhere; unknown for a text beyond the limit."""
        return None if len(subject) > LONGEST_SUBJECT else self.compiled.search(subject) is not None


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
    problem = next(_problems(text), None)
    if problem:
        raise ValueError(f"pattern {text!r} {problem}; write it without")
    return Pattern(text, compiled)


def _problems(text: str) -> Iterator[str]:
    varied = [False]
    """For the whole pattern and every open group: whether it holds a repetition or an alternative."""
    closed = False
    """Whether the token before closed such a group."""
    open_repetitions = 0
    for token in _TOKEN.finditer(text):
        before, closed = closed, False
        if token["reference"]:
            yield "refers back to a group (exponential time)"
        elif token["verbose"]:
            yield "has the flag x"
        elif token["open"]:
            varied.append(False)
        elif token["close"]:
            closed = varied.pop()
            varied[-1] = varied[-1] or closed
        elif token["either"]:
            varied[-1] = True
        elif token["repeat"]:
            if before and token["repeat"][0] != "?":
                yield "repeats a group that holds a repetition or an alternative (exponential time)"
            varied[-1] = varied[-1] or token["fixed"] is None
            open_repetitions += _is_open(token)
    if open_repetitions > MOST_OPEN_REPETITIONS:
        yield f"has more than {MOST_OPEN_REPETITIONS} open repetitions (*, +, {{n,}})"


def _is_open(repeat: re.Match[str]) -> bool:
    if repeat["fixed"] or repeat["repeat"][0] == "?":
        return False
    return not repeat["most"] or int(repeat["most"]) > LARGEST_BOUND
