"""The newsgroup experiment of the notes, on the real corpus: the textbook's figures, and what the default reaches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import likely
import standins
from likely import TextNaiveBayes

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("newsgroups")]  # the posts are read once


@pytest.fixture(scope="module")
def posts(shared_data: Any) -> tuple[list[str], Any, list[str], Any]:
    import pyarrow.parquet as pq

    table = pq.read_table(shared_data("twenty_newsgroups.parquet"), columns=["text", "label", "split"])
    texts, labels = table["text"].to_pylist(), np.array(table["label"].to_pylist())
    train = np.array(table["split"].to_pylist()) == "train"
    some, rest = np.flatnonzero(train), np.flatnonzero(~train)
    return [texts[i] for i in some], labels[some], [texts[i] for i in rest], labels[rest]


def figures(model: Any, texts: list[str], labels: Any) -> tuple[float, float]:
    logs = model.predict_log_proba(texts)
    truth = np.searchsorted(model.classes_, labels)
    return float((logs.argmax(1) == truth).mean()), float(-logs[np.arange(len(texts)), truth].mean())


@pytest.mark.parametrize(
    ("kind", "accuracy"), [("multinomial", 0.7728359001593202), ("complement", 0.8267392458842273)]
)
def test_the_textbook_models_reach_the_published_accuracy(posts: Any, kind: str, accuracy: float) -> None:
    train, y, test, truth = posts
    model = TextNaiveBayes(kind).fit(train, y)
    assert len(model.model_.tally.statistics[0].vocabulary) == 130_107
    assert figures(model, test, truth)[0] == accuracy


def test_the_default_beats_every_naive_bayes_and_a_linear_svm_on_the_official_split(posts: Any) -> None:
    train, y, test, truth = posts
    model = TextNaiveBayes().fit(train, y)
    accuracy, loss = figures(model, test, truth)
    assert accuracy >= 0.8625
    assert loss <= 0.60
    ledger = model.explain(test[0])
    assert ledger.entries[0].words
    assert sum(ledger.probabilities) == pytest.approx(1.0)


@pytest.fixture
def some_texts(request: pytest.FixtureRequest) -> tuple[list[str], Any]:
    """3,000 texts with labels: posts, or docstrings where there are none."""
    if (standins.PUBLISHED / "twenty_newsgroups.parquet").exists():
        train, y, _, _ = request.getfixturevalue("posts")
        return train[:3000], y[:3000]
    texts, labels = zip(*standins.docstrings()[:3000], strict=True)
    return list(texts), np.array(labels)


def test_batches_give_the_words_and_counts_of_one_pass(some_texts: Any) -> None:
    train, y = some_texts
    whole = TextNaiveBayes("multinomial").fit(train, y)
    parts = TextNaiveBayes("multinomial")
    for a in range(0, len(train), 700):
        parts.partial_fit(train[a : a + 700], y[a : a + 700])
    assert parts.model_.tally == whole.model_.tally


@pytest.mark.parametrize(
    ("name", "least"), [("sms_spam.parquet", 0.987), ("bbc_news.parquet", 0.973), ("ag_news_7600.parquet", 0.881)]
)
def test_the_same_default_is_at_least_the_textbooks_on_other_corpora(shared_data: Any, name: str, least: float) -> None:
    settings = {"ignore": ["id"]} if name == "bbc_news.parquet" else {}
    found = likely.evaluate(shared_data(name), target="label", folds=5, **settings)
    textbook = likely.evaluate(shared_data(name), target="label", folds=5, **settings | {"plain": True})
    assert found.accuracy >= least
    assert found.log_loss < textbook.log_loss
