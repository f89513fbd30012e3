"""Takes out of values what must not leave the process, and keeps equal what was equal.

What is taken out is replaced by ``<redacted:HASH>``, a keyed hash of it: two equal secrets are equal still, so checks
that compare values judge as they would have. Without ``REDFIRST_REDACTION_KEY`` the key is made anew in each process,
and equality holds within it.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable, KeysView, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from redfirst.evaluators.errors import ConfigurationError
from redfirst.instrumentation.capture import clean, to_json
from redfirst.instrumentation.guard import swallow

KEY_VARIABLE = "REDFIRST_REDACTION_KEY"
_TOKEN = re.compile(r"<redacted:[0-9a-f]{16}>")
_WHOLE_TOKEN = re.compile(r"<redacted:[0-9a-f]{16}>\Z")
_ESCAPE = re.compile(_TOKEN.pattern + r"|\\{1,64}(?:[abfnrtv'\"/]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})")
_NOTHING = ("null", "None")
FAILED = "<redacted: the redaction failed>"
"""Stands in place of a value that could not be redacted."""
_DEEPEST = 200
_SCALARS = frozenset({str, int, float, bool, type(None)})
_LONG_NUMBER = re.compile(r"[0-9]{19}")
_REMEMBERED = 256
_APART = re.compile(r"\^|\$|\\[AZ]|\(\?(?:<?[=!]|>)|[*+?}]\+")
"""What makes an expression match a text and not what the text is written into: its edges, what stands beside it."""
_SHORTEST_REMEMBERED = 6


@dataclass(frozen=True, slots=True)
class Pattern:
    """A secret by its form."""

    name: str
    regex: str
    literal: str | tuple[str, ...] | None = None
    """A text that every match contains, or several of which it contains one. Where there is none the expression is not
    tried: that is what makes it cheap."""
    example: str | None = None
    """A text that must be taken out; the self-test plants it."""


PATTERNS: Mapping[str, Pattern] = {
    one.name: one
    for one in (
        Pattern("email", r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}", "@", "canary.one@example.org"),
        Pattern(
            "api_key",
            r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,200}",
            ("sk-", "sk_", "pk-", "pk_", "rk-", "rk_"),
            "sk-canary0123456789abcdef",
        ),
        Pattern("aws_key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", ("AKIA", "ASIA"), "AKIACANARY0123456789"),
        Pattern("github_token", r"\bgh[pousr]_[A-Za-z0-9]{20,255}", "gh", "ghp_canary0123456789abcdefgh"),
        Pattern(
            "jwt",
            r"\beyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,2000}",
            "eyJ",
            "eyJjYW5hcnkxMjM.eyJjYW5hcnkxMjM.c2lnbmF0dXJl",
        ),
        Pattern("card", r"(?<![\d-])(?:\d[ -]?){12,18}\d(?![\d-])", None, "4111 1111 1111 1111"),
        Pattern(
            "iban",
            r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b",
            None,
            "DE89370400440532013000",
        ),
        Pattern("bearer", r"(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{12,4000}", None, "Bearer canary0123456789"),
    )
}
"""Forms that can be named instead of written."""


class Redaction:
    """What must not leave the process.

    Args:
        keys: names of arguments, fields and attributes whose values are taken out, at any depth, in any case of letters.
        paths: places in a value, ``$.customer.cards[*].number``; ``*`` stands for any one key or position.
        patterns: names of ``PATTERNS``, regular expressions, or a ``Pattern``.

    Raises:
        ConfigurationError: an expression or a path is none.
    """

    def __init__(
        self, *, keys: Iterable[str] = (), paths: Iterable[str] = (), patterns: Iterable[str | Pattern] = ()
    ) -> None:
        self.keys = _names(keys, "keys")
        self.paths = tuple(_path(one) for one in _names(paths, "paths"))
        self.patterns = tuple(
            _pattern(one) for one in ([patterns] if isinstance(patterns, str | Pattern) else patterns)
        )

    def with_places(self, places: Iterable[str]) -> Redaction:
        """The same, with keys and paths that a tool declared."""
        made = Redaction()
        places = tuple(places)
        made.keys = (*self.keys, *(one for one in places if not one.startswith("$")))
        made.paths = (*self.paths, *(_path(one) for one in places if one.startswith("$")))
        made.patterns = self.patterns
        return made


class Redactor:
    """Takes out what a ``Redaction`` names. Nothing it is given makes it raise: it fails closed, and counts that."""

    def __init__(self, redaction: Redaction, key: bytes | None = None) -> None:
        self.redaction = redaction
        given = os.environ.get(KEY_VARIABLE, "").encode()
        self.key = key or given or secrets.token_bytes(32)
        self.keyed = self.key == given
        """Whether another process with the same environment has the same key."""
        self._keys = {one.casefold() for one in redaction.keys}
        self._paths = redaction.paths
        self._patterns = [(one.name, re.compile(one.regex), _literals(one)) for one in redaction.patterns]
        self._pairs = _pairs(self._keys)
        self._names: dict[str, str] = {}
        self._secrets: OrderedDict[str, str] = OrderedDict()
        """Each as it may be written into texts, with what it is itself."""
        self._apart = any(
            one not in PATTERNS.values() and _APART.search(one.regex) for one in redaction.patterns
        )
        """Whether a text must be taken out of what it is written into before the patterns are tried."""
        self._lock = (
            threading.RLock()
        )  # guards _secrets: many threads, and a stream collected as garbage in any of them
        self._quick = [(_hints(literals), literals, regex.search) for _, regex, literals in self._patterns]
        marks = {mark for hints, _, _ in self._quick for mark in hints or ("",)}
        self._marks = ("",) if self._apart else ("\\", *(("'", "=") if self._keys else ()), *marks)
        """JSON text with none of these has nothing to take out but the value of a key; the empty one is in every text."""
        self._fine: set[str] = set()
        """Keys that were met and are none of ours."""

    def token(self, secret: object) -> str:
        """What stands for a secret; the same for the same one, and for a text wherever it was found."""
        text = secret if isinstance(secret, str) else "\0" + to_json(secret)
        return f"<redacted:{hmac.digest(self.key, text.encode('utf-8', 'backslashreplace'), 'sha256').hex()[:16]}>"

    # -- each of these gives what may leave, and the names of the rules that took something out, once for each time

    def json(self, value: object) -> tuple[str, list[str]]:
        """A value as JSON text."""
        try:
            text = to_json(value)
            # the keys of an object with no other inside it are those of the value, whatever that is made of
            flat = type(value) is dict and value.keys() <= self._fine and text.find("{", 1) < 0
            if flat and not self._paths:
                for mark in self._marks:
                    if mark in text:
                        break
                else:
                    return text, []
            # behind a backslash anything may hide
            plain = "\\" not in text and not self._paths and (flat or self._no_key_in(value))
            if plain and self._no_match_in(text):
                return text, []
            data, by = self.data(_parsed(text))
            return (to_json(data), by) if by else (text, [])
        except Exception as error:  # noqa: BLE001 - fails closed
            return to_json(_failed(error)), ["failure"]

    def data(self, data: Any) -> tuple[Any, list[str]]:
        """A value that is JSON data."""
        by: list[str] = []
        try:
            return self._walk(data, self._paths, by, 0), by
        except Exception as error:  # noqa: BLE001 - fails closed
            return _failed(error), ["failure"]

    def text(self, text: str) -> tuple[str, list[str]]:
        """A text; one that is JSON is looked into."""
        by: list[str] = []
        try:
            return self._string(clean(text), (), by, 0), by
        except Exception as error:  # noqa: BLE001 - fails closed
            return _failed(error), ["failure"]

    def free_text(self, text: str) -> tuple[str, list[str]]:
        """A text such as an exception's, in which secrets that were taken out by key lately may be quoted."""
        text, by = clean(text), []
        for written, secret in self.lately().items():
            if written in text:
                text = text.replace(written, self.token(secret))
                by.append("known secret")
        text, more = self.text(text)
        return text, by + more

    def lately(self) -> dict[str, str]:
        """The secrets that were taken out by key lately, by how they may be written; the longest first."""
        if not self._secrets:
            return {}
        with self._lock:
            return {
                written: self._secrets[written] for written in sorted(self._secrets, key=len, reverse=True)
            }

    def name(self, name: str) -> str:
        """A span's name."""
        known = self._names.get(name)
        if known is None:
            known = self.text(name)[0]
            if len(self._names) < 1000:
                self._names[name] = known
        return known

    def whole(self, value: Any) -> tuple[Any, list[str]]:
        """A value that is taken out as it stands."""
        by: list[str] = []
        data = list(value) if isinstance(value, tuple) else value
        return self._taken(data, "key", by), by

    def names(self, key: str) -> bool:
        """Whether the value of an attribute of this name is taken out whole."""
        return key.casefold() in self._keys

    def names_any(self, keys: KeysView[str]) -> bool:
        """Whether that of any attribute of these names is."""
        return not (keys <= self._fine or all(map(self._is_fine, keys)))

    def _no_key_in(self, value: Any) -> bool:
        """Whether no key of ours can be in a value; of a type that is not JSON's own that is not known."""
        kind = type(value)
        if kind is dict:
            if not value.keys() <= self._fine and not all(map(self._is_fine, value)):
                return False
            return all(type(inside) in _SCALARS or self._no_key_in(inside) for inside in value.values())
        if kind is list or kind is tuple:
            return all(type(inside) in _SCALARS or self._no_key_in(inside) for inside in value)
        return kind in _SCALARS

    def _is_fine(self, key: object) -> bool:
        if type(key) is not str or key.casefold() in self._keys:
            return False
        if len(self._fine) < 10_000:
            self._fine.add(key)
        return True

    def _no_match_in(self, text: str) -> bool:
        """Whether nothing is taken out of JSON text that has no backslash: a quote inside its strings is single then."""
        if self._apart:
            return False
        if (
            ("'" in text or "=" in text)
            and self._pairs is not None
            and self._names_a_key(text)
            and self._pairs.search(text)
        ):
            return False
        for hints, literals, search in self._quick:
            for hint in hints:
                if hint in text:
                    break
            else:
                if hints:
                    continue
            if _may_match(literals, text) and search(text):
                return False
        return True

    def _walk(self, data: Any, paths: Sequence[tuple[str, ...]], by: list[str], depth: int) -> Any:
        if depth > _DEEPEST:
            by.append("depth")
            return FAILED
        if any(not path for path in paths):
            return self._taken(data, "path", by)
        if isinstance(data, str):
            return self._string(data, paths, by, depth)
        if isinstance(data, dict):
            found: dict[str, Any] = {}
            for key, value in data.items():
                below = [path[1:] for path in paths if path[0] in ("*", key)]
                name = self._matched(key, by) if self._patterns else key
                if key.casefold() in self._keys:
                    found[name] = self._taken(value, f"key {key}", by)
                else:
                    found[name] = self._walk(value, below, by, depth + 1)
            return found
        if isinstance(data, list):
            return [
                self._walk(item, [path[1:] for path in paths if path[0] in ("*", str(place))], by, depth + 1)
                for place, item in enumerate(data)
            ]
        if isinstance(data, int | float) and not isinstance(data, bool) and self._patterns:
            text = to_json(data)
            shown = self._matched(text, by)
            return data if shown == text else shown
        return data

    def _string(self, text: str, paths: Sequence[tuple[str, ...]], by: list[str], depth: int) -> str:
        if text.lstrip()[:1] in ("{", "[", '"') and (self._keys or paths or self._apart or "\\" in text):
            try:
                inside = _parsed(text)
            except (ValueError, RecursionError):
                return self._matched(text, by)
            found: list[str] = []
            data = self._walk(inside, paths, found, depth + 1)
            by += found
            return to_json(data) if found else text
        return self._matched(text, by)

    def _matched(self, text: str, by: list[str]) -> str:
        """The text without the values of our keys, as JSON, ``repr`` or an assignment writes them, and without what the
        patterns match, also where an escape hides a word's edge."""
        if self._pairs is not None and self._names_a_key(text):
            text = self._pairs.sub(lambda found: self._said(found, by), text)
        for name, regex, literals in self._patterns:
            if _may_match(literals, text):
                times = 0
                for cut in (_TOKEN, _ESCAPE) if "\\" in text else (_TOKEN,):
                    text, some = self._between(cut, regex, text)
                    times += some
                by += [name] * times
        return text

    def _names_a_key(self, text: str) -> bool:
        """Whether one of our keys stands anywhere in it: most texts are through with that, at the speed of memory. Where
        there is neither a quote nor an equals sign, no value follows a key as ``_pairs`` knows it."""
        if '"' not in text and "'" not in text and "=" not in text:
            return False
        folded = text.casefold()
        return any(key in folded for key in self._keys)

    def _said(self, found: re.Match[str], by: list[str]) -> str:
        quote, secret = found["quote"] or "", found["quoted"]
        if secret is None:
            secret = found["bare"]
        if not secret or _WHOLE_TOKEN.match(secret) or secret in (*_NOTHING, FAILED):
            return found[0]
        by.append(f"key {(found['key'] or found['name']).casefold()}")
        return f"{found['before']}{quote}{self.token(_unescaped(secret, quote))}{quote}"

    def _between(self, cut: re.Pattern[str], regex: re.Pattern[str], text: str) -> tuple[str, int]:
        """What was redacted already is left as it is."""
        parts, at, times = [], 0, 0
        for mark in cut.finditer(text):
            part, some = regex.subn(lambda match: self.token(match[0]), text[at : mark.start()])
            parts += [part, mark[0]]
            at, times = mark.end(), times + some
        part, some = regex.subn(lambda match: self.token(match[0]), text[at:])
        return "".join([*parts, part]), times + some

    def _taken(self, value: Any, rule: str, by: list[str]) -> Any:
        if value is None or (
            isinstance(value, str) and (not value or _WHOLE_TOKEN.match(value) or value == FAILED)
        ):
            return value  # nothing is no secret
        by.append(rule)
        self._remember(value)
        return self.token(value)

    def _remember(self, value: Any) -> None:
        found = {
            form: text
            for text in _leaves(value)
            if len(text) >= _SHORTEST_REMEMBERED
            for form in _written(text)
        }
        with self._lock:
            for form, text in found.items():
                self._secrets[form] = text
                self._secrets.move_to_end(form)
                if len(self._secrets) > _REMEMBERED:
                    self._secrets.popitem(last=False)


