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
    "kind": "require_before, forbid, max_calls or python, as in kind: require_before",
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
    "reference": "a mapping, as in reference: {steps: [get_order, cancel_order]}",
    "match": "strict, unordered, subset or superset, as in match: superset",
    "steps": "a list of at least one step, as in steps: [get_order, {tool: cancel_order, args: {order_id: A-1}}]",
    "any_of": "a list of lists of steps, as in any_of: [[get_order], [search_orders, get_order]]",
    "unordered": "a list of at least one step, as in unordered: [get_order, get_customer]",
    "args": "matchers by argument, as in args: {order_id: A-1}",
    "only": "true or false, as in only: true",
    "optional": "true or false, as in optional: true",
    "facts": "a list of facts, as in"
    " facts: [{id: status, from_any: [{tool: get_order, path: result.status, equals: shipped}]}]",
    "from_any": "a list of at least one way to learn the fact, as in"
    " from_any: [{tool: get_order, path: result.status, equals: shipped}]",
    "learned": "a mapping, as in learned: {signatures: [{signature: cancel, runs: 40, tools: {get_order: [40]}}]}",
    "by": "request or first_tools, as in by: request",
    "share": "a number above 0, at most 1, as in share: 0.95",
    "runs_at_least": "a whole number, 1 or more, as in runs_at_least: 20",
    "signatures": "a list of at least one signature, as in"
    " signatures: [{signature: cancel, runs: 40, tools: {get_order: [40]}}]",
    "signature": "a text, as in signature: cancel my order",
    "runs": "a whole number, 1 or more, as in runs: 40",
    "tools": "lists of counts by tool, as in tools: {get_order: [40, 3]}",
    "outcome": "what a run of the task must come to, as in outcome: {answer: {contains: A-7}}",
    "answer": "what the answer must be, as in answer: {contains: [A-7, 120.00]}",
    "contains": "a text, a number, or a list of them, as in contains: [A-7, 120.00]",
    "matches": "a regular expression, as in matches: (?i)cancelled",
    "function": "module:function, or the name of an installed check, as in function: my_checks:no_weekend_refund",
    "params": "arguments of the function by name, as in params: {limit: 3}",
    "class": "goal, protection, budget, judge or trajectory, as in class: protection",
    "mentioned": "true or false, as in mentioned: true",
}
_LONGEST = 80


def expected(key: str, found: object) -> str:
    """The complaint about what stands at a key."""
    shown = "nothing" if found is None else repr(found)
    shown = shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
    return f"{key}: expected {EXPECTED[key]}; found {shown}"
