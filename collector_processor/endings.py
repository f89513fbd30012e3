"""How runs end that say nothing of the agent's reliability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redfirst.evaluators.trajectory import Stop
from redfirst.evaluators.verdict import Outcome

Json = Any
APART = frozenset({Stop.INFRA, Stop.ABANDONED, Stop.PARKED})
"""Such runs are counted apart: neither good nor bad."""
_TERMINATION = "termination"


def termination_of(record: Mapping[str, Json]) -> Mapping[str, Json]:
    """The record's verdict on its end; empty when that was not judged."""
    found: Mapping[str, Json] = next(
        (one for one in record.get("verdicts") or () if one["check"] == _TERMINATION), {}
    )
    return found


def ending_of(record: Mapping[str, Json]) -> Stop:
    """Why the run of this record ended. Where spans are missing, that nothing followed is no sign of a run that was
    abandoned."""
    reason = Stop((record.get("termination") or {}).get("reason") or Stop.UNKNOWN)
    unsure = reason is Stop.ABANDONED and termination_of(record).get("outcome") == Outcome.INCONCLUSIVE
    return Stop.UNKNOWN if unsure else reason
