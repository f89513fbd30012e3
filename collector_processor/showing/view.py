"""What one page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from redfirst.collector_processor.storing.store import Label
from redfirst.evaluators.check import Check
from redfirst.evaluators.provenance import Origin
from redfirst.evaluators.trajectory import Trajectory
from redfirst.evaluators.verdict import Verdict
from redfirst.replay.covering import Cover
from redfirst.replay.scenario import Folder
from redfirst.replay.standing import Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is shown: a run, the checks it was judged by, and where it comes from."""

    run: Trajectory
    checks: Sequence[Check]
    verdicts: Sequence[Verdict]
    sources: Sequence[str] = ()
    """The options that found the run, for the next command."""
    labels: Sequence[Label] = ()
    """What people said of it."""
    cost: str = ""
    """What its model calls cost, or why that is not known."""
    origins: Mapping[str, Sequence[Origin]] = field(default_factory=dict)
    """Of each fact, where it was read; empty where nobody asked."""
    cover: Cover | None = None
    """The scenario that keeps its failure already."""
    url: str = ""
    """Where its trace is in the backend that people use; empty when that is not configured."""
    folder: Folder | None = None
    """The scenario whose incident it is."""
    standing: Standing = field(default_factory=lambda: Standing(proven=False))

    def roles(self) -> Mapping[str, str]:
        """Of each check of a scenario: whether it is a target or a guard."""
        if self.folder is None:
            return {}
        targets = {check.id for check in self.folder.scenario.targets()}
        return {check.id: "target" if check.id in targets else "guard" for check in self.checks}