def _pairs(keys: Iterable[str]) -> re.Pattern[str] | None:
    """A key and its value inside a text, of which the quotes are escaped six times at most: a longer run of backslashes
    would be tried from each of its places. A value that does not end (the text was
    cut), or that is no plain one, goes to the end of the text: what is not understood is taken out."""
    names = "|".join(sorted(map(re.escape, keys), key=len, reverse=True))
    if not names:
        return None
    quoted = r"(?P<quote>\\*[\"'])(?P<quoted>.*?)(?:(?<!\\)(?P=quote)|\Z)"
    return re.compile(
        rf"(?is)(?P<before>(?P<edge>\\{{0,64}}[\"'])(?P<key>{names})(?P=edge)\s*[:=]\s*(?=\S)|\b(?P<name>{names})\s*=\s*(?=\\*[\"']|[{{\[]))"
        rf"(?:{quoted}|(?P<bare>[^\s\"'\\,\]}}{{\[]+|[{{\[].*))"
    )


def _unescaped(secret: str, quote: str) -> str:
    """A secret as it was before it was written into texts within texts, so that it has the token of the value."""
    for _ in range(quote.count("\\") + 1):
        if "\\" not in secret:
            break
        try:
            secret = str(json.loads(f'"{secret}"'))
        except ValueError:
            break
    return secret


