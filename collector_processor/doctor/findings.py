"""What may keep spans, or parts of them, from the checks: findings of the environment alone, nothing is changed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from redfirst.instrumentation.capture import Content

ALL = ("all",)
_CONTENT = (
    *("repeats", "arguments", "unverified_claim", "ungrounded_argument"),
    *("policy rules", "recall", "outcome", "state", "freeze"),
)
_MESSAGES = ("recall", "termination", "freeze")
_TRUE = frozenset({"true", "1", "yes"})
_FALSE = frozenset({"false", "0", "no"})
_SHORTEST = 4096
"""Characters below which arguments and results of ordinary tools are cut."""
_FEWEST = 128


class Level(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; every check can still fire."""
    BLIND = "blind"
    """Some check cannot see what it would need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    level: Level
    found: str
    means: str = ""
    """What it means for which checks can fire."""
    blinds: tuple[str, ...] = ()
    remedy: str = ""
    counts: Mapping[str, int] | None = None
    """Spans, where they were counted."""


def exporting(environment: Mapping[str, str], installed: Collection[str]) -> list[Finding]:
    """Whether spans are exported at all; ``installed`` are the names of exporters."""
    if disabled(environment):
        return [
            _all_blind(
                "exporter", "OTEL_SDK_DISABLED=true: the SDK makes no spans", "Unset OTEL_SDK_DISABLED."
            )
        ]
    given = environment.get("OTEL_TRACES_EXPORTER", "").strip()
    names = [name.strip() for name in given.split(",") if name.strip()] or ["otlp"]
    if "none" in names:
        return [
            _all_blind(
                "exporter",
                "OTEL_TRACES_EXPORTER=none: no span leaves the process",
                "Unset OTEL_TRACES_EXPORTER, or set it to otlp.",
            )
        ]
    missing = [name for name in names if name not in ("otlp", "console", *installed)]
    if missing:
        return [
            _all_blind(
                "exporter",
                f"OTEL_TRACES_EXPORTER names {', '.join(missing)}, which is not installed",
                f"Install it, or set OTEL_TRACES_EXPORTER=otlp (installed: {', '.join(sorted(installed)) or 'none'}).",
            )
        ]
    return [
        Finding(
            subject="exporter", level=Level.OK, found=f"{', '.join(names)}{'' if given else ' (default)'}"
        )
    ]


def disabled(environment: Mapping[str, str]) -> bool:
    """Whether the SDK makes no spans here, whatever a program configures."""
    return _is(environment, "OTEL_SDK_DISABLED", _TRUE)


def otlp_is_default(environment: Mapping[str, str]) -> bool:
    """Whether nothing here asks for an OTLP endpoint: only a program that names no file would use one."""
    return not any(
        value.strip() and (name == "OTEL_TRACES_EXPORTER" or name.startswith("OTEL_EXPORTER_OTLP_"))
        for name, value in environment.items()
    )


def trace_files(files: Iterable[Path]) -> list[Finding]:
    """The files that the project's traces are read from."""
    return [
        Finding(subject="exporter", level=Level.OK, found=f"file {one.name} ({_size(one)})") for one in files
    ]


def _size(path: Path) -> str:
    if path.is_dir():
        return "a folder"
    return f"{path.stat().st_size} bytes" if path.is_file() else "not there yet"


def checks(installed: Mapping[str, str]) -> list[Finding]:
    """The checks that packages offer; ``installed`` has where each is by its name."""
    told = ", ".join(f"{name} ({where})" for name, where in installed.items()) or "none"
    return [
        Finding(
            subject="checks",
            level=Level.OK,
            found=f"installed: {told}",
            means="Each judges runs only where a rule names it: {id: …, kind: python, function: NAME}.",
        )
    ]


def sampling(environment: Mapping[str, str], sampler: str | None = None) -> list[Finding]:
    """Whether runs are thrown away before anything is known of them; ``sampler`` describes a provider's own."""
    name = environment.get("OTEL_TRACES_SAMPLER", "").strip().lower()
    share = _share(environment.get("OTEL_TRACES_SAMPLER_ARG")) if name.endswith("traceidratio") else None
    if sampler is not None:
        name = sampler
        found = re.search(r"TraceIdRatioBased\{([0-9.eE+-]+)\}", sampler)
        share = _share(found.group(1)) if found else None
        if name.startswith("ParentBased{root:AlwaysOnSampler,"):
            name = "parentbased_always_on"
    if "always_off" in name or "AlwaysOff" in name.partition(",")[0]:
        share = 0.0
    if share is None or share >= 1:
        other = (
            Finding(
                subject="sampling",
                level=Level.NOTE,
                found=f"sampler {name}",
                means="What it keeps cannot be told from here; a run that it drops is never judged.",
            )
            if name and not re.search("always_?on|traceidratio", name, re.IGNORECASE)
            else Finding(
                subject="sampling", level=Level.OK, found="every run is kept" + (f" ({name})" if name else "")
            )
        )
        return [other]
    return [
        Finding(
            subject="sampling",
            level=Level.BLIND,
            found=f"head sampling keeps {share:.4g} of all traces ({name})",
            means="No check can fire for a run that is dropped before it begins: rare failures are missed, and alerts "
            "need so many more runs.",
            blinds=ALL,
            remedy="Set OTEL_TRACES_SAMPLER=parentbased_always_on; sample after scoring, in the backend.",
        )
    ]


