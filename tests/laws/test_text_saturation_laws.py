"""Saturation of text: the evidence of a document grows less than its words add up to, where the labels ask for it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import likely
from likely.families import text_curve_fit
from likely.families._text_saturation import Saturation, SaturationLoss, fit_saturation

CLASSES, WORDS = 4, 40


def mislabelled(rows, seed, noise=0.15):
    """Documents of many words of their class, some of which carry a label drawn at random."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, CLASSES, rows)
    texts = []
    for label in topic:
        own = rng.random(rng.integers(6, 30)) < 0.4
        words = np.where(own, label * WORDS + rng.integers(0, WORDS, len(own)), rng.integers(0, CLASSES * WORDS, len(own)))
        texts.append(" ".join(f"word{w:03d}" for w in words))
    y = np.where(rng.random(rows) < noise, rng.integers(0, CLASSES, rows), topic)
    return {"text": texts, "y": [f"c{label}" for label in y]}


def learn(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return likely.learn(data, "y", families={"text": "text"})


def log_loss(model, data):
    p = model.posterior({"text": data["text"]}).probabilities
    own = [model.classes.index(label) for label in data["y"]]
    return float(-np.log(p[np.arange(len(own)), own]).mean())


@pytest.fixture(scope="module")
def model():
    return learn(mislabelled(900, 0))


def test_wrong_labels_bound_the_evidence_of_a_document_and_lower_the_held_out_log_loss(model, monkeypatch):
    new = mislabelled(1500, 1)
    assert model.stages["text"].saturation.power > 0.5
    monkeypatch.setattr(text_curve_fit, "fit_saturation", lambda *_: None)
    without = learn(mislabelled(900, 0))
    assert without.stages["text"].saturation is None
    assert log_loss(model, new) < log_loss(without, new) - 0.01
    confidence = model.posterior({"text": new["text"]}).probabilities.max(1)
    right = model.predict({"text": new["text"]}) == np.array(new["y"])
    sure = confidence > 0.85
    assert sure.sum() > 300
    assert abs(confidence[sure].mean() - right[sure].mean()) < 0.02


def test_scores_that_are_calibrated_are_left_as_they_are():
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 2, (3000, 3))
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    labels = (p.cumsum(1) > rng.random((3000, 1))).argmax(1)
    found = fit_saturation(scores, np.zeros(3), labels, np.ones(3000))
    # By chance the log loss may fall by more than its standard error: then the scale is still close to one.
    assert found is None or np.abs(found[0].scale(scores) - 1).max() < 0.1


def test_a_saturation_that_made_the_labels_is_found():
    rng = np.random.default_rng(1)
    scores, true = rng.normal(0, 5, (8_000, 3)), Saturation(1.5, 0.5, 0.8)
    scaled = scores * true.scale(scores)[:, None]
    p = np.exp(scaled) / np.exp(scaled).sum(1, keepdims=True)
    labels = (p.cumsum(1) > rng.random((len(p), 1))).argmax(1)
    found, bias = fit_saturation(scores, np.zeros(3), labels, np.ones(len(p)))
    np.testing.assert_allclose(found.scale(scores), true.scale(scores), rtol=0.15)
    assert np.abs(bias).max() < 0.1


def test_the_gradient_of_the_loss_is_that_of_finite_differences():
    rng = np.random.default_rng(2)
    scores, weights = rng.normal(0, 3, (50, 3)), rng.random(50) + 0.5
    centred = scores - scores.mean(1, keepdims=True)
    loss = SaturationLoss(centred, np.sqrt((centred**2).sum(1)), rng.integers(0, 3, 50), weights, rng.normal(size=6))
    q = np.array([0.3, -0.4, 0.6, 0.1, -0.2, 0.3])
    for i, slope in enumerate(loss(q)[1]):
        step = np.eye(6)[i] * 1e-6
        assert slope == pytest.approx((loss(q + step)[0] - loss(q - step)[0]) / 2e-6, abs=1e-7)


def test_the_evidence_of_the_words_adds_up_to_that_of_the_document(model):
    text = mislabelled(1, 5)["text"][0]
    form = model.scorer.parameters[0].likelihood
    batch = next(iter(likely.sources.open_source({"text": [text]}).batches()))
    words = sum(term for _, _, term in form.details(model.scorer.bags(batch, 0)[0]))
    term = model.scorer.term(batch, 0)[0]
    fitted = form.weight * (model.stages["text"].bias - model.scorer.log_prior)
    np.testing.assert_allclose(words, term - fitted, atol=1e-12)


def test_copies_of_all_documents_change_no_saturation(model):
    data = mislabelled(900, 0)
    twice = learn({name: column * 2 for name, column in data.items()})
    np.testing.assert_allclose(twice.stages["text"].saturation.array, model.stages["text"].saturation.array, rtol=0.02)


def test_a_saved_model_keeps_its_saturation(model, tmp_path):
    model.save(tmp_path / "m.likely")
    again = likely.load(tmp_path / "m.likely")
    assert again.stages["text"].saturation == model.stages["text"].saturation
    assert again == model
    other = replace(model.stages["text"], saturation=Saturation(1.0, 1.0, 0.5))
    assert replace(model, stages={"text": other}) != model


def test_a_file_with_a_saturation_out_of_range_is_refused(model, tmp_path):
    odd = replace(model.stages["text"], saturation=Saturation(1.0, 1.0, 1.5))
    with pytest.raises(likely.errors.LikelyError, match="has a saturation out of range"):
        replace(model, stages={"text": odd}).save(tmp_path / "m.likely")


def test_sql_scales_documents_as_the_model_does(model):
    duckdb = pytest.importorskip("duckdb", reason="NOT TESTED: DuckDB is not installed")
    import pyarrow as pa

    new = pa.table({"n": list(range(200)), "text": mislabelled(200, 3)["text"]})
    with duckdb.connect() as connection:
        connection.register("t", new)
        connection.register("likely_words", model.word_weights())
        found = connection.sql(model.sql("t", dialect="duckdb")).to_arrow_table().sort_by("n")
    p = model.posterior(new).probabilities
    for k, label in enumerate(model.classes):
        np.testing.assert_allclose(found[f"p_{label}"].to_numpy(), p[:, k], atol=1e-9)
