"""Pairs of words are added where leave-one-out says that they pay; models with pairs merge, forget and are filed."""

import numpy as np
import pytest

import likely
from likely.errors import UsageError
from likely.families._word_pairs import sampled_pairs


def opinions(rng, rows, paired):
    """Texts of two classes; if `paired`, "not good" and "not bad" turn the opinion, else single words have it all."""
    y = rng.integers(0, 2, rows)
    other = [f"word{j}" for j in range(30)]
    texts = []
    for label in y:
        turned = paired and rng.random() < 0.5
        opinion = ("good", "bad")[int(label) ^ int(turned)]
        reported = ["not", opinion] if turned else (["not", "else", opinion] if paired else [opinion])
        texts.append(" ".join([*rng.choice(other, 5), *reported, *rng.choice(other, 5)]))
    return texts, np.array(["yes", "no"])[y]


def test_pairs_are_counted_where_they_pay_and_the_explanation_is_the_sum():
    texts, y = opinions(np.random.default_rng(0), 400, paired=True)
    model = likely.TextNaiveBayes().fit(texts, y)
    words = likely.TextNaiveBayes(ngrams=(1, 1)).fit(texts, y)
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


def test_pairs_are_not_tried_with_many_classes():
    texts, y = opinions(np.random.default_rng(0), 300, paired=True)
    three = likely.TextNaiveBayes(ngrams="auto").fit([*texts, "neither"], [*y, "maybe"])
    assert three.ngrams_ == (1, 1)


def test_pairs_are_derived_from_what_adds_so_parts_give_the_model_of_the_whole():
    texts, y = opinions(np.random.default_rng(0), 300, paired=True)
    more, labels = opinions(np.random.default_rng(1), 300, paired=True)
    parts = likely.TextNaiveBayes().fit(texts, y).partial_fit(more, labels)
    parts.model_ = parts.model_.recalibrate()
    whole = likely.TextNaiveBayes().fit([*texts, *more], [*y, *labels])
    assert whole.ngrams_ == (1, 2)
    assert parts.model_.tally.statistics[0].nearly(whole.model_.tally.statistics[0])
    assert parts.model_.stages["text"].pairs.nearly(whole.model_.stages["text"].pairs)
    fresh, _ = opinions(np.random.default_rng(2), 100, paired=True)
    np.testing.assert_allclose(parts.predict_proba(fresh), whole.predict_proba(fresh), atol=1e-9)


def test_documents_learned_twice_have_the_same_pairs_and_probabilities():
    texts, y = opinions(np.random.default_rng(0), 300, paired=True)
    fresh, _ = opinions(np.random.default_rng(2), 100, paired=True)
    once = likely.learn({"note": texts, "y": y}, "y")
    twice = likely.learn({"note": texts * 2, "y": np.tile(y, 2)}, "y")
    assert len(twice.stages["note"].pairs.vocabulary) == len(once.stages["note"].pairs.vocabulary)
    for other in (twice, once + once):
        np.testing.assert_allclose(other.predict_proba({"note": fresh}), once.predict_proba({"note": fresh}), atol=5e-3)


def test_models_of_text_with_pairs_merge_forget_and_are_filed(tmp_path):
    parts = []
    for seed in range(3):
        texts, y = opinions(np.random.default_rng(seed), 200, paired=True)
        parts.append({"text": texts, "y": y})
    one, two, three = (likely.learn(part, "y", families={"text": likely.Text()}) for part in parts)
    both = {name: [*parts[0][name], *parts[1][name]] for name in ("text", "y")}
    whole = likely.learn(both, "y", families={"text": likely.Text()})
    fresh = {"text": opinions(np.random.default_rng(9), 100, paired=True)[0]}
    expected = whole.posterior(fresh).probabilities
    assert whole.stages["text"].pairs is not None
    np.testing.assert_allclose((one + two).posterior(fresh).probabilities, expected, atol=1e-9)
    forgotten = (one + two + three).forget(parts[2]).recalibrate()
    np.testing.assert_allclose(forgotten.posterior(fresh).probabilities, expected, atol=1e-9)
    whole.save(tmp_path / "m.likely")
    read = likely.load(tmp_path / "m.likely")
    np.testing.assert_allclose(read.posterior(fresh).probabilities, expected, atol=1e-12)
    np.testing.assert_allclose(read.recalibrate().posterior(fresh).probabilities, expected, atol=1e-9)
    assert any(" " in word for word, _ in read.top_words(20)["yes"])


def test_a_pair_needs_two_documents_and_two_others_where_one_is_left_out():
    texts = ["aa bb", "aa bb cc", "bb aa", "cc aa bb", "bb cc"]
    counted = likely.TextNaiveBayes().fit(texts, ["x", "y", "x", "y", "x"]).model_.tally.statistics[0]
    pairs, together = sampled_pairs(counted)
    assert sorted(pairs.vocabulary.words()) == ["aa bb", "bb cc"]  # of three documents and of two
    assert pairs.holders.sum(1).tolist() == [{"aa bb": 3.0, "bb cc": 2.0}[word] for word in pairs.vocabulary.words()]
    scored = np.array(together.vocabulary.words())[together.sample.ids].tolist()
    assert scored.count("aa bb") == 3
    assert "bb cc" not in scored


def test_an_unknown_word_for_ngrams_is_refused():
    with pytest.raises(UsageError, match=r"ngrams='pairs' is not known"):
        likely.TextNaiveBayes(ngrams="pairs").fit(["a b", "c d"], ["x", "y"])
