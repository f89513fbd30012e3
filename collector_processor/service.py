"""The service: receivers, journal, pipeline, scorer, store and page put together, started and stopped in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import uvicorn

from redfirst.collector_processor.companions import Companion, Parts
from redfirst.collector_processor.home import Home, HomeLock
from redfirst.collector_processor.journal.format import segments
from redfirst.collector_processor.journal.retention import Retention
from redfirst.collector_processor.journal.writing import Journal
from redfirst.collector_processor.journal_settings import journal_limits, read_up_to, retention_limits
from redfirst.collector_processor.links import Links
from redfirst.collector_processor.log_lines import fields
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.page_access import PageAccess, own_token
from redfirst.collector_processor.page_api import PageApi
from redfirst.collector_processor.receiving.accepting import Acceptor
from redfirst.collector_processor.receiving.certificates import Certificates
from redfirst.collector_processor.receiving.headers import bounded_headers
from redfirst.collector_processor.receiving.origins import Origins
from redfirst.collector_processor.receiving.over_grpc import GrpcOptions, GrpcReceiver
from redfirst.collector_processor.receiving.over_http import HttpOptions, HttpReceiver
from redfirst.collector_processor.receiving.ports import listen, refuse_taken
from redfirst.collector_processor.receiving.refusals import Refusal
from redfirst.collector_processor.receiving.tenants import Tenants
from redfirst.collector_processor.rules_watch import RulesWatch
from redfirst.collector_processor.scoring.assembly import AssemblyLimits
from redfirst.collector_processor.scoring.lanes import Lanes
from redfirst.collector_processor.scoring.pipeline import Pipeline
from redfirst.collector_processor.scoring.process import ScorerProcess
from redfirst.collector_processor.scoring.span_source import SpanSource
from redfirst.collector_processor.settings import ServeSettings
from redfirst.collector_processor.storing.expiring import expire
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.terminal import counted

_GRACE = 5.0
_DRAIN = 60.0
_HOUSEKEEPING = 15.0
_WATCH = 0.2
_EXPIRING = 4.0
"""Seconds of one round of housekeeping that verdicts which are too old may take."""
_LOOK = 1.0
"""Seconds between two looks at the rules file."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where a service listens."""

    grpc: str
    http: str
    page: str
    local: str
    """Where commands on this machine ask."""


