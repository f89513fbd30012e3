"""``redfirst serve``: the processor, on local files and loopback ports, until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import resource
from collections.abc import Callable, Mapping
from pathlib import Path

from redfirst.collector_processor.alerting.policy import Policy
from redfirst.collector_processor.alerting.receivers import Receivers
from redfirst.collector_processor.alerting.watch import Alerts
from redfirst.collector_processor.companions import Companion
from redfirst.collector_processor.extras import need
from redfirst.collector_processor.forwarding.destinations import destinations
from redfirst.collector_processor.forwarding.forwarder import Forwarding
from redfirst.collector_processor.home import Home
from redfirst.collector_processor.links import Links
from redfirst.collector_processor.log_lines import log_to
from redfirst.collector_processor.metrics_export import MetricsExport
from redfirst.collector_processor.receiving.tenants import configured_tenants
from redfirst.collector_processor.rules_file import rules_text
from redfirst.collector_processor.settings import ServeSettings, configured, in_force
from redfirst.collector_processor.sinks.backends import backends
from redfirst.collector_processor.sinks.delivery import Sinks
from redfirst.evaluators.rules import load_rules
from redfirst.replay.covering import Covers, covers_of
from redfirst.replay.project import Project, load_project, project_at

_OPEN_FILES = 65_536
_NEEDED = ("uvicorn", "httptools", "grpc", "zstandard")


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "--home", metavar="DIR", help="where journal and store lie (default: REDFIRST_HOME or .redfirst)"
    )
    parser.add_argument(
        "--config", metavar="FILE", help="the redfirst.yaml to use (default: the nearest one)"
    )
    parser.add_argument("--rules", metavar="FILE", help="a rules file (default: rules: of redfirst.yaml)")


def execute(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; 0 when it stopped because of that."""
    need(*_NEEDED, extra="server", wanted="serve")
    project = project_at(Path(options.config)) if options.config else load_project(Path.cwd())
    settings = in_force(configured(project))
    rules = _rules(project, options.rules)
    from redfirst.collector_processor.service import Service

    home = Home(Path(options.home) if options.home else project.home)
    beside = _companions(settings, home, covers=lambda: covers_of(project), say=_say)
    tenants = configured_tenants(settings.tokens, os.environ)
    log_to(form=settings.log)
    _let_many_in()
    service = Service(home, settings, rules=rules, say=_say, companions=beside, tenants=tenants)
    return 0 if asyncio.run(service.run()) else 1


def _let_many_in() -> None:
    """Have as many open files as we may: idle senders must not keep the journal from opening its next segment."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _say(text: str) -> None:
    # whoever read our output may have gone, which is no reason to stop work
    with contextlib.suppress(OSError, ValueError):
        print(text, flush=True)


def _rules(project: Project, given: str | None) -> tuple[str, str] | None:
    """The rules file's text and name, checked here so that a mistake stops the start and not the scorer."""
    rules = rules_text(project, given)
    if rules is not None:
        load_rules(*rules)
    return rules


def _companions(
    settings: ServeSettings,
    home: Home,
    *,
    covers: Callable[[], Covers],
    say: Callable[[str], None],
    environment: Mapping[str, str] = os.environ,
) -> tuple[Companion, ...]:
    """Forwarding and alerts, with what they take from the environment.

    Raises:
        ConfigurationError: a destination or a webhook is wrong, or a variable that it names is not set.
    """
    export = settings.metrics_export
    return (
        *(() if export is None else (MetricsExport(export, environment=environment, say=say),)),
        Forwarding(destinations(settings.forward, environment), home.folder, say=say),
        Sinks(backends(settings.sinks, environment), say=say),
        Alerts(
            Policy.of(settings.alerts),
            Receivers.of(settings.alerts, environment),
            home.folder,
            settings=settings.alerts,
            trace_url=Links.of(settings, environment).template,
            covers=covers,
            say=say,
        ),
    )


def outbox_destinations(project: Project, home: Home) -> tuple[str, ...]:
    """Who is told of every version of a run.

    Raises:
        ConfigurationError: a setting is wrong, or a variable that it names is not set.
    """
    beside = _companions(in_force(configured(project)), home, covers=lambda: covers_of(project), say=_say)
    return tuple(name for companion in beside for name in companion.destinations)
