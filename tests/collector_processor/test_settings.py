"""The settings of the service, from the file and from the environment."""

from __future__ import annotations

import pytest

from redfirst.collector_processor.settings import ServeSettings, configured, in_force
from redfirst.evaluators.errors import ConfigurationError
from redfirst.replay.project import load_project


def test_the_environment_overrides_the_file(tmp_path):
    """A port given for one start wins over the project's."""
    (tmp_path / "redfirst.yaml").write_text("serve:\n  http_port: 5000\n  settle_seconds: 3\n")
    found = in_force(configured(load_project(tmp_path)), {"REDFIRST_HTTP_PORT": "0"})
    assert (found.http_port, found.settle_seconds, found.grpc_port) == (0, 3.0, 4317)


def test_a_wrong_value_names_the_variable():
    """The one line says which, and what it was."""
    with pytest.raises(ConfigurationError, match="REDFIRST_GRPC_PORT=often"):
        in_force(ServeSettings(), {"REDFIRST_GRPC_PORT": "often"})


def test_a_wrong_key_names_the_file_and_the_line(tmp_path):
    """As for every other key of the project."""
    (tmp_path / "redfirst.yaml").write_text("serve:\n  http_prot: 5000\n")

    with pytest.raises(
        ConfigurationError, match=r"redfirst\.yaml:2: serve\.http_prot: .*did you mean http_port"
    ):
        configured(load_project(tmp_path))


def test_a_token_stands_in_no_file(tmp_path):
    """It is given as the name of a variable; the message does not show it."""
    (tmp_path / "redfirst.yaml").write_text("serve:\n  tokens: [{tenant: a, token: s3cret}]\n")

    with pytest.raises(ConfigurationError, match=r"redfirst\.yaml:2: .*env:NAME") as wrong:
        configured(load_project(tmp_path))
    assert "s3cret" not in str(wrong.value)
    with pytest.raises(ConfigurationError, match=r"REDFIRST_TOKENS: .*env:NAME") as wrong:
        in_force(ServeSettings(), {"REDFIRST_TOKENS": '[{"tenant": "a", "token": "s3cret"}]'})
    assert "s3cret" not in str(wrong.value)


def test_the_budget_holds_the_largest_request():
    """A smaller one would push that request back for ever."""
    with pytest.raises(ConfigurationError, match=r"REDFIRST_RECEIVE_BYTES=99: .*max_body_bytes \(100\)"):
        in_force(ServeSettings(max_body_bytes=100), {"REDFIRST_RECEIVE_BYTES": "99"})


@pytest.mark.parametrize("kind", ["forward", "sinks"])
def test_a_destination_of_a_tenant_that_there_is_not_is_refused(tmp_path, kind):
    """A typo would send nothing and say nothing."""
    more = ", kind: otlp" if kind == "sinks" else ""
    there = f"serve:\n  {kind}: [{{name: b, endpoint: 'http://h', tenants: [suport]{more}}}]\n"
    project = tmp_path / "redfirst.yaml"
    project.write_text(there)
    with pytest.raises(ConfigurationError, match=r"nobody sends as suport; there are no tokens"):
        configured(load_project(tmp_path))
    project.write_text(f"{there}  tokens: [{{tenant: support, token: 'env:T'}}]\n")
    with pytest.raises(ConfigurationError, match=rf"{kind}: .*b: tenants: .*suport; tokens are of support"):
        configured(load_project(tmp_path))
    project.write_text(f"{there}  tokens: [{{tenant: suport, token: 'env:T'}}]\n")
    (entry,) = getattr(configured(load_project(tmp_path)), kind)
    assert entry.tenants == ["suport"]


def test_the_service_listens_on_loopback_unless_told():
    """Nobody else's network is let in by default."""
    assert ServeSettings().host == "127.0.0.1"
