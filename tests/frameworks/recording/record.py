"""Record what a framework's own instrumentation sends: ``python -m tests.frameworks.recording.record FOLDER``.

``agents.json`` names the program, framework, instrumentor, environment and scenarios of each. A program runs in that
environment (``--environments FOLDER``: one virtual environment or npm folder each), against a scripted model, and its
OTLP bodies are written to FOLDER with the truth beside them: from the script and from the tools' own log, not from
anything that reads the bodies.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.frameworks.recording.model import Server
from tests.frameworks.recording.scenarios import DELEGATING, PASSING, SCENARIOS, Scenario, handoff

HERE = Path(__file__).parent
SESSION, USER = "sess-41c8", "user-23"
_FOLDERS = re.compile(r"(/[\w.@+-]+)+/(?=(site-packages|node_modules|lib/python|recording)/)")


def main() -> None:
    """Record the programs and scenarios that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--environments", type=Path, required=True)
    parser.add_argument("--only", default="", help="captures whose name contains this")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for about in json.loads((HERE / "agents.json").read_text()):
        for scenario in about["scenarios"]:
            capture = f"{about['framework']}__{about['instrumentor']}__{scenario}"
            if options.only in capture:
                problem = record(about, scenario, options.environments, options.folder / capture)
                print(f"{capture:60} {problem or 'recorded'}", flush=True)


def record(about: dict[str, Any], name: str, environments: Path, stem: Path) -> str:
    """Run one scenario and write what came; a text says what went wrong."""
    scenario = scenario_of(about, name)
    server = Server(scenario, final_tool=about.get("final_tool"), coded=about.get("coded", False))
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "tools.jsonl"
        log.touch()
        surroundings = {
            **os.environ, **about.get("env", {}), **(about.get("nocontent", {}) if name.endswith("nocontent") else {}),
            "MODEL_URL": f"{server.url}/v1", "OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_BASE": f"{server.url}/v1",
            "OPENAI_API_KEY": "sk-fake", "OTEL_EXPORTER_OTLP_ENDPOINT": server.url, "TOOL_LOG": str(log),
            "ASKED": json.dumps(scenario.asked), "SESSION": SESSION, "USER_ID": USER, "PYTHONPATH": str(HERE),
            "OTEL_SERVICE_NAME": "support-desk", "HOME": scratch,
        }  # fmt: skip
        home = environments / about["environment"]
        program = HERE / about["program"]
        interpreter = str(home / "bin" / "python")
        if program.suffix == ".mjs":  # Node resolves packages from where the program lies
            interpreter, program = "node", Path(shutil.copy(program, home))
        command = [interpreter, str(program), name, *about.get("arguments", ())]
        try:
            done = subprocess.run(
                command, env=surroundings, capture_output=True, text=True, timeout=300, check=False
            )
        except subprocess.TimeoutExpired as problem:
            return f"no end within {problem.timeout:g} s"
        finally:
            server.close()
        tools = [json.loads(line) for line in log.read_text().splitlines()]
        tools = [{**call, "name": about.get("prefix", "") + call["name"]} for call in tools]
    said = next(
        (json.loads(line[5:]) for line in reversed(done.stdout.splitlines()) if line.startswith("DONE ")),
        None,
    )
    if said is None:
        return f"failed: {done.stderr[-1500:]}"
    texts = write_bodies(server, stem)
    stem.with_name(stem.name + ".expected.json").write_text(
        json.dumps(truth(about, name, stem.name, server, tools, said, "\n".join(texts)), indent=1) + "\n"
    )
    return "" if texts else "nothing was sent"


def scenario_of(about: dict[str, Any], name: str) -> Scenario:
    """The scenario, with what this framework needs of it."""
    if "prefix" in about:  # the framework's name of a tool is that of its plugin, then that of the function
        plain = SCENARIOS[name]
        turns = (
            replace(t, calls=tuple((about["prefix"] + n, given) for n, given in t.calls)) for t in plain.turns
        )
        return replace(plain, turns=tuple(turns))
    if name == "handoff":
        kind, call, arguments = about["handoff"]
        return handoff((call, arguments), returns={PASSING: False, DELEGATING: True}[kind])
    return SCENARIOS[name]


