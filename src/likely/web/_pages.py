"""The page and its files: HTML, style and scripts that are part of the package."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from likely.web._messages import HttpError, Request, Response

KINDS = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".svg": "image/svg+xml"}  # fmt: skip
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
# A report is a document of its own, with style and script inside; in a sandbox it has no origin and reaches nothing.
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
HEADERS = {
    "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}  # fmt: skip


@cache
def _packaged() -> dict[str, tuple[bytes, str, str]]:
    """Content, type and tag of every file."""
    found = {}
    for file in files("likely.web").joinpath("static").iterdir():
        ending = "." + file.name.rpartition(".")[2]
        if ending in KINDS:
            data = file.read_bytes()
            found[file.name] = (data, KINDS[ending], f'"{hashlib.sha256(data).hexdigest()[:16]}"')
    return found


def page() -> Response:
    """The page itself."""
    return Response(200, _packaged()["index.html"][0], KINDS[".html"], HEADERS | {"Content-Security-Policy": PAGE_POLICY})


def static_file(name: str, request: Request) -> Response:
    """A file of the page, by its name in the package."""
    found = _packaged().get(name)
    if found is None or name == "index.html":
        raise HttpError(404, "the page has no such file")
    data, kind, tag = found
    headers = HEADERS | {"ETag": tag, "Content-Security-Policy": "default-src 'none'"}
    if request.headers.get("if-none-match") == tag:
        return Response(304, b"", kind, headers)
    return Response(200, data, kind, headers)


def report_page(data: bytes) -> Response:
    """A report, in a sandbox."""
    return Response(200, data, KINDS[".html"], HEADERS | {"Content-Security-Policy": REPORT_POLICY})
