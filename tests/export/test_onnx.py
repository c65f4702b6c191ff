"""A model as an ONNX graph gives the probabilities of `posterior` in onnxruntime, for a batch and for one row."""

import datetime as dt
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from hostile import hostile, strange
from likely.errors import UsageError
from tables import learn

runtime = pytest.importorskip("onnxruntime", reason="NOT TESTED: onnxruntime is not installed")
TOLERANCE = 1e-6
SETTINGS = {
    "default": {},
    "plain": {"plain": True},
    "asked for": {"families": {'a"b': "gaussian", "n": "poisson"}},
    "joint": {"plain": True, "joint": [('a"b', "x"), ("c.d", "Ünï `tick`")], "families": {"n": "bernoulli"}},
    "counts": {"plain": True, "families": {"n": "binomial:1000000", "select * from x; --": "categorical"}},
    "no smoothing": {"smoothing": 0, "families": {"select * from x; --": "categorical", "n": "poisson"}},
}


AVERAGED = {
    "numbers": {"average": True},
    "known variance": {"average": True, "families": {'a"b': likely.Gaussian(variance=1.0)}},
}
MIXED = {"one category": [("c.d", "x", 'a"b')], "two categories": [('a"b', "c.d", "Ünï `tick`")]}


def inputs_of(session):
    """What the metadata say of each input."""
    return json.loads(session.get_modelmeta().custom_metadata_map["likely.inputs"])


def fed(session, table):
    """The columns of a table as the inputs of a session."""
    found, missing = {}, {each["name"]: each["missing"] for each in inputs_of(session)}
    for each in session.get_inputs():
        cells = table[each.name].to_pylist()
        if each.type == "tensor(double)":
            found[each.name] = np.array([[np.nan if cell is None else float(cell)] for cell in cells])
        else:
            found[each.name] = np.array([[missing[each.name] if cell is None else str(cell)] for cell in cells], dtype=object)
    return found


def check(model, table):
    session = runtime.InferenceSession(model.onnx().SerializeToString())
    inputs, wanted = fed(session, table), model.posterior(table)
    labels, shares = session.run(["label", "probabilities"], inputs)
    assert np.abs(shares - wanted.probabilities).max() < TOLERANCE
    clear = np.sort(wanted.probabilities, 1)
    assert (labels == wanted.labels)[clear[:, -1] - clear[:, -2] > TOLERANCE].all()
    for i in (0, table.num_rows - 1):
        one = session.run(["probabilities"], {name: cells[i : i + 1] for name, cells in inputs.items()})[0]
        assert np.abs(one - shares[i : i + 1]).max() < TOLERANCE


def filled(table):
    """The same table without empty text, which is a missing cell in a graph."""
    cells = ["blank" if cell == "" else cell for cell in table["c.d"].to_pylist()]
    return table.set_column(0, "c.d", pa.array(cells))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_graph_equals_the_posterior(settings):
    table = filled(hostile())
    check(learn(table, **settings), pa.concat_tables([table, filled(strange(table))]))


def test_empty_texts_and_missing_cells_are_apart_in_every_kind_of_model():
    table = hostile()
    check(learn(table), pa.concat_tables([table, strange(table)]))


REAL = {"credit_g": "class", "titanic": "survived", "soybean": "class"}


@pytest.mark.real
@pytest.mark.parametrize("name", REAL)
def test_the_default_model_of_a_published_table_scores_alike(name, shared_data):
    table = pq.read_table(shared_data(f"{name}.parquet")).slice(0, 3000)
    check(learn(table, REAL[name]), table)


def test_labels_keep_their_type():
    for classes in ((0, 1), (False, True), (0.5, 1.5), ("a", "b")):
        table = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "y": [classes[i % 2] for i in range(4)]})
        session = runtime.InferenceSession(learn(table, plain=True).onnx().SerializeToString())
        labels = session.run(["label"], fed(session, table))[0]
        assert set(labels.tolist()) <= set(classes)


