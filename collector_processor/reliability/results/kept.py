"""Runs of scenarios that ``redfirst run`` and ``prove`` kept, each in a folder of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson

from redfirst.collector_processor.reliability.results.fields import mapping
from redfirst.collector_processor.reliability.results.lines import trial_of
from redfirst.collector_processor.reliability.trial import Trial, renumbered
from redfirst.evaluators.errors import ConfigurationError, UnreadableInput
from redfirst.replay.kept import RESULT_FILE


def kept_folders(folder: Path) -> tuple[Path, ...]:
    """The kept runs that a folder is or holds, oldest first: a run's folder begins with its time."""
    if (folder / RESULT_FILE).is_file():
        return (folder,)
    for place in (folder, folder / "runs"):
        if found := sorted(path.parent for path in place.glob(f"*/{RESULT_FILE}")):
            return tuple(found)
    return ()


def kept_trials(folders: Iterator[Path] | tuple[Path, ...], *, mode: str | None = None) -> tuple[Trial, ...]:
    """The kept runs, numbered per scenario in order of time: every call of ``redfirst run`` numbers its own from 0.

    Raises:
        UnreadableInput: a result is damaged.
        ConfigurationError: they were run in several modes, which fail for different reasons, and none was chosen.
    """
    modes: Counter[str] = Counter()
    found: list[Trial] = []
    for folder in folders:
        place = str(folder / RESULT_FILE)
        try:
            record = mapping(orjson.loads((folder / RESULT_FILE).read_bytes()), place)
        except (OSError, orjson.JSONDecodeError) as problem:
            raise UnreadableInput(f"{place}: cannot be read: {problem}.") from problem
        if mode is None or record.get("mode") == mode:
            modes[str(record.get("mode"))] += 1
            found.append(trial_of(record, place))
    if len(modes) > 1:
        counted = ", ".join(f"{count} {name}" for name, count in sorted(modes.items()))
        raise ConfigurationError(
            f"the kept runs are of several modes ({counted}): choose one with --mode, for instance --mode "
            f"{modes.most_common(1)[0][0]}."
        )
    return renumbered(found)
