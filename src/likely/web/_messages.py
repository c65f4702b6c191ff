"""Requests and responses as the routes see them, JSON, and errors with a code."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from likely.errors import DataError, LikelyError, ModelFileError, ResourceError

JSON = "application/json"
REASONS = {
    200: "OK", 202: "Accepted", 304: "Not Modified", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
    404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout", 409: "Conflict", 411: "Length Required",
    413: "Content Too Large", 415: "Unsupported Media Type", 417: "Expectation Failed", 422: "Unprocessable Content",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 501: "Not Implemented",
    503: "Service Unavailable", 505: "HTTP Version Not Supported",
}  # fmt: skip
CODES = {
    400: "bad_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    408: "timeout", 409: "conflict", 413: "too_large", 415: "unsupported_media_type", 422: "bad_data",
    431: "headers_too_large", 500: "internal", 501: "not_implemented", 503: "busy", 505: "http_version",
}  # fmt: skip


@dataclass(slots=True)
class Request:
    """One request: method, path without query, query, headers in lower case, body."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(slots=True)
class Response:
    """One response: status, body, its type, and further headers."""

    status: int = 200
    body: bytes = b""
    kind: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    last: bool = False  # whether the connection is closed after it


class HttpError(Exception):
    """An error that is answered with a status, a message and details."""

    def __init__(self, status: int, message: str, *, headers: Mapping[str, str] | None = None, **details: Any) -> None:
        super().__init__(message)
        self.status, self.message, self.details, self.headers = status, message, details, dict(headers or {})


def encode(document: Any) -> bytes:
    """A document as JSON; NaN and infinity, which JSON cannot hold, become null."""
    return msgspec.json.encode(document, enc_hook=_other)


def _other(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    return str(value)


def answer(document: Any, status: int = 200, **headers: str) -> Response:
    """A JSON response."""
    return Response(status, encode(document), JSON, {name.replace("_", "-"): value for name, value in headers.items()})


def error(status: int, message: str, details: Mapping[str, Any] | None = None, *, last: bool = False) -> Response:
    """An error as every route answers it: {"error": {"code", "message", "details"}}."""
    document = {"error": {"code": CODES.get(status, "error"), "message": shown(message), "details": plain(details or {})}}
    headers = {"Retry-After": "1"} if status == 503 else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(status, encode(document), JSON, headers, last)


def of_exception(fault: BaseException) -> Response:
    """The response to an exception; bad input is never a 500."""
    if isinstance(fault, HttpError):
        response = error(fault.status, fault.message, fault.details)
        response.headers.update(fault.headers)
        return response
    if isinstance(fault, LikelyError):
        status = 413 if isinstance(fault, ResourceError) else 415 if isinstance(fault, ModelFileError) else 422
        details = {name: getattr(fault, name) for name in ("column", "value", "row", "remedy")}
        named = {name: value for name, value in details.items() if value is not None}
        return error(status if isinstance(fault, DataError | ResourceError | ModelFileError) else 422, str(fault), named)
    if isinstance(fault, MemoryError):
        return error(413, "out of memory: send fewer rows at once")
    return error(500, f"{type(fault).__name__} (a bug in Likely; the log has the traceback)")


def shown(text: Any) -> str:
    """Text without control characters, for messages and logs."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in str(text))[:2_000]


def plain(value: Any) -> Any:
    """A value that JSON can represent: labels of other types as text, NaN and infinity as null."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return plain(value.tolist()) if hasattr(value, "tolist") else str(value)


def check_json(request: Request) -> None:
    """Refuse a body that is not declared to be JSON."""
    given = request.headers.get("content-type", "")
    if given == JSON:
        return
    kind = given.partition(";")[0].strip().lower()
    if kind != JSON:
        raise HttpError(415, f"the body must be {JSON}, not {kind or 'of an unnamed type'}")


def decoded(request: Request, decode: Callable[[bytes], Any]) -> Any:
    """The body of a request as JSON; a fault is refused with its place."""
    check_json(request)
    try:
        return decode(request.body)
    except msgspec.ValidationError as fault:
        raise HttpError(422, f"the body does not have the form that is needed: {fault}") from None
    except RecursionError:
        raise HttpError(400, "the body is nested too deeply") from None
    except (msgspec.MsgspecError, ValueError) as fault:
        raise HttpError(400, f"the body is not valid JSON: {fault}") from None


def refuse_duplicates(body: bytes) -> None:
    """Refuse JSON in which an object has a key twice."""
    import json

    def pairs(found: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in found]
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise HttpError(400, f"the key {twice!r} occurs twice in one object: send it once", key=twice)

    json.loads(body, object_pairs_hook=pairs, parse_int=len, parse_float=len)
