"""Numbers as Prometheus reads them."""

from __future__ import annotations

import re
from pathlib import Path

from redfirst.collector_processor import metrics as module
from redfirst.collector_processor.metrics import Metrics


def test_text_has_help_type_and_escaped_labels():
    """A label from a trace cannot break the format."""
    metrics = Metrics()
    metrics.add("redfirst_traces_scored_total", agent='a"b\\c\nd', verdict="clean")
    metrics.observe("redfirst_journal_fsync_seconds", 0.5)
    metrics.gauge("redfirst_open_runs", lambda: 7)
    text = metrics.text()

    assert 'redfirst_traces_scored_total{agent="a\\"b\\\\c\\nd",verdict="clean"} 1\n' in text
    assert "# TYPE redfirst_journal_fsync_seconds summary\n" in text
    assert "redfirst_journal_fsync_seconds_count 1\n" in text
    assert "redfirst_open_runs 7\n" in text


def test_a_flood_of_labels_is_one_series():
    """Names that senders choose are bounded."""
    metrics = Metrics()
    for number in range(5000):
        metrics.add("redfirst_traces_scored_total", agent=str(number), verdict="clean")

    assert len(metrics.text().splitlines()) < 1010
    assert metrics.value("redfirst_traces_scored_total") == 5000


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
