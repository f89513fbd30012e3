"""The LiteLLM example of docs/frameworks.md runs with LiteLLM itself, which the other examples' tests do not install."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from .conftest import HERE, ROOT, Programs, beside, environment_of
from .model_server import SCRIPTS, ModelServer, Usage

PAGE = ROOT / "docs" / "frameworks.md"


def test_the_example_leaves_a_span_with_what_litellm_said(
    programs: Programs, model: ModelServer, tmp_path: Path
) -> None:
    """Request, answer, tokens and finish reason, read from LiteLLM's own classes."""
    script = SCRIPTS["lookup"]
    (code,) = re.findall(
        r"^## LiteLLM\n.*?```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    (tmp_path / "example.py").write_text(code, "utf-8")
    said = programs.run(
        [
            *(environment_of("sdks", "bin/python"), HERE / "litellm_program.py"),
            *(tmp_path / "example.py", script.request),
        ],
        PYTHONPATH=os.pathsep.join(
            map(str, (beside(tmp_path, "evaluators", "instrumentation"), HERE / "loopback"))
        ),
        LITELLM_LOCAL_MODEL_COST_MAP="True",  # otherwise importing it asks the network for prices
        OPENAI_API_BASE=model.url,
        OPENAI_API_KEY="none",
    )
    (span,) = map(json.loads, said.splitlines())

    usage = Usage.of(0)
    assert span["name"] == "chat openai/scripted"
    assert span["status"] == "OK"
    assert (span["gen_ai.usage.input_tokens"], span["gen_ai.usage.output_tokens"]) == (
        usage.input,
        usage.output,
    )
    assert span["gen_ai.response.finish_reasons"] == ["stop"]
    (asked,) = json.loads(span["gen_ai.input.messages"])
    assert asked["parts"] == [{"type": "text", "content": script.request}]
    (answered,) = json.loads(span["gen_ai.output.messages"])
    assert answered["parts"] == [{"type": "text", "content": script.answer}]
