"""What both receivers do with a request: check it, make it durable, and only then say that it was accepted."""

from __future__ import annotations

import asyncio
import functools
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar

from redfirst.collector_processor.journal.format import Record, Signal
from redfirst.collector_processor.journal.writing import Journal, JournalUnavailable
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.receiving.budget import Budget, Places
from redfirst.collector_processor.receiving.json_request import NeedsPatience
from redfirst.collector_processor.receiving.refusals import (
    LONGEST_MESSAGE,
    Refusal,
    Refused,
    too_large,
)
from redfirst.collector_processor.receiving.request import Checked, check
from redfirst.collector_processor.receiving.tenants import Tenants
from redfirst.collector_processor.settings import DEFAULT_TENANT
from redfirst.evaluators.errors import UnreadableInput

_BIG = 128 << 10
"""Bodies beyond this are read off the event loop, one at a time: what reading takes is bounded too."""
_LEAST_BUDGET = 256 << 20

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The answer to a request that was accepted, wholly or in part."""

    rejected: int = 0
    message: str = ""


class Acceptor:
    """Checks requests and journals them. Used from one event loop."""

    def __init__(
        self,
        journal: Callable[[], Journal],
        metrics: Metrics,
        *,
        max_body_bytes: int,
        budget_bytes: int | None = None,
        tenants: Tenants | None = None,
        keep_traceless: bool = True,
    ) -> None:
        """``budget_bytes`` is for all requests in flight, by default 256 MiB or four of the largest."""
        self.max_body_bytes = max_body_bytes
        self.metrics = metrics
        self.stopping = False
        self.tenants = tenants or Tenants()
        self.budget = Budget(budget_bytes or max(_LEAST_BUDGET, 4 * max_body_bytes))
        self.places = Places(max(4, self.budget.limit // max_body_bytes))
        self.refusals: Counter[str] = Counter()
        """Refusals by reason since somebody last took them out."""
        self._journal = journal
        self._keep_traceless = keep_traceless
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="reading")
        self._slow = ThreadPoolExecutor(1, thread_name_prefix="slow reading")

    def share(self) -> AbstractContextManager[Callable[[int], None]]:
        """A share of the budget, for one request."""
        return self.budget.share()

    async def accept(
        self, body: bytes, signal: Signal, *, is_json: bool, protocol: str, tenant: str = DEFAULT_TENANT
    ) -> Accepted:
        """Answer once the request is durable.

        Raises:
            Refused: nothing of it was accepted.
        """
        if self.stopping:
            raise Refused(Refusal.STOPPING, "The service is stopping; try again soon.")
        self.metrics.add("redfirst_received_bytes_total", len(body), protocol=protocol)
        arrival_ns = time.time_ns()
        reading = functools.partial(
            check,
            body,
            signal,
            is_json=is_json,
            keep_traceless=self._keep_traceless,
            now_ns=arrival_ns,
        )
        try:
            checked = await self._read(len(body), reading, slow=is_json)
        except UnreadableInput as problem:
            raise Refused(Refusal.UNDECODABLE, str(problem)) from problem
        self.refuse_larger(len(checked.body))
        if checked.accepted:
            await self._keep(checked, arrival_ns, tenant)
        self._count(checked, protocol)
        return Accepted(rejected=sum(checked.rejected.values()), message=checked.message[:LONGEST_MESSAGE])

    async def _read(self, size: int, reading: Callable[..., Checked], *, slow: bool) -> Checked:
        """Read a body; one that is damaged is mended where it keeps no good one waiting, however small it is."""
        try:
            return await self.aside(size, functools.partial(reading, patient=False), slow=slow)
        except NeedsPatience:
            return await asyncio.get_running_loop().run_in_executor(self._slow, reading)

    async def aside(self, size: int, reading: Callable[[], Result], *, slow: bool = False) -> Result:
        """Read a body of that many bytes: off the event loop, when it is large; beside the others, when that is ``slow``."""
        if size <= _BIG:
            return reading()
        lane = self._slow if slow else self._reading
        return await asyncio.get_running_loop().run_in_executor(lane, reading)

    def refuse_larger(self, size: int) -> None:
        """Refuse a request of more bytes than one may have.

        Raises:
            Refused: it has.
        """
        if size > self.max_body_bytes:
            raise too_large(self.max_body_bytes)

    def refused(self, refusal: Refusal, protocol: str) -> None:
        """Count a refusal."""
        self.refusals[refusal.reason] += 1
        self.metrics.add("redfirst_rejected_total", reason=refusal.reason)
        self.metrics.add("redfirst_requests_total", protocol=protocol, result="refused")

    def close(self) -> None:
        """End its thread; nothing is accepted afterwards."""
        self.stopping = True
        self._reading.shutdown()
        self._slow.shutdown()

    async def _keep(self, checked: Checked, arrival_ns: int, tenant: str) -> None:
        record = Record(signal=checked.signal, tenant=tenant, arrival_ns=arrival_ns, body=checked.body)
        try:
            await asyncio.wrap_future(self._journal().append(record, checked.heads))
        except JournalUnavailable as problem:
            raise Refused(_PUSH_BACK[problem.reason], f"{problem}; try again soon.") from problem

    def _count(self, checked: Checked, protocol: str) -> None:
        name = "spans" if checked.signal == "traces" else "logs"
        self.metrics.add(f"redfirst_{name}_accepted_total", checked.accepted)
        self.metrics.add("redfirst_requests_total", protocol=protocol, result="accepted")
        for reason, count in checked.rejected.items():
            self.metrics.add("redfirst_rejected_total", count, reason=reason)
        for what, count in checked.odd.items():
            self.metrics.add("redfirst_odd_records_total", count, what=what)


_PUSH_BACK: Mapping[str, Refusal] = {
    "disk": Refusal.DISK,
    "full": Refusal.FULL,
    "busy": Refusal.BUSY,
    "stopping": Refusal.STOPPING,
}
