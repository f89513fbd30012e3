"""Alerts at work: takes newly judged runs from the store's outbox, keeps the state, and posts what changed.

What is to be posted is kept together with the state that it follows from, and only then is the outbox told: after any
stop the same change is found with the same id, and is queued once.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from redfirst.collector_processor.alerting.delivery import Delivery, Send, send
from redfirst.collector_processor.alerting.detector import Change, Detector
from redfirst.collector_processor.alerting.file import FILE, AlertFile, Notice
from redfirst.collector_processor.alerting.message import Json, message
from redfirst.collector_processor.alerting.policy import Policy, Standing
from redfirst.collector_processor.alerting.receivers import Receivers
from redfirst.collector_processor.alerting.runs import Observed, observed
from redfirst.collector_processor.alerting.silences import Hushed
from redfirst.collector_processor.companions import Parts
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.posting.answers import wait_before
from redfirst.collector_processor.settings import AlertSettings
from redfirst.collector_processor.storing.store import Query, RunState, Store, StoredRun, StoreReader
from redfirst.collector_processor.terminal import clean
from redfirst.replay.covering import Covers

OUTBOX = "alerts"
"""The outbox destination that this reads; ``Pipeline`` must be told of it."""
_STATES = (RunState.SCORED, RunState.UNSCORED)
_BATCH = 20_000
"""Runs that are taken before streams are judged: of fewer, streams that are behind would be judged again and again."""
_PAGE = 500
_SHARE = 20
"""Judging streams may take this fraction of a core: the more runs there are, the rarer it is done."""


class Alerts:
    """Alerts, as a ``Companion`` of the service."""

    destinations: tuple[str, ...] = (OUTBOX,)

    def __init__(
        self,
        policy: Policy,
        receivers: Receivers,
        home: Path,
        *,
        settings: AlertSettings,
        trace_url: str | None = None,
        covers: Callable[[], Covers] = Covers,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """``covers`` says which scenarios there are that keep a failure already."""
        self._policy = policy
        self._receivers = receivers
        self._settings = settings
        self._trace_url = trace_url
        self._known = covers
        self._home = home
        self._say = say
        self._watch: Watch | None = None

    def start(self, parts: Parts) -> None:
        """Read what was kept and begin to watch."""
        file = AlertFile(self._home / FILE)
        self._watch = Watch(
            self._policy,
            self._receivers,
            parts.store,
            parts.reader,
            file,
            parts.metrics,
            say=self._say,
            settings=self._settings,
            trace_url=self._trace_url,
            covers=self._known,
        )
        self._watch.start()

    def stop(self, timeout: float) -> None:
        """End; a post that is still under way when the time is over is posted again after the next start."""
        if self._watch is not None:
            self._watch.stop(timeout)

    def trouble(self) -> str | None:
        """Why alerts cannot be trusted now; a receiver that is down is no trouble of ours."""
        return None if self._watch is None else self._watch.trouble or self._watch.ended()


class Watch:
    """One thread that watches, and those of the delivery."""

    def __init__(
        self,
        policy: Policy,
        receivers: Receivers,
        store: Store,
        reader: StoreReader,
        file: AlertFile,
        metrics: Metrics,
        *,
        say: Callable[[str], None] = lambda _: None,
        settings: AlertSettings,
        trace_url: str | None = None,
        covers: Callable[[], Covers] = Covers,
        send: Send = send,
        wait: Callable[[int, float | None], float] = wait_before,
    ) -> None:
        self._policy = policy
        self._receivers = receivers
        self._trace_url = trace_url
        self._known = covers
        self._store = store
        self._reader = reader
        self._file = file
        self._metrics = metrics
        self._say = say
        self._tick = settings.tick_seconds
        self.trouble: str | None = None
        """Why nothing can be found or kept at the moment."""
        self._stop = threading.Event()
        self._hushed = Hushed(file.folder, trouble=self._silences_unreadable)
        self.detector = Detector(policy, bases=file.bases, told=file.told, silenced=self._hushed.covers)
        if file.unreadable is not None:
            metrics.add("redfirst_alert_failures_total", reason="state_unreadable")
            say(f"alerts: the state could not be read and was put aside as {file.unreadable.name}")
        metrics.gauge("redfirst_alerts_firing", lambda: self._standing(Standing.FIRING))
        metrics.gauge("redfirst_alerts_no_data", lambda: self._standing(Standing.NO_DATA))
        self._delivery = Delivery(
            receivers, file, metrics, say=say, give_up=settings.give_up_seconds, send=send, wait=wait
        )
        self._watching = threading.Thread(target=self._watch, name="alerts", daemon=True)
        self._threads = (self._watching, *self._delivery.threads)

    def start(self) -> None:
        """Begin to watch and to tell."""
        self._watching.start()
        self._delivery.start()

    def stop(self, timeout: float) -> bool:
        """End; False when a post is still under way."""
        self._stop.set()
        self._delivery.stop()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def ended(self) -> str | None:
        """A thread that has ended by itself."""
        names = [thread.name for thread in self._threads if not thread.is_alive()]
        return f"{', '.join(names)} has ended" if names and not self._stop.is_set() else None

    def recall(self, now_ns: int) -> None:
        """Take in again the stored runs that still matter."""
        horizon = self.detector.horizon(now_ns)
        before: int | None = None
        seen: set[str] = set()
        while True:
            page = self._reader.runs(Query(states=_STATES, before_ns=before, limit=_PAGE, records=True))
            for run in page:
                if run.run_id not in seen and run.judged_ns > horizon:
                    seen.add(run.run_id)
                    self._take([run] if run.version == 1 else self._reader.versions(run.run_id))
            if len(page) < _PAGE or page[-1].judged_ns <= horizon or page[-1].judged_ns + 1 == before:
                return
            before = page[-1].judged_ns + 1

    def step(self, now_ns: int) -> bool:
        """Take what was judged, find what changed, keep it; True when there is more to take."""
        rows = self._store.outbox_due(OUTBOX, now_ns, _BATCH)
        for run_id in dict.fromkeys(row.run_id for row in rows):
            self._take(self._reader.versions(run_id))
        before = dict(self.detector.bases)
        self._hushed.look()
        changes = self.detector.tick(now_ns)
        if changes or self.detector.bases != before:
            self._keep(changes, now_ns)
        self._store.outbox_done([row.seq for row in rows])
        return len(rows) == _BATCH

    def _take(self, versions: Sequence[StoredRun]) -> None:
        if versions:  # a run that was erased meanwhile has none
            self.detector.take(observed(versions))

    def _keep(self, changes: Sequence[Change], now_ns: int) -> None:
        notices, bodies = [], []
        known = self._covers() if changes else Covers()
        for change in changes:
            self._metrics.add("redfirst_alert_changes_total", status=change.status.value)
            body: Mapping[str, Json] = message(
                change, self._policy, there=self._there, covers=known, trace_url=self._trace_url
            )
            bodies.append(body)
            self._say(clean(f"alert {change.status.value}: {body['text']}"))
            notices += [
                Notice(id=change.id, receiver=one.name, body=body, created_ns=now_ns)
                for one in self._receivers.told
            ]
        self._file.keep(self.detector.bases, self.detector.told, notices, bodies=bodies, now_ns=now_ns)
        self._delivery.news()

    def _covers(self) -> Covers:
        """The scenarios as they are now: one that cannot be read covers nothing, and is said."""
        known = self._known()
        for problem in known.unreadable:
            self._metrics.add("redfirst_alert_failures_total", reason="scenario_unreadable")
            self._say(clean(f"alerts: {problem}"))
        if known.untold:
            self._say(clean(f"alerts: {known.said_untold}"))
        return known

    def _there(self, run: Observed) -> bool:
        return bool(self._reader.versions(run.run_id))

    def _watch(self) -> None:
        recalled = False
        while not self._stop.is_set():
            began = time.thread_time()  # waiting for a store that others lock is no judging
            more = False
            try:
                if not recalled:
                    self.recall(time.time_ns())
                    recalled = True
                more = self.step(time.time_ns())
                self.trouble = None
            except sqlite3.Error as problem:
                self._fault("store", f"alerts cannot read the store: {problem}")
            except OSError as problem:
                self._fault("state_unwritable", f"alerts cannot keep their state: {problem.strerror}")
            took = time.thread_time() - began
            self._stop.wait(0 if more else max(self._tick, took * _SHARE))

    def _fault(self, reason: str, what: str) -> None:
        """What was not kept is found again at the next tick."""
        self._metrics.add("redfirst_alert_failures_total", reason=reason)
        self.trouble = what
        self.detector.told = dict(self._file.told)

    def _silences_unreadable(self, what: str) -> None:
        self._metrics.add("redfirst_alert_failures_total", reason="silences_unreadable")
        self._say(f"alerts: {what}")

    def _standing(self, standing: Standing) -> int:
        return sum(mark.standing is standing for mark in list(self.detector.now.values()))
