"""What each key of a rules file takes, in words and by an example, for whoever wrote something else there."""

from __future__ import annotations

from collections.abc import Mapping

_PATTERN = "a tool, a list of tools, or a mapping"
_WHERE = "{tool: refund, where: {args.amount: {gt: 100}}}"

EXPECTED: Mapping[str, str] = {
    "schema": "the version of the format, as in schema: redfirst.rules/1",
    "rules": "a list of rules, as in rules: [{id: never-delete, kind: forbid, call: delete_account}]",
    "tasks": "a list of tasks, as in"
    " tasks: [{id: cancel, when: {request: {matches: cancel}}, required_calls: [cancel_order]}]",
    "state": "a mapping, as in state: {allowed: [{path: log.**}]}",
    "scopes": "a list of mappings, as in scopes: [{allowed: [{path: log.**}]}]",
    "id": "up to 100 letters, digits, _ . and -, a letter or digit first, as in id: verify-before-cancel",
    "kind": "require_before, forbid or max_calls, as in kind: require_before",
    "severity": "info, note, flag or page, as in severity: page",
    "missing": "failed or ignore, as in missing: ignore (leave it out for inconclusive)",
    "order": "decided or executed, as in order: executed",
    "attempts": "true or false, as in attempts: true",
    "once": "true or false, as in once: true",
    "same": "a list of paths, or of pairs of paths, as in same: [args.order_id]",
    "call": f"{_PATTERN}, as in call: {_WHERE}",
    "needs": f"{_PATTERN}, as in needs: {{tool: approve, where: {{result.approved: true}}}}",
    "after": f"{_PATTERN}, as in after: escalate",
    "max": "a whole number, 0 or more, as in max: 1",
    "tool": "the name of a tool or a list of names, as in tool: [refund, cancel_order]",
    "where": "conditions by path, as in where: {args.amount: {gt: 100}}",
    "status": "one or several of ok, tool_error, infra_error, denied, not_executed and unknown,"
    " as in status: [ok, tool_error]",
    "when": "conditions on the request or the agent, as in when: {request: {matches: cancel}}",
    "request": "a condition, as in request: {matches: cancel}",
    "agent": "a condition, as in agent: support",
    "required_calls": f"a list of at least one call, as in required_calls: [get_order, {_WHERE}]",
    "required": "a list of paths with what must stand there, as in"
    " required: [{path: orders.A-1.status, equals: cancelled}]",
    "allowed": "a list of patterns, as in allowed: [{path: orders.*.status, mentioned: true}]",
    "collateral": "fail or ignore, as in collateral: fail",
    "path": "keys joined by dots, as in path: orders.A-1.status",
    "mentioned": "true or false, as in mentioned: true",
}
_LONGEST = 80


def expected(key: str, found: object) -> str:
    """The complaint about what stands at a key."""
    shown = "nothing" if found is None else repr(found)
    shown = shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
    return f"{key}: expected {EXPECTED[key]}; found {shown}"
