"""What a request is refused for, and how the sender is told: one table for both protocols."""

from __future__ import annotations

from enum import Enum
from typing import Any

import orjson

RETRY_SECONDS = 1
"""What pushed-back senders are told to wait: a Python exporter drops at once what it should hold for longer."""
LONGEST_MESSAGE = 2000
"""Characters of a message to a sender; the whole answer must stay below 4 MiB."""

_TYPE = "type.googleapis.com/google.rpc."


class Refusal(Enum):
    """Why a request is refused: a name for the counter, the HTTP status and the gRPC code."""

    UNDECODABLE = ("undecodable", 400, 3)
    TOO_LARGE = ("too_large", 413, 8)
    BAD_ENCODING = ("bad_encoding", 400, 3)
    BAD_HTTP = ("bad_http", 400, 3)
    NO_MESSAGE = ("no_message", 400, 3)
    UNKNOWN_TYPE = ("unknown_content_type", 415, 3)
    UNKNOWN_ENCODING = ("unknown_content_encoding", 415, 3)
    UNKNOWN_PATH = ("unknown_path", 404, 5)
    WRONG_METHOD = ("wrong_method", 405, 12)
    NO_TOKEN = ("unauthenticated", 401, 16)
    OTHER_TENANT = ("other_tenant", 403, 7)
    LARGE_HEADERS = ("headers_too_large", 431, 8)
    TOO_SLOW = ("too_slow", 408, 4)
    SENDER_GONE = ("sender_gone", 400, 1)
    DISK = ("disk", 503, 14)
    FULL = ("full", 503, 14)
    BUSY = ("busy", 503, 14)
    WATCHERS = ("too_many_watchers", 503, 14)
    STOPPING = ("stopping", 503, 14)
    FAULT = ("fault", 503, 14)

    def __init__(self, reason: str, http: int, grpc: int) -> None:
        self.reason = reason
        self.http = http
        self.grpc = grpc

    @property
    def again(self) -> bool:
        """Whether the sender should try again."""
        return self.http == 503


class Refused(Exception):
    """A request of which nothing was accepted."""

    def __init__(self, refusal: Refusal, what: str) -> None:
        super().__init__(what[:LONGEST_MESSAGE])
        self.refusal = refusal

    def status(self) -> Any:
        """The ``google.rpc.Status`` that the sender is told, with ``RetryInfo`` or ``BadRequest``."""
        from google.protobuf.duration_pb2 import Duration
        from google.rpc.error_details_pb2 import (  # type: ignore[import-untyped]
            BadRequest,
            RetryInfo,
        )
        from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

        status = Status(code=self.refusal.grpc, message=str(self))
        if self.refusal.again:
            status.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=RETRY_SECONDS)))
        elif self.refusal is Refusal.UNDECODABLE:
            violation = BadRequest.FieldViolation(field="body", description=str(self))
            status.details.add().Pack(BadRequest(field_violations=[violation]))
        return status

    def status_json(self) -> bytes:
        """The same in protobuf's JSON mapping."""
        found: dict[str, Any] = {"code": self.refusal.grpc, "message": str(self)}
        if self.refusal.again:
            found["details"] = [{"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{RETRY_SECONDS}s"}]
        elif self.refusal is Refusal.UNDECODABLE:
            violation = {"field": "body", "description": str(self)}
            found["details"] = [{"@type": f"{_TYPE}BadRequest", "fieldViolations": [violation]}]
        return orjson.dumps(found)


def too_large(limit: int) -> Refused:
    """The refusal of a request of more bytes than one may have."""
    what = f"The request is larger than {limit} bytes (max_body_bytes); send smaller batches."
    return Refused(Refusal.TOO_LARGE, what)


def busy() -> Refused:
    """The refusal of a request that there is no room for now."""
    return Refused(Refusal.BUSY, "Too many bytes are being received at once; try again soon.")
