"""Numbers as Prometheus reads them."""

from __future__ import annotations

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
