"""What an OTLP receiver has to do, item by item, and which test shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

Test = TypeVar("Test", bound=Callable[..., Any])


@dataclass(frozen=True)
class Item:
    """One thing that is demanded, and where."""

    title: str
    source: str


def proves(*items: int) -> Callable[[Test], Test]:
    """Marks a test as one that shows these items."""

    def mark(test: Test) -> Test:
        test.proves = items  # type: ignore[attr-defined]
        return test

    return mark


_SPEC = "OTLP 1.11.0"
TRANSPORT: Mapping[int, Item] = {
    1: Item("ports 4317 (gRPC) and 4318 (HTTP), on loopback unless told", f"{_SPEC}, default port"),
    2: Item(
        "`POST` to the signals' paths; another path 404, another method 405", f"{_SPEC}, OTLP/HTTP request"
    ),
    3: Item("protobuf and JSON on one port; another type 415", f"{_SPEC}, OTLP/HTTP connection"),
    4: Item("the answer is of the request's content type", f"{_SPEC}, OTLP/HTTP response"),
    5: Item("the body of every 4xx and 5xx is a `google.rpc.Status`", f"{_SPEC}, failures"),
    6: Item("gzip, deflate and zstd; an unknown encoding 415", f"{_SPEC}, protocol details"),
    7: Item("a limit on bodies: 413, `RESOURCE_EXHAUSTED` without `RetryInfo`", f"{_SPEC}, protocol details"),
    8: Item("the limit holds while a body is unpacked", "decompression bombs"),
    9: Item("one budget of bytes over both protocols", "memory"),
    10: Item("answers stay below 4 MiB", f"{_SPEC}, response size"),
    11: Item("an empty request is a full success", f"{_SPEC}, full success"),
    12: Item("a full success leaves `partial_success` unset", f"{_SPEC}, full success"),
    13: Item("what is left out is counted in `partial_success`", f"{_SPEC}, partial success"),
    14: Item("400 only when nothing can be saved", f"{_SPEC}, bad data"),
    15: Item(
        "overload is 503 with `Retry-After`, `UNAVAILABLE`; never 500", f"{_SPEC}, retryable response codes"
    ),
    16: Item("`RetryInfo` in both trailers", f"{_SPEC}, OTLP/gRPC throttling; the Python exporter"),
    17: Item("keep-alive, requests in a row, `Expect`, chunked; closed after 413", "RFC 9112"),
    18: Item(
        "many calls on one gRPC connection, admitted by ourselves",
        f"{_SPEC}, concurrent requests; grpc#41531",
    ),
    19: Item("connections are ended in peace when they are old", "gRPC keepalive"),
    20: Item("slow senders hold nobody up", "slowloris"),
    21: Item("TLS, client certificates, renewal; tokens, 401 and 403", "RFC 6750, RFC 9110"),
    22: Item("preflight for configured origins only", "Fetch standard, CORS"),
    23: Item("`grpc.health.v1.Health`, `/healthz`, `/readyz`", "gRPC health checking"),
    24: Item("SIGTERM loses nothing", "Collector reports"),
    25: Item("log records are joined to their trace", "GenAI conventions"),
    26: Item("metrics are refused by partial success, or 404", f"{_SPEC}, partial success"),
    27: Item("another signal's bytes are told apart", "langfuse#15707"),
}
PAYLOAD: Mapping[int, Item] = {
    28: Item("ids are checked; a bad parent makes a root", "trace.proto"),
    29: Item("JSON ids are hex, and base64 is not guessed", f"{_SPEC}, JSON encoding"),
    30: Item("JSON enums are integers", f"{_SPEC}, JSON encoding"),
    31: Item("unknown JSON fields are ignored, snake_case among them", f"{_SPEC}, JSON encoding"),
    32: Item("JSON numbers, bytes and text without loss", "ProtoJSON"),
    33: Item("JSON and protobuf of one request are kept as the same message", f"{_SPEC}, JSON encoding"),
    34: Item("unknown protobuf fields are kept", "protobuf"),
    35: Item("text that is not UTF-8 is mended, and costs nothing else", "opentelemetry-specification#3421"),
    36: Item("deep nesting is cut, the span is kept", "collector#15433"),
    37: Item("every kind of value; of a key twice the last", "common.proto"),
    38: Item("schema URLs, flags, states, links, dropped counts are kept", "trace.proto"),
    39: Item("an end before the start, or none, is kept as it came", "trace.proto"),
    40: Item("times are never rewritten", "clock skew"),
    41: Item("times long past or to come are kept", "logfire#2242"),
    42: Item("a batch sent again changes nothing", f"{_SPEC}, duplicate data"),
    43: Item("of a span sent in two states both are kept", "pending spans"),
    44: Item("client and server with one span id are two spans", "Zipkin"),
    45: Item("order, splitting and repetition do not matter", "property"),
    46: Item("spans for a run that was judged make another version", "late spans"),
    47: Item("self-parents, cycles, missing parents, many roots end", "jaeger-ui#4320"),
}
ITEMS: Mapping[int, Item] = {**TRANSPORT, **PAYLOAD}
