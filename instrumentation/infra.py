"""Which exceptions say that the other end was not reached or not able to answer, whatever library raised them.

Read from the classes' names and the attributes that httpx, requests, aiohttp, openai, anthropic and grpc document;
none of them is imported.
"""

from __future__ import annotations

from typing import Any, Literal, TypeGuard

Fault = Literal["timeout", "rate_limit", "server", "connection"]

_TIMEOUTS = frozenset(
    {
        *("TimeoutError", "Timeout", "TimeoutException", "ConnectTimeout", "ReadTimeout", "WriteTimeout"),
        *("PoolTimeout", "APITimeoutError", "ServerTimeoutError", "DeadlineExceeded", "ReadTimeoutError"),
        *("ConnectTimeoutError", "SocketTimeoutError"),
    }
)
_CONNECTIONS = frozenset(
    {
        *(
            "ConnectionError",
            "ConnectError",
            "ReadError",
            "WriteError",
            "NetworkError",
            "RemoteProtocolError",
        ),
        *("APIConnectionError", "ClientConnectionError", "ClientConnectorError", "ServerDisconnectedError"),
        *("EndpointConnectionError", "ChunkedEncodingError", "ProxyError", "gaierror", "ClientOSError"),
    }
)
_GRPC: dict[str, Fault] = {
    "DEADLINE_EXCEEDED": "timeout",
    "RESOURCE_EXHAUSTED": "rate_limit",
    "UNAVAILABLE": "connection",
    "INTERNAL": "server",
}


def fault_of(error: BaseException) -> Fault | None:
    """What kind of infrastructure fault an exception is, if it is one. A cause is not asked: it may be handled.

    A status that the exception carries says more than its class: a 404 is no fault of the infrastructure.
    """
    status = _status(error)
    if status is not None:
        return _of_status(status)
    code = _grpc_code(error)
    if code is not None:
        return _GRPC.get(code)
    names = [kind.__name__ for kind in type(error).__mro__]
    if not _TIMEOUTS.isdisjoint(names):
        return "timeout"
    if not _CONNECTIONS.isdisjoint(names):
        return "connection"
    if "RateLimitError" in names:
        return "rate_limit"
    return None


def _of_status(status: int) -> Fault | None:
    if status == 429:
        return "rate_limit"
    if status in (408, 504):
        return "timeout"
    return "server" if 500 <= status < 600 else None


def _status(error: Any) -> int | None:
    """The HTTP status: ``status_code`` of openai and anthropic, ``status`` of aiohttp, the response's elsewhere."""
    response = getattr(error, "response", None)
    metadata = response.get("ResponseMetadata") if isinstance(response, dict) else None  # botocore
    aws = metadata.get("HTTPStatusCode") if isinstance(metadata, dict) else None
    # one after the other: to ask an error of aiohttp for its ``code`` warns, and its ``status`` has said it by then
    for thing, name in (
        (error, "status_code"),
        (error, "status"),
        (response, "status_code"),
        (response, "status"),
        (error, "code"),
    ):
        found = getattr(thing, name, None)
        if _is_status(found):
            return found
    return aws if _is_status(aws) else None


def _is_status(found: object) -> TypeGuard[int]:
    return isinstance(found, int) and not isinstance(found, bool) and 100 <= found < 600


def _grpc_code(error: Any) -> str | None:
    code = getattr(error, "code", None)
    if not callable(code):
        return None
    name = getattr(code(), "name", None)
    return name if isinstance(name, str) else None
