"""A scenario around its incident: its proof and checks, and the answers of its tools."""

from __future__ import annotations

from redfirst.collector_processor.showing.columns import ROOM, Line, brief, paragraph, row
from redfirst.collector_processor.terminal import counted
from redfirst.evaluators.declared import declared_shape
from redfirst.evaluators.explaining import explained
from redfirst.replay.scenario import Folder, ResponsePart, Scenario, ToolPart
from redfirst.replay.standing import Standing

_ANSWERS = 6
"""Answers of one tool that are shown of a scenario."""


def scenario_lines(folder: Folder, found: Standing) -> list[Line]:
    """What it is, whether it is proven, and what it asks."""
    scenario = folder.scenario
    proof = f"proven ({found.level.value})" if found.proven and found.level else found.because
    lines = row("scenario", scenario.id, style="bold")
    lines += row("proof", proof, style="green" if found.gates else "yellow")
    grades = scenario.completeness.model_dump().items()
    lines += row("grades", ", ".join(f"{name} {grade}" for name, grade in grades))
    replaced = {k: n for k, n in scenario.origin.get("redacted", {}).items() if isinstance(n, int)}
    if replaced:
        lines += row("replaced", ", ".join(f"{counted(n, 'value')} ({name})" for name, n in replaced.items()))
    if scenario.targets():
        lines += paragraph("targets", ", ".join(check.id for check in scenario.targets()), most=3)
    for check in scenario.targets():
        if "id" not in check.spec:
            continue  # a check that is always there: its name says it, and docs/rules.md
        lines += paragraph("asks", explained(declared_shape(check.spec)), most=6)
    lines += paragraph("guards", ", ".join(check.id for check in scenario.guards()) or "none", most=3)
    if scenario.kind == "incident":
        recorded = "a passing run was recorded" if folder.control is not None else "none recorded"
        lines += row("control", found.control or recorded)
    for note in scenario.origin.get("notes", ()):
        lines += paragraph("note", str(note), style="dim", most=2)
    return lines


def tool_lines(scenario: Scenario) -> list[Line]:
    """Every tool with the answers it gives."""
    lines: list[Line] = []
    for name, tool in scenario.tools.items():
        lines += _tool(name, tool, "tools" if not lines else "")
    return lines


def _tool(name: str, tool: ToolPart, label: str) -> list[Line]:
    sources = [response.source for response in tool.responses]
    counts = ", ".join(f"{sources.count(one)} {one}" for one in dict.fromkeys(sources)) or "no answers"
    effect = [(tool.effect, "yellow" if tool.effect == "write" else "dim")] if tool.effect else []
    lines = row(label, f"{name}: {counts}", *effect, style="bold")
    for response in tool.responses[:_ANSWERS]:
        lines += _response(response)
    if len(tool.responses) > _ANSWERS:
        lines += row("", f"  and {len(tool.responses) - _ANSWERS} more", style="dim")
    return lines


def _response(response: ResponsePart) -> list[Line]:
    asked = brief(response.when, ROOM // 2) if response.when else "any arguments"
    if response.error is not None:
        answer, style = f"✗ {response.error.type}: {response.error.message}", "red"
    else:
        answer, style = f"→ {brief(response.returns, ROOM)}", "dim"
    tags = [] if response.times in (1, "any") else [(f"{response.times} times", "dim")]
    tags += [] if response.source == "incident" else [(response.source, "dim")]
    lines = row("", f"  {asked} {answer}", *tags, style=style)
    for pointer, value in response.put.items():
        lines += row("", f"    ± sets {pointer} to {brief(value, 40)}", style="yellow")
    for pointer in response.unset:
        lines += row("", f"    - removes {pointer}", style="yellow")
    return lines
