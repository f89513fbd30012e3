"""Every byte of a scenario is bound to its proof, and what is wrong with its files is said in one line."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redfirst.evaluators import RedfirstError, semconv
from redfirst.evaluators.check import check_from_spec
from redfirst.instrumentation import agent, tool
from redfirst.replay.files import LARGEST
from redfirst.replay.freezing import FreezeRefused, RecordedRun, freeze
from redfirst.replay.project import load_project
from redfirst.replay.proof import prove
from redfirst.replay.redaction import Redaction
from redfirst.replay.report import Refusal
from redfirst.replay.running import run
from redfirst.replay.scenario import CONTROL_FILE, PROOF_FILE, load
from redfirst.replay.standing import standing

from .conftest import CHECKS, Place, recorded, shop

__all__ = ["recorded", "shop"]
Record = Callable[..., RecordedRun]
FILES = ("scenario.yaml", "trace.otlp.pb.gz", "model.jsonl", "good.jsonl", PROOF_FILE)


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory, shop: ModuleType) -> Path:
    """A proven scenario with a recorded control."""
    root = tmp_path_factory.mktemp("proven")
    shutil.copy(Path(__file__).with_name("shop.py"), root / "shop.py")
    (root / "redfirst.yaml").write_text('agents:\n  shop: {call: "shop:bad"}\n')
    record = recorded.__wrapped__()
    take = next(record)
    folder = root / "scenarios" / "cancelled"
    freeze(take(shop.bad()), CHECKS, control=take(shop.with_careful_model())).write(folder)
    next(record, None)
    assert prove(folder, load_project(root)).proven
    assert (folder / CONTROL_FILE).is_file()
    return folder


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_mutation_of_any_byte_voids_the_proof(proven: Path, tmp_path: Path, data: st.DataObject) -> None:
    """Of the scenario with its fixtures and rules, of the recordings, of the trace, and of the proof itself: changed, lost
    or put in."""
    name = data.draw(st.sampled_from(FILES))
    body = (proven / name).read_bytes()
    place = data.draw(st.integers(0, len(body) - 1))
    other = bytes([data.draw(st.integers(0, 255).filter(lambda value: value != body[place]))])
    mutated = data.draw(
        st.sampled_from(
            [
                body[:place] + other + body[place + 1 :],
                body[:place] + body[place + 1 :],
                body[:place] + other + body[place:],
            ]
        )
    )
    folder = tmp_path / hashlib.sha256(mutated).hexdigest()
    shutil.copytree(proven, folder, dirs_exist_ok=True)
    (folder / name).write_bytes(mutated)

    said = refused(folder)
    assert name in said
    assert "\n" not in said


def refused(folder: Path) -> str:
    """Why the folder holds no proof; empty when it does."""
    try:
        found = standing(load(folder))
    except RedfirstError as problem:
        return str(problem)  # no scenario any more, which is no proof either
    return "" if found.proven else found.because


def test_the_scenario_itself_is_proven(proven: Path) -> None:
    """What the mutations are mutations of."""
    assert standing(load(proven)).proven


@pytest.mark.parametrize("name", FILES[1:4])
def test_a_file_taken_away_voids_the_proof(proven: Path, tmp_path: Path, name: str) -> None:
    """A lost control is no smaller scenario."""
    shutil.copytree(proven, tmp_path / "s")
    (tmp_path / "s" / name).unlink()

    if name == CONTROL_FILE:
        assert name in standing(load(tmp_path / "s")).because
        return
    with pytest.raises(RedfirstError, match=f"{name} is missing"):
        load(tmp_path / "s")


@pytest.mark.parametrize(
    "change", [{"level": "live"}, {"schema": "redfirst.proof/1", "more": 1}, {"proof_sha256": ""}]
)
def test_a_proof_that_was_edited_says_so(proven: Path, tmp_path: Path, change: dict[str, object]) -> None:
    """Nobody makes a live proof of a recorded one with an editor."""
    shutil.copytree(proven, tmp_path / "s")
    path = tmp_path / "s" / PROOF_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}, indent=1, sort_keys=True) + "\n")

    found = standing(load(tmp_path / "s"))
    assert not found.proven
    assert "proof.json changed since the proof" in found.because


BOMB = "\n".join(
    [
        "a: &a [x, x, x, x, x, x, x, x, x, x]",
        *(f"{c}: &{c} [{', '.join([f'*{b}'] * 10)}]" for b, c in zip("abcdefg", "bcdefgh", strict=True)),
    ]
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "more than 200000 values, aliases written out"),
        ("[" * 100, "nested more than 64 deep"),
        ("schema: redfirst.scenario/2\n", "newer than this redfirst; it reads redfirst.scenario/1. Upgrade redfirst"),
        ("schema: mine/1\n", "schema is 'mine/1'; this redfirst reads"),
        ("schema: !!python/object/apply:os.system [id]\n", "tag .* is not supported"),
        ("", "the document is empty"),
    ],
)  # fmt: skip
def test_a_scenario_that_cannot_be_read_is_refused_with_two(place: Place, text: str, said: str) -> None:
    """Quickly, with the line, and without doing anything that stands in it."""
    (place.scenario / "scenario.yaml").write_text(text)

    with pytest.raises(RedfirstError, match=said) as problem:
        load(place.scenario)
    assert problem.value.exit_code == 2
    assert "scenario.yaml:" in str(problem.value)


@pytest.mark.parametrize("name", ["scenario.yaml", "model.jsonl", "proof.json"])
def test_a_file_that_leads_out_of_the_folder_is_refused(proven: Path, tmp_path: Path, name: str) -> None:
    """A scenario from somebody else does not read what lies elsewhere."""
    shutil.copytree(proven, tmp_path / "s")
    (tmp_path / "s" / name).rename(tmp_path / "elsewhere")
    (tmp_path / "s" / name).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(RedfirstError, match=rf"{name}: leads out of its folder, to .*elsewhere") as problem:
        standing(load(tmp_path / "s"))
    assert problem.value.exit_code == 2


@pytest.mark.parametrize("name", ["scenario.yaml", "model.jsonl", "trace.otlp.pb.gz"])
def test_a_file_of_50_MB_is_refused_before_it_is_read(place: Place, name: str) -> None:  # noqa: N802 - the unit
    """Its size is in the message."""
    with (place.scenario / name).open("r+b") as file:
        file.truncate(50 << 20)

    with pytest.raises(
        RedfirstError, match=rf"{name}: 50 MiB; files of a scenario have at most {LARGEST >> 20}"
    ):
        load(place.scenario)


def test_an_answer_that_nobody_could_review_is_refused_by_its_tool(recorded: Record) -> None:
    """At freeze, before a folder is written."""
    check = check_from_spec({"kind": "forbid", "id": "no-dump", "call": "dump"})

    @tool(effect="read")
    def dump() -> str:
        return "x"

    @agent(name="shop")
    def handle(request: str) -> str:
        return dump()

    incident = recorded(handle, checks=(check,))
    large = {semconv.TOOL_CALL_RESULT: json.dumps("x" * (3 << 20))}
    spans = [
        replace(span, attributes={**span.attributes, **large})
        if semconv.TOOL_CALL_RESULT in span.attributes
        else span
        for span in incident.spans
    ]
    with pytest.raises(
        FreezeRefused, match="an answer of dump has 3072 KiB, and at most 1024 fit into a scenario"
    ):
        freeze(replace(incident, spans=spans), (check,))


def test_a_large_answer_is_refused_before_it_is_looked_through_and_is_no_control(
    shop: ModuleType, recorded: Callable[..., RecordedRun]
) -> None:
    """To look through what is thrown away took minutes."""
    incident, passing = recorded(shop.bad()), recorded(shop.with_careful_model())
    looked = Redaction(key=b"k", patterns={"all": "(?s).+"})  # finds something in whatever it looks through

    with pytest.raises(FreezeRefused, match="an answer of lookup has 2048 KiB"):
        freeze(_enlarged(incident), CHECKS, redaction=looked)
    assert CONTROL_FILE in freeze(incident, CHECKS, control=passing).files
    assert CONTROL_FILE not in freeze(incident, CHECKS, control=_enlarged(passing)).files


def _enlarged(recorded: RecordedRun) -> RecordedRun:
    calls = tuple(
        replace(call, result="x" * (2 << 20)) if call.name == "lookup" else call
        for call in recorded.run.tool_calls
    )
    return replace(recorded, run=replace(recorded.run, tool_calls=calls))


def test_an_agent_that_lost_a_tool_is_named_and_neither_red_nor_green(place: Place) -> None:
    """The fixture is there, the tool is not: no verdict, exit 3, with what the code did instead."""
    (place.project.root / "gone.py").write_text(
        "import shop\n\n\ndef make():\n    return shop.make(extra=lambda tools: tools.pop('cancel', None))\n"
    )
    outcome = run(place.scenario, place.project, agent="gone:make", at=0.0)
    report = prove(place.scenario, place.project, agent="gone:make")

    assert outcome.outcome.value == "NO_VERDICT"
    assert (report.refusal, report.exit_code) == (Refusal.OFF_TAPE, 3)
    assert "cancel" in report.because