def write_bodies(server: Server, stem: Path) -> list[str]:
    """The bodies without the paths of the recording machine, and their texts."""
    for old in stem.parent.glob(f"{stem.name}.*"):
        old.unlink()
    kept = [(path, body) for path, body in server.bodies if path != "/v1/metrics"]
    texts: list[str] = []
    for number, (path, body) in enumerate(kept, 1):
        logs = path == "/v1/logs"
        message = ExportLogsServiceRequest() if logs else ExportTraceServiceRequest()
        message.ParseFromString(body)
        scrub(message)
        part = f".{number:03}" if len(kept) > 1 else ""
        stem.with_name(f"{stem.name}{part}{'.logs' if logs else ''}.otlp.pb").write_bytes(
            message.SerializeToString()
        )
        texts.append(json.dumps(MessageToDict(message), ensure_ascii=False))
    return texts


def scrub(message: Any) -> None:
    """Shorten paths in every text of the message and drop what the resource says of the machine."""
    for field, value in message.ListFields():
        repeated = (
            not isinstance(value, str | bytes | bool | int | float)
            and hasattr(value, "__len__")
            and not hasattr(value, "ListFields")
        )
        if field.message_type is not None:
            for item in value if repeated else [value]:
                scrub(item)
        elif isinstance(value, str) and "/" in value:
            setattr(message, field.name, _FOLDERS.sub("/", value))
    if type(message).__name__ == "Resource":
        kept = [a for a in message.attributes if not a.key.startswith(("host.", "process.", "os."))]
        del message.attributes[:]
        message.attributes.extend(kept)


def truth(about: dict[str, Any], name: str, capture: str, server: Server, tools: list[dict[str, Any]],
          said: dict[str, Any], text: str) -> dict[str, Any]:  # fmt: skip
    """What happened, in the shape of an ``expected.json``."""
    passing = about["handoff"][1] if name == "handoff" else None
    asked = [
        {"model_call": done.number, "id": call_id, "name": tool, "arguments": given}
        for done in server.answered
        for call_id, (tool, given) in zip(done.ids, done.turn.calls, strict=True)
    ]
    final = about.get("final_tool")
    answered = [done for done in server.answered if done.turn.status == 200]
    last = answered[-1].turn if answered else None
    answer = None
    if about.get("coded"):
        answer = server.scenario.turns[-1].text
    elif last is not None and said["stopped"] != "error":
        answer = last.text or next((given.get("answer") for tool, given in last.calls if tool == final), None)
    used = [done.usage for done in answered if done.usage is not None]
    requested = [call for call in asked if call["name"] not in (passing, final)]
    wanted = {
        "tool_names": [call["name"] for call in tools],
        "tool_arguments": [str(value) for call in tools for value in call["arguments"].values()],
        "tool_call_ids": [call["id"] for call in requested],
        "final_answer": [answer] if answer else [],
        "session_id": [SESSION] if about.get("session") else [],
        "user_id": [USER] if about.get("user") else [],
    }
    spans = [s for body in server.bodies if body[0] == "/v1/traces" for s in _spans(body[1])]
    return {
        "capture": capture, "framework": about["framework"], "instrumentor": about["instrumentor"], "scenario": name,
        "versions": about["versions"],
        "model_calls_ok": len(answered), "model_calls_failed": len(server.answered) - len(answered),
        "tool_calls_requested": requested,
        "tool_calls_executed": tools,
        "handoff_calls": [call for call in asked if call["name"] == passing],
        "final_answer_tool_calls": [call for call in asked if call["name"] == final],
        "tokens": {
            "input": sum(one["input"] for one in used), "output": sum(one["output"] for one in used),
            "cached_input": sum(one["cached"] for one in used), "reasoning_output": sum(one["reasoning"] for one in used),
            "calls_without_usage": len(answered) - len(used),
        },
        "final_answer": answer, "stopped": said["stopped"], "run_error": said.get("error"),
        "tool_errors": sum(call["error"] is not None for call in tools),
        "session_id_given_to_framework": SESSION if about.get("session") else None,
        "user_id_given_to_framework": USER if about.get("user") else None,
        "spans": len(spans), "traces": len({span.trace_id for span in spans}), "requests": len(server.bodies),
        "in_payload": {
            **{fact: all(value in text for value in values) if values else None for fact, values in wanted.items()},
            "token_usage": bool(used) and all(re.search(rf'(?<!\d){one["input"]}(?!\d)', text) for one in used),
        },
    }  # fmt: skip


def _spans(body: bytes) -> list[Any]:
    found = ExportTraceServiceRequest.FromString(body)
    return [span for part in found.resource_spans for scope in part.scope_spans for span in scope.spans]


if __name__ == "__main__":
    sys.exit(main())
