"""Whatever goes wrong has its exit code and one line that says so; nothing is written by halves."""

import csv
import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import likely

SOURCE = Path(likely.__file__).parents[1]
DATA = SOURCE / "likely" / "data"
TENNIS = str(DATA / "tennis.csv")
COMMAND = [sys.executable, "-m", "likely"]
ANSI = "\x1b[31mred\x1b[0m"


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(SOURCE)} | more


def run(*args: str, expect: int = 0, stdin: bytes = b"", env: dict[str, str] | None = None) -> Any:
    """One command in a process of its own; text comes back as UTF-8."""
    done = subprocess.run(
        [*COMMAND, *args], input=stdin, capture_output=True, env=env or environment(), timeout=120, check=False
    )
    done.stdout, done.stderr = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    assert "Traceback" not in done.stderr
    assert done.returncode == expect, (args, done.returncode, done.stdout, done.stderr)
    return done


def refused(*args: str, code: int, **options: Any) -> str:
    """The one line of a refusal."""
    done = run(*args, expect=code, **options)
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    return str(lines[0])


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def model() -> str:
    likely.learn(TENNIS, target="PlayTennis").save("m.likely")
    return "m.likely"


def write(name: str, text: str) -> str:
    Path(name).write_text(text, encoding="utf-8", newline="")
    return name


# ---------------------------------------------------------------- FAULTS 1: nothing in the file


@pytest.mark.parametrize(
    ("name", "text"),
    [("empty.csv", ""), ("header.csv", "a,b,y\n"), ("blank.csv", "\n\n"), ("none.json", "[]"), ("none.jsonl", "\n")],
)
def test_an_empty_table_is_bad_data_and_writes_no_model(name: str, text: str) -> None:
    said = refused("learn", write(name, text), "--target", "y", "-o", "m.likely", code=3)
    assert name in said
    assert os.listdir() == [name]


def test_a_table_whose_rows_were_all_skipped_is_bad_data() -> None:
    done = run(
        "learn", write("x.csv", "a,y\n1\n2\n"), "--target", "y", "--on-bad-rows", "skip", "-o", "m.likely", expect=3
    )
    assert "x.csv" in done.stderr
    assert not Path("m.likely").exists()


def test_nothing_on_standard_input_is_called_by_its_name() -> None:
    said = refused("learn", "-", "--target", "y", code=3)
    assert "standard input" in said
    assert "/tmp" not in said


def test_a_file_that_is_not_there_is_bad_data_and_names_it() -> None:
    assert "nowhere.csv" in refused("learn", "nowhere.csv", "--target", "y", code=3)


# ---------------------------------------------------------------- FAULTS 2: ragged rows


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a,b,y\n1,u,p\n2,v\n3,u,q\n4,v,p\n", "line 3"),
        ("a,b,y\n1,u,p\n2,v,q,extra\n3,u,q\n", "line 3"),
        ('a,b,y\n1,u,p\n2,"v,q\n3,u,q\n', "line"),
        ("a,b,y\n1,u,p\n2;v;q\n3,u,q\n", "line 3"),
    ],
    ids=["too few", "too many", "open quote", "other delimiter"],
)
def test_a_ragged_row_is_named_by_its_line(text: str, line: str) -> None:
    said = refused("learn", write("ragged.csv", text), "--target", "y", "-o", "m.likely", code=3)
    assert line in said
    assert "--on-bad-rows skip" in said
    assert not Path("m.likely").exists()


def test_skipped_rows_are_counted_and_listed() -> None:
    write("ragged.csv", "a,b,y\n1,u,p\n2,v\n3,u,q\n4,v,p,x,x\n5,v,q\n")
    done = run("learn", "ragged.csv", "--target", "y", "--on-bad-rows", "skip", "--json")
    assert "2 bad rows were skipped" in done.stderr
    assert "line 3" in done.stderr
    assert "line 5" in done.stderr
    found = json.loads(done.stdout)
    assert found["rows"] == 3
    assert len(found["rejects"]) == 2


def test_skipped_lines_of_json_are_counted_once() -> None:
    write("x.jsonl", '{"a": "u", "y": "p"}\nnot json\n{"a": "v", "y": "q"}\n{"a": "v", "y": "p"}\n')
    done = run("learn", "x.jsonl", "--target", "y", "--on-bad-rows", "skip", "--folds", "2", "--json")
    assert "1 bad rows were skipped" in done.stderr
    assert len(json.loads(done.stdout)["rejects"]) == 1


