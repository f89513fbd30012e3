"""Rules for Prometheus and inhibitions for Alertmanager, as files to be reviewed and committed."""

from __future__ import annotations

from importlib.resources import files

from redfirst.collector_processor.alerting.alertmanager import SILENT, UNCOVERED, UNRELIABLE
from redfirst.evaluators.errors import ConfigurationError

_FAST = 3.0


def prometheus_rules(tolerated: float | None) -> str:
    """Recording and alerting rules for a tolerated share of flagged runs.

    A fast burn is 3 times what is tolerated, and never more than halfway between that and all runs: a threshold that
    cannot be passed is no alert.

    Raises:
        ConfigurationError: there is no objective.
    """
    if tolerated is None:
        raise ConfigurationError(
            "serve: alerts: threshold is null: rules for Prometheus need an objective, as in threshold: 0.2"
        )
    fast = min(_FAST * tolerated, (1.0 + tolerated) / 2)
    template = files(__package__).joinpath("prometheus.rules.yml").read_text("utf-8")
    for name, value in (
        ("@fast@", f"{fast:g}"),
        ("@tolerated@", f"{tolerated:g}"),
        ("@percent@", f"{100 * tolerated:g} %"),
    ):
        template = template.replace(name, value)
    return template


def alertmanager_configuration() -> str:
    """The part of ``alertmanager.yml`` that keeps consequences from being notified beside their cause."""
    return f"""# For alertmanager.yml. Made by: redfirst alerts render --alertmanager
route:
  # one notification for all that is wrong with one agent
  routes:
    - matchers: ['alertname=~"Redfirst.*"']
      group_by: [alertname, tenant, agent]
      # add: receiver: NAME
inhibit_rules:
  # what can be judged is no sample while most runs cannot
  - source_matchers: ['alertname="{UNCOVERED}"']
    target_matchers: ['alertname="{UNRELIABLE}"']
    equal: [tenant, agent]
  # an agent's alert says what those of its tasks would
  - source_matchers: ['alertname="{UNRELIABLE}"', 'task=""']
    target_matchers: ['alertname="{UNRELIABLE}"', 'task!=""']
    equal: [tenant, agent, evaluator]
  # nothing is judged, so nothing comes
  - source_matchers: ['alertname=~"RedfirstDown|RedfirstNotReady|RedfirstUncovered"']
    target_matchers: ['alertname=~"{UNRELIABLE}|{SILENT}|RedfirstAgent.*"']
  # a page about an agent says what a ticket about the same would
  - source_matchers: ['alertname="{UNRELIABLE}"', 'severity="page"']
    target_matchers: ['alertname="{UNRELIABLE}"', 'severity="ticket"']
    equal: [tenant, agent]
"""
