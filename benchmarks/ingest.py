"""What the online loop costs: ``python benchmarks/ingest.py``.

Starts ``redfirst serve`` on temporary homes and measures, with runs of 20 spans of about 2.2 kB:

- loop: spans per CPU second of the whole process tree with everything on (durable, assembled, judged, stored)
- memory: resident memory with 1,000, 10,000 and 100,000 runs open
- latency: acknowledgement and root to stored verdict (p50, p99) at steady rates, with one and with two scorers
- limits (``ingest_limits.py``): a request of 63 MiB, a sender beside 500 stalled ones, a hundred streams of one connection
- peers (``ingest_peers.py``): the loop beside Phoenix and MLflow's server on the same bodies, where they are installed
- rotel (``ingest_limits.py``): the accept path beside rotel's

``--only PART`` measures one of them. Prints tables, the goals beside what was reached, and all of it as JSON on the last
line. CPU is read from ``/proc``: Linux only.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ingest_goals import print_goals
from ingest_limits import beside_rotel, large_body, stalled_senders, streams
from ingest_peers import beside_peers
from ingest_runs import RUNS_A_REQUEST, SPANS, request, templates
from ingest_service import Client, Served, Stored, quantile, served

SETTLE = 0.5
DRAIN = 300.0
"""Seconds after the load in which every run must have its verdict."""
WARM = 8
"""Requests before a steady load."""
Figures = dict[str, float]


def latency(folder: Path, seconds: float, rate: int, scorers: int) -> Figures:
    """Acknowledgement and verdict at a steady rate of spans a second, as far as this machine sustains it."""
    parts = templates()
    request_count = int(seconds * rate / (SPANS * RUNS_A_REQUEST))
    bodies = [request(parts, RUNS_A_REQUEST) for _ in range(request_count)]
    sent: dict[str, float] = {}
    seen: dict[str, float] = {}
    over = threading.Event()
    with served(folder / f"latency-{rate}-{scorers}", settle_seconds=SETTLE, scorers=scorers) as service:
        client = Client(service.http)
        watcher = threading.Thread(target=_watch, args=(service, seen, over))
        watcher.start()
        for _ in range(WARM):  # enough that every scorer has begun
            client.post(request(parts, RUNS_A_REQUEST)[1])
        while len(seen) < WARM * RUNS_A_REQUEST:
            time.sleep(0.05)
        begun = time.perf_counter()

        def one(number: int) -> float:
            due = begun + number * SPANS * RUNS_A_REQUEST / rate
            time.sleep(max(0.0, due - time.perf_counter()))
            names, body = bodies[number]
            sent.update(dict.fromkeys(names, time.time()))
            return client.post(body)

        with ThreadPoolExecutor(16) as pool:
            acks = list(pool.map(one, range(request_count)))
        sending = time.perf_counter() - begun
        judged = len(seen.keys() & sent.keys())
        deadline = time.monotonic() + DRAIN
        while not sent.keys() <= seen.keys() and time.monotonic() < deadline:
            time.sleep(0.05)
        drained = time.perf_counter() - begun - sending
        over.set()
        watcher.join()
    verdicts = [seen[name] - at for name, at in sent.items() if name in seen]
    if len(verdicts) < len(sent):
        raise TimeoutError(f"{len(sent) - len(verdicts)} runs got no verdict within {DRAIN:g} s of the load")
    return {
        "offered": rate,
        "scorers": scorers,
        "seconds": seconds,
        "sent_per_second": len(sent) * SPANS / sending,
        "judged_per_second": judged * SPANS / max(sending - SETTLE, 0.1),
        "backlog_runs": len(sent) - judged,
        "drained_seconds": drained,
        "settle_ms": SETTLE * 1000,
        "ack_p50_ms": quantile(acks, 50) * 1000,
        "ack_p99_ms": quantile(acks, 99) * 1000,
        "verdict_p50_ms": quantile(verdicts, 50) * 1000,
        "verdict_p99_ms": quantile(verdicts, 99) * 1000,
    }


def _watch(service: Served, seen: dict[str, float], over: threading.Event) -> None:
    """When each verdict can be read by another process, to within the pause."""
    stored = Stored(service)
    while not over.is_set():
        now = time.time()
        for row in stored.look():
            seen.setdefault(row.run_id, now)
        time.sleep(0.01)
    stored.close()


def throughput(folder: Path, bodies: Sequence[bytes], spans: int, **settings: object) -> Figures:
    """Spans per CPU second, from the first request to the last verdict. Every body holds ``RUNS_A_REQUEST`` runs, all of
    them together so many spans."""
    first, *rest = bodies
    with served(folder / "throughput", settle_seconds=SETTLE, **settings) as service:
        client, stored = Client(service.http), Stored(service)
        client.post(first)
        stored.wait(RUNS_A_REQUEST)
        before, begun = service.cpu(), time.perf_counter()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(client.post, rest))
        accepted = time.perf_counter() - begun
        stored.wait(len(bodies) * RUNS_A_REQUEST)
        wall = time.perf_counter() - begun
        own, scorer = (now - then for now, then in zip(service.cpu(), before, strict=True))
        stored.close()
    count = spans * len(rest) / len(bodies)
    return {
        "spans": count,
        "bytes_per_span": sum(map(len, rest)) / count,
        "spans_per_cpu_second": count / (own + scorer),
        "service_cpu_us_per_span": own / count * 1e6,
        "scorer_cpu_us_per_span": scorer / count * 1e6,
        "spans_per_second_accepted": count / accepted,
        "spans_per_second_to_verdict": count / wall,
    }


def memory(folder: Path, runs: int) -> Figures:
    """Resident memory of the service that open runs take, beyond what it takes when it has begun to work. The scorer, which
    has nothing to do meanwhile, is left out: it begins at some time in between."""
    parts = templates()
    home = folder / f"memory-{runs}"
    with served(home, settle_seconds=36_000, idle_seconds=36_000) as service:
        client = Client(service.http)
        for _ in range(100):
            client.post(request(parts, RUNS_A_REQUEST, roots=False)[1])
        before, _ = service.rss()

        def send(_: int) -> None:
            client.post(request(parts, RUNS_A_REQUEST, roots=False)[1])

        with ThreadPoolExecutor(4) as pool:
            for _ in pool.map(send, range(runs // RUNS_A_REQUEST)):
                pass
        held = service.series()["redfirst_traces_open"]
        after, _ = service.rss()
        service.process.kill()
    shutil.rmtree(home)
    return {
        "open_runs": held,
        "rss_before_mib": before / 2**20,
        "rss_mib": after / 2**20,
        "mib_per_1000_open_runs": (after - before) / 2**20 / runs * 1000,
    }


def print_table(rows: Sequence[Figures]) -> None:
    """Figures as rows, one column for each of what was measured."""
    for name in rows[0]:
        print(f"{name:26}" + "".join(f"{row[name]:>13,.2f}" for row in rows))
    print()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20, help="of each steady load")
    parser.add_argument(
        "--rates", type=int, nargs="+", default=[2_000, 10_000], help="spans a second of steady load"
    )
    parser.add_argument("--scorers", type=int, nargs="+", default=[1, 2], help="for each steady load")
    parser.add_argument("--spans", type=int, default=40_000, help="of full load")
    parser.add_argument(
        "--open", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="runs held open"
    )
    parser.add_argument(
        "--stalled", type=int, default=500, help="connections that have begun a request and stopped"
    )
    parser.add_argument("--rounds", type=int, default=7, help="beside rotel, Phoenix and MLflow")
    parts = ("loop", "memory", "latency", "limits", "peers", "rotel")
    parser.add_argument("--only", choices=parts, nargs="+", default=parts, help="some of the parts")
    options = parser.parse_args()

    figures: dict[str, object] = {}

    def told(part: str, measure: Callable[[], list[Figures]]) -> None:
        if part not in options.only:
            return
        rows = measure()
        if rows:
            print(f"{part}:", flush=True)
            print_table(rows)
            figures[part] = [{name: round(value, 3) for name, value in row.items()} for row in rows]

    with tempfile.TemporaryDirectory(prefix="redfirst-ingest-") as folder:
        at = Path(folder)

        def loop() -> list[Figures]:
            made = templates()
            count = options.spans // (SPANS * RUNS_A_REQUEST) + 1
            bodies = [request(made, RUNS_A_REQUEST)[1] for _ in range(count)]
            return [throughput(at, bodies, count * RUNS_A_REQUEST * SPANS)]

        told("loop", loop)
        told("memory", lambda: [memory(at, runs) for runs in options.open])
        told(
            "latency",
            lambda: [
                latency(at, options.seconds, rate, scorers)
                for rate in options.rates
                for scorers in options.scorers
            ],
        )
        told("limits", lambda: [large_body(at) | stalled_senders(at, options.stalled) | streams(at)])
        told("peers", lambda: beside_peers(at, options.rounds))
        told("rotel", lambda: beside_rotel(at, options.rounds, options.spans // 4))
    print_goals(figures)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
