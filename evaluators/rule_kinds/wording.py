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
    "kind": "require_before, require_after, forbid, mutually_exclusive, max_calls, max_consecutive, sequence,"
    " invariant, no_flow, args_schema, budget, approval, state_diff, termination or python, as in kind: require_before",
    "severity": "info, note, flag or page, as in severity: page",
    "missing": "failed or ignore, as in missing: ignore (leave it out for inconclusive)",
    "order": "decided or executed, as in order: executed",
    "attempts": "true or false, as in attempts: true",
    "once": "true or false, as in once: true",
    "same": "a list of paths, or of pairs of paths, as in same: [args.order_id]",
    "call": f"{_PATTERN}, as in call: {_WHERE}",
    "needs": f"{_PATTERN}, as in needs: {{tool: approve, where: {{result.approved: true}}}}",
    "after": f"{_PATTERN}, as in after: escalate",
    "max": "a number, 0 or more (a row has at least 1), as in max: 1",
    "calls": "a list of at least two, as in calls: [refund, replace_item]",
    "scope": "trace, subtree or agent, as in scope: agent (where calls are counted trace or agent alone)",
    "within": "an ISO 8601 duration, as in within: PT10M",
    "within_steps": "a whole number of model turns, as in within_steps: 3",
    "until": f"{_PATTERN}, as in until: logout",
    "covers": "what the need must be worth for the call, as in covers: {result.max_amount: {ge: call.args.amount}}",
    "must": "a condition, as in must: {ge: 500}; of args_schema, conditions by path",
    "from": f"{_PATTERN}, as in from: [fetch_web, read_email]",
    "to": "a tool and its arguments, as in to: {tool: send_email, arg: args.to}",
    "arg": "a path or a list of paths, as in arg: args.to",
    "trusted": "a list of tools, as in trusted: [get_contacts]",
    "mode": "value or order, as in mode: order",
    "unless": f"{_PATTERN}, as in unless: $event.approval",
    "pattern": 'a regular expression, as in pattern: "AKIA[0-9A-Z]{16}"',
    "differs": "a list of pairs of paths, as in differs: [[result.origin, args.origin]]",
    "limits": "a mapping of resources, as in limits: {tool_calls: 20, usd: 0.2}",
    "model_calls": "a whole number, as in model_calls: 12",
    "tool_calls": "a whole number, as in tool_calls: 20",
    "tokens": "a whole number, as in tokens: 20000 (of a test, {input: 80, output: 20})",
    "seconds": "a number, as in seconds: 60",
    "usd": "a number, as in usd: 0.2",
    "sum": "a path, as in sum: args.amount",
    "approval": f"{_PATTERN}, as in approval: $event.approval",
    "distinct": "a whole number, 1 or more, as in distinct: 2",
    "approver": "a path, as in approver: args.approver",
    "together": "a list of at least two patterns, as in together: [accounts.A.balance, accounts.B.balance]",
    "ends": "one or several ends, as in ends: [completed, handoff, refused]",
    "answer": "a condition, as in answer: {exists: true}; of a test a text, of an outcome answer: {contains: [A-7, 120.00]}",
    "pending": "true or false, as in pending: false",
    "tool": "the name of a tool or a list of names, as in tool: [refund, cancel_order]",
    "where": "conditions by path, as in where: {args.amount: {gt: 100}}",
    "status": "one or several of ok, tool_error, infra_error, denied, not_executed and unknown,"
    " as in status: [ok, tool_error]",
    "when": "conditions on the request or the agent, as in when: {request: {matches: cancel}}",
    "request": "a condition, as in request: {matches: cancel} (of a test, a text)",
    "agent": "a condition or a name, as in agent: support",
    "required_calls": f"a list of at least one call, as in required_calls: [get_order, {_WHERE}]",
    "required": "a list of paths with what must stand there, as in"
    " required: [{path: orders.A-1.status, equals: cancelled}]",
    "allowed": "a list of patterns, as in allowed: [{path: orders.*.status, mentioned: true}]",
    "collateral": "fail or ignore, as in collateral: fail",
    "tests": "a list of tests, as in tests: [{steps: [delete_account], expect: {never-delete: failed}}]",
    "name": "a text, as in name: verified first",
    "before": "a list of steps of the earlier conversation, as in before: [{tool: verify, args: {id: 7}}]",
    "event": "the name of an event, as in event: approval",
    "user": 'a text, as in user: "yes, please"',
    "system": 'a text, as in system: "be polite"',
    "handoff": "the name of an agent, as in handoff: billing",
    "result": "a value, as in result: {verified: true}",
    "error": "a text, as in error: no such order",
    "turn": "the number of a model turn, as in turn: 0",
    "at": 'a date and time, as in at: "2026-11-30T10:00:00Z"',
    "effect": "read, write or control, as in effect: write",
    "idempotent": "true or false, as in idempotent: true",
    "poll": "true or false, as in poll: true",
    "unrecorded": "args, result or both, as in unrecorded: [result]",
    "stop": "a reason of termination, as in stop: step_cap",
    "cap": "a whole number, as in cap: 12",
    "complete": "true or false, as in complete: false",
    "trace": "the path of an OTLP file, from the folder of the rules file, as in trace: good.jsonl",
    "expect": "outcomes by rule, as in expect: {never-delete: passed}",
    "path": "keys joined by dots, as in path: orders.A-1.status",
    "reference": "a mapping, as in reference: {steps: [get_order, cancel_order]}",
    "match": "strict, unordered, subset or superset, as in match: superset",
    "steps": "a list of at least one step, as in steps: [get_order, {tool: cancel_order, args: {order_id: A-1}}]"
    " (a sequence has at least two; of a budget, a whole number)",
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
    "by": "request or first_tools, as in by: request (of a budget, a list of paths, as in by: [args.order_id])",
    "share": "a number above 0, at most 1, as in share: 0.95",
    "runs_at_least": "a whole number, 1 or more, as in runs_at_least: 20",
    "signatures": "a list of at least one signature, as in"
    " signatures: [{signature: cancel, runs: 40, tools: {get_order: [40]}}]",
    "signature": "a text, as in signature: cancel my order",
    "runs": "a whole number, 1 or more, as in runs: 40",
    "tools": "lists of counts by tool, as in tools: {get_order: [40, 3]}",
    "outcome": "what a run of the task must come to, as in outcome: {answer: {contains: A-7}}",
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
