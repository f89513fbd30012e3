"""Which agents a project has, and what is said when the configuration is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from redfirst.evaluators import ConfigurationError
from redfirst.replay.project import load_project


def test_pyproject_and_redfirst_yaml_say_the_same(tmp_path: Path) -> None:
    """Either file configures an agent; it is found from any folder below."""
    one, two = tmp_path / "one", tmp_path / "two"
    (one / "deep").mkdir(parents=True)
    two.mkdir()
    (one / "pyproject.toml").write_text(
        '[tool.redfirst.agents.support]\ncall = "app:make"\ninput = "messages"\n'
    )
    (two / "redfirst.yaml").write_text("agents:\n  support: {call: app:make, input: messages}\n")

    assert load_project(one / "deep").settings == load_project(two).settings
    assert load_project(one / "deep").agent("support") == "app:make"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agent:\n  a: {call: x:y}\n", r"redfirst\.yaml:1: agent: .*did you mean agents?"),
        (
            "agents:\n  a: {call: nonsense}\n",
            r"redfirst\.yaml:2: agents\.a\.call: .nonsense. is no reference; give it as module:factory",
        ),
        ("agents:\n  a: app:make\n", r"agents\.a: 'app:make' is no mapping; give it keys, as in \{call: "),
        ("redaction: 5\n", r"redaction: 5 is no mapping; give it keys$"),
        ("agents: [\n", r"redfirst\.yaml:\d"),
        ("- 1\n", "a mapping of settings is expected"),
    ],
)
def test_a_wrong_configuration_is_one_line_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    """Key, line, remedy."""
    (tmp_path / "redfirst.yaml").write_text(text)

    with pytest.raises(ConfigurationError, match=said) as problem:
        load_project(tmp_path)
    assert "\n" not in str(problem.value)


def test_an_agent_that_is_not_configured_is_named_with_the_remedy(tmp_path: Path) -> None:
    """What was asked, what is there, what to write."""
    with pytest.raises(ConfigurationError, match=r"agent 'bot' is not configured .* redfirst.yaml"):
        load_project(tmp_path).agent("bot")


@pytest.mark.parametrize("reference", ["app", "app:", "app:make()", "app:make;print(1)", "../app:make"])
def test_only_a_reference_is_a_reference(tmp_path: Path, reference: str) -> None:
    """Nothing else is ever imported."""
    with pytest.raises(ConfigurationError, match="module:factory"):
        load_project(tmp_path).agent("bot", reference)


def test_a_request_is_given_in_the_form_the_agent_takes(tmp_path: Path) -> None:
    """Text and a conversation of one message are the same request."""
    (tmp_path / "redfirst.yaml").write_text(
        "agents:\n  t: {call: a:b, input: text}\n  m: {call: a:b, input: messages}\n"
    )
    project = load_project(tmp_path)
    messages = [{"role": "user", "content": "hi"}]

    assert project.request_for("m", {"text": "hi"}) == {"messages": messages}
    assert project.request_for("t", {"messages": messages}) == {"text": "hi"}
    with pytest.raises(ConfigurationError, match="has 2 messages"):
        project.request_for("t", {"messages": messages * 2})
