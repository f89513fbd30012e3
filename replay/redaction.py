"""Values that must not stand in a scenario, found in a run and replaced in all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from redfirst.evaluators import LogRecord, Span
from redfirst.evaluators.span import AttributeValue
from redfirst.replay.pseudonyms import SHORTEST, CannotRedact, Pseudonyms, leaves
from redfirst.replay.secret_detectors import PERSONAL, SECRET_KEYS, SECRETS


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """What is replaced, and the key that pseudonyms depend on."""

    key: bytes
    keys: tuple[str, ...] = ()
    """Names of JSON members whose values are replaced, wherever they stand."""
    patterns: Mapping[str, str] = field(default_factory=dict)
    """Regular expressions by name; what one matches is replaced."""
    personal: tuple[str, ...] = ()
    """Detectors of personal data that are asked for."""
    refuse_secrets: bool = False
    """Refuse a run that holds a secret, instead of replacing it."""


def found_in(
    spans: Sequence[Span], logs: Sequence[LogRecord], redaction: Redaction, scenario: str
) -> Pseudonyms:
    """Every value that is to be replaced.

    Raises:
        CannotRedact: a value is too short; or there is a secret, and secrets are refused.
    """
    made = Pseudonyms(redaction.key, scenario)
    wanted = {key.lower() for key in redaction.keys}
    asked = {name: re.compile(pattern) for name, pattern in redaction.patterns.items()}
    for where, names, text in _leaves(spans, logs):
        for name in names:
            if name.lower() in wanted:
                made.add(name, text)
        for label, expression in asked.items():
            for match in expression.finditer(text):
                made.add(label, match[0])
        for label in redaction.personal:
            for value in PERSONAL[label](text):
                made.add(label, value)
        for label, value in _secrets(names, text):
            if redaction.refuse_secrets and value not in made.of:
                raise CannotRedact(f"a secret ({label}) stands in {where}; secrets: refuse is set.")
            made.add(label, value)
    return made


def _secrets(names: Sequence[str], text: str) -> Iterator[tuple[str, str]]:
    for label, detector in SECRETS.items():
        for value in detector(text):
            yield label, value
    if any(map(SECRET_KEYS.match, names)) and _may_be_secret(text):
        scheme, _, rest = text.partition(" ")
        yield "secret_key", rest if scheme.lower() in ("bearer", "basic") and rest else text


def _may_be_secret(text: str) -> bool:
    """Whether a value under a secret's name is to be replaced wherever it stands: a short word of letters would be found
    in what people say, and a pseudonym has been replaced."""
    if text.startswith(("redacted-", "<redacted:")):
        return False
    return len(text) >= 2 * SHORTEST or (len(text) >= SHORTEST and not text.isalpha())


def _leaves(spans: Sequence[Span], logs: Sequence[LogRecord]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Each text with its place and the names of the members it stands in; JSON texts are looked into."""
    for span in spans:
        where = f"span {span.span_id}"
        for key, value in {**span.resource, **span.attributes}.items():
            yield from ((f"{where}, {key}", *leaf) for leaf in leaves((key.rpartition(".")[2],), value))
        for event in span.events:
            yield f"{where}, event", (), event.name
            for key, value in event.attributes.items():
                yield from ((f"{where}, event {event.name}", *leaf) for leaf in leaves((key,), value))
        for link in span.links:
            for key, value in link.attributes.items():
                yield from ((f"{where}, link", *leaf) for leaf in leaves((key,), value))
        yield f"{where}, name", (), span.name
        yield f"{where}, status", (), span.status_message
    for log in logs:
        for key, value in {**log.attributes, "body": log.body}.items():
            yield from ((f"log record of span {log.span_id}", *leaf) for leaf in leaves((key,), value))


def replaced(
    spans: Sequence[Span], logs: Sequence[LogRecord], made: Pseudonyms
) -> tuple[list[Span], list[LogRecord]]:
    """The spans and log records with pseudonyms in place of the values."""
    new_spans = [
        replace(
            span,
            name=made.text(span.name),
            status_message=made.text(span.status_message),
            attributes=_values(span.attributes, made),
            resource=_values(span.resource, made),
            events=tuple(
                replace(event, name=made.text(event.name), attributes=_values(event.attributes, made))
                for event in span.events
            ),
            links=tuple(replace(link, attributes=_values(link.attributes, made)) for link in span.links),
        )
        for span in spans
    ]
    new_logs = [
        replace(log, body=made.value(log.body), attributes=_values(log.attributes, made)) for log in logs
    ]
    return new_spans, new_logs


def _values(attributes: Mapping[str, AttributeValue], made: Pseudonyms) -> dict[str, AttributeValue]:
    """Attributes under the names that conventions give them."""
    return {key: made.value(value) for key, value in attributes.items()}