class Service:
    """One processor on one home. ``run`` returns when it was told to stop."""

    def __init__(
        self,
        home: Home,
        settings: ServeSettings,
        *,
        rules: tuple[str, str] | None,
        say: Callable[[str], None],
        companions: Sequence[Companion] = (),
        tenants: Tenants | None = None,
    ) -> None:
        """Take the home, open the journal and the store. ``companions`` run beside the pipeline; ``tenants`` may send.

        Raises:
            RedfirstError: another service has the home, the store is of a newer version, or the certificate is none.
        """
        self.metrics = Metrics()
        self._settings = settings
        self._own = own_token()
        self._say = say
        self._stopping = False
        self._home = home
        self._companions: list[Companion] = []
        self._waiting = tuple(companions)
        self._certificates = _certificates(settings, self.metrics)
        self._lock = HomeLock(home)
        with self._undone_on_failure():
            self.store = SqliteStore(home.store)
            self._reader = SqliteReader(home.store)
            self.pipeline = Pipeline(
                lambda: self.journal,
                self.store,
                limits=AssemblyLimits(
                    settle=settings.settle_seconds,
                    idle=settings.idle_seconds,
                    age=settings.age_seconds,
                    abandon=settings.abandon_seconds,
                    park=settings.park_seconds,
                    seal=settings.seal_days * 86_400,
                    grace=settings.grace_seconds,
                ),
                metrics=self.metrics,
                destinations=[name for companion in companions for name in companion.destinations],
            )
            self.journal = Journal(
                home.journal,
                limits=journal_limits(settings),
                metrics=self.metrics,
                on_durable=self.pipeline.durable,
                after=read_up_to(self.store.cursors().values()),
            )
        self._rules = rules
        self._scorer: Lanes | None = None
        self._grpc: GrpcReceiver | None = None
        self._retention = Retention(
            self.journal,
            retention_limits(settings),
            floors=lambda: self.store.cursors().values(),
            pins=self._reader.pinned_segments,
            metrics=self.metrics,
        )
        self._acceptor = Acceptor(
            lambda: self.journal,
            self.metrics,
            max_body_bytes=settings.max_body_bytes,
            budget_bytes=settings.receive_bytes,
            tenants=tenants,
            keep_traceless=settings.traceless_logs == "keep",
        )
        self._gauges()

    def unhealthy(self) -> str | None:
        """Why the service is broken beyond what time mends; None when it is not."""
        if self._stopping:
            return None
        alive = {
            "the pipeline": self.pipeline.alive,
            "the journal's writer": self.journal.alive,
            "the scorer's supervisor": self._scorer is None or self._scorer.alive,
            "the gRPC port": self._grpc is None or self._grpc.alive,
        }
        return next((f"{part} has ended" for part, lives in alive.items() if not lives), None)

    def unready(self) -> str | None:
        """Why requests would not be served well now; None when they would."""
        if self._stopping:
            return "stopping"
        if self.pipeline.replaying:
            return "reading the journal"
        own = self.journal.trouble or self.journal.full or self.pipeline.store_trouble or self.unhealthy()
        return own or next((what for one in self._companions if (what := one.trouble()) is not None), None)

    async def run(self) -> bool:
        """Serve until SIGTERM or SIGINT; False when something broke."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        self._retention.apply(time.time())
        settings = self._settings
        grpc = self._grpc = GrpcReceiver(
            self._acceptor,
            GrpcOptions(
                metrics=settings.metrics_endpoint,
                certificates=self._certificates,
                ready=lambda: self.unready() is None,
            ),
        )
        try:
            http_socket = listen(settings.host, settings.http_port, "REDFIRST_HTTP_PORT", "http_port")
            page_socket = listen(settings.host, settings.page_port, "REDFIRST_PAGE_PORT", "page_port")
            # our own commands have no certificate to show, and need not know the name in ours
            local_socket = None if self._certificates is None else listen(_LOOPBACK[0], 0, "", "")
            refuse_taken(settings.host, settings.grpc_port, "REDFIRST_GRPC_PORT", "grpc_port")
            self.pipeline.start(self._begin_scoring())
            self._forget_destinations()
            self._start_companions()
            http = _Server(self._otlp())
            page = _Server(self._page(PageAccess(self._acceptor.tenants, own=self._own)))
            local = None if local_socket is None else _Server(self._local())
            servers = [
                asyncio.create_task(http.serve([http_socket])),
                asyncio.create_task(page.serve([page_socket])),
                *([asyncio.create_task(local.serve([local_socket]))] if local and local_socket else ()),
            ]
            grpc_port = await grpc.start(settings.host, settings.grpc_port)
        except BaseException:
            await self._drain(timeout=_GRACE)
            self._close()
            raise
        scheme = "https" if settings.tls else "http"
        page_address = f"{scheme}://{_address(settings.host, page_socket.getsockname()[1])}"
        addresses = Addresses(
            grpc=_address(settings.host, grpc_port),
            http=f"{scheme}://{_address(settings.host, http_socket.getsockname()[1])}",
            page=page_address,
            local=page_address
            if local_socket is None
            else f"http://{_address(*local_socket.getsockname()[:2])}",
        )
        ours = [server for server in (http, page, local) if server is not None]
        while not stop.is_set() and (self.pipeline.replaying or not all(server.started for server in ours)):
            await asyncio.sleep(0.01)
        self._announce(addresses)
        healthy = await self._until(stop, servers)
        self._stopping = self._acceptor.stopping = True
        _log.info("stopping")
        http.should_exit = True
        await grpc.stop(_GRACE)
        await servers[0]
        drained = await self._drain(timeout=_DRAIN)
        for server, task in zip(ours[1:], servers[1:], strict=True):
            server.should_exit = True
            await task
        self._close()
        _log.info("stopped", extra=fields(healthy=healthy, drained=drained))
        return healthy and drained

    async def _until(self, stop: asyncio.Event, servers: list[asyncio.Task[None]]) -> bool:
        """Keep house until told to stop; False when a part of the service ended by itself."""
        last = looked = time.monotonic()
        watch = self._rules_watch()
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _WATCH)
            if watch is not None and time.monotonic() - looked >= _LOOK:
                looked = time.monotonic()
                await asyncio.to_thread(watch.look)
            if time.monotonic() - last >= _HOUSEKEEPING:
                last = time.monotonic()
                await asyncio.to_thread(self._keep_house)
                self._tell_refusals()
            if self.unhealthy() is not None or any(server.done() for server in servers):
                self._say(f"stopping: {self.unhealthy() or 'a server has ended'}")
                return False
        return True

    def _otlp(self) -> uvicorn.Config:
        settings = self._settings
        options = HttpOptions(
            prefix=settings.http_prefix,
            metrics=settings.metrics_endpoint,
            origins=Origins(settings.cors_origins),
        )
        return self._secured(_config(HttpReceiver(self._acceptor, options), self._refused_head("http")))

    def _page(self, access: PageAccess) -> uvicorn.Config:
        return self._secured(self._api(access, loopback=self._settings.host in _LOOPBACK))

    def _local(self) -> uvicorn.Config:
        return self._api(PageAccess(own=self._own, only_own=True), loopback=True)

    def _api(self, access: PageAccess, *, loopback: bool) -> uvicorn.Config:
        refused = self._refused_head("page")
        api = PageApi(
            self._reader,
            self.store,
            self.metrics,
            self,
            access=access,
            refused=refused,
            loopback=loopback,
            revision=self._revision,
            segments=lambda: segments(self._home.journal),
            links=Links.of(self._settings),
        )
        return _config(api, refused)

    def _secured(self, config: uvicorn.Config) -> uvicorn.Config:
        """With our certificate, where there is one."""
        if self._certificates is not None:
            config.load()
            config.ssl = self._certificates.context()
        return config

    def _refused_head(self, protocol: str) -> Callable[[Refusal], None]:
        return lambda refusal: self._acceptor.refused(refusal, protocol)

    def _tell_refusals(self) -> None:
        """One line for all requests that were refused since the last, by reason."""
        refusals = self._acceptor.refusals
        if refusals:
            _log.warning("requests were refused", extra=fields(**refusals))
            refusals.clear()

    def _keep_house(self) -> None:
        try:
            self._retention.apply(time.time())
            self._expire()
        except (OSError, sqlite3.Error) as problem:
            self.metrics.add("redfirst_journal_failures_total", reason="retention")
            self._say(f"retention could not be applied: {problem}")

    def _expire(self) -> None:
        """Let verdicts go that were kept for as long as was asked."""
        now_ns = time.time_ns()
        before_ns = now_ns - int(self._settings.keep_days * 86_400e9)
        gone = expire(self.store, before_ns, at_ns=now_ns, seconds=_EXPIRING)
        if gone:
            self.metrics.add("redfirst_expired_runs_total", gone)

    async def _drain(self, *, timeout: float) -> bool:
        """Write what is waiting, judge what is due, and end what works on it, in the order of the data."""
        await asyncio.to_thread(self.journal.close)
        drained = True
        if self.pipeline.alive:
            drained = await asyncio.to_thread(self.pipeline.drain, timeout)
            if not drained:
                self._say("runs that were due are left for the next start: the scorer did not finish in time")
        if self._scorer is not None:
            await asyncio.to_thread(self._scorer.close)
        for companion in self._companions:
            await asyncio.to_thread(companion.stop, _GRACE)
        return drained

    def _close(self) -> None:
        self._tell_refusals()
        self._acceptor.close()
        self._reader.close()
        self.store.close()  # the last to close folds the write-ahead log into the file
        self._lock.release()

    def _rules_watch(self) -> RulesWatch | None:
        if self._rules is None or self._scorer is None:
            return None
        return RulesWatch(self._rules, replace=self._scorer.judge_by, say=self._say, metrics=self.metrics)

    def _begin_scoring(self) -> Lanes:
        self._scorer = Lanes(
            lambda: ScorerProcess(
                self._home.journal,
                rules=self._rules,
                on_answer=self.pipeline.answered,
                metrics=self.metrics,
                seconds=self._settings.score_seconds,
                check_seconds=self._settings.check_seconds,
                memory=self._settings.score_memory_bytes,
            ),
            usual=self._settings.scorers,
        )
        return self._scorer

    def _revision(self) -> str:
        """Of the checks in force; empty until the scorer said so."""
        return "" if self._scorer is None else self._scorer.revision

    def _forget_destinations(self) -> None:
        """Let go what waits for receivers that are configured no more: nobody will ever ask for it."""
        configured = {name for companion in self._waiting for name in companion.destinations}
        for name, unsent in self.store.forget_destinations(configured).items():
            for reason, count in (
                ("configured_no_more", unsent.rows),
                ("erased_and_unreachable", unsent.erased),
            ):
                if count:
                    self.metrics.add("redfirst_outbox_dropped_total", count, destination=name, reason=reason)
            more = f"; it may still hold {counted(unsent.erased, 'erased run')}" if unsent.erased else ""
            self._say(f"{name} is configured no more: {counted(unsent.rows, 'message')} to it dropped{more}")

    def _start_companions(self) -> None:
        parts = Parts(
            journal=self.journal,
            store=self.store,
            reader=self._reader,
            spans=lambda: SpanSource(self._home.journal),
            metrics=self.metrics,
        )
        for companion in self._waiting:
            companion.start(parts)
            self._companions.append(companion)

    @contextlib.contextmanager
    def _undone_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._lock.release()
            raise

    def _announce(self, addresses: Addresses) -> None:
        self._lock.say({**asdict(addresses), "token": self._own})
        self._say(f"OTLP/gRPC  {addresses.grpc}")
        self._say(f"OTLP/HTTP  {addresses.http}")
        self._say(f"page       {addresses.page}")
        self._say("ready")
        about = {"tenants": bool(self._acceptor.tenants), "tls": self._certificates is not None}
        _log.info(
            "ready", extra=fields(grpc=addresses.grpc, http=addresses.http, page=addresses.page, **about)
        )
        if self._settings.host not in _LOOPBACK and not self._acceptor.tenants:
            _log.warning(
                "whoever reaches the ports may send, read and erase: host is not loopback and there are no tokens "
                "(serve: tokens)"
            )

    def _gauges(self) -> None:
        assembly = self.pipeline.assembly
        self.metrics.gauge("redfirst_traces_open", lambda: len(assembly))
        self.metrics.gauge("redfirst_scoring_runs", lambda: assembly.away)
        self.metrics.gauge("redfirst_lag_seconds", self.pipeline.lag)
        self.metrics.gauge("redfirst_journal_bytes", lambda: self.journal.bytes)
        self.metrics.gauge("redfirst_journal_room_bytes", lambda: self.journal.room)
        self.metrics.gauge("redfirst_journal_pinned_segments", lambda: self._retention.pinned)
        self.metrics.gauge("redfirst_journal_damaged_total", lambda: self.journal.damaged)
        budget = self._acceptor.budget
        self.metrics.gauge("redfirst_receive_budget_bytes", lambda: budget.limit)
        self.metrics.gauge("redfirst_receiving_bytes", lambda: budget.used)
        self.metrics.gauge("redfirst_ready", lambda: self.unready() is None)


def _certificates(settings: ServeSettings, metrics: Metrics) -> Certificates | None:
    if settings.tls is None:
        return None

    def changed(problem: str | None) -> None:
        metrics.add("redfirst_certificate_reloads_total", result="refused" if problem else "taken")
        if problem is None:
            _log.info("the certificate was read again")
        else:
            _log.warning("the certificate that was in force stays", extra=fields(because=problem))

    return Certificates(settings.tls.certificate, settings.tls.key, settings.tls.client_ca, changed=changed)


class _Server(uvicorn.Server):
    """Leaves signals to the service, which stops its parts in order."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(app: Any, refused: Callable[[Refusal], None]) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=bounded_headers(refused),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=120,
        timeout_graceful_shutdown=int(_GRACE),
    )


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
