"""Exceptions that the infrastructure is to blame for, in the libraries' own classes."""

from __future__ import annotations

import contextlib
import importlib.util
from typing import Any

import pytest

from redfirst.instrumentation import tool
from redfirst.instrumentation.infra import fault_of


def http_library() -> Any:
    """httpx, or what the vendors' clients of today use in its place."""
    return importlib.import_module("httpx" if importlib.util.find_spec("httpx") else "httpx2")


def httpx_errors() -> list[tuple[BaseException, str | None]]:
    httpx = http_library()
    request = httpx.Request("GET", "http://x")
    answers = [(429, "rate_limit"), (503, "server"), (504, "timeout"), (404, None)]
    return [
        (httpx.ReadTimeout("t"), "timeout"),
        (httpx.ConnectError("c"), "connection"),
        (httpx.RemoteProtocolError("c"), "connection"),
        (httpx.InvalidURL("u"), None),
        *(
            (httpx.HTTPStatusError("s", request=request, response=httpx.Response(code)), fault)
            for code, fault in answers
        ),
    ]


def requests_errors() -> list[tuple[BaseException, str | None]]:
    requests = importlib.import_module("requests")
    answer = requests.Response()
    answer.status_code = 502
    return [
        (requests.exceptions.ConnectTimeout(), "timeout"),
        (requests.exceptions.ReadTimeout(), "timeout"),
        (requests.exceptions.ConnectionError(), "connection"),
        (requests.exceptions.HTTPError(response=answer), "server"),
        (requests.exceptions.MissingSchema(), None),
    ]


def aiohttp_errors() -> list[tuple[BaseException, str | None]]:
    aiohttp = importlib.import_module("aiohttp")
    return [
        (aiohttp.ServerTimeoutError(), "timeout"),
        (aiohttp.ServerDisconnectedError(), "connection"),
        (aiohttp.ClientResponseError(None, (), status=429), "rate_limit"),
        (aiohttp.ClientResponseError(None, (), status=400), None),
    ]


def vendor_errors(name: str) -> list[tuple[BaseException, str | None]]:
    vendor: Any = importlib.import_module(name)
    httpx = http_library()
    request = httpx.Request("POST", "http://x")

    def status(kind: str, code: int) -> BaseException:
        error: BaseException = getattr(vendor, kind)(
            "x", response=httpx.Response(code, request=request), body=None
        )
        return error

    return [
        (vendor.APITimeoutError(request), "timeout"),
        (vendor.APIConnectionError(request=request), "connection"),
        (status("RateLimitError", 429), "rate_limit"),
        (status("InternalServerError", 500), "server"),
        (status("BadRequestError", 400), None),
        (status("AuthenticationError", 401), None),
    ]


def grpc_errors() -> list[tuple[BaseException, str | None]]:
    grpc = importlib.import_module("grpc")

    class Failed(grpc.RpcError):
        def __init__(self, code: Any) -> None:
            self._code = code

        def code(self) -> Any:
            return self._code

    codes = grpc.StatusCode
    return [
        (Failed(codes.DEADLINE_EXCEEDED), "timeout"),
        (Failed(codes.RESOURCE_EXHAUSTED), "rate_limit"),
        (Failed(codes.UNAVAILABLE), "connection"),
        (Failed(codes.INVALID_ARGUMENT), None),
    ]


def own_errors() -> list[tuple[BaseException, str | None]]:
    class Aws(Exception):
        response = {"ResponseMetadata": {"HTTPStatusCode": 503}}  # noqa: RUF012 - as botocore has it

    return [
        (TimeoutError(), "timeout"),
        (ConnectionResetError(), "connection"),
        (Aws(), "server"),
        (ValueError("timeout 503"), None),
        (KeyError(429), None),
    ]


@pytest.mark.parametrize(
    "library",
    [own_errors, httpx_errors, requests_errors, aiohttp_errors, grpc_errors, "openai", "anthropic"],
    ids=["python", "httpx", "requests", "aiohttp", "grpc", "openai", "anthropic"],
)
def test_faults_of_the_infrastructure_are_told_apart(library: Any) -> None:
    """By class and status; what the program did wrong is none."""
    for error, fault in vendor_errors(library) if isinstance(library, str) else library():
        assert fault_of(error) == fault, error


def test_the_span_says_so(spans: Any) -> None:
    """And what an exception's own attributes raise is nobody's fault."""

    class Odd(Exception):
        @property
        def response(self) -> Any:
            raise RuntimeError("no")

    for error in (TimeoutError("late"), ValueError("x"), Odd()):

        def work(error: Exception = error) -> None:
            raise error

        with contextlib.suppress(type(error)):
            tool(work)()
    assert [span.attributes.get("redfirst.error.fault") for span in spans.all()] == ["timeout", None, None]
