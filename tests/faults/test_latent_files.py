"""Files of clusterings and hidden Markov models: everything that EM reported comes back, and damage is refused."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

import likely
from commands import run
from likely.errors import LikelyWarning, ModelFileError, SchemaError, UsageError
from likely.model import model_file


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def table(seed=0):
    rng = np.random.default_rng(seed)
    hidden = (np.arange(120) // 20) % 2
    x = rng.normal(4 * hidden, 1).round(3)
    return {"x": x.tolist(), "c": np.where(rng.random(120) < 0.2 + 0.6 * hidden, "u", "v").tolist()}


def written(data):
    names = list(data)
    rows = [",".join(names), *(",".join(map(str, row)) for row in zip(*data.values(), strict=True))]
    Path("t.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    return "t.csv"


REPORTED = ("log_likelihood", "trace", "entropy", "converged", "distance_left", "seed", "free_parameters", "bic", "icl", "aic")


@pytest.mark.parametrize("k", [2, "auto"])
def test_a_clustering_comes_back_with_all_that_em_reported(k):
    made = likely.cluster(table(), k, seed=7)
    made.save("c.likely")
    again = likely.load("c.likely")
    assert isinstance(again, likely.Clusters)
    assert {name: getattr(again, name) for name in REPORTED} == {name: getattr(made, name) for name in REPORTED}
    assert again.seed == 7
    assert again.tried == made.tried
    assert bool(again.tried) == (k == "auto")
    assert (again.posterior(table()).probabilities == made.posterior(table()).probabilities).all()
    assert again.save("d.likely") == made.save("e.likely")
    assert again == made
    assert again != made.relearn()


def test_a_clustering_has_a_model_and_is_none():
    made = likely.cluster(table(), 2)
    assert not isinstance(made, likely.Model)
    assert isinstance(made.model, likely.Model)
    assert made.model.posterior(table()).probabilities == pytest.approx(made.posterior(table()).probabilities)


def test_fixed_weights_are_no_free_parameters_after_loading_either():
    made = likely.cluster({"x": table()["x"]}, 2, fixed={"weights": "equal"})
    made.save("c.likely")
    assert likely.load("c.likely").free_parameters == made.free_parameters == 4


def test_a_sum_of_clusterings_has_the_log_likelihood_of_neither():
    one, other = likely.cluster(table(), 2), likely.cluster(table(1), 2)
    with pytest.warns(LikelyWarning, match="merged by their names"):
        both = one + other
    assert both.tally.rows == 240
    assert both.trace == ()
    assert not both.converged
    for name in ("log_likelihood", "entropy", "bic", "icl", "aic"):
        with pytest.raises(UsageError, match="with_log_likelihood"):
            getattr(both, name)
    both.save("b.likely")
    assert likely.load("b.likely").summary is None
    rows = {name: [*table()[name], *table(1)[name]] for name in table()}
    known = both.with_log_likelihood(rows)
    assert known.log_likelihood == pytest.approx(np.logaddexp.reduce(both.posterior(rows).log_joint, axis=1).sum())
    assert known.bic == pytest.approx(-2 * known.log_likelihood + known.free_parameters * np.log(240))


def test_the_log_likelihood_of_the_rows_of_em_is_what_em_reported():
    weights = np.random.default_rng(1).choice([0.5, 1.0, 3.0], 120).tolist()
    rows = table() | {"w": weights}
    made = likely.cluster(rows, 2, weights="w")
    again = made.relearn().with_log_likelihood(rows)
    assert again.log_likelihood == pytest.approx(made.log_likelihood, rel=1e-12)
    assert again.entropy == pytest.approx(made.entropy, rel=1e-9)
    assert again.bic == pytest.approx(made.bic, rel=1e-12)


@pytest.mark.parametrize("change", ["update", "forget", "relearn"])
def test_where_counts_change_what_em_reported_is_dropped(change):
    made = likely.cluster(table(), 2)
    rows = {"x": [0.0], "c": ["u"], "cluster": [1]}
    if change == "forget":
        made = made.update(rows)
    after = made.relearn(smoothing=3.0) if change == "relearn" else getattr(made, change)(rows)
    assert isinstance(after, likely.Clusters)
    assert after.summary is None
    assert after.tally.rows == 120 + (change == "update")


@pytest.mark.parametrize("change", ["update", "forget"])
def test_rows_without_a_component_are_refused_with_the_remedy(change):
    made = likely.cluster(table(), 2)
    rows = table(1)
    with pytest.raises(SchemaError, match=r"no column 'cluster'.*labels of predict"):
        getattr(made, change)(rows)
    named = rows | {"cluster": made.predict(rows).tolist()}
    more = made.update(named)
    added = more.tally.classes - made.tally.classes
    np.testing.assert_allclose(added, [named["cluster"].count(1), named["cluster"].count(2)])
    np.testing.assert_allclose(more.forget(named).tally.classes, made.tally.classes)
    with pytest.raises(SchemaError, match="'c'"):  # another column that is lacking is named as such
        made.update({"x": [0.0], "cluster": [1]})
    made.save("c.likely")
    assert "labels of predict" in run(change, "c.likely", written(rows), expect=3).stderr


def test_a_plain_model_and_a_clustering_add_up_in_either_order():
    made = likely.cluster({"x": table()["x"]}, 2)
    plain = likely.learn({"x": [0.0, 4.0], "cluster": [1, 2]}, "cluster", plain=True)
    for both in (made + plain, plain + made):
        assert isinstance(both, likely.Clusters)
        assert both.tally.rows == 122
        assert both.summary is None


@pytest.mark.parametrize("k", [2, "auto"])
def test_a_hidden_markov_model_comes_back_with_all_that_em_reported(k):
    made = likely.sequences(table(), k, lengths=[50, 70], seed=3)
    made.save("h.likely")
    again = likely.load("h.likely")
    assert isinstance(again, likely.HiddenMarkovModel)
    names = ("log_likelihood", "trace", "converged", "distance_left", "seed", "bic", "pseudocount", "states", "tried")
    assert {name: getattr(again, name) for name in names} == {name: getattr(made, name) for name in names}
    assert again.seed == 3
    for name in ("start_counts", "transition_counts", "start", "transition"):
        assert (getattr(again, name) == getattr(made, name)).all()
    rows, other = made.opened(table(2)), again.opened(table(2))
    assert (again.posterior(other) == made.posterior(rows)).all()
    assert (again.decode(other) == made.decode(rows)).all()


def test_numbers_that_json_cannot_write_come_back():
    made = likely.sequences(table(), 2)
    summary = made.summary.__class__(-np.inf, (-np.inf, 1.5))
    odd = made.__class__(made.emission, made.start_counts, made.transition_counts, 0.0, summary)
    odd.save("h.likely")
    again = likely.load("h.likely")
    assert again.trace == (-np.inf, 1.5)
    assert again.log_likelihood == -np.inf
    assert np.isnan(again.summary.entropy)
    assert again.distance_left == np.inf


def crafted(name, change):
    """The same file with another header or other arrays, and a checksum that fits."""
    header, arrays, _ = model_file.read(name)
    header = {key: value for key, value in header.items() if key != "arrays"}
    change(header, arrays)
    model_file.write("crafted.likely", header, arrays)
    return "crafted.likely"


BAD = {
    "kind": lambda h, a: h["latent"].update(kind="network"),
    "no summary": lambda h, a: h["latent"].pop("summary"),
    "a text for a number": lambda h, a: h["latent"]["summary"].update(log_likelihood="many"),
    "a flag for a number": lambda h, a: h["latent"]["summary"].update(entropy=True),
    "a trace of texts": lambda h, a: h["latent"]["summary"].update(trace=["a"]),
    "a number for a flag": lambda h, a: h["latent"]["summary"].update(converged=1),
    "a negative seed": lambda h, a: h["latent"]["summary"].update(seed=-1),
    "an odd entry": lambda h, a: h["latent"].update(more=1),
    "a size twice": lambda h, a: h["latent"].update(tried=[[1, 2.0], [1, 3.0]]),
    "a negative pseudocount": lambda h, a: h["latent"].update(pseudocount=-1.0),
    "starts of another length": lambda h, a: a.update({"latent.starts": np.ones(3)}),
    "moves of another shape": lambda h, a: a.update({"latent.moves": np.ones((2, 3))}),
    "moves below zero": lambda h, a: a.update({"latent.moves": -np.ones((2, 2))}),
    "moves of whole numbers": lambda h, a: a.update({"latent.moves": np.ones((2, 2), np.int64)}),
    "no moves": lambda h, a: a.pop("latent.moves"),
    "an odd array": lambda h, a: a.update({"latent.more": np.ones(2)}),
    "moves without a latent part": lambda h, a: h.pop("latent"),
    "a mixture with moves": lambda h, a: (h["latent"].pop("pseudocount"), h["latent"].update(kind="mixture")),
}


@pytest.mark.parametrize("change", BAD.values(), ids=list(BAD))
def test_a_crafted_file_is_refused_before_it_is_used(change):
    likely.sequences(table(), 2).save("h.likely")
    with pytest.raises(ModelFileError, match="is no model"):
        likely.load(crafted("h.likely", change))


def test_every_flipped_byte_of_a_file_is_refused():
    likely.sequences({"x": table()["x"][:30]}, 2).save("h.likely")
    data = Path("h.likely").read_bytes()
    for place in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[place] ^= 0x41
        Path("damaged.likely").write_bytes(damaged)
        with pytest.raises(ModelFileError):
            likely.load("damaged.likely")
    for length in (0, 7, struct.calcsize("<8sIQ32s"), len(data) // 2, len(data) - 1):
        Path("damaged.likely").write_bytes(data[:length])
        with pytest.raises(ModelFileError):
            likely.load("damaged.likely")


def test_the_shell_keeps_a_hidden_markov_model_shows_it_and_applies_it():
    file = written(table() | {"who": ["a"] * 50 + ["b"] * 70})
    fitted = json.loads(run("sequences", file, "--by", "who", "-o", "one.csv", "--model", "h.likely", "--json").stdout)
    shown = json.loads(run("inspect", "h.likely", "--json").stdout)
    assert shown["digest"] == fitted["digest"]
    for name in ("log_likelihood", "bic", "aic", "trace", "transition", "start"):
        assert shown[name] == fitted[name]
    assert fitted["aic"] == likely.load("h.likely").aic
    assert "Hidden Markov model of 2 states" in run("inspect", "h.likely").stdout
    applied = json.loads(
        run("sequences", file, "--by", "who", "-o", "two.csv", "--apply", "h.likely", "--json").stdout
    )
    assert Path("two.csv").read_text() == Path("one.csv").read_text()
    assert applied["log_likelihood"] == pytest.approx(fitted["log_likelihood"], rel=1e-12)
    assert not {"bic", "aic"} & set(applied)


def test_commands_that_need_rows_in_any_order_refuse_a_hidden_markov_model():
    file = written(table())
    run("sequences", file, "--model", "h.likely")
    for command in (("predict", "h.likely", file), ("update", "h.likely", file), ("explain", "h.likely", file)):
        assert "--apply" in run(*command, expect=2).stderr
    run("cluster", file, "-k", "2", "-o", "c.likely")
    assert "is no hidden Markov model" in run("sequences", file, "--apply", "c.likely", expect=2).stderr
    assert "leave out -k" in run("sequences", file, "--apply", "h.likely", "-k", "3", expect=2).stderr
    assert "is a file that is read" in run("sequences", file, "--model", file, expect=2).stderr


def test_the_shell_keeps_what_em_reported_of_clusters_until_counts_change():
    file = written(table())
    found = json.loads(run("cluster", file, "-k", "2", "-o", "c.likely", "--json").stdout)
    shown = json.loads(run("inspect", "c.likely", "--json").stdout)
    for name in ("log_likelihood", "bic", "icl", "aic", "trace", "seed"):
        assert shown[name] == found[name]
    run("merge", "c.likely", "c.likely", "-o", "d.likely")
    assert json.loads(run("inspect", "d.likely", "--json").stdout)["log_likelihood"] is None
    assert "not known" in run("inspect", "d.likely").stdout
    assert run("predict", "d.likely", file).stdout