def test_an_infinite_number_has_no_probability():
    table = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1]})
    session = runtime.InferenceSession(learn(table, plain=True).onnx().SerializeToString())
    assert np.isnan(session.run(["probabilities"], {"x": np.array([[np.inf]])})[0]).all()


def test_text_is_refused_with_the_remedy():
    model = learn({"a": ["free prize", "free lunch"] * 9, "y": [0, 1] * 9}, families={"a": likely.Text("multinomial")})
    with pytest.raises(UsageError, match="leave it out"):
        model.onnx()


@pytest.mark.parametrize("settings", AVERAGED.values(), ids=AVERAGED)
def test_numbers_averaged_over_whether_they_depend_on_the_class_are_scored(settings):
    table = hostile(600)
    check(learn(table, **settings), pa.concat_tables([table, strange(table)]))


@pytest.mark.parametrize("smoothing", [1.0, 0])
@pytest.mark.parametrize("joint", MIXED.values(), ids=MIXED)
def test_a_joint_block_of_categories_and_numbers_is_scored(joint, smoothing):
    table = hostile(600)
    model = learn(table, plain=True, joint=joint, smoothing=smoothing)
    check(model, pa.concat_tables([table, strange(table)]))


def test_large_integers_are_kept_apart():
    labels = ["n", "p", "p", "n"]
    table = pa.table({"i": [2**53 + k % 4 for k in range(1200)], "y": [labels[k % 4] for k in range(1200)]})
    model = learn(table, families={"i": "categorical"}, plain=True)
    assert model.predict(table).tolist() == table["y"].to_pylist()
    check(model, table)


def test_an_empty_text_that_is_a_category_is_no_missing_cell():
    cells = ["", None, "<missing>", "u"]
    labels = ["n" if k % 4 == 0 or k % 9 == 0 else "p" for k in range(400)]
    table = pa.table({"a": [cells[k % 4] for k in range(400)], "y": labels})
    model = learn(table)
    assert model.schema.by_name["a"].values == ("", "<missing>", "u")
    (held,) = inputs_of(runtime.InferenceSession(model.onnx().SerializeToString()))
    assert held["missing"] == "<<missing>>"
    check(model, table)


def test_dates_as_categories_are_refused_with_the_remedy():
    table = {"d": [dt.date(2024, 1, 1 + i % 3) for i in range(60)], "y": [i % 3 > 0 for i in range(60)]}
    model = learn(table, plain=True, families={"d": "categorical"})
    with pytest.raises(UsageError, match=r"'d' has the category '2024-01-01' \(date\), which has no literal in ONNX"):
        model.onnx()
    with pytest.raises(UsageError, match="no literal in SQL"):
        model.sql()


def test_the_graph_says_which_parts_of_dates_it_is_given():
    when = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=7 * i) for i in range(400)]  # noqa: DTZ001
    table = pa.table({"when": when, "y": ["n" if t.weekday() > 4 else "p" for t in when]})
    model = learn(table, date_parts=["when.weekday", "when.hour"])
    held = {each["name"]: each for each in inputs_of(runtime.InferenceSession(model.onnx().SerializeToString()))}
    assert held["when.weekday"]["holds"] == "weekday of 'when' in UTC, as an English name (Monday)"
    assert held["when.hour"]["holds"] == "hour of 'when' in UTC, as a whole number from 0 to 23"
    assert held["when"]["holds"].startswith("seconds: of a date or timestamp since 1970-01-01 in UTC")
    seconds = [t.replace(tzinfo=dt.UTC).timestamp() for t in when]
    given = {"when": seconds, "when.weekday": [t.strftime("%A") for t in when], "when.hour": [t.hour for t in when]}
    session = runtime.InferenceSession(model.onnx().SerializeToString())
    shares = session.run(["probabilities"], fed(session, pa.table(given)))[0]
    assert np.abs(shares - model.predict_proba(table)).max() < TOLERANCE
