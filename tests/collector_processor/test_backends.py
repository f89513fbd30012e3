"""A run frozen out of a backend's API: the same scenario as from its OTLP, and plain words when the API is not there."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from redfirst.collector_processor.backends.getting import BackendUnreadable, NotThere
from redfirst.collector_processor.backends.selecting import Link, backend_of, link_of
from redfirst.collector_processor.cli import main
from redfirst.collector_processor.recorded.files import read_files
from redfirst.evaluators import ConfigurationError
from redfirst.replay.scenario import load

from .importing import FIXTURES
from .test_import_stores import as_jaeger, as_langfuse, spans_in

TRACE = "fd04b1e5eaeb9190adaac27e194a4435"
"""The incident of ``shop_incident.otlp.pb``, as sent to Phoenix and MLflow."""
KEYS = {"LANGFUSE_PUBLIC_KEY": "pk-lf-1", "LANGFUSE_SECRET_KEY": "sk-lf-2"}
RULES = """\
schema: redfirst.rules/1
rules:
  - {kind: require_before, id: verify-before-cancel, call: cancel, needs: verify}
"""


@dataclass
class Answers:
    """A loopback server that gives recorded answers by path, and remembers what it was asked."""

    bodies: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    url: str = ""

    def give(self, path: str, body: Any, status: int = 200) -> None:
        self.bodies[path] = (status, body if isinstance(body, bytes) else json.dumps(body).encode())


@pytest.fixture
def answers() -> Iterator[Answers]:
    made = Answers()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            made.headers.append(dict(self.headers))
            status, body = made.bodies.get(urlsplit(self.path).path, (404, b"{}"))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the rule that the incident breaks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REDFIRST_HOME", raising=False)
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "redfirst.yaml").write_text("rules: rules.yaml\n")
    return tmp_path


def incident() -> list[Any]:
    return list(read_files([FIXTURES / "shop_incident.otlp.pb"]).spans)


def held(name: str) -> Any:
    return json.loads((FIXTURES / f"{name}.json").read_text())


GIVEN: dict[str, Callable[[Answers], None]] = {
    "phoenix": lambda one: one.give("/v1/projects/default/spans", held("phoenix_api")),
    "mlflow": lambda one: one.give("/api/3.0/mlflow/traces/get", held("mlflow")),
    "jaeger": lambda one: one.give(f"/api/traces/{TRACE}", as_jaeger(incident())),
}


@pytest.mark.parametrize("kind", sorted(GIVEN))
def test_a_run_is_frozen_from_a_backend_as_from_its_own_otlp(
    kind: str, answers: Answers, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Request, model turns, tool answers, effects and checks are the same; only the clock is rounded."""
    GIVEN[kind](answers)
    for source, out in ((str(FIXTURES / "shop_incident.otlp.pb"), "a"), (f"{kind}+{answers.url}", "b")):
        assert main(["freeze", TRACE, "--traces", source, "--out", out]) == 0

    ours, theirs = load(folder / "a"), load(folder / "b")
    assert theirs.scenario.completeness.model_dump() == dict.fromkeys(
        ("request", "model", "tools", "state"), "recorded"
    )
    same = {"world": ours.scenario.world}
    assert theirs.scenario.model_copy(update=same) == ours.scenario
    assert theirs.scenario.world.state == ours.scenario.world.state
    assert theirs.model == ours.model


