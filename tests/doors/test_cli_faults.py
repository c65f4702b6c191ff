"""Whatever goes wrong has its exit code and one line that says so; nothing is written by halves."""

import csv
import errno
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import likely
from commands import refused, run
from processes import ANSI, COMMAND, TENNIS, environment, write

pytestmark = pytest.mark.usefixtures("own_folder")


# ---------------------------------------------------------------- FAULTS 1: nothing in the file


@pytest.mark.parametrize(
    ("name", "text"),
    [("empty.csv", ""), ("header.csv", "a,b,y\n"), ("blank.csv", "\n\n"), ("none.json", "[]"), ("none.jsonl", "\n")],
)
def test_an_empty_table_is_bad_data_and_writes_no_model(name: str, text: str) -> None:
    reported = refused("learn", write(name, text), "--target", "y", "-o", "m.likely", code=3)
    assert name in reported
    assert os.listdir() == [name]


def test_a_table_whose_rows_were_all_skipped_is_bad_data() -> None:
    done = run(
        "learn", write("x.csv", "a,y\n1\n2\n"), "--target", "y", "--on-bad-rows", "skip", "-o", "m.likely", expect=3
    )
    assert "x.csv" in done.stderr
    assert not Path("m.likely").exists()


def test_nothing_on_standard_input_is_called_by_its_name() -> None:
    reported = refused("learn", "-", "--target", "y", code=3)
    assert "standard input" in reported
    assert "/tmp" not in reported


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
    reported = refused("learn", write("ragged.csv", text), "--target", "y", "-o", "m.likely", code=3)
    assert line in reported
    assert "--on-bad-rows skip" in reported
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
        reported = json.loads(last)["error"]
        assert reported["code"] == name
        assert line == f"error: {reported['message']}"
        assert done.stdout == ""


def test_a_full_disk_is_reported_in_one_line(model: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("NOT TESTED: this system has no /dev/full")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "predict", model, TENNIS], stdout=full, stderr=subprocess.PIPE, env=environment(), check=False
        )
    assert done.returncode == 6
    assert done.stderr.decode().splitlines()[-1] == f"error: {os.strerror(errno.ENOSPC)}"
    assert b"Traceback" not in done.stderr


# ---------------------------------------------------------------- FAULTS 19: two writers


def test_a_model_changed_meanwhile_is_not_overwritten(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from likely.cli import _model_output as model_output
    from likely.cli import main
    from likely.model.model import Model

    update = Model.update

    def slow_update(self: Model, *args: Any, **options: Any) -> Model:
        changed = update(self, TENNIS)
        changed.save(model)  # another process was faster
        return update(self, *args, **options)

    monkeypatch.setattr(Model, "update", slow_update)
    monkeypatch.setattr(model_output, "ATTEMPTS", 3)
    result = CliRunner().invoke(main, ["update", model, TENNIS])
    assert result.exit_code == 1
    assert "changed by another process" in result.stderr
    assert likely.load(model).tally.rows == 14 * (1 + 3)  # the other process was faster at every attempt


def test_updates_at_the_same_time_are_all_counted(model: str) -> None:
    processes = [
        subprocess.Popen(
            [*COMMAND, "update", model, TENNIS], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        for _ in range(4)
    ]
    reported = [process.communicate(timeout=120)[1] for process in processes]
    codes = [process.returncode for process in processes]
    assert codes == [0] * 4, reported
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
    table = list(csv.reader(run("predict", "m.likely", "hostile.csv", "--excel-safe").stdout.splitlines()))
    for cell in (cell for row in table for cell in row):
        assert not cell.startswith(("=", "@", "\t", "+"))
        assert not cell.startswith("-") or float(cell) <= 0  # a negative number is no formula
    assert table[1][-1] in ("'=1+1", "'@b")
    run("predict", "m.likely", "hostile.csv", "-o", "out.jsonl")
    records = [json.loads(line) for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert records[0][HOSTILE[0]] == f"{HOSTILE[0]}0"


def test_control_characters_in_an_error_do_not_reach_the_terminal() -> None:
    write("x.csv", f"a,y\n1,p\n{ANSI},q\n2,q\n")
    reported = refused("learn", "x.csv", "--target", "y", "--family", "a=gaussian", code=3)
    assert "\x1b" not in reported


def test_a_fault_of_our_own_is_one_line_too(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from likely.cli import main
    from likely.model.model import Model

    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(Model, "explain", broken)
    result = CliRunner().invoke(main, ["explain", model, "--set", "Wind=Weak"])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: KeyError: 'oops' (a bug in Likely")


def test_estimate_asks_no_range_of_names_and_no_success_beyond_the_trials() -> None:
    table = write("t.csv", "k,n,c\n3,4,a\n5,4,b\n")
    assert "'a' is no number" in refused("estimate", table, "--column", "c", "--between", "1", "2", code=2)
    wrong = refused("estimate", table, "--column", "k", "--column", "n", "--family", "binomial:n", code=3)
    assert "column 'k' has 5.0 in row 2, which is more than the trials" in wrong


def test_weights_of_zero_and_the_format_of_an_example_are_named() -> None:
    table = write("w.csv", "x,y,w\n1,a,0\n2,b,0\n3,a,0\n")
    reported = refused("learn", table, "--target", "y", "--weights", "w", "-o", "m.likely", code=3)
    assert "column 'w' gives no labelled row of 'w.csv' a weight above zero" in reported
    assert "OUT.svg" in refused("examples", "tennis", "--picture", "out.bmp", code=2)
