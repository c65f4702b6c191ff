"""The door itself: every way out of a command has its exit code, and no way out is a traceback."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType
from typing import Any, NoReturn

import click

from likely.atomic import FULL
from likely.cli.terminal import Terminal, is_terminal, to_json
from likely.errors import ConvergenceWarning, LikelyError

INTERRUPTED, TERMINATED = 130, 143
GRACE = 1.0  # seconds that a stopped command has to clean up
NOT_CONVERGED, NO_ROOM = 5, 6
MEANINGS = {  # the one list of exit codes: `likely --help` and docs/cli.md show it
    0: "done",
    1: "anything not listed here; also: another process holds or keeps changing the file",
    2: "the command was called wrongly, or would write over what it reads",
    3: "the data are bad; the message names column, value and remedy",
    4: "the model file is damaged, or not a model file",
    NOT_CONVERGED: "EM did not converge and --require-convergence was given; nothing was written",
    NO_ROOM: "out of memory, disk or quota, or not allowed to write there; nothing was written",
    INTERRUPTED: "stopped by Ctrl-C; files are as they were",
    TERMINATED: "stopped by SIGTERM; files are as they were",
}
CODES = {
    1: "failed", 2: "usage", 3: "bad_data", 4: "bad_model", NOT_CONVERGED: "not_converged", NO_ROOM: "no_room",
    INTERRUPTED: "interrupted", TERMINATED: "terminated",
}  # fmt: skip
DETAILS = ("column", "value", "row", "remedy")


class Terminated(BaseException):
    """Someone asked the process to end."""


UNBROKEN = "\u2011"  # a hyphen at which no line is broken


class Help(click.HelpFormatter):
    """Help whose lines end between words, not in the middle of --no-header."""

    def write_text(self, text: str) -> None:
        """A paragraph."""
        super().write_text(text.replace("-", UNBROKEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Options and what they do."""
        super().write_dl([(name, said.replace("-", UNBROKEN)) for name, said in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        """All of it, with ordinary hyphens."""
        return super().getvalue().replace(UNBROKEN, "-")


class Context(click.Context):
    """The context of every command, for its help."""

    formatter_class = Help


class Door(click.Group):
    """A group of commands that always leaves by an exit code."""

    context_class = Context

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Another command, whose help is written as that of all."""
        cmd.context_class = Context
        super().add_command(cmd, name)

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command, and leave with its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        terminal = Terminal(json="--json" in words)
        _speak_utf8()
        with _ends_on_request() as request:
            try:
                with terminal.warnings_as_notes():
                    code = self._run(words, prog_name or "likely", terminal, extra)
                _flush()
            except BaseException as error:
                # A library may have swallowed the request and raised an error of its own: the request counts.
                with request.turn:
                    code = _leave(request.error or error, terminal)
                    request.said = True
        if request.error:
            request.error.__traceback__ = None  # it holds what the command held
            gc.collect()  # temporary files go with their owners
            os._exit(code)  # libraries stopped in the middle complain at an ordinary end
        if standalone_mode:
            sys.exit(code)
        return code

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own signature
        """The commands in the order of a day's work."""
        return list(self.commands)

    def _run(self, words: list[str], prog_name: str, terminal: Terminal, extra: dict[str, Any]) -> int:
        # click's own main would turn a closed pipe into exit code 1, and no longer say that it was one.
        self._main_shell_completion(extra, prog_name, extra.pop("complete_var", None))
        try:
            with self.make_context(prog_name, words, obj=terminal, **extra) as context:
                self.invoke(context)
        except click.exceptions.Exit as way_out:
            return way_out.exit_code
        return 0


def _leave(error: BaseException, terminal: Terminal) -> int:
    """The exit code of an error, once it has been said."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if _is_closed_pipe(error):
        _let_go_of(sys.stdout)
        return 0  # the reader has seen enough, as in `likely predict ... | head`
    code, message = _fault(error, terminal)
    with contextlib.suppress(OSError):
        if message:
            if isinstance(error, KeyboardInterrupt) and is_terminal(sys.stderr):
                click.echo(err=True)  # the line of the ^C
            terminal.say(f"error: {message}")
            if terminal.json:
                said: dict[str, Any] = {"code": CODES.get(code, "failed"), "message": terminal.own_words(message)}
                details = {name: getattr(error, name, None) for name in DETAILS}
                if any(value is not None for value in details.values()):
                    said["details"] = {name: value for name, value in details.items() if value is not None}
                click.echo(to_json({"error": said}), err=True)
        elif isinstance(error, click.ClickException):
            error.show()
    _flush_for_the_last_time()
    return code


def _flush_for_the_last_time() -> None:
    """A full disk has been said already: the interpreter shall not say it again when it flushes at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            _let_go_of(stream)


def _fault(error: BaseException, terminal: Terminal) -> tuple[int, str]:
    """Exit code and message; an empty message where click itself has more to show."""
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        return INTERRUPTED, CODES[INTERRUPTED]
    if isinstance(error, Terminated):
        return TERMINATED, CODES[TERMINATED]
    if isinstance(error, LikelyError):
        return error.exit_code, _one_line(str(error))
    if isinstance(error, click.ClickException):
        return _fault_of_the_call(error)
    if isinstance(error, ConvergenceWarning):
        return NOT_CONVERGED, _one_line(str(error))
    if isinstance(error, (OSError, MemoryError)):
        return _fault_of_the_system(error)
    if os.environ.get("LIKELY_TRACEBACK"):
        terminal.say("".join(traceback.format_exception(error)))
    said = _one_line(f"{type(error).__name__}: {error}")
    return 1, f"{said} (a fault of Likely: LIKELY_TRACEBACK=1 shows where; please report it)"


def _fault_of_the_call(error: click.ClickException) -> tuple[int, str]:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return 2, ""
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "likely"
        return 2, f"{_one_line(error.format_message())} (see {path} --help)"
    return error.exit_code, _one_line(error.format_message())


def _fault_of_the_system(error: OSError | MemoryError) -> tuple[int, str]:
    if isinstance(error, MemoryError):
        return NO_ROOM, f"out of memory: {_one_line(str(error))}" if str(error) else "out of memory"
    where = f"{error.filename!r}: " if error.filename else ""
    return NO_ROOM if error.errno in FULL else 1, f"{where}{error.strerror or error}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _speak_utf8() -> None:
    """UTF-8 out, whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _is_closed_pipe(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EPIPE


def _let_go_of(stream: Any) -> None:
    """Nothing more is written, not even by the interpreter, which flushes at its end and would complain."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class Request:
    """The wish, by Ctrl-C or SIGTERM, that the command should end; at first there is none."""

    error: BaseException | None = None
    said = False  # the way out has been told

    def __init__(self) -> None:
        self.turn = threading.Lock()  # to tell it: the command's, or the last resort's

    def __call__(self, number: int, _: FrameType | None) -> None:
        """End now, by unwinding; and after a moment of grace in any case."""
        if self.error:
            return  # asked for again, on the way out
        self.error = KeyboardInterrupt() if number == signal.SIGINT else Terminated()
        last_resort = threading.Timer(GRACE, self._end)
        last_resort.daemon = True
        last_resort.start()
        raise self.error

    def _end(self) -> NoReturn:
        code = INTERRUPTED if isinstance(self.error, KeyboardInterrupt) else TERMINATED
        self.turn.acquire(timeout=GRACE)
        with contextlib.suppress(OSError):
            if not self.said:
                os.write(2, f"error: {CODES[code]}\n".encode())
        os._exit(code)


@contextlib.contextmanager
def _ends_on_request() -> Iterator[Request]:
    """SIGTERM ends a command as Ctrl-C does: files are cleaned up, and soon."""
    request = Request()
    caught = []
    if threading.current_thread() is threading.main_thread():
        caught.append(signal.SIGTERM)
        if (
            signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):  # a background job ignores Ctrl-C: leave it so
            caught.append(signal.SIGINT)
    before = {number: signal.signal(number, request) for number in caught}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
