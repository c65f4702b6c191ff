"""Evidence that a number lies in an interval, in the library and on the command line; soft evidence on the command line."""

import json
import math

import numpy as np
import pytest

import likely
from commands import document, refused, run
from likely.errors import DataError, UsageError
from networks_help import sprinkler


def normal(z):
    return 0.5 * math.erfc(-z / math.sqrt(2))


def mixed():
    """A category with a number for each of its values, which is moved by another number; something beside it, and below."""
    rng = np.random.default_rng(1)
    c, u = rng.integers(0, 2, 4_000), rng.normal(size=4_000)
    x = 2.0 * c + 0.5 * u + rng.normal(size=4_000)
    table = {"c": np.array(["a", "b"])[c].tolist(), "u": u, "x": x, "y": x + rng.normal(size=4_000)}
    table["d"] = np.where(rng.random(4_000) < 0.3 + 0.4 * c, "p", "q").tolist()
    return table


@pytest.fixture(scope="module")
def net():
    return likely.Network("c -> x, u -> x, x -> y, c -> d").fit(mixed())


def mass(net, low, high, u):
    """P(low < x < high | c, u) by hand, for each value of c."""
    g = net.parameters.gaussians["x"]
    mean = g.intercept + g.slopes[:, 0] * u
    return np.array([normal((high - m) / math.sqrt(v)) - normal((low - m) / math.sqrt(v))
                     for m, v in zip(mean, g.variance, strict=True)])  # fmt: skip


@pytest.mark.parametrize(("low", "high"), [(0.5, 1.5), (-0.25, 0.25), (3.0, 9.0)])
def test_an_interval_weighs_each_value_by_the_mass_of_the_interval(net, low, high):
    prior = net.parameters.tables["c"]
    inside = mass(net, low, high, 0.4)
    found = net.query("c", {"x": (low, high), "u": 0.4})
    assert list(found.values()) == pytest.approx((prior * inside / (prior @ inside)).tolist(), rel=1e-9)
    density = net.log_evidence({"u": 0.4})
    assert net.log_evidence({"x": [low, high], "u": 0.4}) - density == pytest.approx(math.log(prior @ inside), rel=1e-9)


def test_open_ends_and_opposite_tails(net):
    given = {"u": 0.0}
    below, above = (net.log_evidence({**given, "x": each}) for each in ((None, 1.0), (1.0, math.inf)))
    assert np.logaddexp(below, above) == pytest.approx(net.log_evidence(given), rel=1e-9)
    g = net.parameters.gaussians["x"]
    far = float(g.intercept.max()) + 12 * math.sqrt(float(g.variance.max()))
    assert math.isfinite(net.log_evidence({**given, "x": (far, None)})), "digits of the tail are kept"


def test_an_interval_agrees_with_samples_and_with_the_most_probable_values(net):
    evidence = {"x": (1.5, 2.5), "u": 0.0}
    exact, drawn = net.query("d", evidence), net.query("d", evidence, samples=50_000)
    assert exact["p"] == pytest.approx(drawn["p"], abs=0.02)
    assert net.most_probable(evidence) == {"c": "b", "d": "p"}
    assert net.most_probable(evidence, ["c"]) == {"c": "b"}


@pytest.mark.parametrize(
    ("target", "evidence", "error", "message"),
    [
        ("c", {"x": (0, 1)}, UsageError, r"'u' is not given as a number.*cut into bins"),
        ("y", {"x": (0, 1), "u": 0.0}, UsageError, r"'y' matters for the answer"),
        ("c", {"x": (0, 1), "u": 0.0, "y": 1.0}, UsageError, r"'y' matters for the answer"),
        ("x", {"x": (0, 1), "u": 0.0}, UsageError, "asked for, and given as an interval"),
        ("c", {"x": (1, 0), "u": 0.0}, DataError, "the first number is the smaller one"),
        ("c", {"x": (1, 2, 3), "u": 0.0}, DataError, r"give \(low, high\)"),
        ("c", {"x": ("low", 2), "u": 0.0}, DataError, "no finite number"),
    ],
)
def test_intervals_without_an_exact_answer_are_refused_with_a_remedy(net, target, evidence, error, message):
    with pytest.raises(error, match=message):
        net.query(target, evidence)


@pytest.fixture
def lawn(tmp_path):
    path = str(tmp_path / "lawn.likely")
    sprinkler().save(path)
    return path


@pytest.mark.parametrize("soft", [{"t": 0.9, "f": 0.2}, ["t"], ["t", "f"]])
def test_the_command_takes_likelihoods_and_possible_values(lawn, soft):
    told = document("network", "query", lawn, "C", "--given", f"W={json.dumps(soft)}")
    assert told["posterior"]["C"] == pytest.approx(sprinkler().query("C", {"W": soft}))
    assert told["given"] == {"W": soft}


def test_the_command_takes_an_interval_and_a_random_intervention(net, lawn, tmp_path):
    path = str(tmp_path / "mixed.likely")
    net.save(path)
    told = document("network", "query", path, "c", "--given", "x=[null, 1.5]", "--given", "u=0.4")
    assert told["posterior"]["c"] == pytest.approx(net.query("c", {"x": (None, 1.5), "u": 0.4}))
    told = document("network", "query", lawn, "W", "--do", 'S={"t": 0.25, "f": 0.75}')
    assert told["posterior"]["W"] == pytest.approx(sprinkler().do(S={"t": 0.25, "f": 0.75}).query("W"))


@pytest.mark.parametrize("option", ["--given", "--do"])
@pytest.mark.parametrize("text", ['W={"t"', 'W=[["t"]]', 'W={"t": [1]}'])
def test_json_that_is_no_evidence_is_refused_with_its_shape(lawn, option, text):
    assert "write it as NODE={" in refused("network", "query", lawn, "C", option, text, code=2)


def test_an_intervention_is_no_list_and_a_value_may_look_like_json(lawn, tmp_path):
    assert "write it as NODE={" in refused("network", "query", lawn, "C", "--do", 'W=["t"]', code=2)
    path = str(tmp_path / "odd.likely")
    likely.Network("A -> B").fit({"A": ["[1]", "x"] * 20, "B": ["u", "u", "v", "v"] * 10}).save(path)
    assert "0.5" in run("network", "query", path, "B", "--given", "A=[1]").stdout
