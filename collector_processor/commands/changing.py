"""Changing a stored run from the command line: through the service that has the home, or in the store when none runs."""

from __future__ import annotations

import argparse
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from redfirst.collector_processor.home import Home, HomeLock, OwnApi
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Query, RunState, Store
from redfirst.evaluators.errors import ConfigurationError, RedfirstError
from redfirst.replay.project import load_project

_TIMEOUT = 30.0
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""A proxy of the environment is not told of what stays on the machine, nor of the token."""


class ServiceRefused(RedfirstError):
    """The running service did not make the change."""


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """``RUN`` and ``--home``."""
    parser.add_argument("run", metavar="RUN", help="a trace id, or the beginning of one")
    parser.add_argument(
        "--home", metavar="DIR", help="where the store lies (default: REDFIRST_HOME or .redfirst)"
    )


def home_of(given: str | None) -> Home:
    """The home with a store in it.

    Raises:
        ConfigurationError: there is none.
    """
    home = Home(Path(given) if given else load_project(Path.cwd()).home)
    if not home.store.exists():
        raise ConfigurationError(f"There is no store in {home.folder}: start redfirst serve, or give --home.")
    return home


def change(
    home: Home, wanted: str, action: str, body: Mapping[str, Any], directly: Callable[[Store, str], bool]
) -> str:
    """Make the change and give the id of the run that was meant.

    Raises:
        ConfigurationError: no run begins so, or several do.
        ServiceRefused: the service did not do it.
    """
    run_id = resolved(home, wanted)
    service = OwnApi.of(home.service())
    if service is not None:
        ask(service, f"/api/runs/{run_id}/{action}", body)
        return run_id
    lock = HomeLock(home)
    store = SqliteStore(home.store)
    try:
        done = directly(store, run_id)
    finally:
        store.close()
        lock.release()
    if not done:
        raise ConfigurationError(f"run {wanted}: it was erased meanwhile.")
    return run_id


def resolved(home: Home, wanted: str) -> str:
    """The id of the stored run that begins so, or one of whose traces does.

    Raises:
        ConfigurationError: no run does, or several do.
    """
    reader = SqliteReader(home.store)
    try:
        query = Query(prefix=wanted.lower(), states=tuple(RunState), limit=5)
        rows = reader.runs(query) if wanted else []
    finally:
        reader.close()
    found = list(dict.fromkeys(run.part_of or run.run_id for run in rows))
    if not found:
        raise ConfigurationError(f"run {wanted}: not in the store {home.store}.")
    if len(found) > 1:
        some = ", ".join(name[:12] for name in found[:4])
        raise ConfigurationError(f"run {wanted}: several runs begin so ({some} …); give more of the id.")
    return found[0]


def ask(service: OwnApi, path: str, body: Mapping[str, Any]) -> Any:
    """What the running service answers to this.

    Raises:
        ServiceRefused: it did not do it.
    """
    request = urllib.request.Request(  # noqa: S310 - the address our own service wrote into its lock
        service.url + path,
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", **service.headers},
        method="POST",
    )
    try:
        with _DIRECT.open(request, timeout=_TIMEOUT) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as problem:
        with problem:
            said = problem.read(2000).decode("utf-8", "replace")
        raise ServiceRefused(f"The service answered {problem.code}: {said}") from problem
    except OSError as problem:
        raise ServiceRefused(f"The service at {service.url} does not answer: {problem}.") from problem
