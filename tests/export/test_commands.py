"""The commands sql and export, and the JSON document of a model."""

import json
import math

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

import likely
from commands import document, run
from hostile import hostile
from likely.export import to_json
from tables import learn


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.likely"
    learn(hostile(200)).save(path)
    return str(path)


def test_sql_prints_the_statement_of_the_library(model, tmp_path):
    known = likely.load(model)
    assert run("sql", model, "--table", "orders", "--dialect", "sqlite").stdout == known.sql("orders", "sqlite") + "\n"
    assert document("sql", model)["sql"] == known.sql()
    asked = ("--column", "x", "--prefix", "new_", "--pretty", "-o", str(tmp_path / "m.sql"))
    run("sql", model, *asked)
    assert (tmp_path / "m.sql").read_text() == known.sql(columns=["x"], prefix="new_", pretty=True) + "\n"
    run("sql", model, "--dialect", "oracle", expect=2)


def test_words_are_written_beside_the_statement(tmp_path):
    path, words = str(tmp_path / "t.likely"), str(tmp_path / "words.parquet")
    table = {"say": ["free prize", "free lunch", None] * 9, "y": ["spam", "ham", "ham"] * 9}
    learn(table, families={"say": likely.Text("multinomial")}).save(path)
    run("sql", path, "--words", words, "-o", str(tmp_path / "t.sql"))
    assert sorted(pq.read_table(words)["word"].to_pylist()) == ["free", "lunch", "prize"]
    connection = duckdb.connect()
    connection.execute(f"create table likely_words as select * from '{words}'")
    connection.execute("create or replace view data as select 'a free prize' as say")
    found = connection.sql((tmp_path / "t.sql").read_text()).to_arrow_table().to_pydict()
    assert found["p_spam"][0] == pytest.approx(likely.load(path).predict_proba({"say": "a free prize"})[0, 1], abs=1e-9)


def test_export_writes_each_form_completely(model, tmp_path):
    onnx = pytest.importorskip("onnx", reason="NOT TESTED: onnx is not installed")
    for form in ("onnx", "sql", "json"):
        told = document("export", model, "--to", form, "-o", str(tmp_path / f"m.{form}"))
        assert told["bytes"] == (tmp_path / f"m.{form}").stat().st_size
    onnx.checker.check_model(onnx.load(tmp_path / "m.onnx"))
    assert (tmp_path / "m.sql").read_text() == likely.load(model).sql() + "\n"
    assert json.loads((tmp_path / "m.json").read_text())["format"] == "likely/terms/1"
    run("export", model, "--to", "onnx", expect=2)  # not to a terminal
    run("export", model, "--to", "json", "-o", model, expect=2)


def test_json_of_an_export_to_standard_output_holds_what_is_exported(model):
    plain = run("export", model, "--to", "json").stdout
    told = document("export", model, "--to", "json")
    assert told["to"] == "json"
    assert told["json"] == json.loads(plain)
    assert document("export", model, "--to", "sql")["sql"] + "\n" == run("export", model, "--to", "sql").stdout


@pytest.mark.parametrize("form", ["sql", "json"])
def test_json_of_an_export_to_a_file_names_the_file_and_holds_no_copy_of_it(model, tmp_path, form):
    told = document("export", model, "--to", form, "-o", str(tmp_path / "out"))
    assert told["to"] == form
    assert told["output"] == str(tmp_path / "out")
    assert not {"sql", "json"} & told.keys()


def by_hand(described, row):
    """Probabilities of one row, from the document alone."""
    lines, score = [], list(described["constant"])
    values = {column["name"]: column["values"] for column in described["columns"]}
    for code in described["codes"]:
        cell = row[code["column"]]
        if cell is None:
            lines.append(code["missing"])
        elif code["kind"] == "bins":
            lines.append(sum(cell >= edge for edge in code.get("edges", ())))
        else:
            known = values[code["column"]]
            lines.append(known.index(cell) if cell in known else code["unseen"])
    for term in described["terms"]:
        own = [lines[i] for i in term["codes"]]
        if term["form"] == "table":
            at = sum(line * step for line, step in zip(own, term["strides"], strict=True))
        else:
            offsets = [offset[line] for offset, line in zip(term["offsets"], own, strict=True)]
            at = sum(offsets) if min(offsets) >= 0 else -1
        if at >= 0:
            score = [s + t for s, t in zip(score, term["table"][at], strict=True)]
    powers = [math.exp(s - max(score)) for s in score]
    return np.array(powers) / sum(powers)


def test_the_document_is_enough_to_score_rows_by_hand():
    table = hostile(300).drop_columns(["n"])
    model = learn(table.drop_columns(["x"]))
    described = json.loads(json.dumps(to_json(model)))
    assert {term["form"] for term in described["terms"]} <= {"table", "cells"}
    for row, wanted in zip(table.slice(0, 40).to_pylist(), model.predict_proba(table.slice(0, 40)), strict=True):
        cells = {name: None if isinstance(v, float) and math.isnan(v) else v for name, v in row.items()}
        assert by_hand(described, cells) == pytest.approx(wanted, abs=1e-9)


def test_a_missing_dependency_names_its_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "sqlglot.expressions", None)
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    model = learn({"a": ["u", "v"] * 4, "y": [0, 1] * 4}, plain=True)
    with pytest.raises(likely.errors.MissingDependencyError, match=r"likely\[sql\]"):
        model.sql()