def test_langfuses_trace_is_frozen_by_the_link_of_its_page(
    answers: Answers, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys go to the server that the link names; the recording is rebuilt, and graded so."""
    spans = spans_in("langgraph__langfuse-callback__happy")
    trace_id = spans[0].trace_id
    called = next(s.name for s in spans if s.attributes.get("langfuse.observation.type") == "tool")
    answers.give(
        f"/api/public/traces/{trace_id}", {"id": trace_id, "observations": as_langfuse(spans, snake=False)}
    )
    (folder / "rules.yaml").write_text(
        f"schema: redfirst.rules/1\nrules:\n  - {{kind: forbid, id: never, call: {called}}}\n"
    )
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)

    assert main(["freeze", f"{answers.url}/project/p1/traces/{trace_id}", "--out", "a"]) == 0
    grades = load(folder / "a").scenario.completeness
    assert (grades.model, grades.tools) == ("reconstructed", "reconstructed")
    assert answers.headers[0]["Authorization"] == "Basic cGstbGYtMTpzay1sZi0y"


@pytest.mark.parametrize(
    ("link", "found"),
    [
        (f"http://h:6006/projects/UHJv/traces/{TRACE}?selected=x", Link("phoenix", "http://h:6006", "UHJv", TRACE)),
        (f"https://h/phx/projects/UHJv/spans/{TRACE}", Link("phoenix", "https://h/phx", "UHJv", TRACE)),
        ("https://lf.io/project/p1/traces/abc-1", Link("langfuse", "https://lf.io", None, "abc-1")),
        ("http://h:16686/trace/4b1e", Link("jaeger", "http://h:16686", None, "4b1e".rjust(32, "0"))),
        (f"http://h:50/#/experiments/7/traces?selectedEvaluationId=tr-{TRACE}", Link("mlflow", "http://h:50", "7", TRACE)),
    ],
)  # fmt: skip
def test_the_link_of_a_page_says_where_its_trace_is(link: str, found: Link) -> None:
    """And the selector it stands for names the same place."""
    assert link_of(link) == found
    assert backend_of(found.selector, KEYS).address == found.base


def test_a_beginning_of_an_id_is_looked_for_among_the_newest(answers: Answers, folder: Path) -> None:
    """One that is not there, or there twice, asks for the whole."""
    GIVEN["phoenix"](answers)
    rows = [{"trace_id": TRACE}, {"trace_id": "aa" + TRACE[2:]}, {"trace_id": "ab" + TRACE[2:]}]
    answers.give("/v1/projects/default/traces", {"data": rows})

    assert main(["freeze", TRACE[:6], "--traces", f"phoenix+{answers.url}", "--out", "a"]) == 0
    for beginning in ("a", "77"):
        assert main(["freeze", beginning, "--traces", f"phoenix+{answers.url}", "--out", "b"]) == 2


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"", "not allowed"),
        (500, b"out of order", "answered 500: out of order"),
        (302, b"", "answered 302"),
        (200, b"<html>", "answered no JSON"),
        (200, b"[]", "answered no JSON object"),
        (200, b'{"data": [{"context": {"trace_id": "zz", "span_id": "1"}}]}', "cannot be read"),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_named(answers: Answers, status: int, body: bytes, said: str) -> None:
    """Nothing is followed, nothing is guessed; 3, because nothing can be said of the run."""
    answers.give("/v1/projects/default/spans", body, status)

    with pytest.raises(BackendUnreadable, match=said) as problem:
        backend_of(f"phoenix+{answers.url}", {}).trace(TRACE)
    assert problem.value.exit_code == 3
    assert len(answers.asked) == 1


def test_a_trace_that_is_not_there_is_a_wrong_argument(answers: Answers) -> None:
    """The backend is there, the run is not: 2."""
    answers.give("/v1/projects/default/spans", {"data": []})

    with pytest.raises(NotThere, match=f"holds no trace {TRACE}") as problem:
        backend_of(f"phoenix+{answers.url}", {}).trace(TRACE)
    assert problem.value.exit_code == 2


def test_pages_are_followed_to_the_end(answers: Answers) -> None:
    """A trace of more spans than a page holds is read whole, and the cursor is given back as it came."""
    whole = held("phoenix_api")["data"]
    answers.give("/v1/projects/default/spans", {"data": whole[:2], "next_cursor": "a=b"})
    backend = backend_of(f"phoenix+{answers.url}", {})
    pages = iter(backend._pages(TRACE))
    next(pages)
    answers.give("/v1/projects/default/spans", {"data": whole[2:]})

    assert next(pages)["data"] == whole[2:]
    assert list(pages) == []
    assert answers.asked[1].endswith("&cursor=a%3Db")


@pytest.mark.parametrize(
    ("selector", "environment", "said"),
    [
        ("tempo+http://h", {}, "no file and no backend"),
        ("phoenix+ftp://h", {}, "is no address"),
        ("phoenix+http://me:secret@h", {}, "holds a password"),
        ("phoenix+http://far", {"PHOENIX_API_KEY": "k"}, "without TLS"),
        ("phoenix+http://h?experiment=1", {}, "knows no experiment=; it takes project="),
        ("langfuse+https://h", {}, "set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"),
    ],
)  # fmt: skip
def test_a_selector_that_cannot_be_meant_is_refused(
    selector: str, environment: dict[str, str], said: str
) -> None:
    """Credentials never travel in the clear, and never stand in an address."""
    with pytest.raises(ConfigurationError, match=said) as problem:
        backend_of(selector, environment)
    assert "me:secret" not in str(problem.value)


def test_samples_are_taken_from_a_backend_and_say_what_they_are(
    answers: Answers, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that nothing flags is frozen with guards, replayed by the project's agent, and reported as held."""
    shutil.copy(Path(__file__).parents[1] / "replay" / "shop.py", folder / "shop.py")
    (folder / "redfirst.yaml").write_text(
        'agents: {shop: {call: "shop:bad"}}\n'
    )  # no rules: nothing is flagged
    GIVEN["phoenix"](answers)
    answers.give("/v1/projects/default/traces", {"data": [{"trace_id": TRACE}]})
    source = f"phoenix+{answers.url}"

    assert main(["freeze", "--sample", "1", "-n", "2", "--traces", source, "--out", "s", "--json"]) == 0
    record, end = map(json.loads, capsys.readouterr().out.splitlines())
    assert end == {"kind": "samples", "asked": 1, "held": 1, "passed_over": {}}
    assert (record["kind"], record["held"], record["runs"]) == ("sample", True, ["GREEN", "GREEN"])
    assert record["completeness"]["tools"] == "recorded"
    assert main(["run", "s"]) == 0
    assert "never seen to fail" in capsys.readouterr().out
    assert main(["prove", "s", "-n", "2"]) == 0
    assert "PROVEN" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a run, or ask for --sample N ("),
        ([TRACE, "--sample", "1"], "are both given"),
        (["--sample", "0"], "at least 1"),
        (["--sample", "1", "--check", "x"], "no --check"),
        (["--sample", "1", "--replace"], "no --replace"),
    ],
)
def test_a_run_or_samples_are_asked_for(
    folder: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither, both, none of them, a target for what has none, and a second sample of a request: 2."""
    assert main(["freeze", *arguments]) == 2
    assert said in capsys.readouterr().err
