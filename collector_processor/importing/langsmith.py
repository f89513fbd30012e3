"""LangSmith's runs: of ``client.list_runs`` and the runs API, as one list, ``{"runs": […]}``, or a run a line.

Children stand in ``child_runs`` or beside their parents. ``session_id`` is LangSmith's project; a conversation is
named in the metadata. Converted into OpenInference's attributes, whose reader knows LangChain's messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from redfirst.collector_processor.importing.formats import BadRecord, Document, Place, Record, found
from redfirst.collector_processor.importing.identity import span_id_of, trace_id_of
from redfirst.collector_processor.importing.json_text import text_or_json
from redfirst.collector_processor.importing.times import count, moment
from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.values import (
    first_text,
    items_of,
    literal,
    object_of,
    text,
    unpacked,
)
from redfirst.evaluators.span import Span, StatusCode

_SCOPE = "openinference.instrumentation.langchain"
_KINDS = {
    "llm": "LLM",
    "chat_model": "LLM",
    "tool": "TOOL",
    "retriever": "RETRIEVER",
    "embedding": "EMBEDDING",
    "chain": "CHAIN",
}
_CONVERSATION = ("session_id", "thread_id", "conversation_id")
"""Keys of the metadata that name a conversation."""
_TRACEBACK = "Traceback (most recent call last)"


class LangSmith:
    """LangSmith's runs."""

    name = "langsmith"

    def claims(self, document: object) -> bool:
        return any(_is_run(item) for item in _items(document)[:10])

    def records(self, documents: Sequence[Document]) -> Iterator[Record]:
        for document in documents:
            many = not _is_run(document.value)
            for place, item in enumerate(_items(document.value)):
                yield from _with_children(item, f"{document.where}[{place}]" if many else document.where, {})

    def spans(self, record: Record, place: Place) -> list[Span]:  # noqa: ARG002 - a run has its own ids and times
        run = record.value
        if not isinstance(run, Mapping):
            raise BadRecord(f"expected a run, found {found(run)}")
        order = [part[-36:] for part in str(run.get("dotted_order") or "").split(".")]
        trace = run.get("trace_id") or record.context.get("trace_id") or order[0] or run.get("id")
        above = (
            run.get("parent_run_id") or record.context.get("id") or (order[-2] if len(order) > 1 else None)
        )
        trace_id, span_id, start = (
            trace_id_of(trace),
            span_id_of(run.get("id")),
            moment(run.get("start_time")),
        )
        if trace_id is None or span_id is None or start is None:
            raise BadRecord("the run lacks an id or a start_time that can be read")
        error = text(run.get("error"))
        return [
            Span(
                trace_id=trace_id,
                span_id=span_id,
                parent_id=span_id_of(above),
                name=text(run.get("name")) or "",
                start_ns=start,
                end_ns=moment(run.get("end_time")) or 0,
                status=StatusCode.ERROR if error else StatusCode.UNSET,
                status_message=(error or "").partition(_TRACEBACK)[0].strip(),
                attributes=_attributes(run),
                scope=_SCOPE,
            )
        ]


def _items(value: object) -> list[object]:
    inner = value.get("runs") if isinstance(value, Mapping) and isinstance(value.get("runs"), list) else value
    return inner if isinstance(inner, list) else [inner]


def _is_run(value: object) -> bool:
    return isinstance(value, Mapping) and "id" in value and "run_type" in value


def _with_children(
    item: object, where: str, parent: Mapping[str, object], depth: int = 0
) -> Iterator[Record]:
    """The run and all below it; a child may leave out the ids that its place says."""
    if not isinstance(item, Mapping):
        yield Record(where=where, value=item)
        return
    children = item.get("child_runs")
    own = {key: value for key, value in item.items() if key != "child_runs"}
    yield Record(where=where, value=own, context=parent)
    trace = own.get("trace_id") or parent.get("trace_id") or own.get("id")
    for place, child in enumerate(children if isinstance(children, list) and depth < 100 else []):
        context = {"id": own.get("id"), "trace_id": trace}
        yield from _with_children(child, f"{where}.child_runs[{place}]", context, depth + 1)