def content(environment: Mapping[str, str], packages: Iterable[str] = ()) -> list[Finding]:
    """Whether arguments, results and messages are on the spans; ``packages`` are the installed distributions."""
    captured = Content.from_environment(environment)
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    off = [
        what
        for what, on in (("inputs", captured.inputs), ("outputs", captured.outputs))
        if not on or _is(environment, "TRACELOOP_TRACE_CONTENT", _FALSE)
    ]
    found: list[Finding] = []
    if off:
        found.append(
            Finding(
                subject="content",
                level=Level.BLIND,
                found=f"capture of {' and '.join(off)} is switched off by {', '.join(_switches(environment))}",
                means="Tool arguments and results are missing, so checks that compare them are inconclusive: they never "
                "fail and never pass. A run cannot be frozen into a test.",
                blinds=_CONTENT,
                remedy="Unset it, and redact what must not leave instead.",
            )
        )
    elif not (captured.requests and captured.replies):
        found.append(
            Finding(
                subject="content",
                level=Level.BLIND,
                found=f"messages of models are hidden by {', '.join(_switches(environment))}",
                means="What was asked and answered is missing.",
                blinds=_MESSAGES,
                remedy="Unset it, and redact what must not leave instead.",
            )
        )
    quiet = sorted(package for package in packages if package in _QUIET)
    if quiet and environment.get(name, "").strip().lower() not in {*_TRUE, "span_only", "span_and_event"}:
        found.append(
            Finding(
                subject="content",
                level=Level.BLIND,
                found=f"{', '.join(quiet)} captures no content unless {name} is set",
                means="Messages and tool calls of models called through it are missing.",
                blinds=_MESSAGES,
                remedy=f"Set {name}=true (or span_only).",
            )
        )
    return found or [
        Finding(subject="content", level=Level.OK, found="arguments, results and messages are kept")
    ]


def limits(environment: Mapping[str, str]) -> list[Finding]:
    """Whether the SDK cuts or drops attributes."""
    found: list[Finding] = []
    for name in ("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"):
        value = environment.get(name, "").strip()
        if value.isdigit() and int(value) < _SHORTEST:
            found.append(
                Finding(
                    subject="limits",
                    level=Level.BLIND,
                    found=f"{name}={value}: longer values are cut",
                    means="Arguments and messages that are cut are no JSON any more and cannot be read.",
                    blinds=_CONTENT,
                    remedy=f"Unset {name}, or set it to 65536.",
                )
            )
    for name in ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT"):
        value = environment.get(name, "").strip()
        if value.isdigit() and int(value) < _FEWEST:
            found.append(
                Finding(
                    subject="limits",
                    level=Level.BLIND,
                    found=f"{name}={value}: further attributes are dropped",
                    means="Messages that are written one attribute each (OpenInference) lose their ends.",
                    blinds=_MESSAGES,
                    remedy=f"Unset {name}, or raise it to 1024.",
                )
            )
    return found or [
        Finding(subject="limits", level=Level.OK, found="no attribute is cut short or dropped early")
    ]


def duplicates(packages: Iterable[str]) -> list[Finding]:
    """Libraries that two instrumentations at once would write spans for."""
    by_library: dict[str, list[str]] = defaultdict(list)
    for package in sorted(set(packages)):
        for prefix in _FAMILIES:
            if package.startswith(prefix):
                library = package.removeprefix(prefix).removesuffix("-v2")
                by_library[_SAME.get(library, library)].append(package)
    found = [
        Finding(
            subject="instrumentation",
            level=Level.NOTE,
            found=f"{library}: {' and '.join(names)} are installed together",
            means="When both are switched on, each call is on two spans. They are merged where ids or times agree; "
            "where they do not, repeats and counts of calls and tokens can be too high.",
            remedy=f"Switch on one of them, or uninstall {names[-1]}.",
        )
        for library, names in sorted(by_library.items())
        if len(names) > 1 and library not in _PLUMBING
    ]
    return found or [
        Finding(subject="instrumentation", level=Level.OK, found="no library is instrumented by two packages")
    ]


_FAMILIES = ("openinference-instrumentation-", "opentelemetry-instrumentation-", "opentelemetry-util-genai-")
_SAME = {
    "google-generativeai": "google-genai",
    "vertexai": "google-vertexai",
    "llama-index": "llamaindex",
    "mistralai": "mistral",
}
_PLUMBING = frozenset({"requests", "httpx", "urllib3", "logging", "threading", "asyncio"})
_QUIET = frozenset(
    {
        "opentelemetry-instrumentation-openai-v2",
        "opentelemetry-instrumentation-openai-agents-v2",
        "opentelemetry-instrumentation-google-genai",
        "opentelemetry-instrumentation-vertexai",
        "opentelemetry-instrumentation-botocore",
    }
)
"""Instrumentations of OpenTelemetry itself, which keep content back unless they are told otherwise."""


def _switches(environment: Mapping[str, str]) -> list[str]:
    names = ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "TRACELOOP_TRACE_CONTENT")
    found = [name for name in names if environment.get(name, "").strip().lower() in {*_FALSE, *_NO_SPANS}]
    hidden = sorted(name for name in environment if name.startswith("OPENINFERENCE_HIDE_"))
    return [*found, *(name for name in hidden if _is(environment, name, _TRUE))]


_NO_SPANS = frozenset({"no_content", "event_only"})


def _all_blind(subject: str, found: str, remedy: str) -> Finding:
    return Finding(
        subject=subject,
        level=Level.BLIND,
        found=found,
        means="No run is ever seen, so no check can fire.",
        blinds=ALL,
        remedy=remedy,
    )


def _is(environment: Mapping[str, str], name: str, values: Collection[str]) -> bool:
    return environment.get(name, "").strip().lower() in values


def _share(text: str | None) -> float | None:
    try:
        return min(1.0, max(0.0, float(text))) if text else None
    except ValueError:
        return None
