"""Makes ``redfirst.json``, the Grafana dashboard over ``/metrics``: ``python deploy/grafana/build.py``.

Needs ``grafana-foundation-sdk``, which is in ``redfirst[dev]``. The dashboard asks for its data source when it is imported.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard, DatasourceVariable, QueryVariable, Row
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.timeseries import Panel
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import DataSourceRef

FILE = Path(__file__).with_name("redfirst.json")
_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_OWN = 'redfirst_verdict!="undecided",redfirst_ending!~"infra|abandoned|parked"'
_AGENT = 'gen_ai_agent_name=~"$agent"'


def _rate(name: str, matchers: str, by: str = "gen_ai_agent_name", window: str = "1h") -> str:
    return f"sum by ({by}) (increase({name}{{{matchers}}}[{window}]))"


def _share(part: str, whole: str) -> str:
    """A series that has not begun yet is none of all, and no lack of data."""
    scored = "redfirst_traces_total"
    runs = _rate(scored, f"{_AGENT},{whole}")
    return f"({_rate(scored, f'{_AGENT},{part}')} or 0 * {runs}) / {runs}"


_ROWS: tuple[tuple[str, tuple[tuple[str, str, str, str], ...]], ...] = (
    (
        "Agents",
        (
            (
                "Flagged, of judged runs in 1 h",
                "percentunit",
                "{{gen_ai_agent_name}}",
                _share('redfirst_verdict="flagged",redfirst_ending!~"infra|abandoned|parked"', _OWN),
            ),
            (
                "Judged runs in 1 h",
                "short",
                "{{gen_ai_agent_name}}",
                _rate("redfirst_traces_total", f"{_AGENT},{_OWN}"),
            ),
            (
                "Ended by infrastructure, of runs that ended in 1 h",
                "percentunit",
                "{{gen_ai_agent_name}}",
                _share('redfirst_ending="infra"', 'redfirst_ending!="parked"'),
            ),
            (
                "Stopped without an end, of runs that ended in 1 h",
                "percentunit",
                "{{gen_ai_agent_name}}",
                _share('redfirst_ending="abandoned"', 'redfirst_ending!~"infra|parked"'),
            ),
            (
                "Findings in 1 h",
                "short",
                "{{gen_ai_agent_name}} {{redfirst_rule}}",
                _rate("redfirst_findings_total", _AGENT, "gen_ai_agent_name, redfirst_rule"),
            ),
            (
                "Last span to stored verdict, 95 %",
                "s",
                "p95",
                "histogram_quantile(0.95, sum by (le)"
                " (rate(redfirst_trace_score_duration_seconds_bucket[1h])))",
            ),
            ("Alerts that fire", "short", "firing", "redfirst_alerts_firing"),
            (
                "Runs without a verdict in 1 h",
                "short",
                "{{reason}}",
                _rate("redfirst_unscored_total", "", "reason"),
            ),
        ),
    ),
    (
        "Service",
        (
            ("Ready", "bool_yes_no", "ready", "redfirst_ready"),
            ("Oldest run that waits for its verdict", "s", "lag", "redfirst_lag_seconds"),
            ("Open runs", "short", "open", "redfirst_traces_open"),
            ("Journal", "bytes", "size", "redfirst_journal_bytes"),
            (
                "Spans accepted a second",
                "short",
                "spans",
                "sum(rate(redfirst_spans_accepted_total[5m]))",
            ),
            (
                "Messages to receivers in 1 h",
                "short",
                "{{receiver}} {{outcome}}",
                _rate("redfirst_alert_posts_total", "", "receiver, outcome"),
            ),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    """The dashboard as JSON values."""
    made = (
        Dashboard("redfirst")
        .uid("redfirst")
        .tags(["redfirst"])
        .time("now-24h", "now")
        .refresh("1m")
        .editable()
        .with_variable(DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(
            QueryVariable("agent")
            .label("Agent")
            .datasource(_SOURCE)
            .query("label_values(redfirst_traces_total, gen_ai_agent_name)")
            .multi(True)
            .include_all(True)
            .all_value(".*")
        )
    )
    for title, panels in _ROWS:
        made = made.with_row(Row(title))
        for name, unit, legend, expr in panels:
            made = made.with_panel(
                Panel()
                .title(name)
                .unit(unit)
                .min(0)
                .datasource(_SOURCE)
                .span(12)
                .with_target(Dataquery().ref_id("A").expr(expr).legend_format(legend).datasource(_SOURCE))
            )
    values: dict[str, Any] = json.loads(JSONEncoder(sort_keys=True).encode(made.build()))
    return values


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(dashboard(), indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
