"""``redfirst serve`` at half of the load that it sustains: ``python benchmarks/soak.py`` (``make soak``).

Measures first what this machine sustains of the mixture of runs in ``soak_load.py``, from the first request to the last
verdict. A new service is then filled with as many small runs as it remembers, so that what memory grows by afterwards is no
filling up of what is bounded, and is sent the mixture at half of that rate. Twice a second or so it is asked for its memory,
open runs, lag and series.

What a service keeps for days it keeps here for a sixth of the time, by its own settings, so that it goes again within the
first third: spans, verdicts, and the runs that alerts look back on (by default a week of them, each of which takes memory;
``docs/alerts.md``). At the end it is told:

- whether every acknowledged span is in the store, in the right run, and the right runs are flagged;
- whether each name of ``/metrics`` stayed within its cap of series, although a quarter of the runs bring new labels;
- the slope of resident memory of the whole process tree after the first third, by least squares over blocks, with a 95 %
  interval. Its limit is {limit:g} MiB an hour, 2 GiB a week. It passes when the whole interval is below the limit, fails
  when the whole interval is above it, and is not told when the limit lies inside, or when the time was too short.

Exit code 0: all of it holds; 1: something does not; 3: only the slope could not be told. Linux only.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ingest import throughput
from ingest_runs import RUNS_A_REQUEST, SPANS
from ingest_service import Client, Refused, Served, Stored, quantile, served
from soak_load import Mixture, body, small_runs
from soak_slope import Slope, slope

from redfirst.collector_processor.metrics import MOST_SERIES
from redfirst.collector_processor.scoring.assembly import AssemblyLimits

LIMIT = 12.0
"""MiB an hour."""
SETTLE = 2.0
LATE_AFTER = 3 * SETTLE
MIB = 2**20
__doc__ = (__doc__ or "").format(limit=LIMIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The service at one time."""

    at: float
    service_mib: float
    scorers_mib: float
    open_runs: float
    lag: float
    series: int
    """All of them."""
    most_series: int
    """Of one name."""
    journal_mib: float
    store_mib: float


@dataclass
class Sent:
    """What was acknowledged."""

    spans: Counter[str] = field(default_factory=Counter)
    """By run."""
    to_flag: set[str] = field(default_factory=set)
    acks: list[float] = field(default_factory=list)
    refused: int = 0


class Sender:
    """Sends the mixture at a steady rate, on one connection; what is refused is sent again, as exporters do."""

    def __init__(self, service: Served, sent: Sent) -> None:
        self._client = Client(service.http)
        self._sent = sent

    def steady(self, seconds: float, rate: float) -> float:
        """For so long, so many spans a second; how many seconds it was behind at the worst."""
        mixture = Mixture(seed=7)
        late: list[tuple[float, str, bytes]] = []
        begun = time.monotonic()
        behind = 0.0
        for number in itertools.count():
            due = begun + number * RUNS_A_REQUEST * SPANS / rate
            if due - begun > seconds:
                break
            while late and late[0][0] <= time.monotonic():
                _, name, span = heapq.heappop(late)
                self.post(body([span]), {name: 1})
            time.sleep(max(0.0, due - time.monotonic()))
            behind = max(behind, time.monotonic() - due)
            runs = [mixture.run() for _ in range(RUNS_A_REQUEST)]
            self._sent.to_flag.update(run.trace_id for run in runs if run.flagged)
            self.post(
                body([span for run in runs for span in run.spans]),
                {run.trace_id: len(run.spans) for run in runs},
            )
            for run in runs:
                for span in run.late:
                    heapq.heappush(late, (time.monotonic() + LATE_AFTER, run.trace_id, span))
        for _, name, span in sorted(late):
            time.sleep(0.01)
            self.post(body([span]), {name: 1})
        return behind

    def close(self) -> None:
        """End its connection."""
        self._client.close()

    def post(self, request: bytes, spans: Mapping[str, int]) -> None:
        """Until it is acknowledged."""
        while True:
            try:
                self._sent.acks.append(self._client.post(request))
            except Refused:
                self._sent.refused += 1
                time.sleep(1)
            else:
                self._sent.spans.update(spans)
                return


