"""The group of commands: error handling, exit codes and signals; a user never sees a traceback."""

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

from likely.cli._terminal import Terminal, is_terminal, to_json
from likely.errors import FULL, ConvergenceWarning, LikelyError
from likely.kernels.thread_count import VARIABLE

INTERRUPTED, TERMINATED = 130, 143
GRACE = 1.0  # seconds for cleaning up after a signal
AGAIN = 0.01  # seconds until a signal is raised again
READERS = ("learn", "predict", "update", "evaluate")  # commands that read many rows, batch after batch
# Arrow's own allocator takes new memory for most batches, which the system clears first: a tenth of the time of a command.
ALLOCATOR = ("ARROW_DEFAULT_MEMORY_POOL", "system")
NEW_OBJECTS = 20_000  # before garbage is collected: with the default of 700, a tenth of the start is spent on it
NOT_CONVERGED, NO_ROOM = 5, 6
MEANINGS = {  # exit codes, as listed in `likely --help` and docs/cli.md
    0: "success",
    1: "any other error; also: another process locks or keeps changing the file",
    2: "wrong usage, or an output would overwrite an input",
    3: "bad data; the message names column, value and remedy",
    4: "the model file is damaged, or not a model file",
    NOT_CONVERGED: "EM did not converge and --require-convergence was given; nothing was written",
    NO_ROOM: "out of memory, disk or quota, or not allowed to write there; nothing was written",
    INTERRUPTED: "stopped by Ctrl-C; files are unchanged",
    TERMINATED: "stopped by SIGTERM; files are unchanged",
}
CODES = {
    1: "failed", 2: "usage", 3: "bad_data", 4: "bad_model", NOT_CONVERGED: "not_converged", NO_ROOM: "no_room",
    INTERRUPTED: "interrupted", TERMINATED: "terminated",
}  # fmt: skip
DETAILS = ("column", "value", "row", "remedy")


class Terminated(BaseException):
    """SIGTERM was received."""


UNBROKEN = "\u2011"  # a non-breaking hyphen


