"""Telling: one thread for each receiver, so that a slow one delays nobody.

Webhooks and people get each change once, in order, and again until they took it. Alertmanagers are sent what fires
every so often, and at once when something changed. What is to be told stands in the alert file before anybody is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from redfirst.collector_processor.alerting import alertmanager, webhook
from redfirst.collector_processor.alerting.alertmanager import Alertmanager
from redfirst.collector_processor.alerting.file import AlertFile, Notice
from redfirst.collector_processor.alerting.notify import Person, tell
from redfirst.collector_processor.alerting.receivers import Receivers
from redfirst.collector_processor.alerting.webhook import Posted, Webhook
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.posting.answers import LONGEST_ASKED, LONGEST_WAIT, wait_before

_LONGEST_NS = int(max(LONGEST_ASKED, LONGEST_WAIT) * 1e9)
_PAUSE = 1.0
"""Seconds after the alert file could not be written."""


class Send(Protocol):
    """Tells one receiver one message, once."""

    def __call__(self, to: Webhook | Person, notice: Notice, *, now: float) -> Posted: ...


def send(to: Webhook | Person, notice: Notice, *, now: float) -> Posted:
    """Tell one receiver one message."""
    if isinstance(to, Person):
        return tell(to, notice.body)
    return webhook.post(to, notice.body, event=notice.id, now=now)


class Delivery:
    """The threads that tell."""

    def __init__(
        self,
        receivers: Receivers,
        file: AlertFile,
        metrics: Metrics,
        *,
        say: Callable[[str], None],
        give_up: float,
        send: Send = send,
        wait: Callable[[int, float | None], float] = wait_before,
    ) -> None:
        """``wait`` gives the seconds before another try, from its number and what the receiver asked for; after
        ``give_up`` seconds a message is given up."""
        self._file = file
        self._metrics = metrics
        self._say = say
        self._give_up = give_up
        self._send = send
        self._wait = wait
        self._stop = threading.Event()
        self._queued = threading.Condition()
        self._changes = 0
        metrics.gauge("redfirst_alert_notices_waiting", file.waiting)
        self.threads = [
            threading.Thread(target=self._deliver, args=(one,), name=f"receiver {one.name}", daemon=True)
            for one in receivers.told
        ] + [
            threading.Thread(target=self._remind, args=(one,), name=f"alertmanager {one.name}", daemon=True)
            for one in receivers.alertmanagers
        ]

    def start(self) -> None:
        """Begin to tell."""
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Ask the threads to end."""
        self._stop.set()
        self.news()

    def news(self) -> None:
        """There is something to tell."""
        with self._queued:
            self._changes += 1
            self._queued.notify_all()

    def _deliver(self, to: Webhook | Person) -> None:
        while not self._stop.is_set():
            now_ns = time.time_ns()
            notice = self._file.first(to.name)
            # a message that is due later than anything is put off was put off before the clock went back
            if notice is None or now_ns < notice.next_ns <= now_ns + _LONGEST_NS:
                self._await_other(to.name, notice, now_ns)
                continue
            posted = self._send(to, notice, now=now_ns / 1e9)
            try:
                self._after(to.name, notice, posted)
            except OSError:
                # it may be told again, with the same id
                self._metrics.add("redfirst_alert_failures_total", reason="state_unwritable")
                self._stop.wait(_PAUSE)

    def _await_other(self, name: str, first: Notice | None, now_ns: int) -> None:
        """Wait until another message is first, until this one is due, or until told to stop."""
        left = None if first is None else (first.next_ns - now_ns) / 1e9
        with self._queued:
            self._queued.wait_for(lambda: self._stop.is_set() or self._file.first(name) != first, left)

    def _after(self, name: str, notice: Notice, posted: Posted) -> None:
        now_ns = time.time_ns()
        too_old = (now_ns - notice.created_ns) / 1e9 > self._give_up
        outcome = "delivered" if posted.delivered else "again" if posted.again and not too_old else "given_up"
        self._metrics.add("redfirst_alert_posts_total", receiver=name, outcome=outcome, reason=posted.reason)
        if outcome == "delivered":
            self._file.done(notice)
        elif outcome == "again":
            seconds = self._wait(notice.attempts + 1, posted.after)
            self._file.later(notice, now_ns + int(seconds * 1e9), posted.reason)
        else:
            self._say(f"alert {notice.id} was not delivered to {name}: {posted.reason}")
            self._file.give_up(notice, posted.reason)

    def _remind(self, to: Alertmanager) -> None:
        attempts = 0
        while not self._stop.is_set():
            changes, now = self._changes, time.time()
            firing, over = self._file.standing(int((now - to.resolved_seconds) * 1e9))
            pause = to.resend_seconds
            if firing or over:
                ended = [(one.body, one.at_ns / 1e9) for one in over]
                posted = alertmanager.post(to, firing, ended, now=now)
                attempts = 0 if posted.delivered else attempts + 1
                outcome = "delivered" if posted.delivered else "again"
                self._metrics.add(
                    "redfirst_alert_posts_total", receiver=to.name, outcome=outcome, reason=posted.reason
                )
                if attempts:
                    pause = min(pause, self._wait(attempts, posted.after))
            # a change that comes while an Alertmanager is down is no reason to hurry
            self._await_change(changes if attempts == 0 else None, pause)

    def _await_change(self, seen: int | None, pause: float) -> None:
        """Wait so many seconds, until there was a change after this one, or until told to stop."""
        with self._queued:
            self._queued.wait_for(
                lambda: self._stop.is_set() or (seen is not None and self._changes != seen), pause
            )
