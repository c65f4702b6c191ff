"""Streams that close, odd locales and terminals, and commands that are stopped: nothing is lost and nothing is half."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import likely
from processes import COMMAND, TENNIS, environment, run, write

pytestmark = pytest.mark.usefixtures("own_folder")


# ---------------------------------------------------------------- FAULTS 31: streams and locales


@pytest.mark.parametrize("args", [["examples", "tennis"], ["--help"], ["predict", "m.likely", "long.csv"]])
def test_a_reader_that_leaves_early_is_no_fault(args: list[str], model: str) -> None:
    head, *rows = Path(TENNIS).read_text(encoding="utf-8").splitlines()
    write("long.csv", "\n".join([head, *rows * 3000]) + "\n")
    process = subprocess.Popen([*COMMAND, *args], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1 if args[0] == "predict" else 0)
    process.stdout.close()
    reported = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=120) == 0
    assert b"Error" not in reported
    assert b"Traceback" not in reported


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LANG": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}])
def test_utf8_comes_out_whatever_the_locale(locale: dict[str, str]) -> None:
    write("x.csv", "größe,y\nsehr groß,日本\nklein,ж\n")
    done = run("learn", "x.csv", "--target", "y", "-o", "m.likely", env=environment(**locale))
    assert "größe" in done.stdout
    assert "日本" in done.stdout
    assert "σ" in run("examples", "insurance", env=environment(**locale)).stdout
    assert "sehr groß" in run("predict", "m.likely", "x.csv", env=environment(**locale)).stdout


def test_windows_newlines_are_newlines() -> None:
    text = Path(TENNIS).read_text(encoding="utf-8").replace("\n", "\r\n")
    found = json.loads(run("learn", write("x.csv", text), "--target", "PlayTennis", "--json").stdout)
    assert [c["class"] for c in found["classes"]] == ["No", "Yes"]


def test_without_a_terminal_there_is_no_colour_and_no_motion(model: str) -> None:
    for args in (
        ["learn", TENNIS, "--target", "PlayTennis", "-o", "n.likely"],
        ["inspect", model],
        ["evaluate", model, TENNIS],
    ):
        done = run(*args, env=environment(FORCE_COLOR="1", COLUMNS="100000"))
        assert "\x1b" not in done.stdout + done.stderr
        assert max(map(len, done.stdout.splitlines())) < 200


@pytest.mark.parametrize("columns", ["20", "80", "100000"])
def test_on_a_terminal_tables_are_drawn_at_any_width(columns: str, model: str) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "inspect", model],
        env=environment(COLUMNS=columns, TERM="xterm"),
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            block = os.read(ours, 65536)
        except OSError:
            break
        if not block:
            break
        seen += block
    os.close(ours)
    assert process.wait(timeout=60) == 0
    assert "─" in seen.decode("utf-8")


# ---------------------------------------------------------------- FAULTS 17: Ctrl-C and SIGTERM


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table that takes some seconds to read."""
    path = tmp_path_factory.mktemp("big") / "big.csv"
    lines = "".join(f"{i % 97}.{i % 11},{i % 89},v{i % 7},w{i % 5},{'pq'[i % 3 == 0]}\n" for i in range(20_000))
    with path.open("w", encoding="utf-8") as file:
        file.write("a,b,c,d,y\n")
        for _ in range(100):
            file.write(lines)
    return str(path)


def wait_until_at_work(process: subprocess.Popen[bytes]) -> None:
    """The command has begun: it has loaded a library that only a command at work loads."""
    maps = Path(f"/proc/{process.pid}/maps")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if not maps.exists():
            time.sleep(2)
            return
        if "pyarrow" in maps.read_text(errors="replace"):
            return
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("after", [0.0, 1.0])
def test_a_stopped_command_leaves_the_old_model_whole(
    number: int, code: int, after: float, big: str, model: str
) -> None:
    before = Path(model).read_bytes()
    process = subprocess.Popen(
        [*COMMAND, "learn", big, "--target", "y", "-o", model, "--folds", "5"],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    wait_until_at_work(process)
    time.sleep(after)
    assert process.poll() is None, "the table is too small for this test"
    process.send_signal(number)
    sent = time.monotonic()
    out, reported = process.communicate(timeout=30)
    assert process.returncode == code, reported
    assert time.monotonic() - sent < 10  # the promise is two seconds, on a machine that has time
    # on a cold kernel cache a compile may have been announced before the signal came
    told = [line for line in reported.decode().splitlines() if not line.startswith("likely: compiling ")]
    assert told == [f"error: {'interrupted' if code == 130 else 'terminated'}"]
    assert out == b""
    assert Path(model).read_bytes() == before
    assert os.listdir() == [model]


SLOW_TO_GO = """
import os, signal, time
from likely.cli._entry_point import GRACE, CommandGroup

class Slow:
    def __init__(self): self.itself = self  # only the collector ends it
    def __del__(self):
        time.sleep(GRACE * {grace})
        os.write(1, b"cleaned up")

door = CommandGroup("door")

@door.command()
def go():
    thing = Slow()
    try:
        os.kill(os.getpid(), signal.{name})
        time.sleep(60)
    finally:
        os.kill(os.getpid(), signal.{name})  # pressed again on the way out

door.main(["go"])
"""


@pytest.mark.parametrize("grace", [0, 1.5])  # done in time; or ended by the last resort
@pytest.mark.parametrize(("name", "code", "word"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")])
def test_a_stopped_command_prints_it_once(grace: float, name: str, code: int, word: str) -> None:
    script = SLOW_TO_GO.format(grace=grace, name=name)
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr.decode()) == (code, f"error: {word}\n")
    assert done.stdout == (b"" if grace else b"cleaned up")


IN_A_CALLBACK = """
import os, signal, time, weakref
from likely.cli._entry_point import CommandGroup

door = CommandGroup("door")

class Thing: pass

@door.command()
def go():
    thing = Thing()
    tie = weakref.ref(thing, lambda _: signal.raise_signal(signal.{name}))
    try:
        del thing  # an exception of its callback goes nowhere
        time.sleep(60)
    finally:
        os.write(1, b"cleaned up")

door.main(["go"])
"""


@pytest.mark.parametrize(("name", "code", "word"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")])
def test_a_signal_that_comes_in_a_callback_ends_the_command_as_any_other(name: str, code: int, word: str) -> None:
    script = IN_A_CALLBACK.format(name=name)
    done = subprocess.run([sys.executable, "-c", script], env=environment(), capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.decode(), done.stdout) == (code, f"error: {word}\n", b"cleaned up")


@pytest.mark.slow
def test_a_stopped_prediction_leaves_no_half_file(big: str) -> None:
    likely.learn(
        {"a": [1.5, 2.5, 3.5, 4.5], "c": ["v1", "v2", "v1", "v3"], "y": ["p", "q", "p", "q"]}, target="y"
    ).save("m.likely")
    write("out.csv", "what was here\n")
    process = subprocess.Popen(
        [*COMMAND, "predict", "m.likely", big, "-o", "out.csv"],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not [name for name in os.listdir() if name.endswith(".saving")] and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 143
    assert Path("out.csv").read_text(encoding="utf-8") == "what was here\n"
    assert sorted(os.listdir()) == ["m.likely", "out.csv"]
