"""``redfirst init``: a commented configuration, and draft rules from the tools that were seen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from redfirst.collector_processor.backends.selecting import is_address
from redfirst.collector_processor.commands.init_drafts import Draft, Tool, drafts, rules_text, tools_in
from redfirst.collector_processor.home import Home
from redfirst.collector_processor.recorded.every_run import runs_of
from redfirst.collector_processor.settings import configured
from redfirst.collector_processor.terminal import Screen, counted
from redfirst.evaluators import yaml_writer
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.trajectory import Trajectory
from redfirst.replay.project import Project, load_project, project_at

CONFIGURATION = "redfirst.yaml"
RULES = "rules.yaml"


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "--traces",
        action="append",
        metavar="PATH",
        help="OTLP files or folders to learn the tools from (default: the store, and without one traces: of redfirst.yaml)",
    )
    parser.add_argument(
        "--home", metavar="DIR", help="where the store lies (default: REDFIRST_HOME or .redfirst)"
    )
    parser.add_argument(
        "--out", metavar="DIR", default=".", help="folder to write to (default: the current one)"
    )
    parser.add_argument("--force", action="store_true", help="overwrite files that are there")


def execute(options: argparse.Namespace) -> int:
    """Write both files. Files that are there are overwritten only with ``--force``, or when a person says so."""
    out = Path(options.out)
    targets = (out / CONFIGURATION, out / RULES)
    _may_write([path for path in targets if path.exists()], force=options.force)
    project = load_project(Path.cwd())
    home = Home(Path(options.home)) if options.home else Home(project.home)
    traces = options.traces or _named(project, home)
    runs = runs_of(home, traces)
    tools, found = tools_in(runs), drafts(runs)
    rules = rules_text(found, tools)
    load_rules(rules, str(targets[1]))
    agents = sorted({name for run in runs for name in run.agents})
    out.mkdir(parents=True, exist_ok=True)
    targets[0].write_text(_configuration(agents, [_from(out, path) for path in traces]), "utf-8")
    targets[1].write_text(rules, "utf-8")
    configured(project_at(targets[0]))
    _report(targets, runs, tools, found)
    return 0


def _named(project: Project, home: Home) -> list[str]:
    """The files that the project names and that are there, for want of a store."""
    if home.store.exists():
        return []
    paths = [str(project.root / name) for name in project.settings.traces if not is_address(name)]
    return [path for path in paths if Path(path).exists()]


def _may_write(there: Sequence[Path], *, force: bool) -> None:
    if not there or force:
        return
    names = " and ".join(str(path) for path in there)
    if sys.stdin.isatty() and sys.stderr.isatty():
        print(f"Overwrite {names}? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    raise ConfigurationError(
        f"{names}: there already, and left as it is. Pass --force to overwrite, or --out DIR."
    )


def _from(out: Path, path: str) -> str:
    """A path as the configuration in ``out`` must name it."""
    absolute = Path(path).resolve()
    try:
        return str(absolute.relative_to(out.resolve()))
    except ValueError:
        return str(absolute)


def _report(
    targets: Sequence[Path], runs: Sequence[Trajectory], tools: Sequence[Tool], found: Sequence[Draft]
) -> None:
    screen = Screen()
    screen.para(f"Wrote {targets[0]} and {targets[1]}.")
    if not runs:
        screen.para(
            "No runs were seen yet, so the rules file is empty: neither a store nor a file of spans was found. After some "
            "runs: redfirst init --force, with --traces FILE where they are in a file."
        )
        return
    parts = (counted(len(runs), "run"), counted(len(tools), "tool"), counted(len(found), "draft rule"))
    screen.para(f"{', '.join(parts)}:")
    for draft in found:
        said = f"{draft.rule['id']}: would flag {draft.flagged} of {counted(draft.runs, 'run')}"
        screen.para(said, indent="  ", hang="    ")


def _configuration(agents: Sequence[str], traces: Sequence[str]) -> str:
    """``redfirst.yaml``: every key with its default and what it does."""
    agent = agents[0] if agents else "support"
    example = yaml_writer.dump({agent: {"call": "mybot.agent:make", "input": "messages"}}).splitlines()
    named = yaml_writer.dump({"traces": list(traces)}) if traces else "# traces: [traces.jsonl]\n"
    seen = (
        f"; seen: {', '.join(''.join(c for c in name if c.isprintable()) for name in agents)}"
        if agents
        else ""
    )
    return _TEMPLATE.format(
        agents="\n".join(f"#   {line}" for line in example), seen=seen[:200], traces=named, rules=RULES
    )


_TEMPLATE = """\
# The configuration of redfirst. A key that is commented out shows its default.

# The agents that prove and run may call{seen}. The name is the one in the traces; call is
# module:factory, and what the factory makes is called with one request. input is text or messages.
# agents:
{agents}

# Where those modules are imported from.
# path: ["."]

# What must hold, from this folder.
rules: {rules}

# What the models cost; without it a dated table that comes with redfirst.
# prices: prices.yaml

# OTLP files or folders that show and freeze look in where there is no store.
{traces}
# What freeze replaces by pseudonyms, beside the secrets that it knows.
# redaction:
#   keys: []                       # names of JSON members, wherever they stand
#   patterns: {{}}                   # regular expressions by a name of yours
#   personal: []                   # email, phone
#   secrets: replace               # or refuse

# The folder that freeze writes to.
# scenarios: scenarios

