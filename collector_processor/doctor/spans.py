"""What became of a process's spans, and what that means for the checks."""

from __future__ import annotations

from redfirst.collector_processor.doctor.findings import ALL, Finding, Level
from redfirst.instrumentation.counts import ExporterCounts, SpanCounts

_UNENDED = ("termination", "recall")
_LOST = "A run without all its spans is judged on what arrived, as incomplete; one that lost every span is never judged."
_REMEDIES = {
    "export failed": "See the endpoint below and what the program logs; start the receiver before the program.",
    "queue full": "Raise OTEL_BSP_MAX_QUEUE_SIZE, or lower OTEL_BSP_SCHEDULE_DELAY.",
    "queue too large": "Raise REDFIRST_MAX_QUEUE_BYTES, or lower REDFIRST_MAX_VALUE_CHARACTERS.",
    "already shut down": "Shut the exporter down when the last run has ended, not before.",
    "left in the queue": "Let the program end by itself, or call force_flush(): os._exit and kill lose what waits.",
}


def provider_and_spans(seen: SpanCounts, *, who: str = "process", ended: bool = False) -> list[Finding]:
    """The findings of one provider; ``ended`` when its process has come to its end."""
    return [_provider(seen), *_spans(seen, who, ended=ended)]


def where(exporter: ExporterCounts) -> str:
    """The exporter and, for a person, where it writes."""
    return f"{exporter.name} to {exporter.file}" if exporter.file else exporter.name


def _provider(seen: SpanCounts) -> Finding:
    if seen.exporters is None:
        found = f"{seen.provider}: what it exports cannot be seen from here"
        return Finding(subject="provider", level=Level.NOTE, found=found)
    if not seen.exporters:
        return Finding(
            subject="provider",
            level=Level.BLIND,
            found=f"{seen.provider} has no exporter",
            means="Spans are made and thrown away: no check can fire.",
            blinds=ALL,
            remedy="Call configure(endpoint=…) or configure(file=…), or add a span processor.",
        )
    found = f"{seen.provider}: {', '.join(where(one) for one in seen.exporters)}"
    return Finding(subject="provider", level=Level.OK, found=found)


def _spans(seen: SpanCounts, who: str, *, ended: bool) -> list[Finding]:
    if seen.started is None or seen.ended is None:
        means = (
            "Whether its spans arrive cannot be told: configure() of redfirst.instrumentation was not called."
        )
        found = f"{who}: not counted{_waiting_somewhere(seen)}"
        return [Finding(subject="spans", level=Level.NOTE, found=found, means=means)]
    return [
        _begun(seen, who, seen.started, seen.ended, ended=ended),
        *(_exported(one, who, ended=ended) for one in seen.exporters or ()),
        *_redaction(seen, who),
    ]


def _redaction(seen: SpanCounts, who: str) -> list[Finding]:
    if seen.redaction is None:
        return []
    if seen.redaction == "keyed":
        return [
            Finding(subject="redaction", level=Level.OK, found=f"{who}: equal values stay equal everywhere")
        ]
    return [
        Finding(
            subject="redaction",
            level=Level.NOTE,
            found=f"{who}: REDFIRST_REDACTION_KEY is not set",
            means="Redacted values are equal within one process only; a run across processes does not match itself.",
            remedy="Set REDFIRST_REDACTION_KEY to one secret for all processes.",
        )
    ]


def _begun(seen: SpanCounts, who: str, started: int, finished: int, *, ended: bool) -> Finding:
    dropped = seen.not_sampled or 0
    found = f"{who}: {started} started, {finished} ended, {dropped} not sampled"
    if not seen.every_sampler:
        found += " (of our decorators; others' are not seen)"
    level, means, remedy = Level.OK, "", ""
    blinds: tuple[str, ...] = ()
    if dropped:
        level, blinds = Level.BLIND, ALL
        means = "No check can fire for a run that the sampler dropped: nothing of it is exported."
        remedy = "Set OTEL_TRACES_SAMPLER=parentbased_always_on; sample after scoring, in the backend."
    elif ended and not started:
        level, blinds = Level.BLIND, ALL
        means = "The program made no span, so there is nothing to judge."
        remedy = (
            "Decorate its agent, model and tools, or switch an instrumentation on, before they are called."
        )
    elif ended and started > finished:
        level, blinds = Level.BLIND, _UNENDED
        means = (
            f"{started - finished} were open at the end and are never exported: the run lacks those calls."
        )
        remedy = "End each span on every way out; close streams and await tasks before the program ends."
    return Finding(
        subject="spans",
        level=level,
        found=found,
        means=means,
        blinds=blinds,
        remedy=remedy,
        counts={"started": started, "ended": finished, "not_sampled": dropped},
    )


def _exported(one: ExporterCounts, who: str, *, ended: bool) -> Finding:
    if one.exported is None:
        return Finding(
            subject="spans",
            level=Level.NOTE,
            found=f"{who}, {where(one)}: not counted{_waits(one.waiting)}",
            means="It was not added by configure(), which leaves a host's exporters alone.",
            remedy="To have it counted, run the program under the doctor: redfirst doctor -- COMMAND.",
        )
    unsent = (one.waiting or 0) + (one.exporting or 0)
    reasons = {
        "export failed": one.failed or 0,
        "queue full": one.queue_full or 0,
        "queue too large": one.bytes_full or 0,
        "already shut down": one.already_shutdown or 0,
        "left in the queue": unsent if ended else 0,
    }
    lost = {reason: number for reason, number in reasons.items() if number}
    why = f" ({', '.join(f'{number} {reason}' for reason, number in lost.items())})" if lost else ""
    found = f"{who}, {where(one)}: {one.exported} exported, {sum(lost.values())} dropped{why}"
    if not ended:
        found += _waits(unsent)
        if one.last_export_age is not None:
            found += f", last {one.last_export_age:.0f} s ago"
    if one.restarts:
        found += f", its thread died {one.restarts} times and was replaced"
    if one.queue_full is None:
        found += "; what it leaves out itself cannot be told"
    return Finding(
        subject="spans",
        level=Level.BLIND if lost else Level.OK,
        found=found,
        means=_LOST if lost else "",
        blinds=ALL if lost else (),
        remedy=" ".join(_REMEDIES[reason] for reason in lost),
        counts={
            "exported": one.exported,
            "dropped": sum(lost.values()),
            **{f"dropped_{reason.replace(' ', '_')}": number for reason, number in reasons.items()},
            "waiting": 0 if ended else unsent,
        },
    )


def _waits(number: int | None) -> str:
    return f", {number} waiting" if number else ""


def _waiting_somewhere(seen: SpanCounts) -> str:
    return _waits(sum(one.waiting or 0 for one in seen.exporters or ()))
