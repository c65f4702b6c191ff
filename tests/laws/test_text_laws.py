"""Text keeps the laws of counting: parts add to the whole, what was learned can be forgotten, weights are copies."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likely
from likely import Text, TextNaiveBayes

WORDS = ["alpha", "beta", "gamma", "delta", "épsilon", "zeta", "eta", "theta"]
DOCUMENTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
KINDS = ("multinomial", "bernoulli", "complement", "auto")


@st.composite
def corpora(draw: st.DrawFn, least: int = 2) -> dict[str, list[object]]:
    rows = draw(st.lists(st.tuples(DOCUMENTS, st.sampled_from("abc")), min_size=least, max_size=20))
    rows += [("alpha beta", "a"), ("gamma beta", "b"), ("theta", "c")]
    return {"text": [text for text, _ in rows], "y": [label for _, label in rows]}


def learned(corpus: dict[str, list[object]], kind: str, **options: object) -> likely.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return likely.learn(corpus, target="y", families={"text": Text(kind)}, classes=list("abc"), **options)


def part(corpus: dict[str, list[object]], rows: slice) -> dict[str, list[object]]:
    return {name: column[rows] for name, column in corpus.items()}


@pytest.mark.parametrize("kind", KINDS)
@given(corpus=corpora(), at=st.integers(1, 21))
def test_any_split_learned_in_parts_equals_the_whole(kind: str, corpus: dict[str, list[object]], at: int) -> None:
    at = min(at, len(corpus["y"]) - 1)
    whole = learned(corpus, kind)
    both = learned(part(corpus, slice(0, at)), kind) + learned(part(corpus, slice(at, None)), kind)
    if kind in ("multinomial", "bernoulli", "complement"):
        assert both.tally == whole.tally
    probe = [{"text": text} for text in corpus["text"]]
    np.testing.assert_allclose(both.posterior(probe).probabilities, whole.posterior(probe).probabilities, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@given(corpus=corpora(), more=corpora())
def test_forgetting_undoes_updating_and_old_models_stay_what_they_were(
    kind: str, corpus: dict[str, list[object]], more: dict[str, list[object]]
) -> None:
    model = learned(corpus, kind)
    before = model.tally.statistics[0].seen.copy()
    updated = model.update(more)
    assert updated.tally.rows == model.tally.rows + len(more["y"])
    np.testing.assert_array_equal(model.tally.statistics[0].seen, before)
    again = updated.forget(more)
    np.testing.assert_allclose(again.tally.statistics[0].total, model.tally.statistics[0].total, atol=1e-9)
    assert again.tally.statistics[0].known == model.tally.statistics[0].known
    if kind != "auto":
        assert again == model


@given(corpus=corpora(), copies=st.integers(1, 4))
def test_integer_weights_equal_copies(corpus: dict[str, list[object]], copies: int) -> None:
    weighted = learned(corpus, "multinomial", weights=[float(copies)] * len(corpus["y"]))
    copied = learned({name: column * copies for name, column in corpus.items()}, "multinomial")
    assert np.array_equal(weighted.tally.statistics[0].total, copied.tally.statistics[0].total)
    probe = [{"text": text} for text in corpus["text"]]
    np.testing.assert_allclose(
        weighted.posterior(probe).log_probabilities, copied.posterior(probe).log_probabilities, atol=1e-9
    )


@pytest.mark.parametrize("kind", KINDS)
@given(corpus=corpora())
def test_saving_and_loading_is_the_identity(
    kind: str, corpus: dict[str, list[object]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    model = learned(corpus, kind)
    path = tmp_path_factory.mktemp("models") / "m.likely"
    model.save(path)
    assert likely.load(path) == model


@pytest.mark.parametrize("kind", KINDS)
@given(corpus=corpora(), text=DOCUMENTS)
def test_the_ledger_of_a_text_adds_up_to_the_log_joint(kind: str, corpus: dict[str, list[object]], text: str) -> None:
    ledger = learned(corpus, kind).explain({"text": text})
    for c, total in enumerate(ledger.log_joint):
        assert ledger.log_prior[c] + ledger.entries[0].evidence[c] == total
    assert sum(ledger.probabilities) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["multinomial", "bernoulli", "complement"])
@given(corpus=corpora(least=4), smoothing=st.sampled_from([0.1, 1.0, 2.5]))
def test_the_textbook_models_equal_scikit_learns(kind: str, corpus: dict[str, list[str]], smoothing: float) -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB

    peer = {"multinomial": MultinomialNB, "bernoulli": BernoulliNB, "complement": ComplementNB}[kind](alpha=smoothing)
    counter = CountVectorizer()
    X = counter.fit_transform(corpus["text"])
    theirs = peer.fit(X, corpus["y"]).predict_log_proba(counter.transform(corpus["text"]))
    ours = TextNaiveBayes(kind, smoothing=smoothing).fit(corpus["text"], corpus["y"])
    np.testing.assert_allclose(ours.predict_log_proba(corpus["text"]), theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["multinomial", "complement", "auto"])
@given(corpus=corpora())
def test_empty_unknown_and_missing_texts_get_the_class_prior(kind: str, corpus: dict[str, list[object]]) -> None:
    model = learned(corpus, kind)
    found = model.posterior([{"text": ""}, {"text": "nobody wrote this"}, {"text": None}])
    np.testing.assert_allclose(found.probabilities, np.tile(model.class_prior, (3, 1)), atol=1e-12)
    assert "unseen" in model.explain({"text": "nobody wrote this"}).entries[0].flags
    assert "missing" in model.explain({"text": None}).entries[0].flags


def test_a_million_words_do_not_underflow() -> None:
    corpus = {"text": ["alpha beta", "gamma delta", "alpha gamma", "beta delta"], "y": list("abab")}
    for kind in KINDS:
        found = learned(corpus, kind).posterior([{"text": "alpha beta gamma " * 350_000}])
        assert np.isfinite(found.probabilities).all()
        assert found.probabilities.sum() == pytest.approx(1.0)


def test_background_prior_imagines_words_as_often_as_they_occur() -> None:
    corpus = {"text": ["alpha alpha alpha beta", "beta gamma"], "y": ["a", "b"]}
    model = likely.learn(
        corpus, target="y", families={"text": Text("multinomial")}, smoothing=likely.MEstimate(6, "background")
    )
    rows = {(row["class"], row["value"]): np.exp(row["weight"]) for row in model.parameters["text"]}
    assert rows["a", "alpha"] == pytest.approx((3 + 6 * 3 / 6) / (4 + 6))
    assert rows["b", "alpha"] == pytest.approx((0 + 6 * 3 / 6) / (2 + 6))
    assert rows["b", "gamma"] == pytest.approx((1 + 6 * 1 / 6) / (2 + 6))


def test_text_stands_beside_numbers_and_categories() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 200)
    table = {
        "text": [("good fine nice " if y else "bad poor awful ") + f"word{i}" for i, y in enumerate(label)],
        "size": rng.normal(label * 3.0, 1.0).tolist(),
        "colour": np.where(rng.random(200) < 0.8, np.where(label, "red", "blue"), "green").tolist(),
        "y": np.where(label, "yes", "no").tolist(),
    }
    model = likely.learn(table, target="y", families={"text": Text()})
    ledger = model.explain({"text": "good nice thing", "size": 3.0, "colour": "red"})
    assert {"text", "colour", "size"} <= {e.name for e in ledger.entries}
    assert ledger.label == "yes"
    assert likely.evaluate(table, target="y", families={"text": Text()}).accuracy > 0.95


def test_the_vocabulary_keeps_within_its_limit_with_a_warning() -> None:
    corpus = {"text": [f"alpha beta w{i} w{i + 1}" for i in range(200)], "y": ["a", "b"] * 100}
    with pytest.warns(likely.errors.LikelyWarning, match="more than 50 words"):
        model = likely.learn(corpus, target="y", families={"text": Text("multinomial", limit=50)})
    words = model.tally.statistics[0].vocabulary.words()
    assert len(words) == 50
    assert {"alpha", "beta"} <= set(words)


def test_documents_of_fractional_weight_are_left_out_whole() -> None:
    rng = np.random.default_rng(3)
    words = np.array([f"w{i}" for i in range(60)])
    label = rng.integers(0, 3, 300)
    texts = [" ".join(words[(rng.zipf(1.5, 20) * (y + 1)) % 60]) for y in label]
    model = TextNaiveBayes().fit(texts, label, sample_weight=rng.choice([0.05, 0.3, 0.7, 1.5], 300))
    shares = model.predict_proba(texts)
    assert np.isfinite(shares).all()
    assert (model.predict(texts) == label).mean() > 0.6


@pytest.mark.parametrize("kind", ["multinomial", "bernoulli", "complement", "auto"])
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5, 1.0, 1.0, 0.0]])
@pytest.mark.parametrize("gap", [False, True])
def test_totals_are_the_sums_of_what_was_counted(kind, weights, gap):
    texts = ["one two two", "two three", "one", "four four four", None if gap else "five", "six six one"]
    model = likely.TextNaiveBayes(kind).fit(texts, ["a", "b", "a", "b", "a", "b"], sample_weight=weights).model_
    words = model.block_parameters[0].likelihood.words
    np.testing.assert_allclose(words.total, words.seen.sum(0), rtol=1e-15)
    assert words.known == np.count_nonzero(words.seen.any(1)) == (6 - gap - (weights is not None))
    assert words.total.sum() > 0


def test_many_absent_words_add_up_to_the_last_digits():
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{n}" for n in rng.integers(0, 60_000, 400)) for _ in range(300)]
    form = TextNaiveBayes("bernoulli", smoothing=1.0).fit(texts, ["a", "b", "c"] * 100).model_.block_parameters[0].likelihood
    share = (form.words.seen + 1.0) / (form.words.documents + 2.0)
    exact = [math.fsum(math.log1p(-p) for p in column) for column in share.T.tolist()]
    np.testing.assert_allclose(form.constant, exact, rtol=1e-13)
