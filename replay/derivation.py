"""Arguments that were computed from a value that is replaced: a replay would compute others."""

from __future__ import annotations

import hashlib
import re

from redfirst.evaluators import Trajectory
from redfirst.replay.pseudonyms import SHORTEST, CannotRedact, Pseudonyms, leaves

_PLAIN = re.compile(r"[^a-z0-9]+")


def refuse_derived(run: Trajectory, made: Pseudonyms) -> None:
    """See that no argument of a run with pseudonyms was computed from a value that they replaced: a replay would compute
    another.

    Raises:
        CannotRedact: one was, with the tool and the argument.
    """
    sources = {value: (_PLAIN.sub("", value.lower()), _digests(value)) for value in made.of}
    related = [
        made.of[one]
        for one, (plain, _) in sources.items()
        if any(
            one != other and len(plain) >= SHORTEST and plain in source
            for other, (source, _) in sources.items()
        )
    ]  # one value inside another, or in another spelling: code may have made the one of the other
    for call in run.tool_calls:
        for key, value in (call.arguments or {}).items():
            for names, text in leaves((key,), value):
                if not names:
                    continue  # the code's own name for a member
                left = text
                for pseudonym in made.of.values():
                    left = left.replace(pseudonym, "")
                plain = _PLAIN.sub("", left.lower())
                derived = len(plain) >= SHORTEST and any(
                    plain in source or (len(source) >= SHORTEST and source in plain) or plain in digests
                    for source, digests in sources.values()
                )
                if derived or any(one in text for one in related):
                    raise CannotRedact(
                        f"argument {key} of {call.name} is derived from a value that is replaced, and a replay would "
                        f"derive another; leave that value out of redaction: in redfirst.yaml."
                    )


def _digests(value: str) -> frozenset[str]:
    body = value.encode("utf-8", "surrogatepass")
    return frozenset(
        hashlib.new(name, body, usedforsecurity=False).hexdigest() for name in ("md5", "sha1", "sha256")
    )
