"""SARIF 2.1.0: each check that failed is a result at its place in ``scenario.yaml``.

Source: Static Analysis Results Interchange Format Version 2.1.0, OASIS Standard, sections 3.13 (log), 3.14
(run), 3.20 (invocation), 3.27 (result) and 3.35 (suppression).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

from redfirst.collector_processor.summaries.case import Case, Failure
from redfirst.collector_processor.terminal import clean
from redfirst.replay.outcome import RunOutcome

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "redfirstFailure/v1"


def sarif(cases: Sequence[Case], *, root: Path) -> bytes:
    """The cases as one run; paths are told from ``root``, where code scanning takes them from."""
    rules = sorted({failure.check for case in cases for failure in case.failures})
    unsure = [case for case in cases if case.outcome is RunOutcome.NO_VERDICT]
    run = {
        "tool": {
            "driver": {
                "name": "redfirst",
                "version": version("redfirst"),
                "rules": [{"id": rule, "shortDescription": {"text": f"check {rule}"}} for rule in rules],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not any(case.counted for case in unsure),
                "toolExecutionNotifications": [_notification(case, root) for case in unsure],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(case, failure, rules.index(failure.check), root)
            for case in cases
            for failure in case.failures
        ],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return (json.dumps(log, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def _result(case: Case, failure: Failure, rule: int, root: Path) -> dict[str, object]:
    subjects = f" [{', '.join(failure.subjects)}]" if failure.subjects else ""
    result: dict[str, object] = {
        "ruleId": failure.check,
        "ruleIndex": rule,
        "kind": "fail",
        "level": "error" if case.counted else "note",
        "message": {"text": clean(f"{case.name}: {failure.because}{subjects}")},
        "locations": [_location(case, root, failure.line)],
        "partialFingerprints": {FINGERPRINT: failure.fingerprint},
    }
    if not case.counted:
        result["suppressions"] = [{"kind": "external", "justification": clean(case.set_aside)}]
    return result


def _notification(case: Case, root: Path) -> dict[str, object]:
    return {
        "level": "error" if case.counted else "note",
        "message": {"text": clean(f"{case.name} has no verdict: {case.because}")},
        "locations": [_location(case, root, 1)],
    }


def _location(case: Case, root: Path, line: int) -> dict[str, object]:
    full, base = case.file.resolve(), root.resolve()
    artifact = (
        {"uri": quote(full.relative_to(base).as_posix()), "uriBaseId": "%SRCROOT%"}
        if full.is_relative_to(base)
        else {"uri": full.as_uri()}
    )
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": line}}}
