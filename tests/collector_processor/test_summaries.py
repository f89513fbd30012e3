"""What other tools read of a run: JUnit XML, SARIF, Markdown."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

from redfirst.collector_processor.summaries.case import Case, Failure
from redfirst.collector_processor.summaries.junit import junit
from redfirst.collector_processor.summaries.markdown import markdown
from redfirst.collector_processor.summaries.sarif import sarif
from redfirst.replay.outcome import RunOutcome

FAILURE = Failure(
    check="no-refund",
    because="refund was called <b>\x00&</b>",
    subjects=("refund|C-1",),
    fingerprint="f" * 32,
    line=12,
)


def case(name: str, outcome: RunOutcome, **more: object) -> Case:
    given: dict[str, object] = {
        "agent": "shop",
        "file": Path("scenarios") / name / "scenario.yaml",
        "because": "why | not *this* <script>",
        "counted": True,
        "failures": (FAILURE,) if outcome is RunOutcome.RED else (),
    } | more
    return Case(name=name, outcome=outcome, **given)  # type: ignore[arg-type] # fields by name


CASES = [
    case("green", RunOutcome.GREEN),
    case("red", RunOutcome.RED, account=("no-refund (target): \x1b[31m<b>",)),
    case("lost", RunOutcome.NO_VERDICT),
    case("held", RunOutcome.RED, counted=False, set_aside="quarantined until 2026-12-02: flaky"),
    case("draft", RunOutcome.NO_VERDICT, counted=False, set_aside="draft: not proven yet"),
]


def test_junit_has_a_failure_for_red_an_error_for_no_verdict_and_a_skip_for_what_does_not_count() -> None:
    """The counts are those of the elements, and no value of a trace breaks the document."""
    suite = ET.fromstring(junit(CASES)).find("testsuite")

    assert suite is not None
    assert [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["5", "1", "1", "2"]
    inside = {one.get("name"): [child.tag for child in one] for one in suite}
    assert inside == {
        "green": [],
        "red": ["failure"],
        "lost": ["error"],
        "held": ["skipped"],
        "draft": ["skipped"],
    }
    assert suite.find("testcase[@name='red']/failure").text == "no-refund (target): �[31m<b>"  # type: ignore[union-attr]


def test_junit_names_files_from_the_current_folder_as_sarif_does(tmp_path: Path) -> None:
    """A path below it is told from there, another one in full."""
    inside, outside = Path.cwd() / "scenarios" / "scenario.yaml", tmp_path / "scenario.yaml"
    files = [
        one.get("file")
        for one in ET.fromstring(
            junit([case(path.parent.name, RunOutcome.GREEN, file=path) for path in (inside, outside)])
        ).iter("testcase")
    ]

    assert files == ["scenarios/scenario.yaml", str(outside)]


def test_sarif_names_the_check_its_place_and_a_fingerprint_that_stays(tmp_path: Path) -> None:
    """What the standard requires: version, runs, tool.driver.name, message.text; ruleIndex points at the rule."""
    log = json.loads(sarif(CASES, root=Path.cwd()))
    (run,) = log["runs"]
    red, held = run["results"]

    assert log["version"] == "2.1.0"
    assert run["tool"]["driver"]["name"] == "redfirst"
    assert run["tool"]["driver"]["rules"][red["ruleIndex"]]["id"] == red["ruleId"] == "no-refund"
    assert (red["level"], red["kind"]) == ("error", "fail")
    assert red["message"]["text"] == "red: refund was called <b>�&</b> [refund|C-1]"
    assert red["partialFingerprints"] == {"redfirstFailure/v1": "f" * 32}
    place = red["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "scenarios/red/scenario.yaml", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 12}
    assert held["suppressions"] == [
        {"kind": "external", "justification": "quarantined until 2026-12-02: flaky"}
    ]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert [n["level"] for n in invocation["toolExecutionNotifications"]] == ["error", "note"]
    elsewhere = json.loads(sarif(CASES[1:2], root=tmp_path))["runs"][0]["results"][0]["locations"][0]
    assert elsewhere["physicalLocation"]["artifactLocation"]["uri"].startswith("file:///")


def test_the_markdown_summary_puts_the_worst_first_and_shows_values_as_text() -> None:
    """Counts on top, what does not count last, and no mark-up from a value."""
    lines = markdown(CASES, "1 RED; 1 draft not counted; 1 quarantined").decode().splitlines()

    assert lines[0] == "**redfirst: 1 RED; 1 draft not counted; 1 quarantined**"
    assert [line.split("|")[1].strip() for line in lines[4:]] == ["red", "lost", "green", "held", "draft"]
    assert "why \\| not \\*this\\* &lt;script&gt;" in lines[4]
    assert "not counted: quarantined until 2026-12-02: flaky" in lines[7]
