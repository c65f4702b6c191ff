"""Text beside columns: one more term with a weight of its own; and documents are left out with their copies."""

import warnings

import numpy as np
import pytest

import likely
from commands import document

WORDS = [f"w{i:02d}" for i in range(60)]
EFFECT = np.random.default_rng(1).normal(0, 0.35, len(WORDS))
SMALL = 2e-3  # the largest change of a probability by copies: what smoothing of the class prior leaves


def learn(data, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return likely.learn(data, "y", families={"text": "text"} if "text" in data else {}, **settings)


def texts(rows, seed):
    """Labels, documents of twelve words each, and what the words of a document say together."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    share = [np.exp(sign * EFFECT) / np.exp(sign * EFFECT).sum() for sign in (-1, 1)]
    drawn = [rng.choice(len(WORDS), 12, p=share[label]) for label in y]
    documents = [" ".join(WORDS[i] for i in each) for each in drawn]
    return rng, y, documents, np.array([EFFECT[each].sum() for each in drawn])


def repeating(rows, seed):
    """A column and a number that repeat what the text says, and a number that does not."""
    rng, y, documents, reported = texts(rows, seed)
    group = np.where(rng.random(rows) < 0.1, rng.integers(0, 5, rows), np.digitize(reported, [-1.5, -0.5, 0.5, 1.5]))
    return {
        "text": documents,
        "group": [f"g{i}" for i in group],
        "score": reported + rng.normal(0, 0.3, rows),
        "own": rng.normal(y, 1.0),
        "y": [f"c{label}" for label in y],
    }


def part(data, *names, rows=slice(None)):
    return {name: data[name][rows] for name in names or data}


def rows_of(data):
    return {name: column for name, column in data.items() if name != "y"}


def probabilities(model, data):
    return model.posterior(rows_of(data)).probabilities


def log_loss(model, data):
    p = probabilities(model, data)
    own = [model.classes.index(label) for label in data["y"]]
    return -np.log(p[np.arange(len(own)), own]).mean()


@pytest.fixture(scope="module")
def data():
    return repeating(600, 0)


@pytest.fixture(scope="module")
def new():
    return repeating(3000, 9)


@pytest.fixture(scope="module")
def model(data):
    return learn(data)


def test_evidence_shared_by_text_and_columns_counts_once(data, new, model):
    assert model.calibration.weights["text"] < 0.8
    apart = [part(new, *names, "y") for names in (("text", "own"), ("group", "score", "own"))]
    alone = [log_loss(learn(part(data, *each)), each) for each in apart]
    assert log_loss(model, new) < min(alone) + 0.01


def test_text_with_evidence_of_its_own_keeps_its_weight(new):
    apart = part(repeating(2000, 3), "text", "own", "y")
    assert 0.85 < learn(apart).calibration.weights["text"] < 1.15


def test_text_of_noise_takes_nothing_from_the_columns(data, new):
    rng = np.random.default_rng(5)
    names = ("group", "score", "own", "y")

    def with_noise(table):
        return part(table, *names) | {"text": [" ".join(rng.choice(WORDS, 12)) for _ in table["y"]]}

    without = log_loss(learn(part(data, *names)), new)
    assert log_loss(learn(with_noise(data)), with_noise(new)) < without + 0.01


def test_parts_merged_or_updated_give_the_model_of_all_rows(data, new, model):
    first, rest = part(data, rows=slice(200)), part(data, rows=slice(200, None))
    merged = learn(first) + learn(rest)
    updated = learn(first).update(rest).recalibrate()
    for other in (merged, updated):
        assert other.calibration.weights == pytest.approx(model.calibration.weights, abs=1e-6)
        assert probabilities(other, new) == pytest.approx(probabilities(model, new), abs=1e-6)
    assert other.tally.sample == model.tally.sample


def test_forgetting_rows_gives_the_model_without_them(data, new):
    first, rest = part(data, rows=slice(200)), part(data, rows=slice(200, None))
    left = learn(data).forget(rest).recalibrate()
    once = learn(first)
    assert left.tally.sample == once.tally.sample
    assert probabilities(left, new) == pytest.approx(probabilities(once, new), abs=1e-6)


def test_the_sample_of_more_rows_than_documents_are_kept_merges(monkeypatch, new):
    monkeypatch.setattr("likely.families.document_sample.SIZE", 250)
    monkeypatch.setattr("likely.calibration._text_terms.FEWEST", 200)
    whole = repeating(900, 4)
    model = learn(whole)
    merged = learn(part(whole, rows=slice(300))) + learn(part(whole, rows=slice(300, None)))
    kept = next(s.sample for s in model.tally.statistics if getattr(s, "sample", None))
    assert len(kept) == 250
    assert np.array_equal(kept.keys, model.tally.sample.keys[:250])
    assert probabilities(merged, new) == pytest.approx(probabilities(model, new), abs=1e-6)
    assert model.calibration.weights["text"] < 0.9


def test_rows_without_a_document_are_judged_by_their_columns(data, new):
    gaps = part(data) | {"text": [None if i % 3 == 0 else text for i, text in enumerate(data["text"])]}
    model = learn(gaps)
    assert 0 < model.calibration.weights["text"] < 1
    silent = part(new) | {"text": [None] * 3000}
    ledger = model.explain({name: column[0] for name, column in rows_of(silent).items()})
    assert next(e.evidence for e in ledger.entries if e.name == "text") == (0.0, 0.0)
    assert log_loss(model, silent) < 0.6


def test_an_account_is_a_sum_in_which_words_have_the_weight_of_the_text(model, data):
    row = {name: column[3] for name, column in rows_of(data).items()}
    ledger = model.explain(row)
    summed = np.array(ledger.log_prior) + sum(np.array(e.evidence) for e in ledger.entries)
    assert summed == pytest.approx(np.array(ledger.log_joint), abs=1e-9)
    assert summed == pytest.approx(model.posterior([row]).log_joint[0], abs=1e-9)
    text = next(e for e in ledger.entries if e.name == "text")
    stage, weight = model.stages["text"], model.calibration.weights["text"]
    constant = weight * (stage.bias - model.scorer.log_prior)
    words = sum(np.array(word.evidence) for word in text.words)
    assert np.array(text.evidence) - constant == pytest.approx(words, abs=1e-9)


def test_the_weight_is_saved_shown_and_kept_without_rows(model, new, tmp_path):
    path = str(tmp_path / "m.likely")
    model.save(path)
    back = likely.load(path)
    assert back.calibration == model.calibration
    assert np.array_equal(probabilities(back, new), probabilities(model, new))
    assert np.allclose(probabilities(back.recalibrate(), new), probabilities(model, new), atol=1e-9)
    assert np.array_equal(probabilities(model.without_rows(), new), probabilities(model, new))
    shown = document("inspect", path)
    assert shown["calibration"]["weights"]["text"] == model.calibration.weights["text"]


def test_documents_without_the_keys_of_rows_enter_with_weight_one_and_are_not_forgotten(data):
    """As in files of older versions, in which the keys of documents were not those of rows."""
    from dataclasses import replace

    model = learn(data)
    i = next(i for i, s in enumerate(model.tally.statistics) if getattr(s, "sample", None))
    words = model.tally.statistics[i]
    words.sample = replace(words.sample, keys=words.sample.keys + 1)
    assert "text" not in model.recalibrate().calibration.weights
    with pytest.raises(likely.errors.ForgetError, match=r"'text'.*older version.*learn the model anew"):
        model.forget(part(data, rows=slice(10)))
    assert model.without_rows().forget(part(data, rows=slice(10))).tally.rows == 590


@pytest.mark.parametrize("columns", [("text", "y"), ("text", "group", "own", "y")])
def test_copies_of_documents_change_no_probability(columns, data, new):
    train, test = part(data, *columns), part(new, *columns)
    once = learn(train)
    plain = probabilities(once, test)
    twice = {name: [*column, *column] for name, column in train.items()}
    weighted = [learn(train, weights=[w] * 600) for w in (0.5, 2.0, 10.0)]
    for other in (*weighted, learn(twice), once + once):
        assert np.abs(probabilities(other, test) - plain).max() < SMALL


@pytest.mark.parametrize("columns", [("text", "y"), ("text", "own", "y")])
def test_an_oversampled_class_of_documents_is_a_changed_prior(columns, data, new):
    train, test = part(data, *columns), part(new, *columns)
    plain = probabilities(learn(train), test)
    weights = [3.0 if label == "c0" else 1.0 for label in train["y"]]
    over = probabilities(learn(train, weights=weights), test)
    expected = plain * [3.0, 1.0]
    expected /= expected.sum(1, keepdims=True)
    assert np.abs(over - expected).mean() < 0.02


def test_a_stage_fitted_on_copies_is_saved_with_them(data, new, tmp_path):
    model = learn(part(data, "text", "y"), weights=[2.0] * 600)
    path = str(tmp_path / "m.likely")
    model.save(path)
    assert np.array_equal(likely.load(path).stages["text"].copies, [2.0, 2.0])
    test = part(new, "text", "y")
    assert np.array_equal(probabilities(likely.load(path), test), probabilities(model, test))
