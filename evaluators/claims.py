"""The ids, numbers and dates that a text states, each in one form however it is written.

Left out, because nobody can be held to them: whole numbers up to 12 (counts, places in a list, days), years, times of
day, addresses of the web and of mail, what stands in a fenced block. Money is a claim however small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal

Kind = Literal["id", "number", "date"]
Day = tuple[int | None, int, int]
"""Year, where one is given, month and day."""

SMALL = 12
LONG_NUMBER = 7
"""Digits from which a whole number names something instead of counting."""
LONGEST_NUMBER = 24
LONGEST_ID = 100
_YEARS = range(1900, 2101)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DATES = (
    re.compile(r"(?<![\w.-])(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?:(?=[Tt]\d)|(?![\w-]))"),
    re.compile(r"(?<![\w.-])(?P<a>\d{1,2})(?P<sep>[-/.])(?P<b>\d{1,2})(?P=sep)(?P<y>\d{4})(?![\w-])"),
    re.compile(
        rf"\b(?P<n>{_MONTH}) (?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<y>\d{{4}})\b)?", re.IGNORECASE
    ),
    re.compile(
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<n>{_MONTH})(?:,? (?P<y>\d{{4}})\b)?", re.IGNORECASE
    ),
)
_SKIPPED = re.compile(
    r"```.*?(?:```|\Z)|https?://\S+|[\w.+-]+@[\w-]+\.[\w.-]+|"  # code, addresses
    r"\b\d{1,2}(?::\d{2}){1,2}(?:\.\d+)?(?: ?[ap]\.?m\b\.?)?|\b\d{1,2} ?[ap]\.?m\b\.?|"  # times of day
    r"^[ \t]*\d{1,3}[.)](?=\s)",  # places in a list
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_PHONE = re.compile(r"(?<![\w.-])(?:\+\d{1,3}[ .-]?)?\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?![\w-])")
_TOKEN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.,:/-]*[A-Za-z0-9_])?")
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_WITH_UNIT = re.compile(r"(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)-?[a-z]+")
_PARTS = re.compile(r"[-/:,]")
_MONEY_BEFORE = re.compile(r"(?:[$€£¥₹]|\b(?:USD|EUR|GBP|JPY|CHF|INR))\s?-?$")
_MONEY_AFTER = re.compile(r"\s?(?:[€£¥₹]|(?:USD|EUR|GBP|JPY|CHF|INR|dollars?|euros?)\b)")
_PERCENT = re.compile(r"\s?(?:%|percent\b|per cent\b)")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that a text states; equal claims may be written differently."""

    kind: Kind
    value: str | Decimal | Day
    text: str
    """As it is written."""
    percent: bool = False

    @property
    def name(self) -> str:
        """The value in one form."""
        if isinstance(self.value, tuple):
            year, month, day = self.value
            return f"{f'{year:04}-' if year else ''}{month:02}-{day:02}"
        return str(self.value)


def claims(text: str) -> list[Claim]:
    """What the text states, each once, in its order."""
    if not any(map(str.isdigit, text)):
        return []
    found = [(place, claim) for place, claim in _all(text) if not _exempt(claim)]
    unique = {(claim.kind, claim.value): claim for _, claim in sorted(found, key=lambda pair: pair[0])}
    return list(unique.values())


def whole_id(text: str) -> str | None:
    """The id that a text is as a whole, in one form; None where it is none."""
    token = text.strip().lstrip("#")
    if not 2 <= len(token) <= LONGEST_ID or not any(map(str.isdigit, token)) or not _TOKEN.fullmatch(token):
        return None
    if token[0].isdigit() and (_DATES[0].match(token) or _SKIPPED.match(token)):
        return None
    found = list(_of(token, "", ""))
    return found[0].name if len(found) == 1 and found[0].kind == "id" and found[0].text == token else None


