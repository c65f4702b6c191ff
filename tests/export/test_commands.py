"""The commands sql and export, and the JSON document of a model."""

import datetime as dt
import json
import math
import subprocess
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from commands import document, run
from hostile import hostile
from likely.export import to_json
from processes import environment
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
    assert run("sql", model, "--dialect", "postgresql").stdout == known.sql(dialect="postgres") + "\n"
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


def joint_by_hand(term, lines, row):
    """Entries of a joint block of categories and numbers, from the document alone."""
    at = sum(lines[i] * step for i, step in zip(term["codes"], term["strides"], strict=True))
    classes, cells = np.shape(term["log_weight"])
    there = [j for j, name in enumerate(term["columns"]) if row[name] is not None]
    density = np.zeros((classes, cells))
    for pattern in term["patterns"]:
        if pattern["seen"] == there:
            away = np.array([row[term["columns"][j]] for j in there]) - np.array(pattern["mean"])
            square = (np.einsum("kij,kj->ki", pattern["root"], away) ** 2).sum(1)
            density = (np.array(pattern["constant"]) - square / 2).reshape(classes, cells)
    own = (density + np.array(term["log_weight"]))[:, term["cells"][at]]
    return term["weight"] * np.logaddexp.reduce(own, axis=1)


def density_by_hand(form, x):
    """Log density of a number by class, from the document alone."""
    away = x - np.array(form["mean"])
    if form["form"] == "square":
        return np.array(form["peak"]) + np.array(form["curve"]) * away**2
    degrees = np.array(form["degrees"])
    return np.array(form["peak"]) - (degrees + 1) / 2 * np.log1p((away / np.array(form["width"])) ** 2)


@pytest.mark.parametrize("settings", [{"average": True}, {"plain": True, "joint": [("c.d", 'a"b', "x")]}])
def test_averages_and_joint_blocks_are_scored_by_hand_from_the_document(settings):
    table = hostile(300).select(["c.d", 'a"b', "x", "y"])
    model = learn(table, **settings)
    described = json.loads(json.dumps(to_json(model)))
    values = {column["name"]: column["values"] for column in described["columns"]}
    seen = set()
    for row, wanted in zip(table.slice(0, 60).to_pylist(), model.predict_proba(table.slice(0, 60)), strict=True):
        cells = {name: None if isinstance(v, float) and math.isnan(v) else v for name, v in row.items()}
        lines, score = [], np.array(described["constant"])
        for code in described["codes"]:
            cell, known = cells[code["column"]], values[code["column"]]
            lines.append(code["missing"] if cell is None else known.index(cell) if cell in known else code["unseen"])
        for term in described["terms"]:
            seen.add(term["form"])
            if term["form"] == "table":
                score = score + term["table"][lines[term["codes"][0]]]
            elif term["form"] == "cell gaussians":
                score = score + joint_by_hand(term, lines, cells)
            elif cells[term["column"]] is not None:
                one = term["log_dependent"] + density_by_hand(term["dependent"], cells[term["column"]])
                other = term["log_independent"] + density_by_hand(term["independent"], cells[term["column"]])
                score = score + np.logaddexp(one, other)
        powers = np.exp(score - score.max())
        assert powers / powers.sum() == pytest.approx(wanted, abs=1e-9)
    assert seen & {"averaged", "cell gaussians"}


def test_the_document_is_had_from_the_package_and_holds_dates_as_text():
    when = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=7 * i) for i in range(400)]  # noqa: DTZ001
    table = pa.table({"when": when, "y": [dt.date(2024, 1, 1 + (t.weekday() > 4)) for t in when]})
    model = learn(table, date_parts=["when.weekday"])
    assert json.loads(json.dumps(to_json(model)))["classes"] == ["2024-01-01", "2024-01-02"]
    held = {column["name"]: column.get("holds") for column in to_json(model)["columns"]}
    assert held["when.weekday"] == "weekday of 'when' in UTC, as an English name (Monday)"
    asked = [sys.executable, "-c", "import likely; print(likely.export.to_json.__name__)"]
    done = subprocess.run(asked, capture_output=True, text=True, env=environment(), check=True)
    assert done.stdout == "to_json\n"


def test_a_missing_dependency_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlglot.expressions", None)
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    model = learn({"a": ["u", "v"] * 4, "y": [0, 1] * 4}, plain=True)
    with pytest.raises(likely.errors.MissingDependencyError, match=r"likely\[sql\]"):
        model.sql()
