"""``redfirst serve``: the processor, on local files and loopback ports, until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import functools
import importlib.util
from pathlib import Path

from redfirst.collector_processor.home import Home
from redfirst.collector_processor.serve_companions import companions
from redfirst.collector_processor.serve_settings import in_force
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.rules import load_rules
from redfirst.replay.project import Project, load_project, project_at

_NEEDED = ("uvicorn", "httptools", "grpc")


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
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigurationError(f"serve needs {', '.join(missing)}: pip install 'redfirst[server]'.")
    project = project_at(Path(options.config)) if options.config else load_project(Path.cwd())
    settings = in_force(project.settings.serve)
    rules = _rules(project, options.rules)
    from redfirst.collector_processor.service import Service

    home = Home(Path(options.home) if options.home else project.home)
    say = functools.partial(print, flush=True)
    beside = companions(settings, home, say=say)
    service = Service(home, settings, rules=rules, say=say, companions=beside)
    return 0 if asyncio.run(service.run()) else 1


def _rules(project: Project, given: str | None) -> tuple[str, str] | None:
    """The rules file's text and name, checked here so that a mistake stops the start and not the scorer."""
    if given is None and project.settings.rules is None:
        return None
    path = Path(given) if given is not None else project.root / str(project.settings.rules)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"rules file {path}: cannot be read: {problem}.") from problem
    load_rules(text, str(path))
    return text, str(path)
