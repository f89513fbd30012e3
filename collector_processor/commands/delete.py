"""``redfirst delete``: erase runs from the store; tombstones keep their late spans from bringing them back."""

from __future__ import annotations

import argparse
import json
import time
from typing import Literal

from redfirst.collector_processor.commands.changing import ask, change, home_of
from redfirst.collector_processor.home import Home, HomeLock, OwnApi
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.collector_processor.storing.store import Owner
from redfirst.collector_processor.terminal import counted
from redfirst.evaluators.errors import ConfigurationError


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
    if "" in (options.session, options.user):
        raise ConfigurationError("delete: the ID of a session or a user is not empty.")
    home = home_of(options.home)
    if options.run is None:
        erased = _erase_all(
            home, "user" if options.user is not None else "session", options.user or options.session
        )
    else:
        erased = [
            change(
                home,
                options.run,
                "delete",
                {},
                lambda store, found: store.delete(found, at_ns=time.time_ns()),
            )
        ]
    if options.json:
        for run_id in erased:
            print(json.dumps({"trace_id": run_id, "deleted": True}))
    elif options.run is not None:
        print(f"{erased[0]}: erased")
        print("Its bytes leave the journal with their segment.")
    else:
        print(f"{counted(len(erased), 'run')} erased; their bytes leave the journal with their segments")
        print("What is still open is erased when it is judged.")
    return 0


def _erase_all(home: Home, what: Literal["user", "session"], name: str) -> list[str]:
    """Through the service that has the home, or in the store when none runs."""
    service = OwnApi.of(home.service())
    if service is not None:
        return list(ask(service, "/api/erasures", {what: name})["erased"])
    lock = HomeLock(home)
    store = SqliteStore(home.store)
    try:
        return store.erase_all(Owner(what=what, name=name), at_ns=time.time_ns())
    finally:
        store.close()
        lock.release()