def numbers_in(text: str) -> set[Decimal]:
    """Every number in a text that is evidence, however small."""
    return {Decimal(one.replace(",", "")) for one in _NUMBER.findall(text) if len(one) <= LONGEST_NUMBER}


def days_in(text: str) -> set[Day]:
    """Every day that is named in a text; where day and month may be either, both."""
    return {day for _, days, _ in _days(text) for day in days}


def _exempt(claim: Claim) -> bool:
    value = claim.value
    return (
        isinstance(value, Decimal)
        and "." not in claim.text
        and not claim.text.startswith("$")
        and (
            value <= SMALL
            or (claim.percent and value == 100)
            or (int(value) in _YEARS and claim.text.isdigit())
        )
    )


def _all(text: str) -> Iterator[tuple[int, Claim]]:
    text = _SKIPPED.sub(_blank, text)
    for match, days, shown in _days(text):
        yield match, Claim("date", days[0], shown)
    for pattern in _DATES:
        text = pattern.sub(_blank, text)
    for phone in _PHONE.finditer(text):
        yield phone.start(), Claim("id", "".join(filter(str.isdigit, phone[0])), phone[0])
    text = _PHONE.sub(_blank, text)
    for token in _TOKEN.finditer(text):
        if any(map(str.isdigit, token[0])):
            for claim in _of(
                token[0], text[max(0, token.start() - 5) : token.start()], text[token.end() :][:12]
            ):
                yield token.start(), claim


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _of(token: str, left: str, right: str) -> Iterator[Claim]:
    """The claims in a token between blanks or punctuation: one id, or the numbers of it."""
    if _NUMBER.fullmatch(token):
        money = bool(_MONEY_BEFORE.search(left) or _MONEY_AFTER.match(right))
        if token.isdigit() and len(token) >= LONG_NUMBER and not money:
            yield Claim("id", token, token)
        elif len(token) <= LONGEST_NUMBER:
            value = Decimal(token.replace(",", ""))
            yield Claim("number", value, f"${token}" if money else token, bool(_PERCENT.match(right)))
    elif _ORDINAL.fullmatch(token):
        return
    elif unit := _WITH_UNIT.fullmatch(token):
        yield from _of(unit[1], left, "")
    elif _names(token):
        yield Claim("id", token.casefold(), token)
    elif len(parts := [part for part in _PARTS.split(token) if part]) > 1:
        for part in parts:
            if any(map(str.isdigit, part)):
                yield from _of(part, left, right)


def _names(token: str) -> bool:
    """Whether a token looks like the name of a thing: letters and digits in one, as nobody writes words."""
    if not any(map(str.isalpha, token)):
        return token.count(".") > 1 or (token.count("-") > 0 and len(token) > 2 * LONG_NUMBER)
    if not token[0].isalpha() and _PARTS.search(token) and token.lower() == token and "_" not in token:
        return len(token) >= 32  # a UUID; shorter ones are ranges with a unit, as in 3-5-day
    return len(token) > 3 or "-" in token or "_" in token


def _days(text: str) -> Iterator[tuple[int, list[Day], str]]:
    for pattern in _DATES:
        for match in pattern.finditer(text):
            named = match.groupdict()
            year = int(named["y"]) if named.get("y") else None
            if "n" in named:
                pairs = [(_MONTHS.index(named["n"][:3].lower()) + 1, int(named["d"]))]
            elif "m" in named:
                pairs = [(int(named["m"]), int(named["d"]))]
            else:
                one, other = int(named["a"]), int(named["b"])
                pairs = [(one, other), (other, one)] if named["sep"] == "/" else [(other, one), (one, other)]
            days = [(year, month, day) for month, day in dict.fromkeys(pairs) if _exists(year, month, day)]
            if days:
                yield match.start(), days, match[0]


def _exists(year: int | None, month: int, day: int) -> bool:
    try:
        date(year or 2000, month, day)
    except ValueError:
        return False
    return True