# What redfirst serve does. REDFIRST_ and a key in capitals override it: REDFIRST_HTTP_PORT=0.
# serve:
#   host: 127.0.0.1               # anything but loopback lets others in
#   grpc_port: 4317               # OTLP/gRPC; 0 takes a free port and prints it
#   http_port: 4318               # OTLP/HTTP
#   page_port: 4320               # JSON API, metrics, health
#   settle_seconds: 10            # quiet time after which a run whose root has ended is judged
#   idle_seconds: 180             # the same for a run without a root
#   age_seconds: 86400            # a run that does not end is judged as it is
#   abandon_seconds: 3600         # then a run whose root never came is told to be abandoned
#   park_seconds: 86400           # how long a run that waits for a person may go on as one run
#   seal_days: 7                  # after which late spans are kept and make no further version
#   grace_seconds: 30             # after a start, before a run is said to have gone quiet
#   max_body_bytes: 67108864      # largest request, before and after decompression
#   receive_bytes: null           # requests in flight; by default 256 MiB, or four of the largest
#   tokens: []                    # who may send: {{tenant: support, token: "env:SUPPORT_TOKEN"}}
#   tls: null                     # certificate, key and client_ca of both OTLP ports
#   cors_origins: []              # sites whose pages may send from a browser
#   http_prefix: ""               # what comes before /v1/traces
#   metrics_endpoint: refuse      # what becomes of data points; or absent
#   traceless_logs: keep          # or refuse
#   log: text                     # standard error; or json
#   score_seconds: 30             # what judging one run may take
#   check_seconds: 10             # what one check may take for one run
#   score_memory_bytes: 4294967296    # address space of a scorer process
#   scorers: 1                    # how many processes judge
#   retain_days: 30               # age at which spans go, except those of flagged runs
#   retain_bytes: 8589934592      # size of the journal beyond which its oldest part goes
#   keep_days: 365                # age at which verdicts go too
#   min_free_bytes: 268435456     # free disk space below which senders are asked to wait
#   max_journal_bytes: null        # size of the journal at which they are too; null: the disk alone limits it
#
#   forward:                      # every accepted request goes to each of these, byte for byte
#     - name: phoenix             # names its place in the queue, its metrics, its dead letters
#       endpoint: http://localhost:6006    # /v1/traces and /v1/logs are added; env:NAME reads a variable
#       headers: {{authorization: "env:PHOENIX_AUTH"}}
#       compression: none         # or gzip, zstd
#       ca: null                  # PEM file of the authorities to trust; certificate and key: to show one
#       certificate: null
#       key: null
#       signals: [traces, logs]   # a backend without /v1/logs takes traces only
#       tenants: null             # whose requests it gets; null: everyone's
#       timeout: 10               # seconds of one request
#       backlog: false            # true: a new destination gets all that the journal holds
#       hold_days: 3              # what it does not take for so long is dropped, and counted
#
#   sinks:                        # backends that are told what became of each run: docs/backends
#     - name: phoenix
#       kind: phoenix             # otlp, phoenix, mlflow, langfuse, langsmith, opik, braintrust, datadog
#       endpoint: http://localhost:6006    # base URL; env:NAME reads a variable
#       headers: {{}}
#       project: default          # the backend's own: project, experiment or ml_app
#       events: false             # otlp: a gen_ai.evaluation.result log event for each check, too
#       mark_error: false         # otlp: the verdict of a flagged run has status ERROR
#       tenants: null             # whose runs it is told of; null: everyone's
#       link: null                # template of the link to a run, where the kind knows none
#       timeout: 10
#       longest_wait_seconds: 30  # the longest pause between two tries
#       hold_days: 3              # how long a run that it does not take is tried
#
#   metrics_export: null          # {{endpoint, headers, interval_seconds}}: our own metrics by OTLP
#   trace_url: null               # where a person looks at a run, as in https://ui.example/traces/{{trace_id}}
#   alerts:                       # per agent: flagged runs of those judged within the window
#     window_seconds: 3600
#     short_window_seconds: null  # the newest part of it, above the threshold too; null: a twelfth
#     min_runs: 20                # fewer are no_data: no alert, and none is resolved
#     threshold: 0.2              # the objective: share of flagged runs that is tolerated; null: none
#     z: 3                        # fires when the lower Wilson bound at z is above the threshold
#     resolve_z: 1                # resolves when the upper Wilson bound at resolve_z is below it
#     stale_seconds: 86400        # an alert without enough runs for so long is given up
#     false_alarms_a_week: 0.05   # of an agent, for a drop below its own past; null: not compared
#     reference_seconds: 604800   # how far back its past goes
#     reference_settle_seconds: 3600 # the newest part of the past, which is no reference yet
#     hold_seconds: 900           # how long a drop is reported at least
#     revision_seconds: 86400     # how long later versions of a run change what was counted
#     per: agent                  # or check: one alert for each check of each agent
#     tick_seconds: 1
#     give_up_seconds: 86400      # after which a message that a receiver did not take is given up
#     webhooks:
#       - name: ops
#         url: env:OPS_WEBHOOK    # POST of one JSON object per change; redirects are not followed
#         headers: {{}}
#         secret: env:OPS_SECRET  # signs each post: Redfirst-Signature
#         timeout: 5
#         allow_private: false    # true: the address may be of a private network
#         allow_loopback: false   # true: the address may be this machine
#     alertmanagers:              # Prometheus' Alertmanager, API v2
#       - name: alertmanager
#         url: http://localhost:9093
#         headers: {{}}
#         timeout: 5
#         resend_seconds: 60
#         lasts_seconds: 240      # it is over when it was not sent again for so long
#         resolved_seconds: 900   # how long what is over is sent as over
#         instance: ""            # the label; the name of this machine when empty
#     notify:                     # chat, pager, mail; needs redfirst[notify]
#       - name: team
#         url: env:TEAM_CHANNEL   # an apprise URL: slack://, pagerduty://, mailto:// and others
"""
