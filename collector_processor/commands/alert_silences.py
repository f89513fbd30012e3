"""``redfirst alerts silence``, ``ack`` and ``list``: what is not told for a while, and what fires."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from redfirst.collector_processor.alerting.policy import ABANDONED, COVERAGE, INFRASTRUCTURE
from redfirst.collector_processor.alerting.silences import (
    Silence,
    firing_alerts,
    read_silences,
    silence_id,
    span_ns,
    write_silences,
)
from redfirst.collector_processor.commands.changing import home_of
from redfirst.collector_processor.storing.rows import moment
from redfirst.collector_processor.terminal import Screen
from redfirst.evaluators.errors import ConfigurationError

_ABOUT = {"reliability": "", COVERAGE: COVERAGE, INFRASTRUCTURE: INFRASTRUCTURE, ABANDONED: ABANDONED}


def configure(actions: Any) -> None:
    """The actions and their arguments."""
    silence = actions.add_parser("silence", help="do not tell some alerts for a while")
    silence.add_argument("--agent", metavar="NAME", help="those of this agent (default: of all)")
    silence.add_argument("--check", metavar="CHECK", help="those of this check")
    silence.add_argument("--about", choices=sorted(_ABOUT), help="those about this")
    silence.add_argument("--end", metavar="SILENCE", help="end this silence now")
    ack = actions.add_parser("ack", help="say that somebody is on an alert: its like is not told for a while")
    ack.add_argument("alert", metavar="ALERT", help="the alert's id, or the beginning of it")
    listing = actions.add_parser("list", help="what fires, and what is silenced")
    listing.add_argument("--json", action="store_true", help="one JSON object per line")
    for one in (silence, ack):
        one.add_argument(
            "--for", dest="span", metavar="TIME", default="1d", help="90m, 2h, 1d (default: %(default)s)"
        )
        one.add_argument("--note", metavar="TEXT", default="", help="why, for those who list it")
    for one in (silence, ack, listing):
        one.add_argument(
            "--home", metavar="DIR", help="where the store lies (default: REDFIRST_HOME or .redfirst)"
        )


def execute(options: argparse.Namespace) -> int:
    """Do the one action."""
    folder, now_ns = home_of(options.home).folder, time.time_ns()
    if options.action == "list":
        return _list(folder, now_ns, as_json=options.json)
    if options.action == "silence" and options.end:
        return _end(folder, options.end, now_ns)
    if options.action == "ack":
        made = _acknowledged(folder, options, now_ns)
    else:
        about = None if options.about is None else _ABOUT[options.about]
        what = f"{options.agent}\0{options.check}\0{about}"
        made = Silence(
            id=silence_id(now_ns, what), until_ns=now_ns + span_ns(options.span), created_ns=now_ns,
            agent=options.agent, check=options.check, about=about, note=options.note,
        )  # fmt: skip
    write_silences(folder, [*read_silences(folder), made], now_ns=now_ns)
    print(f"{made.id}: {_said(made)}")
    return 0


def _acknowledged(folder: Path, options: argparse.Namespace, now_ns: int) -> Silence:
    firing = [body for body in firing_alerts(folder) if str(body["alert"]).startswith(options.alert)]
    if len(firing) != 1:
        which = "no alert that fires begins so" if not firing else f"{len(firing)} alerts that fire begin so"
        raise ConfigurationError(f"ack {options.alert}: {which}; redfirst alerts list shows them.")
    body = firing[0]
    return Silence(
        id=silence_id(now_ns, body["alert"]), until_ns=now_ns + span_ns(options.span), created_ns=now_ns,
        tenant=body["tenant"], agent=body["agent"] or "", check=body["check"] or "", about=_ABOUT[body["about"]],
        task=body.get("task") or "", alert=body["alert"], note=options.note,
    )  # fmt: skip


def _end(folder: Path, wanted: str, now_ns: int) -> int:
    silences = read_silences(folder)
    if not any(one.id == wanted and one.until_ns > now_ns for one in silences):
        raise ConfigurationError(
            f"--end {wanted}: there is no such silence; redfirst alerts list shows them."
        )
    write_silences(folder, [one for one in silences if one.id != wanted], now_ns=now_ns)
    print(f"{wanted}: ended")
    return 0


def _list(folder: Path, now_ns: int, *, as_json: bool) -> int:
    firing = firing_alerts(folder)
    silences = [one for one in read_silences(folder) if one.until_ns > now_ns]
    acknowledged = {one.alert for one in silences if one.alert}
    if as_json:
        for body in firing:
            print(json.dumps({"kind": "alert", **body, "acknowledged": body["alert"] in acknowledged}))
        for one in silences:
            print(json.dumps({"kind": "silence", **asdict(one), "until": moment(one.until_ns)}))
        return 0
    screen = Screen()
    for body in firing:
        screen.para(_line(body, acknowledged=body["alert"] in acknowledged), hang=" " * 20)
    for one in silences:
        screen.para(f"{one.id}  silence   {_said(one)}", hang=" " * 20)
    if not firing and not silences:
        screen.line("nothing fires, and nothing is silenced")
    return 0


def _line(body: Mapping[str, Any], *, acknowledged: bool) -> str:
    seen = "  acknowledged" if acknowledged else ""
    return f"{body['alert'][:8]}  {body['severity']:<8}  {body['text']}{seen}"


def _said(silence: Silence) -> str:
    asked = {"agent": silence.agent, "check": silence.check, "about": silence.about, "task": silence.task}
    what = ", ".join(f"{name} {value}" for name, value in asked.items() if value) or "all alerts"
    note = f" ({silence.note})" if silence.note else ""
    return f"{what} until {moment(silence.until_ns)[:16]}Z{note}"
