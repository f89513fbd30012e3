"""What a team decides about a scenario after its proof: until when it holds, and whether it gates for now.

It stands in ``upkeep.yaml`` beside the scenario, which no proof is bound to: to put a scenario into
quarantine changes nothing of what was seen to fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from pydantic import Field, ValidationError, model_validator

from redfirst.evaluators import ConfigurationError, strict_yaml
from redfirst.replay import files
from redfirst.replay.drift_file import read_mark
from redfirst.replay.scenario_parts import Part, refused

UPKEEP_FILE = "upkeep.yaml"
LONGEST_QUARANTINE = timedelta(days=14)


class Quarantine(Part):
    """A scenario that is run and shown, and for a while fails nothing."""

    since: date
    until: date
    reason: str = Field(min_length=1)
    owner: str = Field(min_length=1)

    @model_validator(mode="after")
    def _short(self) -> Quarantine:
        if not self.since <= self.until <= self.since + LONGEST_QUARANTINE:
            raise ValueError(
                f"until {self.until} is not within {LONGEST_QUARANTINE.days} days after since {self.since}"
            )
        return self


class UpkeepFile(Part):
    """``upkeep.yaml``."""

    owner: str | None = None
    expires: date | None = None
    """From this day on the suite asks to confirm that the recorded answers still hold."""
    quarantine: Quarantine | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """The decisions in force on one day."""

    owner: str | None = None
    quarantine: Quarantine | None = None
    """Only while it lasts."""
    overdue: Quarantine | None = None
    """A quarantine that has run out and still stands there: the scenario fails until it is taken away."""
    ahead: Quarantine | None = None
    """A quarantine of later days: the scenario counts till then."""
    expired: date | None = None
    """The day it expired on, once that is past."""
    stale: tuple[str, ...] = ()
    """What ``drift`` saw moved since the recording, and nobody has reviewed."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of any result is told of it."""
        out: list[str] = []
        if (held := self.quarantine) is not None:
            out.append(f"quarantined until {held.until} by {held.owner}: {held.reason}")
        if (late := self.overdue) is not None:
            out.append(f"its quarantine ended on {late.until}: repair it, or take the quarantine away")
        if (later := self.ahead) is not None:
            out.append(f"its quarantine begins on {later.since}: it counts until then")
        if self.expired is not None:
            who = f" ({self.owner})" if self.owner else ""
            out.append(f"expired on {self.expired}: confirm that its recorded answers still hold{who}")
        if self.stale:
            out.append(f"stale, moved since the recording: {'; '.join(self.stale)}")
        return tuple(out)


def upkeep(folder: Path, *, at: float) -> Upkeep:
    """The decisions about the scenario in a folder, on the day (UTC) of ``at``, Unix seconds.

    Raises:
        ConfigurationError: ``upkeep.yaml`` or ``drift.json`` is wrong.
    """
    today = datetime.fromtimestamp(at, UTC).date()
    stated = _read(folder / UPKEEP_FILE)
    held = stated.quarantine
    over = held is not None and today > held.until
    ahead = held is not None and today < held.since
    return Upkeep(
        owner=stated.owner,
        quarantine=None if over or ahead else held,
        overdue=held if over else None,
        ahead=held if ahead else None,
        expired=stated.expires if stated.expires is not None and today >= stated.expires else None,
        stale=read_mark(folder).open,
    )


def _read(path: Path) -> UpkeepFile:
    if not path.is_file():
        return UpkeepFile()
    try:
        text = files.read(path).decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}:1: not UTF-8; save it as UTF-8.") from None
    document = strict_yaml.read(text, str(path))
    try:
        return UpkeepFile.model_validate(document.data)
    except ValidationError as problem:
        raise refused(document, problem) from None
