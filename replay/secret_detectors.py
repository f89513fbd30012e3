"""Secrets and personal data that texts are scanned for, each by name.

A detector gives the exact texts it takes for secret; it decides by form and checksum, never by a dictionary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

Detector = Callable[[str], Iterator[str]]


def _pattern(expression: str, group: int = 0) -> Detector:
    compiled = re.compile(expression)

    def found(text: str) -> Iterator[str]:
        for match in compiled.finditer(text):
            yield match[group]

    return found


def _cards(text: str) -> Iterator[str]:
    """Numbers of 13 to 19 digits whose last is the check digit of ISO/IEC 7812-1 (Luhn)."""
    for match in re.finditer(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-]|\.\d)", text):
        digits = [int(c) for c in match[0] if c.isdigit()]
        doubled = [
            d if place % 2 == 0 else sum(divmod(2 * d, 10)) for place, d in enumerate(reversed(digits))
        ]
        if len(set(digits)) > 1 and sum(doubled) % 10 == 0:
            yield match[0]


def _ibans(text: str) -> Iterator[str]:
    """Account numbers whose check digits are those of ISO 13616 (modulo 97)."""
    for match in re.finditer(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?(?!\w)", text):
        plain = match[0].replace(" ", "")
        if 15 <= len(plain) <= 34 and int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1:
            yield match[0]


SECRETS: Mapping[str, Detector] = {
    "private_key": _pattern(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----"),
    "aws_access_key": _pattern(r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"),
    "github_token": _pattern(r"(?<!\w)(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,})"),
    "gitlab_token": _pattern(r"(?<!\w)glpat-[\w-]{20,}"),
    "slack_token": _pattern(r"(?<!\w)xox[abeoprs]-[\w-]{10,}"),
    "model_api_key": _pattern(r"(?<![\w-])sk-(?:ant-|proj-|or-|lf-)?[A-Za-z0-9_-]{20,}"),
    "google_api_key": _pattern(r"(?<!\w)AIza[\w-]{35}"),
    "stripe_key": _pattern(r"(?<!\w)[rs]k_live_[A-Za-z0-9]{16,}"),
    "jwt": _pattern(r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    "bearer_token": _pattern(r"(?i)(?<!\w)bearer ([\w.~+/-]{16,}=*)", 1),
    "password_in_url": _pattern(r"(?i)[a-z][a-z0-9+.-]{0,30}://[^\s/:@\"'\\]+:([^\s/@\"'\\]{4,})@", 1),
    "card": _cards,
    "iban": _ibans,
}
"""Looked for in every scenario that is frozen."""
PERSONAL: Mapping[str, Detector] = {
    "email": _pattern(r"(?<![\w.+-])[\w.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"),
    "phone": _pattern(r"(?<![\w.+])\+\d[\d ()-]{7,17}\d(?!\w)"),
}
"""Looked for when they are asked for."""
SECRET_KEYS = re.compile(
    r"^(?:.*[_-]|.*[a-z0-9](?=[A-Z]))?(?i:password|passwd|passphrase|secret|api[_-]?key"
    r"|(?:access|refresh|auth|session)[_-]?token|authorization|private[_-]?key)(?i:s?)$"
)
"""Names of values that are secret whatever they look like, and of objects and lists of such values."""
