"""The shape of what was learned, in a rules file and in a declaration."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from redfirst.evaluators.reference.learned import RUNS_AT_LEAST, Learned, Support
from redfirst.evaluators.reference.shapes import fault
from redfirst.evaluators.shapes import Id, Name, SeverityName, Shape


def _checked_support(data: object) -> object:
    lists = data.values() if isinstance(data, Mapping) else [None]
    for counts in lists:
        whole = isinstance(counts, list) and all(type(one) is int for one in counts)
        if not whole:
            raise fault(
                f"tools: expected lists of whole numbers by tool, as in tools: {{get_order: [40, 3]}}; found {data!r}"
            )
    return data


class SignatureShape(Shape):
    """What was learned of one kind of task: of its passing runs, how many called a tool at least 1, 2, … times."""

    signature: Name
    runs: Annotated[int, Field(ge=1)]
    tools: Annotated[dict[Name, list[int]], BeforeValidator(_checked_support)]

    @model_validator(mode="after")
    def _possible(self) -> SignatureShape:
        for tool, counts in self.tools.items():
            if any(later > earlier for earlier, later in pairwise([self.runs, *counts, 0])) or 0 in counts:
                raise fault(
                    f"tools: {tool} has {counts} of {self.runs} runs; give how many runs called it at least once,"
                    f" twice and so on, none above the one before, as in {tool}: [{self.runs}]"
                )
        return self


class LearnedShape(Shape):
    """What was learned from passing runs."""

    by: Literal["request", "first_tools"] = "request"
    share: Annotated[float, Field(gt=0, le=1)] = 0.95
    runs_at_least: Annotated[int, Field(ge=1)] = RUNS_AT_LEAST
    signatures: Annotated[list[SignatureShape], Field(min_length=1)]

    @model_validator(mode="after")
    def _once(self) -> LearnedShape:
        names = [one.signature for one in self.signatures]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise fault(f"the signature {twice[0]!r} stands twice; add its runs and counts up in one")
        return self

    def built(self) -> Learned:
        """What was learned."""
        found = {
            one.signature: Support(
                one.runs, {tool: tuple(counts) for tool, counts in sorted(one.tools.items())}
            )
            for one in self.signatures
        }
        return Learned(self.by, found, self.share, self.runs_at_least)


class LearnedCheckShape(Shape):
    """A check by what was learned, as a declaration carries it."""

    kind: Literal["learned.recall", "learned.tool_selection"]
    id: Id
    severity: SeverityName = "note"
    learned: LearnedShape
