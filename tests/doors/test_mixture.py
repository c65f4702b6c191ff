"""The door for clusters and for partly labelled rows: scikit-learn's conventions, the shell, and the picture."""

import json
import warnings
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import likely
from likely import Mixture, NaiveBayes, TextNaiveBayes
from likely.cli import main
from likely.errors import ConvergenceWarning, DataError, LikelyWarning, UsageError
from likely.latent.component_picture import picture
from strategies import quietly

LOANS = str(Path(likely.__file__).parent / "data" / "loans.csv")


def run(*args, expect=0):
    result = CliRunner().invoke(main, list(args))
    assert result.exit_code == expect, (args, result.exit_code, result.stdout, result.stderr)
    return result


def blobs(rows=60, apart=6.0, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(0, 1, (rows, 2)), rng.normal(apart, 1, (rows, 2))]), np.repeat([0, 1], rows)


# The families differ in what is counted, not in the number of starts: one start checks the same.
@parametrize_with_checks([Mixture(), *(Mixture(families=family, n_init=1) for family in ("joint", "gaussian:class"))])
def test_it_passes_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_a_frame_of_mixed_columns_with_gaps_is_clustered():
    x, y = blobs()
    frame = pd.DataFrame({"a": x[:, 0], "b": np.where(y == 0, "u", "v"), "n": x[:, 1]})
    frame.loc[::5, "a"], frame.loc[::7, "b"] = np.nan, None
    made = Mixture(2).fit(frame)
    assert adjusted_rand_score(y, made.labels_) > 0.95
    assert made.means_.shape == (2, 2)
    assert made.score(frame) == pytest.approx(made.score_samples(frame).mean())
    np.testing.assert_allclose(made.predict_proba(frame).sum(1), 1.0)
    assert list(made.feature_names_in_) == ["a", "b", "n"]
    assert (clone(made).fit(frame).labels_ == made.labels_).all()


def test_counts_events_and_texts_are_clustered():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 60)
    counts = rng.poisson(np.where(y == 0, 2.0, 15.0))[:, None].astype(float)
    assert adjusted_rand_score(y, Mixture(2, families="poisson").fit(counts).labels_) > 0.9
    animals, planets = (
        ["cat", "dog", "horse", "cow", "sheep", "goat"],
        ["mars", "venus", "earth", "saturn", "pluto", "jupiter"],
    )
    texts = [" ".join(rng.choice(animals if c == 0 else planets, 8)) for c in y]
    model = likely.cluster({"t": texts}, 2, families=likely.Text())
    assert adjusted_rand_score(y, model.predict({"t": texts})) == 1.0


def test_impossible_settings_give_clear_errors():
    x, _ = blobs()
    for settings, reported in (
        ({"n_components": 0}, "no number of clusters"),
        ({"fixed": {"mean": 1}}, "cannot be fixed"),
        ({"fixed": {"weights": [0.5, 0.6]}}, "sum to 1"),
        ({"start": [[1.0]]}, "start= takes"),
    ):
        with pytest.raises(UsageError, match=reported):
            Mixture(**settings).fit(x)
    with pytest.raises(DataError, match="different kind"):
        Mixture(3).fit(np.ones((10, 2)))
    with pytest.raises(UsageError, match="3 different labels for n_components=2"):
        Mixture(2).fit(x[:4], ["a", "b", "c", None])
    with pytest.raises(UsageError, match="cannot be learned from rows without labels"):
        likely.cluster({"t": ["a b", "c d"] * 4}, 2, families=likely.Text("complement"))


def test_labels_that_are_missing_are_filled_in_by_their_shares():
    x, y = blobs(200, 2.5, 3)
    few = np.full(len(y), np.nan)
    few[:2], few[200:202] = 0, 1
    made = NaiveBayes().fit(x, few)
    seen = ~np.isnan(few)
    alone = NaiveBayes().fit(x[seen], few[seen])
    assert made.score(x, y) >= alone.score(x, y)
    assert made.unlabelled_ in (0.0, 0.1, 1.0)
    assert list(made.classes_) == [0.0, 1.0]
    with pytest.raises(ValueError, match="Input y contains NaN"):
        NaiveBayes().partial_fit(x, few)
    with pytest.raises(ValueError, match="contains NaN"):
        NaiveBayes().fit(x, np.full(len(y), np.nan))
    words = np.where(y == 0, "low", "high").astype(object)
    words[np.isnan(few)] = None
    assert set(NaiveBayes().fit(x, words).classes_) == {"low", "high"}


def test_where_all_labels_are_known_nothing_changes():
    x, y = blobs()
    table = {"a": x[:, 0], "b": x[:, 1], "y": y}
    plain = likely.learn(table, "y")
    for given in ("auto", "ignore", 0.5):
        assert likely.learn(table, "y", unlabelled=given) == plain
    assert not hasattr(NaiveBayes().fit(x, y), "unlabelled_")


def test_a_table_with_few_labels_is_learned_by_em_or_not_with_a_warning():
    x, y = blobs(150, 3.0, 5)
    labels = [None] * 300
    for i in (0, 1, 2, 150, 151, 152):
        labels[i] = int(y[i])
    table = {"a": x[:, 0], "b": x[:, 1], "y": labels}
    with pytest.warns(
        LikelyWarning, match=r"294 of 300 rows have no 'y': they were used by EM with weight 1"
    ):
        forced = likely.learn(table, "y", unlabelled=1.0)
    assert forced.tally.classes.sum() == pytest.approx(300)
    assert (forced.predict({"a": x[:, 0], "b": x[:, 1]}) == y).mean() > 0.95
    with pytest.warns(LikelyWarning, match=r"they were not counted"):
        assert likely.learn(table, "y", unlabelled="ignore").tally.rows == 6
    with pytest.raises(UsageError, match="from 0 to 1"):
        likely.learn(table, "y", unlabelled=2.0)


