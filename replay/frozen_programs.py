"""Programs that an agent starts and that are told the frozen clock: ``date`` of GNU, where it is found by its name.

Another program keeps its own clock. It is counted as a source of chance, by the name it was started with.
"""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

_DATE = """\
#!/bin/sh
for given in "$@"; do
    case "$given" in -d* | --date* | -r* | --reference* | -f* | --file* | -s* | --set*) exec {date} "$@" ;; esac
done
exec {date} --date=@{start:.6f} "$@"
"""


def frozen_programs(place: str, path: str, start: float) -> dict[str, str]:
    """Write them into ``place``; the variables by which a process finds them before those of the machine.

    Args:
        place: a folder that the agent is not run in.
        path: the ``PATH`` there was.
        start: Unix seconds that the clock is frozen at.
    """
    date = shutil.which("date", path=path)
    if date is None or not _is_gnu(date):
        return {}
    folder = Path(place, "bin")
    folder.mkdir()
    program = folder / "date"
    program.write_text(_DATE.format(date=shlex.quote(date), start=start), encoding="utf-8")
    program.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{path}"}


def _is_gnu(date: str) -> bool:
    return os.uname().sysname == "Linux" and "busybox" not in os.path.realpath(date)
