"""The same table is the same model, whatever holds it and however it is cut up."""

import csv
import datetime as dt
import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import likely
from likely.kernels import parallel as engine
from likely.sources import _json_files as json_files
from likely.sources import csv_files, files
from strategies import quietly

FAMILIES = {"level": "categorical", "calls": "poisson"}


def table(rows=60, seed=0):
    rng = np.random.default_rng(seed)

    def gappy(values, share=0.15):
        return [None if rng.random() < share else value for value in values]

    return {
        "colour": gappy(rng.choice(["red", "grün", "with, comma", 'a "quote"', "blue"], rows).tolist()),
        "level": gappy(rng.integers(1, 5, rows).tolist()),
        "flag": gappy((rng.random(rows) < 0.4).tolist()),
        "size": gappy(rng.normal(100, 25, rows).tolist()),
        "calls": gappy(rng.poisson(2, rows).tolist()),
        "whole": gappy(rng.integers(-500, 500, rows).tolist()),
        "label": rng.integers(0, 3, rows).tolist(),
    }


def rows_of(data):
    return [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]


def to_csv(data, path, delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(data)
        for row in zip(*data.values(), strict=True):
            writer.writerow(["" if v is None else v for v in row])
    return path


def to_text(path, content):
    path.write_text(content, encoding="utf-8")
    return path


def write(work, path):
    work(path)
    return path


SOURCES = {
    "dict": lambda data, folder: data,
    "arrays": lambda data, folder: {n: np.array(v, dtype=object) for n, v in data.items()},
    "rows": lambda data, folder: rows_of(data),
    "rows without gaps": lambda data, folder: [{n: v for n, v in r.items() if v is not None} for r in rows_of(data)],
    "pandas": lambda data, folder: pd.DataFrame(data),
    "pandas, own types": lambda data, folder: pd.DataFrame(data).convert_dtypes(),
    "pandas, categories": lambda data, folder: pd.DataFrame(data).astype({"colour": "category"}),
    "polars": lambda data, folder: pl.DataFrame(data),
    "polars, lazy": lambda data, folder: pl.DataFrame(data).lazy(),
    "arrow": lambda data, folder: pa.table(data),
    "arrow, in pieces": lambda data, folder: pa.concat_tables([pa.table(data).slice(i * 20, 20) for i in range(3)]),
    "csv": lambda data, folder: to_csv(data, folder / "t.csv"),
    "csv, semicolons": lambda data, folder: to_csv(data, folder / "s.csv", ";"),
    "tsv": lambda data, folder: to_csv(data, folder / "t.tsv", "\t"),
    "parquet": lambda data, folder: write(
        lambda p: pq.write_table(pa.table(data), p, row_group_size=17), folder / "t.parquet"
    ),
    "json": lambda data, folder: to_text(folder / "t.json", json.dumps(rows_of(data))),
    "json, columns": lambda data, folder: to_text(folder / "c.json", json.dumps(data)),
    "jsonl": lambda data, folder: to_text(folder / "t.jsonl", "\n".join(map(json.dumps, rows_of(data)))),
    "arrow file": lambda data, folder: write(
        lambda p: pyarrow.feather.write_feather(pa.table(data), p), folder / "t.arrow"
    ),
}


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """One model a source, of one table."""
    data, folder = table(), tmp_path_factory.mktemp("sources")
    held = {name: make(data, folder) for name, make in SOURCES.items()}
    models = {n: quietly(likely.learn, path(s), "label", families=FAMILIES) for n, s in held.items()}
    return data, held, models


def path(source):
    return str(source) if hasattr(source, "suffix") else source


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_of_one_table_gives_the_same_model(learned, name):
    data, _, models = learned
    plain, other = models["dict"], models[name]
    merged = other + plain
    assert [len(c.values) for c in merged.schema.columns] == [len(c.values) for c in plain.schema.columns]
    assert len(merged.classes) == 3
    twice = (plain + plain).tally
    np.testing.assert_array_equal(merged.tally.classes, twice.classes)
    for block, a, b in zip(twice.blocks, merged.tally.statistics, twice.statistics, strict=True):
        for part, array in a.arrays().items():
            np.testing.assert_allclose(
                array, b.arrays()[part], rtol=0 if part in ("seen", "n") else 1e-12, err_msg=block.name
            )
    features = {n: v for n, v in data.items() if n != "label"}
    np.testing.assert_allclose(other.posterior(features).log_joint, plain.posterior(features).log_joint, rtol=1e-12)


@pytest.mark.parametrize("learned_from", SOURCES)
@pytest.mark.parametrize("asked_from", SOURCES)
def test_what_was_learned_from_one_source_is_asked_from_any_other(learned, learned_from, asked_from):
    _, held, models = learned
    expected = models["dict"].posterior(held["dict"]).log_joint
    found = models[learned_from].posterior(path(held[asked_from])).log_joint
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", SOURCES)
def test_any_source_can_be_forgotten_by_a_model_of_any_other(learned, name):
    data, held, models = learned
    more = quietly(models["dict"].update, path(held[name]))
    assert more.tally.rows == 120
    back = quietly(more.forget, path(held[name]))
    assert back.classes == models["dict"].classes
    np.testing.assert_array_equal(back.tally.classes, models["dict"].tally.classes)
    np.testing.assert_allclose(back.posterior(data).log_joint, models["dict"].posterior(data).log_joint, rtol=1e-9)


FORMS = {"int": [1, 0], "text": ["1", "0"], "float": [1.0, 0.0], "bool": [True, False], "decimal text": ["1.0", "0.0"]}


@pytest.mark.parametrize("taught", FORMS)
@pytest.mark.parametrize("asked", FORMS)
def test_one_as_a_number_a_text_or_a_truth_is_one_value(taught, asked):
    """All but two spellings of text find each other: "1" and "1.0" are different texts."""
    (yes, no), (one, nil) = FORMS[taught], FORMS[asked]
    data = {"c": [yes, yes, no, no], "y": ["a", "a", "b", "b"]}
    model = likely.learn(data, "y", families={"c": "categorical"})
    found = model.posterior({"c": [one, nil]}).probabilities
    if {taught, asked} == {"text", "decimal text"}:
        np.testing.assert_allclose(found, 0.5)
    else:
        np.testing.assert_allclose(found, [[3 / 4, 1 / 4], [1 / 4, 3 / 4]])
        merged = model + likely.learn({"c": [one, nil], "y": ["a", "b"]}, "y", families={"c": "categorical"})
        assert len(merged.schema.by_name["c"].values) == 2
        more = model.update({"c": [one, nil], "y": ["a", "b"]})
        assert more.tally == merged.tally


def test_new_values_of_another_type_join_alike_from_either_side():
    numbers = likely.learn({"c": [1, 2], "y": [1, 2]}, "y", families={"c": "categorical"})
    texts = likely.learn({"c": ["2", "3"], "y": ["2", "3"]}, "y", families={"c": "categorical"})
    for merged in (numbers + texts, texts + numbers):
        assert merged.classes == (1, 2, 3)
        assert merged.schema.by_name["c"].values == (1, 2, 3)
        assert merged.tally.classes.tolist() == [1.0, 2.0, 1.0]


def test_whole_numbers_beyond_the_reach_of_floats_stay_apart():
    first, second = 2**53, 2**53 + 1
    model = likely.learn({"c": [first, second], "y": ["a", "b"]}, "y", families={"c": "categorical"}, smoothing=0)
    assert model.schema.by_name["c"].values == (first, second)
    for form in (int, str):
        assert model.predict({"c": [form(first), form(second)]}).tolist() == ["a", "b"]


def test_times_are_one_number_from_every_source(tmp_path):
    stamps = [dt.datetime(2024, 1, 1, 12, 0, i, tzinfo=dt.UTC) for i in range(8)]
    data = {"t": stamps, "y": ["a", "b"] * 4}
    models = [
        likely.learn(frame, "y", families={"t": "gaussian"})
        for frame in (data, pd.DataFrame(data), pl.DataFrame(data), pa.table(data))
    ]
    for model in models:
        assert model.parameters["t"] == models[0].parameters["t"]
    assert models[0].parameters["t"][0]["deviation"] == pytest.approx(math.sqrt(5))


# ------------------------------------------------------------------ chunks and threads


def big(rows=5000):
    return table(rows, seed=4)


def close(a, b, columns):
    assert a.schema == b.schema
    np.testing.assert_array_equal(a.tally.classes, b.tally.classes)
    for x, y in zip(a.tally.statistics, b.tally.statistics, strict=True):
        for part, array in x.arrays().items():
            if part in ("seen", "n"):
                np.testing.assert_array_equal(array, y.arrays()[part])
            else:
                np.testing.assert_allclose(array, y.arrays()[part], rtol=1e-12)
    np.testing.assert_allclose(a.posterior(columns).log_joint, b.posterior(columns).log_joint, rtol=1e-12)


@pytest.mark.parametrize("cells", [1, 3_000, 10_000, 1 << 20])
def test_the_size_of_a_slab_does_not_matter(monkeypatch, cells):
    data = big()
    whole = likely.learn(data, "label", families=FAMILIES | {("size", "whole"): likely.Joint()})
    monkeypatch.setattr(engine, "SLAB_CELLS", cells)
    close(likely.learn(data, "label", families=FAMILIES | {("size", "whole"): likely.Joint()}), whole, data)


@pytest.mark.parametrize("rows", [1, 7, 333, 4999, 10**6])
def test_the_size_of_a_batch_does_not_matter(monkeypatch, tmp_path, rows):
    data = big(5000 if rows > 1 else 40)
    sources = [
        str(to_csv(data, tmp_path / "t.csv")),
        str(write(lambda p: pq.write_table(pa.table(data), p), tmp_path / "t.parquet")),
        str(to_text(tmp_path / "t.jsonl", "\n".join(map(json.dumps, rows_of(data))))),
    ]
    whole = [likely.learn(source, "label", families=FAMILIES) for source in sources]
    for room in (files, csv_files, json_files):
        monkeypatch.setattr(room, "BATCH_ROWS", rows)
    for source, model in zip(sources, whole, strict=True):
        close(likely.learn(source, "label", families=FAMILIES), model, data)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_the_number_of_threads_does_not_matter(monkeypatch, threads):
    data = big()
    monkeypatch.setattr(engine, "SLAB_CELLS", 3_000)
    whole = likely.learn(data, "label", families=FAMILIES)
    with ThreadPoolExecutor(threads) as pool:
        monkeypatch.setattr(engine, "pool", lambda: pool)
        again = likely.learn(data, "label", families=FAMILIES)
        assert again == whole
        np.testing.assert_array_equal(again.posterior(data).log_joint, whole.posterior(data).log_joint)


def test_an_array_of_whole_numbers_is_the_table_of_its_columns():
    rng = np.random.default_rng(2)
    X = rng.integers(-3, 9, (300, 4))
    y = rng.integers(5, 8, 300)
    array = np.column_stack([X, y])
    columns = {f"x{j}": array[:, j].tolist() for j in range(5)}
    for family in ("categorical", "gaussian", "poisson"):
        if family == "poisson":
            array = np.abs(array)
            columns = {f"x{j}": array[:, j].tolist() for j in range(5)}
        for dtype in (np.int64, np.int32, np.int8, np.float64, np.float32):
            one = likely.learn(array.astype(dtype), "x4", families=family)
            two = likely.learn(columns, "x4", families=family)
            assert one.tally == two.tally
            np.testing.assert_array_equal(
                one.posterior(array.astype(dtype)).log_joint, two.posterior(columns).log_joint
            )
