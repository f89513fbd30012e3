"""``redfirst delete``: erase runs from the store; tombstones keep their late spans from bringing them back."""

from __future__ import annotations

import argparse
import json
import time

from redfirst.collector_processor.commands.changing import change, home_of
from redfirst.collector_processor.home import Home
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Query, RunState
from redfirst.collector_processor.terminal import counted
from redfirst.evaluators.errors import ConfigurationError

_ERASABLE = (RunState.SCORED, RunState.UNSCORED, RunState.NOT_A_RUN)


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument("run", nargs="?", metavar="RUN", help="a trace id, or the beginning of one")
    parser.add_argument("--session", metavar="ID", help="every run of this session instead")
    parser.add_argument("--user", metavar="ID", help="every run of this user instead (user.id of the spans)")
    parser.add_argument(
        "--home", metavar="DIR", help="where the store lies (default: REDFIRST_HOME or .redfirst)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a run on stdout")


def execute(options: argparse.Namespace) -> int:
    """Erase the runs. Their bytes leave the journal when retention removes their segments."""
    if sum(given is not None for given in (options.run, options.session, options.user)) != 1:
        raise ConfigurationError("delete: give one of RUN, --session ID and --user ID.")
    home = home_of(options.home)
    wanted = [options.run] if options.run is not None else _of(home, options.session, options.user)
    for name in wanted:
        run_id = change(
            home, name, "delete", {}, lambda store, found: store.delete(found, at_ns=time.time_ns())
        )
        if options.json:
            print(json.dumps({"trace_id": run_id, "deleted": True}))
        elif options.run is not None:
            print(f"{run_id}: erased; its bytes leave the journal with their segment")
    if options.run is None and not options.json:
        print(f"{counted(len(wanted), 'run')} erased; their bytes leave the journal with their segments")
    return 0


def _of(home: Home, session: str | None, user: str | None) -> list[str]:
    reader = SqliteReader(home.store)
    try:
        found = reader.runs(Query(session=session, user=user, states=_ERASABLE))
    finally:
        reader.close()
    return [run.run_id for run in found]
