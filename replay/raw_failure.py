"""How a run failed before its values were replaced, kept in its scenario as keyed hashes: a new run is compared by them.

A subject may hold a value that a pseudonym stands for, and then no raw run fails with the scenario's own subject. The
hashes depend on the project's key and on the incident, as the pseudonyms do: they say nothing to who has not the key.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redfirst.replay.outcome import Signature

Json = Any

ORIGIN_KEY = "failed_as"
"""Where it stands under ``origin`` of a scenario."""
ASKED_KEY = "asked_as"
"""Where the hash of the raw request stands."""


def kept(raw: Signature, *, key: bytes, trace_id: str) -> dict[str, Json]:
    """What a scenario keeps of the raw failure of its incident."""
    made = hmac.digest(key, f"failed as {trace_id}".encode(), "sha256")
    items = sorted(
        [check, revision, _hashed(made, check, revision, subject)] for check, revision, subject in raw
    )
    return {"key": _mark(made), "items": items}


def asked_as(request: str, *, key: bytes, trace_id: str) -> str:
    """What a scenario keeps of the raw words that its run began with."""
    made = hmac.digest(key, f"asked as {trace_id}".encode(), "sha256")
    return hmac.new(made, request.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class RawFailure:
    """The raw failure of an incident, as its scenario keeps it."""

    key: bytes
    items: frozenset[tuple[str, str, str]]
    """Check, revision, hash of the subject."""

    def within(self, failed: Signature) -> bool:
        """Whether a run that failed so failed in all of it."""
        about = {(check, revision) for check, revision, _ in self.items}
        return self.items <= {
            (check, revision, _hashed(self.key, check, revision, subject))
            for check, revision, subject in failed
            if (check, revision) in about
        }


class AnotherKey(Exception):
    """The pseudonyms were made with another key than the project has now."""


def raw_failure(origin: Mapping[str, Json], targets: Signature, key: bytes | None) -> RawFailure | None:
    """What the origin of a scenario says; ``None`` where nothing was replaced in the subjects of its targets.

    Raises:
        AnotherKey: nothing can be compared with it.
    """
    said = origin.get(ORIGIN_KEY)
    if said is None:
        return None
    try:
        mark = str(said["key"])
        items = frozenset(
            (str(check), str(revision), str(hashed)) for check, revision, hashed in said["items"]
        )
    except (KeyError, TypeError, ValueError):
        return None  # edited by hand: what it was of cannot be told
    if {item[:2] for item in items} != {item[:2] for item in targets}:
        return None  # the targets were edited since
    made = hmac.digest(key or b"", f"failed as {origin.get('trace_id')}".encode(), "sha256")
    if key is None or not hmac.compare_digest(_mark(made), mark):
        raise AnotherKey
    return RawFailure(key=made, items=items)


def _hashed(key: bytes, check: str, revision: str, subject: str) -> str:
    text = "\0".join((check, revision, subject)).encode("utf-8", "surrogatepass")
    return hmac.new(key, text, hashlib.sha256).hexdigest()[:32]


def _mark(key: bytes) -> str:
    return hmac.digest(key, b"which key", "sha256").hex()[:16]
