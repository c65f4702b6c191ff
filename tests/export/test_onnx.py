"""A model as an ONNX graph gives the probabilities of `posterior` in onnxruntime, for a batch and for one row."""

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


def fed(session, table):
    """The columns of a table as the inputs of a session."""
    found = {}
    for each in session.get_inputs():
        cells = table[each.name].to_pylist()
        if each.type == "tensor(double)":
            found[each.name] = np.array([[np.nan if cell is None else float(cell)] for cell in cells])
        else:
            found[each.name] = np.array([["" if cell is None else str(cell)] for cell in cells], dtype=object)
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
