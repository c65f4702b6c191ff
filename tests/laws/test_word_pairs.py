"""Pairs of words are counted where leave-one-out says that they pay."""

import numpy as np
import pytest

import likely
from likely.errors import UsageError


def opinions(rng, rows, paired):
    """Texts of two classes; if `paired`, "not good" and "not bad" turn the opinion, else single words have it all."""
    y = rng.integers(0, 2, rows)
    other = [f"word{j}" for j in range(30)]
    texts = []
    for label in y:
        turned = paired and rng.random() < 0.5
        opinion = ("good", "bad")[int(label) ^ int(turned)]
        said = ["not", opinion] if turned else (["not", "else", opinion] if paired else [opinion])
        texts.append(" ".join([*rng.choice(other, 5), *said, *rng.choice(other, 5)]))
    return texts, np.array(["yes", "no"])[y]


def test_pairs_are_counted_where_they_pay_and_the_explanation_is_the_sum():
    texts, y = opinions(np.random.default_rng(0), 400, paired=True)
    model = likely.TextNaiveBayes(ngrams="auto").fit(texts, y)
    words = likely.TextNaiveBayes().fit(texts, y)
    assert model.ngrams_ == (1, 2)
    assert words.ngrams_ == (1, 1)
    fresh, truth = opinions(np.random.default_rng(1), 400, paired=True)
    assert (model.predict(fresh) == truth).mean() > (words.predict(fresh) == truth).mean() + 0.2
    explained = model.explain(fresh[0])
    named = dict(zip(model.classes_.tolist(), model.predict_proba(fresh[:1])[0].tolist(), strict=True))
    for label, probability in explained.posterior.items():
        assert probability == pytest.approx(named[label], abs=1e-12)


def test_pairs_are_left_out_where_single_words_have_it_all():
    texts, y = opinions(np.random.default_rng(0), 400, paired=False)
    model = likely.TextNaiveBayes(ngrams="auto").fit(texts, y)
    assert model.ngrams_ == (1, 1)
    assert model.model_.tally == likely.TextNaiveBayes().fit(texts, y).model_.tally


def test_pairs_are_not_tried_with_many_classes_and_more_documents_are_counted_as_chosen():
    texts, y = opinions(np.random.default_rng(0), 300, paired=True)
    three = likely.TextNaiveBayes(ngrams="auto").fit([*texts, "neither"], [*y, "maybe"])
    assert three.ngrams_ == (1, 1)
    more, labels = opinions(np.random.default_rng(1), 300, paired=True)
    model = likely.TextNaiveBayes(ngrams="auto").fit(texts, y).partial_fit(more, labels)
    both = likely.TextNaiveBayes(ngrams=(1, 2)).fit([*texts, *more], [*y, *labels])
    assert model.ngrams_ == (1, 2)
    assert model.model_.tally.statistics[0].nearly(both.model_.tally.statistics[0])


def test_an_unknown_word_for_ngrams_is_refused():
    with pytest.raises(UsageError, match=r"ngrams='pairs' is not known"):
        likely.TextNaiveBayes(ngrams="pairs").fit(["a b", "c d"], ["x", "y"])