class UnbrokenHelpFormatter(click.HelpFormatter):
    """Help formatter that does not break lines at hyphens, as in --no-header."""

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(text.replace("-", UNBROKEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write options with their help."""
        super().write_dl([(name, text.replace("-", UNBROKEN)) for name, text in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        """The help text, with ordinary hyphens."""
        return super().getvalue().replace(UNBROKEN, "-")


class Context(click.Context):
    """Click context with the help formatter of all commands."""

    formatter_class = UnbrokenHelpFormatter


def _use_threads(context: click.Context, _: click.Parameter, number: int | None) -> None:
    """Set the number of threads for this command, and restore the environment when it ends."""
    if number is not None:
        before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = str(number)
        context.call_on_close(
            lambda: os.environ.pop(VARIABLE, None) if before is None else os.environ.update({VARIABLE: before})
        )


def threads_option() -> click.Option:
    """The option of every command that sets how many threads it may use."""
    return click.Option(
        ["--threads"],
        type=click.IntRange(min=1),
        metavar="N",
        envvar=VARIABLE,
        show_envvar=True,
        expose_value=False,
        callback=_use_threads,
        help="Number of threads; by default all cores that the process may use, up to 16.",
    )


class CommandGroup(click.Group):
    """A group of commands that always ends with an exit code, never with a traceback."""

    context_class = Context

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command with the common help formatter."""
        cmd.context_class = Context
        cmd.params.append(threads_option())
        super().add_command(cmd, name)

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command, and exit with its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        if standalone_mode:
            _own_the_process(words)
        terminal = Terminal(json="--json" in words)
        _use_utf8()
        with _stop_on_signals() as request:
            try:
                with terminal.warnings_as_notes():
                    code = self._run(words, prog_name or "likely", terminal, extra)
                _flush()
            except BaseException as error:
                # A library may have replaced the signal's exception by its own error: the signal takes precedence.
                with request.turn:
                    code = _print_error(request.error or error, terminal)
                    request.reported = True
        if request.error:
            request.error.__traceback__ = None  # it refers to objects of the command
            gc.collect()  # temporary files are deleted with their owners
            os._exit(code)  # interrupted libraries print errors at a normal exit
        if standalone_mode:
            sys.exit(code)
        return code

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own signature
        """Commands in the order of definition, not sorted."""
        return list(self.commands)

    def _run(self, words: list[str], prog_name: str, terminal: Terminal, extra: dict[str, Any]) -> int:
        # click's own main would turn a closed pipe into exit code 1 and hide the reason.
        self._main_shell_completion(extra, prog_name, extra.pop("complete_var", None))
        try:
            with self.make_context(prog_name, words, obj=terminal, **extra) as context:
                self.invoke(context)
        except click.exceptions.Exit as way_out:
            return way_out.exit_code
        return 0


def _print_error(error: BaseException, terminal: Terminal) -> int:
    """Print an error and return its exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if _is_closed_pipe(error):
        _redirect_to_null(sys.stdout)
        return 0  # the reader closed the pipe, as in `likely predict ... | head`
    code, message = _fault(error, terminal)
    with contextlib.suppress(OSError):
        if message:
            if isinstance(error, KeyboardInterrupt) and is_terminal(sys.stderr):
                click.echo(err=True)  # the line of the ^C
            terminal.message(f"error: {message}")
            if terminal.json:
                report: dict[str, Any] = {"code": CODES.get(code, "failed"), "message": terminal.with_given_names(message)}
                details = {name: getattr(error, name, None) for name in DETAILS}
                if any(value is not None for value in details.values()):
                    report["details"] = {name: value for name, value in details.items() if value is not None}
                click.echo(to_json({"error": report}), err=True)
        elif isinstance(error, click.ClickException):
            error.show()
    _final_flush()
    return code


def _final_flush() -> None:
    """Flush, so that the interpreter does not report a full disk again at its exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            _redirect_to_null(stream)


def _fault(error: BaseException, terminal: Terminal) -> tuple[int, str]:
    """Exit code and message of an exception; an empty message if click prints its own."""
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        return INTERRUPTED, CODES[INTERRUPTED]
    if isinstance(error, Terminated):
        return TERMINATED, CODES[TERMINATED]
    if isinstance(error, LikelyError):
        return error.exit_code, _one_line(str(error))
    if isinstance(error, click.ClickException):
        return _usage_fault(error)
    if isinstance(error, ConvergenceWarning):
        return NOT_CONVERGED, _one_line(str(error))
    if isinstance(error, (OSError, MemoryError)):
        return _system_fault(error)
    if os.environ.get("LIKELY_TRACEBACK"):
        terminal.message("".join(traceback.format_exception(error)))
    message = _one_line(f"{type(error).__name__}: {error}")
    return 1, f"{message} (a bug in Likely: LIKELY_TRACEBACK=1 prints the traceback; please report it)"


def _usage_fault(error: click.ClickException) -> tuple[int, str]:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return 2, ""
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "likely"
        return 2, f"{_one_line(error.format_message())} (see {path} --help)"
    return error.exit_code, _one_line(error.format_message())


def _system_fault(error: OSError | MemoryError) -> tuple[int, str]:
    if isinstance(error, MemoryError):
        return NO_ROOM, f"out of memory: {_one_line(str(error))}" if str(error) else "out of memory"
    where = f"{error.filename!r}: " if error.filename else ""
    return NO_ROOM if error.errno in FULL else 1, f"{where}{error.strerror or error}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _own_the_process(words: Sequence[str]) -> None:
    """Set memory options for a process that runs one command and ends."""
    gc.set_threshold(NEW_OBJECTS)
    if words and words[0] in READERS and "pyarrow" not in sys.modules:
        os.environ.setdefault(*ALLOCATOR)


def _use_utf8() -> None:
    """Write UTF-8, whatever the locale."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _is_closed_pipe(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EPIPE


def _redirect_to_null(stream: Any) -> None:
    """Redirect a stream to the null device, so that the interpreter's final flush cannot fail."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class StopRequest:
    """Signal handler of Ctrl-C and SIGTERM: ends the command, and records the signal."""

    error: BaseException | None = None
    reported = False  # whether the error message has been printed

    def __init__(self) -> None:
        self.turn = threading.Lock()  # guards the error message: printed by the command or by the timer

    def __call__(self, number: int, _: FrameType | None) -> None:
        """Raise the exception of the signal, and force the exit after a period of grace."""
        if self.error:
            return  # signalled again while exiting
        self.error = KeyboardInterrupt() if number == signal.SIGINT else Terminated()
        timer = threading.Timer(GRACE, self._end)
        timer.daemon = True
        timer.start()
        raise self.error

    def swallowed(self, unraisable: Any) -> bool:
        """Whether the exception of the signal was lost in a callback, which cannot pass it on; it is then raised again."""
        if self.error is None or unraisable.exc_value is not self.error:
            return False
        number = signal.SIGINT if isinstance(self.error, KeyboardInterrupt) else signal.SIGTERM
        self.error = None
        threading.Timer(AGAIN, os.kill, (os.getpid(), number)).start()
        return True

    def _end(self) -> NoReturn:
        code = INTERRUPTED if isinstance(self.error, KeyboardInterrupt) else TERMINATED
        self.turn.acquire(timeout=GRACE)
        with contextlib.suppress(OSError):
            if not self.reported:
                os.write(2, f"error: {CODES[code]}\n".encode())
        os._exit(code)


@contextlib.contextmanager
def _stop_on_signals() -> Iterator[StopRequest]:
    """Handle SIGTERM like Ctrl-C, with cleanup of files."""
    request = StopRequest()
    caught = []
    if threading.current_thread() is threading.main_thread():
        caught.append(signal.SIGTERM)
        if (
            signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):  # background jobs keep ignoring Ctrl-C
            caught.append(signal.SIGINT)
    before = {number: signal.signal(number, request) for number in caught}
    hook = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: None if request.swallowed(unraisable) else hook(unraisable)
    try:
        yield request
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)
