"""Numbers as Prometheus reads them."""

from __future__ import annotations

import re
from pathlib import Path

from redfirst.collector_processor import metrics as module
from redfirst.collector_processor.metrics import Metrics


def test_text_has_help_type_and_escaped_labels():
    """A label from a trace cannot break the format."""
    metrics = Metrics()
    metrics.add("redfirst_traces_total", agent='a"b\\c\nd', verdict="clean")
    metrics.observe("redfirst_journal_fsync_seconds", 0.5)
    metrics.gauge("redfirst_traces_open", lambda: 7)
    text = metrics.text()

    assert 'redfirst_traces_total{agent="a\\"b\\\\c\\nd",verdict="clean"} 1\n' in text
    assert "# TYPE redfirst_journal_fsync_seconds summary\n" in text
    assert "redfirst_journal_fsync_seconds_count 1\n" in text
    assert "redfirst_traces_open 7\n" in text


def test_a_flood_of_labels_is_one_series():
    """Names that senders choose are bounded."""
    metrics = Metrics()
    for number in range(5000):
        metrics.add("redfirst_traces_total", agent=str(number), verdict="clean")

    assert len(metrics.text().splitlines()) < 1010
    assert metrics.value("redfirst_traces_total") == 5000


def test_every_series_says_what_it_counts():
    """Each name that the room gives to the metrics has its HELP line."""
    room = Path(str(module.__file__)).parent
    given = {
        name
        for path in room.rglob("*.py")
        for name in re.findall(
            r'"(redfirst_[a-z_]+_(?:total|seconds|runs|bytes|segments|waiting|firing|data))"',
            path.read_text("utf-8"),
        )
    }

    assert len(given) > 30
    assert given <= set(module._HELP)


def test_open_metrics_names_the_trace_that_a_counter_counted_last() -> None:
    """A counter's family has no ``_total``, families are not interleaved, and the text ends with its mark."""
    metrics = Metrics()
    metrics.add("redfirst_traces_total", trace_id="a" * 32, agent="support", verdict="clean")
    metrics.add("redfirst_traces_total", trace_id="b" * 32, agent="support", verdict="clean")
    metrics.observe("redfirst_journal_fsync_seconds", 0.5)
    metrics.gauge("redfirst_ready", lambda: 1.0)
    lines = metrics.open_metrics().splitlines()

    series = 'redfirst_traces_total{agent="support",verdict="clean"} 2 # {trace_id="' + "b" * 32 + '"} 1 '
    assert any(line.startswith(series) for line in lines)
    assert "# TYPE redfirst_traces counter" in lines
    assert "# TYPE redfirst_ready gauge" in lines
    start = lines.index("# TYPE redfirst_journal_fsync_seconds summary")
    assert lines[start + 2 : start + 4] == [
        "redfirst_journal_fsync_seconds_count 1",
        "redfirst_journal_fsync_seconds_sum 0.5",
    ]
    assert lines[-1] == "# EOF"
    assert "trace_id" not in metrics.text()


def test_a_histogram_counts_up_to_each_bound() -> None:
    """An observation at a bound is in its bucket (``le``); buckets add up; in both formats, before the end's mark."""
    metrics = Metrics()
    for score in (0.0, 0.1, 0.8, 1.0):
        metrics.observe("redfirst_evaluation_score", score, gen_ai_evaluation_name="repeats")
    lines = metrics.text().splitlines()

    start = lines.index("# TYPE redfirst_evaluation_score histogram")
    labels = 'gen_ai_evaluation_name="repeats"'
    assert lines[start + 2 : start + 11] == [
        *(
            f'redfirst_evaluation_score_bucket{{{labels},le="{bound}"}} {count}'
            for bound, count in (
                *(("0.1", 2), ("0.25", 2), ("0.5", 2), ("0.75", 2), ("0.9", 3), ("1", 4), ("+Inf", 4)),
            )
        ),
        f"redfirst_evaluation_score_count{{{labels}}} 4",
        f"redfirst_evaluation_score_sum{{{labels}}} 1.8999999999999999",
    ]
    assert metrics.open_metrics().splitlines()[-2].startswith("redfirst_evaluation_score_sum")


def test_a_gauge_that_cannot_be_read_hides_no_other() -> None:
    """A disk that does not answer is not a number; everything else is there, over and over."""
    metrics = Metrics()

    def broken() -> float:
        raise OSError("no such disk")

    metrics.gauge("redfirst_journal_room_bytes", broken)
    metrics.gauge("redfirst_ready", lambda: 1.0)

    assert "redfirst_journal_room_bytes nan\n" in metrics.text()
    assert "redfirst_ready 1\n" in metrics.text()
