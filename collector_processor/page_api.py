"""The port for people and monitors: JSON API, metrics and health. Reads the store; labels and erases on request."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import orjson

from redfirst.collector_processor.links import NO_LINKS, Links
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.page_access import PageAccess
from redfirst.collector_processor.receiving.refusals import Refusal, Refused
from redfirst.collector_processor.storing.rows import row
from redfirst.collector_processor.storing.store import (
    Label,
    Owner,
    Query,
    RunState,
    Store,
    StoredRun,
    StoreReader,
)

Json = Any
_log = logging.getLogger(__name__)
_OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_MAX_POST = 64 << 10
POST_SECONDS = 10.0
"""What the body of a request may take to come."""
_EVER = 2**63
_MAX_ROWS = 1000
_ID_LENGTH = 32
_OUR_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class Health(Protocol):
    """What the service says of itself. Both give None when all is well, and otherwise what is wrong."""

    def unhealthy(self) -> str | None: ...

    def unready(self) -> str | None: ...


class ApiError(Exception):
    """A request that the API refuses, with its HTTP status."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(what)
        self.status = status


class PageApi:
    """The ASGI application on the page's port."""

    def __init__(
        self,
        reader: StoreReader,
        store: Store,
        metrics: Metrics,
        health: Health,
        *,
        access: PageAccess | None = None,
        refused: Callable[[Refusal], None] = lambda _: None,
        loopback: bool = True,
        revision: Callable[[], str] = lambda: "",
        segments: Callable[[], Collection[int]] = tuple,
        links: Links = NO_LINKS,
    ) -> None:
        """``access`` lets everybody in when it is left out, ``refused`` is told of who was not; ``loopback`` when the port
        is reached by names of this machine only; ``revision`` is of the checks in force, ``segments`` are
        those that the journal has; ``links`` lead to the runs' traces."""
        self._segments = segments
        self._access = access or PageAccess()
        self._refused = refused
        self._links = links
        self._loopback = loopback
        self._revision = revision
        self._reader = reader
        self._store = store
        self._metrics = metrics
        self._health = health

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            status, kind, body = await self._answer(scope, receive)
        except ApiError as problem:
            status, kind, body = problem.status, "application/json", orjson.dumps({"error": str(problem)})
        except sqlite3.Error:
            _log.exception("the store could not be asked")
            self._metrics.add("redfirst_store_failures_total")
            said = {"error": "The store cannot be asked now; try again."}
            status, kind, body = 503, "application/json", orjson.dumps(said)
        asked_for = [(b"www-authenticate", b'Bearer, Basic realm="redfirst: the token is the password"')]
        headers = [
            *(asked_for if status == 401 else ()),
            (b"content-type", kind.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Mapping[str, Any], receive: Receive) -> tuple[int, str, bytes]:
        path, method = scope["path"].rstrip("/"), scope["method"]
        if path in ("/healthz", "/readyz"):  # probes have no tokens
            trouble = self._health.unhealthy() if path == "/healthz" else self._health.unready()
            return (503 if trouble else 200), "text/plain; charset=utf-8", f"{trouble or 'ok'}\n".encode()
        tenant = self._limited_to(scope)
        if path == "/metrics":
            if b"application/openmetrics-text" in dict(scope["headers"]).get(b"accept", b""):
                return 200, _OPEN_METRICS, self._metrics.open_metrics().encode()
            return 200, "text/plain; version=0.0.4; charset=utf-8", self._metrics.text().encode()
        parts = path.split("/")[1:]
        if parts in (["api", "backfill"], ["api", "erasures"]):
            if method != "POST":
                raise ApiError(405, f"{path} takes POST only.")
            self._refuse_other_names(scope)
            _refuse_foreign(scope)
            act = self._judge_again if parts[1] == "backfill" else self._erase_all
            return _json(await asyncio.to_thread(act, await _posted(receive), tenant))
        if parts[:2] != ["api", "runs"] or len(parts) > 4:
            raise ApiError(404, f"There is no {path}.")
        self._refuse_other_names(scope)
        if len(parts) < 4:
            if method != "GET":
                raise ApiError(405, f"{path} takes GET only.")
            if len(parts) == 2:
                return _json(await asyncio.to_thread(self._listed, _query(scope["query_string"], tenant)))
            return _json(await asyncio.to_thread(self._shown, _id(parts[2]), tenant))
        if method != "POST":
            raise ApiError(405, f"{path} takes POST only.")
        _refuse_foreign(scope)
        run_id, posted = _id(parts[2]), await _posted(receive)
        return _json(await asyncio.to_thread(self._change, run_id, parts[3], posted, tenant))

    def _limited_to(self, scope: Mapping[str, Any]) -> str | None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            return self._access.limited_to(headers)
        except Refused as problem:
            self._refused(problem.refusal)
            raise ApiError(problem.refusal.http, str(problem)) from problem

    def _listed(self, query: Query) -> Json:
        found = self._reader.runs(query)
        return {
            "runs": [{**row(run), **self._links.beside_stored(run.run_id, self._reader)} for run in found]
        }

    def _shown(self, run_id: str, tenant: str | None) -> Json:
        detail = _detail(self._reader.versions(run_id), tenant)
        return {**detail, **self._links.beside_stored(run_id, self._reader)}

    def _refuse_other_names(self, scope: Mapping[str, Any]) -> None:
        """A foreign name that was made to point at this machine must not let a foreign page read runs."""
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if self._loopback and _split(f"//{host}")[0] not in _OUR_NAMES:
            raise ApiError(403, "This port is reached as localhost only.")

    def _judge_again(self, posted: Mapping[str, Json], tenant: str | None) -> Json:
        if tenant is not None:
            raise ApiError(
                403, "Runs of all tenants are judged again: only redfirst backfill may ask for it."
            )
        since_ns, revision = posted.get("since_ns", 0), posted.get("revision")
        if type(since_ns) is not int or abs(since_ns) >= _EVER or not isinstance(revision, str):
            raise ApiError(400, 'A backfill is {"since_ns": 0, "revision": "…"}.')
        if revision != self._revision():
            raise ApiError(
                409,
                "The service judges by other rules than these; an edited file is in force within seconds.",
            )
        found = self._store.judge_again(since_ns=since_ns, revision=revision, segments=self._segments())
        return {"noted": found.noted, "spans_gone": found.spans_gone}

    def _erase_all(self, posted: Mapping[str, Json], tenant: str | None) -> Json:
        (what, name), *more = posted.items() or [("", None)]
        if more or what not in ("user", "session") or not isinstance(name, str) or not name:
            raise ApiError(400, 'An erasure is {"user": "ID"} or {"session": "ID"}.')
        owner = Owner(what=what, name=name, tenant=tenant)  # type: ignore[arg-type] # one of the two, as was checked
        return {"erased": self._store.erase_all(owner, at_ns=time.time_ns())}

    def _change(self, run_id: str, action: str, posted: Mapping[str, Json], tenant: str | None) -> Json:
        if tenant is not None:
            _detail(self._reader.versions(run_id), tenant)
        if action == "delete":
            done = self._store.delete(run_id, at_ns=time.time_ns())
        elif action == "label":
            done = self._store.label(_label(run_id, posted))
        else:
            raise ApiError(404, f"There is no {action}; a run takes label and delete.")
        if not done:
            raise ApiError(404, f"There is no run {run_id}.")
        return {"run_id": run_id, "done": action}


def _json(value: Json) -> tuple[int, str, bytes]:
    return 200, "application/json", orjson.dumps(value)


def _detail(versions: list[StoredRun], tenant: str | None) -> Json:
    if not versions or (tenant is not None and versions[-1].tenant != tenant):
        raise ApiError(404, "There is no such run.")
    latest = versions[-1]
    return {
        **row(latest),
        "record": latest.record,
        "versions": [row(run) for run in versions],
    }


def _query(text: bytes, tenant: str | None) -> Query:
    given = {name: values[-1] for name, values in parse_qs(text.decode("latin-1")).items()}
    unknown = sorted(
        set(given) - {"flagged", "state", "agent", "session", "user", "text", "before_ns", "limit"}
    )
    if unknown:
        raise ApiError(
            400,
            f"Unknown parameter {unknown[0]}; use flagged, state, agent, session, user, text, before_ns and limit.",
        )
    try:
        named = given.get("state", f"{RunState.SCORED},{RunState.UNSCORED}")
        return Query(
            flagged={"true": True, "false": False}[given["flagged"]] if "flagged" in given else None,
            agent=given.get("agent"),
            session=given.get("session"),
            user=given.get("user"),
            tenant=tenant,
            text=given.get("text", ""),
            before_ns=_moment(given["before_ns"]) if "before_ns" in given else None,
            limit=max(1, min(_MAX_ROWS, int(given.get("limit", 100)))),
            states=tuple(RunState(name) for name in named.split(",")),
        )
    except (ValueError, KeyError) as problem:
        raise ApiError(400, f"A parameter has no such value: {problem}.") from problem


def _moment(text: str) -> int:
    moment = int(text)
    if abs(moment) >= _EVER:
        raise ValueError(f"{text[:30]} is no time in nanoseconds")
    return moment


def _split(url: str) -> tuple[str | None, str | None]:
    """The name and the whole address of a host; None for what is no URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None, None
    return parts.hostname, parts.netloc


def _id(text: str) -> str:
    lowered = text.lower()
    if len(lowered) != _ID_LENGTH or any(c not in "0123456789abcdef" for c in lowered):
        raise ApiError(400, "A run's id is 32 hex digits.")
    return lowered


def _label(run_id: str, posted: Mapping[str, Json]) -> Label:
    right, check, note = posted.get("right"), posted.get("check", ""), posted.get("note", "")
    if not isinstance(right, bool) or not isinstance(check, str) or not isinstance(note, str):
        raise ApiError(400, 'A label is {"right": true or false, "check": "ID", "note": "…"}.')
    return Label(run_id=run_id, check=check, right=right, note=note, at_ns=time.time_ns())


def _refuse_foreign(scope: Mapping[str, Any]) -> None:
    """A page of another site must not be able to change anything: its forms cannot send JSON, its scripts send
    their origin."""
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    if headers.get(b"content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ApiError(415, "Send application/json.")
    origin = headers.get(b"origin")
    if origin is not None and _split(origin)[1] != headers.get(b"host"):
        raise ApiError(403, "A request from another site is refused.")


async def _posted(receive: Receive) -> Mapping[str, Json]:
    body = b""
    more = True
    try:
        async with asyncio.timeout(POST_SECONDS):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ApiError(400, "The body is not whole.")
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > _MAX_POST:
                    raise ApiError(413, f"The body is larger than {_MAX_POST} bytes.")
    except TimeoutError as problem:
        raise ApiError(408, f"The body did not come within {POST_SECONDS:g} s.") from problem
    try:
        value = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError as problem:
        raise ApiError(400, f"The body is not JSON: {problem}.") from problem
    if not isinstance(value, dict):
        raise ApiError(400, "The body is not a JSON object.")
    return value