def _attributes(run: Mapping[str, object]) -> dict[str, object]:
    kind = _KINDS.get(str(run.get("run_type")).lower(), "UNKNOWN")
    extra = object_of(run.get("extra")) or {}
    metadata = object_of(extra.get("metadata")) or {}
    asked, said = run.get("inputs"), run.get("outputs")
    if run.get("error") and not said:
        said = None
    if kind == "TOOL":
        asked, said = _arguments(asked), _only(said, "output")
    values: dict[str, object] = {
        semconv.OI_KIND: kind,
        semconv.INPUT_VALUE: text_or_json(asked),
        semconv.OUTPUT_VALUE: text_or_json(said),
        semconv.SESSION_ID: first_text(*(metadata.get(key) for key in _CONVERSATION)),
        semconv.USER_ID: text(metadata.get("user_id")),
        "metadata": text_or_json(metadata or None),
    }
    if kind == "TOOL":
        values[semconv.OI_TOOL_NAME] = text(run.get("name"))
        values[semconv.TOOL_CALL_ID] = text(extra.get("tool_call_id"))
    elif kind == "LLM":
        values |= _model(run, extra, metadata)
    return {key: value for key, value in values.items() if value is not None}


def _model(
    run: Mapping[str, object], extra: Mapping[str, object], metadata: Mapping[str, object]
) -> dict[str, object]:
    outputs = object_of(run.get("outputs")) or {}
    called = object_of(extra.get("invocation_params")) or {}
    whole = object_of(outputs.get("llm_output")) or {}
    generation = _generation(outputs)
    usage = _usage(outputs, whole, generation)
    details = object_of((object_of(generation.get("message")) or {}).get("response_metadata")) or {}
    info = object_of(generation.get("generation_info")) or {}
    tools = {
        f"{semconv.OI_TOOLS}.{place}.tool.json_schema": text_or_json(tool)
        for place, tool in enumerate(items_of(called.get("tools")))
    }
    return {
        semconv.OI_MODEL_NAME: first_text(
            whole.get("model_name"),
            details.get("model_name"),
            metadata.get("ls_model_name"),
            called.get("model"),
            called.get("model_name"),
        ),
        semconv.OI_FINISH_REASON: first_text(info.get("finish_reason"), details.get("finish_reason")),
        semconv.OI_TOKENS_PROMPT: _count(run.get("prompt_tokens"), usage, "input_tokens", "prompt_tokens"),
        semconv.OI_TOKENS_COMPLETION: _count(
            run.get("completion_tokens"), usage, "output_tokens", "completion_tokens"
        ),
        semconv.OI_TOKENS_CACHED: _count(
            None, object_of(usage.get("input_token_details")) or {}, "cache_read"
        ),
        semconv.OI_TOKENS_REASONING: _count(
            None, object_of(usage.get("output_token_details")) or {}, "reasoning"
        ),
        **tools,
    }


def _generation(outputs: Mapping[str, object]) -> Mapping[str, object]:
    """The first generation of LangChain's output; its message out of the constructor's form."""
    first = outputs.get("generations")
    while isinstance(first, list) and first:
        first = first[0]
    found = object_of(first) or {}
    message = object_of(found.get("message")) or {}
    return {**found, "message": object_of(message.get("kwargs")) or message}


def _usage(
    outputs: Mapping[str, object], whole: Mapping[str, object], generation: Mapping[str, object]
) -> Mapping[str, object]:
    message = object_of(generation.get("message")) or {}
    for said in (
        outputs.get("usage_metadata"),
        message.get("usage_metadata"),
        whole.get("token_usage"),
        outputs.get("usage"),
    ):
        if (usage := object_of(said)) is not None:
            return usage
    return {}


def _count(said: object, usage: Mapping[str, object], *names: str) -> int | None:
    values = (said, *(usage.get(name) for name in names))
    return next((said_count for value in values if (said_count := count(value)) is not None), None)


def _arguments(asked: object) -> object:
    """A tool's arguments. LangChain records them as ``{"input": "the printed arguments"}``."""
    inner = _only(asked, "input")
    if isinstance(inner, str):
        printed = literal(inner)
        printed = unpacked(printed) if isinstance(printed, str) else printed
        return printed if isinstance(printed, Mapping) else inner
    return inner if isinstance(inner, Mapping) else asked


def _only(value: object, key: str) -> object:
    """The value under the key when it is the only one."""
    return value[key] if isinstance(value, Mapping) and set(value) == {key} else value
