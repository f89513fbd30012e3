"""Which attributes gave which facts, in few words: facts that stand on the same keys share a line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from redfirst.collector_processor.showing.columns import Line, paragraph
from redfirst.collector_processor.showing.gaps import grouped
from redfirst.evaluators.provenance import Origin
from redfirst.evaluators.trajectory import Gap

_NUMBERED = re.compile(r"\.\d+(?=\.|$)")
_MOST = 6
"""Keys of one fact that are named; a message in flattened attributes has many."""


def origin_lines(origins: Mapping[str, Sequence[Origin]]) -> list[Line]:
    """A line for each kind of fact and the keys it was read from."""
    facts = [Gap(fact=fact, because=_keys(found)) for fact, found in origins.items()]
    lines: list[Line] = []
    for what, keys in grouped(facts):
        lines += paragraph("read", f"{what.replace('_', ' ')} from {keys}", most=4)
    return lines


def _keys(origins: Sequence[Origin]) -> str:
    """The keys, those that differ in numbers alone once: ``llm.output_messages.N.message.role``."""
    keys = list(dict.fromkeys(_NUMBERED.sub(".N", origin.key) for origin in origins))
    more = f" and {len(keys) - _MOST} more" if len(keys) > _MOST else ""
    return ", ".join(keys[:_MOST]) + more
