"""JUnit XML: RED is a failure, no verdict an error, what does not count is skipped."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from redfirst.collector_processor.summaries.case import Case
from redfirst.collector_processor.terminal import clean, near
from redfirst.replay.outcome import RunOutcome


def junit(cases: Sequence[Case]) -> bytes:
    """The cases as one suite, in the form that Jenkins, GitLab and GitHub's reporters read."""
    kinds = [_kind(case) for case in cases]
    counts = {
        "name": "redfirst",
        "tests": str(len(cases)),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")),
    }
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", counts)
    for case, kind in zip(cases, kinds, strict=True):
        one = ET.SubElement(
            suite,
            "testcase",
            name=clean(case.name),
            classname=clean(case.agent),
            file=clean(near(case.file)),
        )
        if kind:
            told = clean(case.set_aside if kind == "skipped" else case.because)
            under = ET.SubElement(one, kind, message=told)
            if kind == "skipped":
                under.text = clean(f"{case.outcome.value}: {case.because}")
            else:
                under.set("type", case.outcome.value)
                under.text = "\n".join(map(clean, case.account))
        if case.notes:
            ET.SubElement(one, "system-out").text = "\n".join(map(clean, case.notes))
    ET.indent(root)
    body: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return body + b"\n"


def _kind(case: Case) -> str:
    if not case.counted:
        return "skipped"
    return {RunOutcome.RED: "failure", RunOutcome.NO_VERDICT: "error"}.get(case.outcome, "")
