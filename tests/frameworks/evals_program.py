"""Mounts evaluators of pydantic-evals and agentevals and prints what they say; ``argv[1]`` is where they are."""

import json
import sys

sys.path.append(sys.argv[1])

from redfirst.evaluators.check import judge
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.testing import a_run, call

TEXT = """
schema: redfirst.rules/1
rules:
  - id: says-it
    kind: python
    function: redfirst.evaluators.mounted:pydantic_evals
    params: {evaluator: "pydantic_evals.evaluators:Contains", arguments: {value: A-7}}
  - id: quick
    kind: python
    function: redfirst.evaluators.mounted:pydantic_evals
    params: {evaluator: "pydantic_evals.evaluators:MaxDuration", arguments: {seconds: 1}}
  - id: as-expected
    kind: python
    function: redfirst.evaluators.mounted:agentevals
    params:
      evaluator: agentevals.trajectory.match:create_trajectory_match_evaluator
      arguments: {trajectory_match_mode: MODE}
      reference:
        - {role: user, content: please}
        - {role: assistant, content: "", tool_calls: [{function: {name: get, arguments: '{"id": "A-7"}'}}]}
        - {role: tool, content: "{}"}
        - {role: assistant, content: A-7 is yours}
"""

get, pay = call("get", id="A-7"), call("pay", id="A-7")
for mode, calls, answer in (
    ("strict", [get], "A-7 is yours"),
    ("strict", [get, pay], "no"),
    ("superset", [get, pay], "A-7"),
):
    verdicts = judge(a_run(*calls, answer=answer), load_rules(TEXT.replace("MODE", mode), "rules.yaml"))
    print(json.dumps({v.check: [v.outcome, v.because] for v in verdicts}))
