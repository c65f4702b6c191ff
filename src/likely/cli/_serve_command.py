"""The command serve: models behind HTTP, with a page."""

from __future__ import annotations

import sys

import click

from likely.cli._options import FILE, json_option
from likely.cli._terminal import Terminal
from likely.errors import UsageError, import_optional


@click.command(short_help="Serve models over HTTP, with a page.")
@click.argument("models", type=FILE, nargs=-1, metavar="[MODEL]...")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port; 0 chooses a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; by default this machine only.")
@click.option("--allow-host", "allow_hosts", multiple=True, metavar="NAME", help="Another name of this server; repeatable.")
@click.option("--writable", is_flag=True, help="Clients with the token may update and forget rows; each is in a journal first.")
@click.option("--token", envvar="LIKELY_TOKEN", show_envvar=True, help="Token of changing calls; by default a random one.")
@click.option("--quiet", is_flag=True, help="No log line for each request.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Time for a request to arrive; by default 10 seconds for its head and 60 for its body.",
)
@click.option("--max-body", type=click.IntRange(min=1), metavar="BYTES", help="Largest body of a request; by default 64 MiB.")
@json_option
@click.pass_obj
def serve(
    terminal: Terminal,
    models: tuple[str, ...],
    port: int,
    host: str,
    allow_hosts: tuple[str, ...],
    writable: bool,
    token: str | None,
    quiet: bool,
    timeout: float | None,
    max_body: int | None,
) -> None:
    """Serve MODELs over HTTP: predictions, explanations and a page to try them on. Without a MODEL: the workbench.

    The first MODEL answers at /api/predict, all of them at /api/models/NAME/predict; /openapi.json describes every route.
    A model file that is replaced is loaded again. Log lines are JSON on standard error.
    """
    web = import_optional("likely.web", "likely serve", library="msgspec")
    connection = import_optional("likely.web.connection", "likely serve", library="msgspec")
    if token is not None and len(token) < 8:
        raise UsageError("the token is too short: use 8 characters or more")
    limits = connection.Limits()
    if timeout is not None:
        limits = connection.Limits(header_seconds=timeout, body_seconds=timeout, idle_seconds=timeout, write_seconds=timeout)
    if max_body is not None:
        limits = connection.Limits(**{**vars(limits), "body_bytes": max_body})

    def ready(address: str, secret: str) -> None:
        shown = secret if writable and token is None else None
        document = {"address": address, **({"token": shown} if shown else {})}

        def show() -> None:
            terminal.line(f"Serving on {address} (Ctrl-C stops)")
            if shown:
                terminal.line(f"Token of changing calls: {shown}")

        terminal.result(document, show)
        sys.stdout.flush()

    options = web.ServeOptions(host, port, writable, token, allow_hosts, quiet, limits)
    code: int = web.serve(models, options, ready)
    raise click.exceptions.Exit(code)