def _literals(pattern: Pattern) -> tuple[str, ...]:
    if pattern.literal is None:
        return ()
    return (pattern.literal,) if isinstance(pattern.literal, str) else pattern.literal


def _failed(error: Exception) -> str:
    swallow("redact a value", error)
    return FAILED


def _parsed(text: str) -> Any:
    """JSON text as data, also where it has lone surrogates, which orjson does not take, or integers that it would round."""
    try:
        return json.loads(text) if _LONG_NUMBER.search(text) else orjson.loads(text)
    except ValueError:
        return json.loads(text)


def _hints(literals: tuple[str, ...]) -> tuple[str, ...]:
    """Single characters of which one is in every match: looked for at the speed of memory. Empty: none are known."""
    marks = [[char for char in literal if not char.isalnum()] for literal in literals]
    return tuple({mark[0] for mark in marks}) if all(marks) else ()


def _may_match(literals: tuple[str, ...], text: str) -> bool:
    for literal in literals:
        if literal in text:
            return True
    return not literals


def _written(secret: str) -> Iterable[str]:
    """A secret as it is, and as JSON, JSON within JSON and ``repr`` write it into texts, where that is another."""
    yield secret
    if secret.isascii() and secret.isprintable() and not any(mark in secret for mark in "\\\"'"):
        return
    for text in (to_json(secret), json.dumps(secret)):
        yield text[1:-1]
        yield to_json(text[1:-1])[1:-1]
    yield repr(secret)[1:-1]