def test_rows_without_a_label_are_noted_in_one_line() -> None:
    done = run("learn", write("x.csv", "a,y\nu,p\nv,\nu,q\n"), "--target", "y")
    assert done.stderr.splitlines() == ["note: 1 of 3 rows have no 'y': they were not counted"]
    refused("learn", "x.csv", "--target", "y", "--unlabelled", "error", code=3)


# ---------------------------------------------------------------- exit codes


def test_a_damaged_model_file_is_exit_four(model: str) -> None:
    whole = Path(model).read_bytes()
    for damaged in (whole[:-1], whole[:20], b"", b"not a model", whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]):
        Path(model).write_bytes(damaged)
        assert "m.likely" in refused("inspect", model, code=4)
        refused("predict", model, TENNIS, code=4)
    refused("explain", "nowhere.likely", TENNIS, code=4)


@pytest.mark.parametrize(
    "args",
    [
        ["learn", TENNIS],
        ["learn", TENNIS, "--target", "PlayTennis", "--smoothing", "much"],
        ["learn", TENNIS, "--target", "PlayTennis", "--smoothing=-1"],
        ["learn", TENNIS, "--target", "PlayTennis", "--smoothing", "1", "--smoothing", "2"],
        ["learn", TENNIS, "--target", "PlayTennis", "--family", "Wind=conjecture"],
        ["learn", TENNIS, "--target", "PlayTennis", "--family", "Wind"],
        ["learn", TENNIS, "--target", "PlayTennis", "--joint", "Wind,,Outlook"],
        ["learn", TENNIS, "--target", "PlayTennis", "--class-prior", "Yes=0.5"],
        ["learn", TENNIS, "--target", "PlayTennis", "--class-prior", "Yes=half"],
        ["learn", TENNIS, "--target", "PlayTennis", "--class-prior", "Maybe=1"],
        ["learn", TENNIS, "--target", "PlayTennis", "--folds", "1"],
        ["learn", TENNIS, "--target", "PlayTennis", "--engine", "steam"],
        ["learn", TENNIS, "--target", "PlayTennis", "--encoding", "klingon"],
        ["learn", TENNIS, "--target", "PlayTennis", "-o", "no/such/folder/m.likely"],
        ["learn", TENNIS, "--target", "PlayTennis", "-o", "-", "--json"],
        ["predict", "-", "-"],
        ["predict", "m.likely", TENNIS, "-o", "out.xlsx"],
        ["predict", "m.likely", TENNIS, "-o", "."],
        ["inspect", TENNIS, "--column", "Wind"],
        ["--frobnicate"],
        ["divine"],
    ],
)
def test_a_wrong_call_is_exit_two_and_writes_nothing(args: list[str], model: str) -> None:
    before = Path(model).read_bytes()
    done = run(*args, expect=2)
    assert done.stderr.startswith("error: ")
    assert os.listdir() == [model]
    assert Path(model).read_bytes() == before


@pytest.mark.parametrize(
    ("args", "column"),
    [
        (["learn", TENNIS, "--target", "Weather"], "Weather"),
        (["learn", TENNIS, "--target", "PlayTennis", "--ignore", "Weather"], "Weather"),
        (["learn", TENNIS, "--target", "PlayTennis", "--family", "Wind=gaussian"], "Wind"),
    ],
)
def test_bad_data_is_exit_three_and_names_the_column(args: list[str], column: str) -> None:
    assert repr(column) in refused(*args, code=3)
    assert os.listdir() == []


def test_errors_are_json_too_when_json_was_asked_for(model: str) -> None:
    for args, code, name in (
        (["learn", TENNIS, "--target", "Weather"], 3, "bad_data"),
        (["learn", TENNIS], 2, "usage"),
        (["inspect", "nowhere.likely"], 4, "bad_model"),
    ):
        done = run(*args, "--json", expect=code)
        line, last = done.stderr.splitlines()
        said = json.loads(last)["error"]
        assert said["code"] == name
        assert line == f"error: {said['message']}"
        assert done.stdout == ""


def test_a_full_disk_is_said_in_one_line(model: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("NOT TESTED: this system has no /dev/full")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "predict", model, TENNIS], stdout=full, stderr=subprocess.PIPE, env=environment(), check=False
        )
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1] == f"error: {os.strerror(errno.ENOSPC)}"
    assert b"Traceback" not in done.stderr


