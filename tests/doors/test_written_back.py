"""What `predict` writes beside its answers are the labels and the user's own cells, unchanged."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

import likely
from commands import run

pytestmark = pytest.mark.usefixtures("own_folder")

ROWS = [
    ["NA", "x\ry", "+"],
    ["?", "-", "-"],
    ["007", "q\nr", "+"],
    [" 5 ", "=1", "-"],
    ["1.50", '" z"', "+"],
    ["", "\tq,", "-"],
    ["1e3", "@b", "+"],
]
NAMES = ["=a", "b", "y"]


@pytest.fixture
def table() -> str:
    with open("t.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([NAMES, *ROWS])
    likely.learn("t.csv", target="y", plain=True).save("t.likely")
    return "t.csv"


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_predict_writes_labels_and_cells_unchanged(table: str, ending: str) -> None:
    run("predict", "t.likely", table, "-o", f"out.{ending}")
    with open(f"out.{ending}", encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file, delimiter="\t" if ending == "tsv" else ",")
    assert names == [*NAMES, "label"]
    assert [row[:3] for row in rows] == ROWS
    assert {row[3] for row in rows} == {"+", "-"}
    assert b"\r\n" not in Path(f"out.{ending}").read_bytes()


def test_predict_to_standard_output_writes_them_unchanged(table: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "likely", "predict", "t.likely", table], capture_output=True, check=True
    )
    Path("piped.csv").write_bytes(done.stdout)
    with open("piped.csv", encoding="utf-8", newline="") as file:
        assert [row[:3] for row in csv.reader(file)] == [NAMES, *ROWS]


def test_clusters_and_sequences_write_cells_unchanged() -> None:
    with open("plain.csv", "w", encoding="utf-8") as file:
        file.write("a,b\n" + "".join(f"{'+-'[i % 2]},{i % 5 - 2}\n" for i in range(30)))
    run("cluster", "plain.csv", "-k", "2", "--labels", "c.csv")
    run("sequences", "plain.csv", "-k", "2", "-o", "s.csv")
    for name in ("c.csv", "s.csv"):
        with open(name, encoding="utf-8", newline="") as file:
            assert [row[0] for row in csv.reader(file)] == ["a", *("+-"[i % 2] for i in range(30))]


def test_excel_safe_escapes_formulas_and_leaves_numbers(table: str) -> None:
    run("predict", "t.likely", table, "-o", "out.csv", "--excel-safe")
    with open("out.csv", encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    assert names[0] == "'=a"
    assert [row[1] for row in rows] == ["x\ry", "'-", "q\nr", "'=1", '" z"', "'\tq,", "'@b"]
    assert rows[0][-1] in ("'+", "'-")


def test_excel_safe_is_refused_where_there_are_no_formulas(table: str) -> None:
    reported = run("predict", "t.likely", table, "-o", "out.parquet", "--excel-safe", expect=2).stderr
    assert "--excel-safe" in reported
    assert not Path("out.parquet").exists()