def _leaves(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield to_json(value)


def _names(given: Iterable[str], what: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    for one in names:
        if not one or type(one) is not str:
            raise ConfigurationError(f"Redaction: {what} are texts, not {one!r}.")
    return names


def _path(text: str) -> tuple[str, ...]:
    if not re.fullmatch(r"\$(?:\.[^.\[\]]+|\[(?:\d+|\*)\])+", text):
        raise ConfigurationError(f"Redaction: {text!r} is no path. Write it like $.customer.cards[*].number.")
    return tuple(
        part.strip("[]")
        for part in re.findall(r"\.[^.\[\]]+|\[(?:\d+|\*)\]", text)
        for part in [part.lstrip(".")]
    )


def _pattern(given: str | Pattern) -> Pattern:
    pattern = given if isinstance(given, Pattern) else PATTERNS.get(given) or Pattern(given, given)
    try:
        compiled = re.compile(pattern.regex)
    except re.error as problem:
        raise ConfigurationError(
            f"Redaction: {pattern.regex!r} is no regular expression ({problem}). "
            f"Known by name are {', '.join(PATTERNS)}."
        ) from problem
    if compiled.match(""):
        raise ConfigurationError(f"Redaction: {pattern.regex!r} matches the empty text, so it says nothing.")
    return pattern