class Watch(threading.Thread):
    """Samples a service, and reads what it stores before that can expire."""

    def __init__(self, service: Served, every: float) -> None:
        super().__init__(name="watch")
        self.samples: list[Sample] = []
        self.flagged: set[str] = set()
        self.states: Counter[str] = Counter()
        self._service = service
        self._every = every
        self._over = threading.Event()
        self._stored = Stored(service)
        self.stored = self._stored.spans

    def run(self) -> None:
        begun = time.monotonic()
        while not self._over.wait(max(0.0, self._every - (time.monotonic() - begun) % self._every)):
            self.look()
            self.samples.append(self._sample())

    def look(self) -> None:
        """Read what was stored since the last look. Only one thread may."""
        for row in self._stored.look():
            self.states[row.state] += 1
            (self.flagged.add if row.flagged else self.flagged.discard)(row.run_id)

    def over(self) -> None:
        """Stop sampling; afterwards ``look`` is the caller's."""
        self._over.set()
        self.join()

    def close(self) -> None:
        """Let go of the store."""
        self._stored.close()

    def _sample(self) -> Sample:
        service, scorers = self._service.rss()
        series = self._service.series()
        home = self._service.home
        return Sample(
            at=time.monotonic(),
            service_mib=service / MIB,
            scorers_mib=scorers / MIB,
            open_runs=series["redfirst_traces_open"],
            lag=series["redfirst_lag_seconds"],
            series=len(series),
            most_series=max(by_name(series).values()),
            journal_mib=series["redfirst_journal_bytes"] / MIB,
            store_mib=sum(size(file) for file in home.glob("store.sqlite3*")) / MIB,
        )


def by_name(series: Mapping[str, float]) -> Counter[str]:
    """How many series each name has; the buckets of a histogram are one."""
    return Counter(
        name.partition("{")[0] for name in series if not name.partition("{")[0].endswith("_bucket")
    )


def size(file: Path) -> int:
    """Bytes of a file; 0 when it has just gone."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def sustained(folder: Path, spans: int) -> float:
    """Spans a second of the mixture, until all of them are judged."""
    mixture = Mixture(seed=1)
    count = spans // (SPANS * RUNS_A_REQUEST)
    bodies = [
        body([span for _ in range(RUNS_A_REQUEST) for span in mixture.run(late=False).spans])
        for _ in range(count)
    ]
    return throughput(folder, bodies, count * RUNS_A_REQUEST * SPANS)["spans_per_second_to_verdict"]


def filled(service: Served, sent: Sent, watch: Watch, count: int) -> None:
    """Have so many small runs judged, no faster than they are."""
    with closing(Sender(service, sent)) as sender:
        for at in range(0, count, 500):
            names, request = small_runs(min(500, count - at))
            sender.post(request, dict.fromkeys(names, 1))
            while len(sent.spans) - len(watch.stored) > 5_000:
                time.sleep(0.1)


def drained(sent: Sent, watch: Watch, *, seconds: float) -> None:
    """Wait until as much is stored as was acknowledged, or the time is over."""
    deadline = time.monotonic() + seconds
    while watch.stored != sent.spans and time.monotonic() < deadline:
        watch.look()
        time.sleep(0.2)


def main() -> int:
    """Soak, and tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1800, help="of steady load")
    parser.add_argument("--rate", type=float, help="spans a second; by default half of what is sustained")
    parser.add_argument("--spans", type=int, default=40_000, help="to find what is sustained")
    parser.add_argument("--fill", type=int, help="small runs before; by default what a service remembers")
    parser.add_argument("--samples", type=Path, help="where every sample is kept, as JSON lines")
    options = parser.parse_args()
    long = options.seconds >= 900
    fill = options.fill if options.fill is not None else AssemblyLimits().remembered if long else 0
    with tempfile.TemporaryDirectory(prefix="redfirst-soak-") as folder:
        most = None if options.rate else sustained(Path(folder), options.spans)
        rate = options.rate or (most or 0) / 2
        said = "as told" if most is None else f"half of {most:,.0f}, which it sustains"
        print(f"{rate:,.0f} spans/s ({said}) for {options.seconds:g} s", flush=True)
        return soaked(Path(folder) / "soak", options.seconds, rate, fill, options.samples)


def kept_for(seconds: float) -> dict[str, object]:
    """The settings with which everything that is kept goes again after so long."""
    alerts = {"window_seconds": seconds / 4, "revision_seconds": seconds / 2, "false_alarms_a_week": None}
    days = seconds / 86_400
    return {"keep_days": days, "retain_days": days, "alerts": json.dumps(alerts)}