# ---------------------------------------------------------------- FAULTS 19: two writers


def test_a_model_changed_meanwhile_is_not_overwritten(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from likely.cli import main
    from likely.model import Model

    update = Model.update

    def slow_update(self: Model, *args: Any, **options: Any) -> Model:
        changed = update(self, TENNIS)
        changed.save(model)  # another process was faster
        return update(self, *args, **options)

    monkeypatch.setattr(Model, "update", slow_update)
    result = CliRunner().invoke(main, ["update", model, TENNIS])
    assert result.exit_code == 1
    assert "changed by another process" in result.stderr
    assert likely.load(model).tally.rows == 28


def test_updates_at_the_same_time_are_counted_or_refused_never_lost(model: str) -> None:
    processes = [
        subprocess.Popen(
            [*COMMAND, "update", model, TENNIS], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        for _ in range(4)
    ]
    said = [process.communicate(timeout=120)[1] for process in processes]
    codes = [process.returncode for process in processes]
    assert set(codes) <= {0, 1}
    assert all(b"changed by another process" in text for text, code in zip(said, codes, strict=True) if code)
    assert likely.load(model).tally.rows == 14 * (1 + codes.count(0))


# ---------------------------------------------------------------- FAULTS 27: hostile names and values

HOSTILE = ["=cmd()|x", "+1+2", "-2+3", "@sum(A1)", '"; DROP TABLE t; --', "<script>", "{{7*7}}", ANSI, "\ttab"]


def test_hostile_names_and_values_pass_through_a_round(tmp_path: Path) -> None:
    with open("hostile.csv", "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow([*HOSTILE, "n", "y"])
        for label in ("=1+1", "@b"):
            for i in range(3):
                out.writerow([*(f"{text}{i % 2}" for text in HOSTILE), str(-i), label])
    done = run("learn", "hostile.csv", "--target", "y", "-o", "m.likely")
    assert "\x1b" not in done.stdout
    assert likely.load("m.likely").schema.by_name.keys() == {*HOSTILE, "n"}
    for args in (
        ["explain", "m.likely", "hostile.csv"],
        ["inspect", "m.likely", "--tables"],
        ["inspect", "hostile.csv"],
    ):
        assert "\x1b" not in run(*args).stdout
        assert "\x1b" not in run(*args, "--json").stdout
    table = list(csv.reader(run("predict", "m.likely", "hostile.csv").stdout.splitlines()))
    for cell in (cell for row in table for cell in row):
        assert not cell.startswith(("=", "@", "\t", "+"))
        assert not cell.startswith("-") or float(cell) <= 0  # a negative number is no formula
    assert table[1][-1] in ("'=1+1", "'@b")
    assert run("predict", "m.likely", "hostile.csv", "-o", "out.jsonl").returncode == 0
    records = [json.loads(line) for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert records[0][HOSTILE[0]] == f"{HOSTILE[0]}0"


def test_control_characters_in_an_error_do_not_reach_the_terminal() -> None:
    write("x.csv", f"a,y\n1,p\n{ANSI},q\n2,q\n")
    said = refused("learn", "x.csv", "--target", "y", "--family", "a=gaussian", code=3)
    assert "\x1b" not in said


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
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=120) == 0
    assert b"Error" not in said
    assert b"Traceback" not in said


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
    out, said = process.communicate(timeout=30)
    assert process.returncode == code, said
    assert time.monotonic() - sent < 10  # the promise is two seconds, on a machine that has time
    assert said.decode().strip() == f"error: {'interrupted' if code == 130 else 'terminated'}"
    assert out == b""
    assert Path(model).read_bytes() == before
    assert os.listdir() == [model]


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
    while not [name for name in os.listdir() if name.endswith(".tmp")] and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 143
    assert Path("out.csv").read_text(encoding="utf-8") == "what was here\n"
    assert sorted(os.listdir()) == ["m.likely", "out.csv"]


def test_a_fault_of_our_own_is_one_line_too(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from likely.cli import main
    from likely.model import Model

    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(Model, "explain", broken)
    result = CliRunner().invoke(main, ["explain", model, "--set", "Wind=Weak"])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: KeyError: 'oops' (a fault of Likely")