def test_iterations_and_tolerance_of_partly_labelled_rows_can_be_set(tmp_path):
    x, y = blobs(150, 1.5, 5)
    labels = [int(y[i]) if i % 15 == 0 else None for i in range(300)]
    table = {"a": x[:, 0], "b": x[:, 1], "y": labels}
    likelihood = {}
    for tol in (1e-6, 5.0):
        model = quietly(likely.learn, table, "y", unlabelled=1.0, tol=tol)
        likelihood[tol] = model.tally.classes
    assert not np.array_equal(likelihood[1e-6], likelihood[5.0])
    with pytest.warns(ConvergenceWarning, match=r"after 2 rounds: raise max_iter \(--max-iter\) or tol"):
        likely.learn(table, "y", unlabelled=1.0, max_iter=2)
    plain = quietly(likely.learn, table, "y", unlabelled=1.0, max_iter=2, tol=-1.0)
    path, to = tmp_path / "t.csv", tmp_path / "m.likely"
    pd.DataFrame(table).to_csv(path, index=False)
    args = ("--target", "y", "--unlabelled", "1", "--max-iter", "2", "--tol", "-1", "-o", str(to))
    run("learn", str(path), *args)
    np.testing.assert_allclose(likely.load(to).tally.classes, plain.tally.classes)
    for made in (NaiveBayes(max_iter=1), TextNaiveBayes(max_iter=1)):
        assert clone(made).max_iter == 1


def test_an_estimator_warns_that_em_was_stopped():
    x, y = blobs(300, 3.0, 3)
    few = np.full(len(y), np.nan)
    few[:4], few[300:304] = 0, 1
    made = quietly(NaiveBayes("gaussian").fit, x, few)
    assert made.unlabelled_ > 0
    with pytest.warns(ConvergenceWarning, match="after 1 rounds: raise max_iter"):
        NaiveBayes("gaussian", max_iter=1).fit(x, few)


def test_texts_without_a_label_help():
    rng = np.random.default_rng(0)
    sides = (
        ["cat", "dog", "horse", "cow", "sheep", "goat", "pig", "hen"],
        ["mars", "venus", "earth", "saturn", "pluto", "jupiter", "moon", "sun"],
    )
    y = np.repeat([0, 1], 100)
    texts = [" ".join(rng.choice(sides[c], 6)) for c in y]
    labels = [None] * 200
    for i in (0, 1, 2, 100, 101, 102):
        labels[i] = "ab"[y[i]]
    made = TextNaiveBayes().fit(texts, labels)
    assert (made.predict(texts) == np.array(["a", "b"])[y]).mean() > 0.95
    with pytest.raises(ValueError, match="Input y contains NaN"):
        TextNaiveBayes().partial_fit(texts, labels)


def test_the_shell_finds_clusters_and_writes_them(tmp_path):
    model, rows, drawn = (str(tmp_path / name) for name in ("m.likely", "rows.csv", "p.svg"))
    reported = run("cluster", LOANS, "-k", "3", "--ignore", "outcome", "-o", model, "--labels", rows, "--picture", drawn)
    assert "3 clusters in 600 rows" in reported.stdout
    table = pd.read_csv(rows)
    assert set(table["label"]) <= {1, 2, 3}
    assert np.allclose(table[["p_1", "p_2", "p_3"]].sum(axis=1), 1.0)
    assert likely.load(model).classes == (1, 2, 3)
    root = ET.fromstring(Path(drawn).read_text(encoding="utf-8"))
    assert root.tag.endswith("svg")
    report = json.loads(run("cluster", LOANS, "-k", "2", "--ignore", "outcome", "--json").stdout)
    assert report["converged"]
    assert len(report["trace"]) == report["rounds"]
    assert report["bic"] < report["icl"] + 1e-9
    run("cluster", LOANS, "-k", "many", expect=2)
    run("cluster", LOANS, "-k", "2", "--draw", "purpose", "--picture", drawn, expect=2)


def test_pictures_are_drawn_along_one_number_two_or_none():
    x, _ = blobs()
    table = {"a": x[:, 0], "b": x[:, 1], "c": ["u", "v"] * 60}
    for families, columns in (
        (None, ("a",)),
        (None, ()),
        ({("a", "b"): likely.Joint()}, ()),
        ({("a", "c"): likely.Joint()}, ("a",)),
    ):
        model = likely.cluster(table, 2, families=families)
        drawn = ET.fromstring(picture(model, table, columns))
        assert any(node.tag.endswith("path") for node in drawn.iter())
        assert "nan" not in ET.tostring(drawn).decode().lower()
    only = likely.cluster({"c": ["u", "v", "w", "u"] * 10, "d": ["x", "x", "y", "y"] * 10}, 2)
    assert "penalised log likelihood" in picture(only, {"c": ["u"], "d": ["x"]})


def test_the_estimator_keeps_the_number_of_components_with_the_lowest_bic():
    x, _ = blobs()
    made = Mixture(n_components="auto").fit(x)
    found = likely.cluster({"a": x[:, 0], "b": x[:, 1]}, "auto")
    assert made.tried_ == pytest.approx(found.tried)
    assert len(made.weights_) == len(found.classes)
    assert Mixture(n_components=2).fit(x).tried_ == {}
    with pytest.raises(likely.errors.UsageError, match="leave out start= and labels"):
        Mixture(n_components="auto").fit(x, [0] + [None] * (len(x) - 1))
    with pytest.raises(likely.errors.UsageError, match="is no number of clusters"):
        Mixture(n_components="some").fit(x)