def soaked(home: Path, seconds: float, rate: float, fill: int, kept: Path | None) -> int:
    """The soak itself; its exit code."""
    sent = Sent()
    settings = {"settle_seconds": SETTLE, **kept_for(seconds / 6)}
    with served(home, **settings) as service:
        watch = Watch(service, every=max(0.5, seconds / 3600))
        watch.start()
        try:
            filled(service, sent, watch, fill)
            begun = time.monotonic()
            sent.acks.clear()
            with closing(Sender(service, sent)) as sender:
                behind = sender.steady(seconds, rate)
            ended = time.monotonic()
        finally:
            watch.over()
        drained(sent, watch, seconds=120)
        last = service.series()
        watch.close()
    if kept is not None:
        kept.write_text("".join(json.dumps(asdict(one)) + "\n" for one in watch.samples), encoding="utf-8")
    steady = [one for one in watch.samples if begun <= one.at <= ended]
    after = [one for one in steady if one.at - begun >= seconds / 3]
    block = max(seconds / 30, 1.0)
    slopes = {
        name: slope([one.at / 3600 for one in after], values, block=block / 3600)
        for name, values in {
            "whole tree": [one.service_mib + one.scorers_mib for one in after],
            "service": [one.service_mib for one in after],
            "scorers": [one.scorers_mib for one in after],
        }.items()
    }
    shown = {
        "requests acknowledged": len(sent.acks),
        "ack p50, ms": quantile(sent.acks, 50) * 1e3,
        "ack p99, ms": quantile(sent.acks, 99) * 1e3,
        "requests refused and sent again": sent.refused,
        "seconds behind, at most": behind,
        "runs": len(sent.spans),
        "open runs, at most": max(one.open_runs for one in steady),
        "lag p50, s": quantile([one.lag for one in steady], 50),
        "lag, s, at most": max(one.lag for one in steady),
        "RSS at first, MiB": steady[0].service_mib + steady[0].scorers_mib,
        "RSS after a third, MiB": after[0].service_mib + after[0].scorers_mib,
        "RSS at last, MiB": after[-1].service_mib + after[-1].scorers_mib,
        "journal, MiB, at most": max(one.journal_mib for one in steady),
        "journal at last, MiB": after[-1].journal_mib,
        "store, MiB, at most": max(one.store_mib for one in steady),
        "store at last, MiB": after[-1].store_mib,
        "verdicts expired": last.get("redfirst_expired_runs_total", 0.0),
        "series at last": steady[-1].series,
    }
    for name, value in shown.items():
        print(f"{name:36}{value:>14,.2f}")
    for name, one in slopes.items():
        print(f"{f'RSS slope of {name}, MiB/h':36}{_interval(one):>30}")
    told = verdicts(sent, watch, steady, slopes["whole tree"], long=seconds >= 900)
    for what, holds, why in told:
        print(f"{'NOT TOLD' if holds is None else 'holds' if holds else 'FAILED':10}{what}: {why}")
    figures = {"seconds": seconds, "rate": rate, "filled": fill, **shown}
    figures |= {f"slope of {name}": None if one is None else asdict(one) for name, one in slopes.items()}
    print(json.dumps({**figures, "holds": {what: holds for what, holds, _ in told}}))
    outcomes = {holds for _, holds, _ in told}
    return 1 if False in outcomes else 3 if None in outcomes else 0


def verdicts(
    sent: Sent, watch: Watch, samples: list[Sample], rise: Slope | None, *, long: bool
) -> list[tuple[str, bool | None, str]]:
    """What is claimed, whether it holds, and why."""
    acknowledged, stored = sum(sent.spans.values()), sum(watch.stored.values())
    other = [
        name for name in sent.spans.keys() | watch.stored.keys() if sent.spans[name] != watch.stored.get(name)
    ]
    wrong = sent.to_flag ^ watch.flagged
    states = ", ".join(f"{count:,} {state}" for state, count in watch.states.most_common())
    most = max(one.most_series for one in samples)
    grows: bool | None = None
    if rise is not None and long:
        grows = True if rise.high < LIMIT else False if rise.low > LIMIT else None
    limit = f"{_interval(rise)} MiB/h, limit {LIMIT:g}"
    return [
        (
            "acknowledged = stored",
            not other,
            f"{acknowledged:,} spans, {stored:,} stored, {len(other)} runs differ",
        ),
        ("each run judged right", not wrong, f"{len(sent.to_flag):,} to flag, {len(wrong)} wrong ({states})"),
        (
            "series capped",
            most <= MOST_SERIES + 1,
            f"{most:,} of one name, cap {MOST_SERIES:,} and one of the rest",
        ),
        ("memory", grows, limit if long else f"{limit}; less than 15 minutes tell nothing"),
    ]


def _interval(found: Slope | None) -> str:
    return "none" if found is None else f"{found.estimate:+.1f} ({found.low:+.1f} to {found.high:+.1f})"


if __name__ == "__main__":
    sys.exit(main())
