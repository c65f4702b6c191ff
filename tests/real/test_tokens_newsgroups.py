"""20 Newsgroups, or docstrings where they are not there: vocabulary and counts of CountVectorizer, to the last one."""

import numpy as np
import pytest

import standins
from likely.tokenizer import encode, encode_texts

pytestmark = pytest.mark.real


HERE = (standins.PUBLISHED / "twenty_newsgroups.parquet").exists()


@pytest.fixture(scope="module")
def posts(shared_data):
    if not HERE:
        texts = [text for text, _ in standins.docstrings()]
        return {"train": texts[::2], "test": texts[1::2]}
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(shared_data("twenty_newsgroups.parquet"), columns=["text", "split"]).to_pydict()
    return {
        split: [text for text, where in zip(table["text"], table["split"], strict=True) if where == split]
        for split in ("train", "test")
    }


def matrix(found, names):
    """Bags as CountVectorizer writes them: columns in alphabetical order, sorted within a row."""
    sparse = pytest.importorskip("scipy.sparse")
    column = {name: place for place, name in enumerate(names)}
    to_column = np.array([column[word] for word in found.vocabulary.words()], dtype=np.int32)
    shape = (len(found), len(names))
    counts = sparse.csr_matrix((found.counts, to_column[found.ids], found.indptr), shape=shape)
    counts.sort_indices()
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"ngram_range": (1, 2)}, {"analyzer": "char_wb", "ngram_range": (2, 3)}])
def test_newsgroups_are_counted_as_count_vectorizer_counts_them(posts, settings):
    vectorizer = pytest.importorskip("sklearn.feature_extraction.text").CountVectorizer(**settings)
    train, test = (posts["train"], posts["test"]) if not settings else (posts["train"][:600], posts["test"][:300])
    expected = vectorizer.fit_transform(train)
    reading = {"unit": settings.get("analyzer", "word"), "ngrams": settings.get("ngram_range", (1, 1))}
    found = encode_texts(train, **reading)
    names = vectorizer.get_feature_names_out()
    assert sorted(found.vocabulary.words()) == names.tolist()
    assert settings or not HERE or len(found.vocabulary) == 130_107
    assert (matrix(found, names) != expected).nnz == 0
    asked = encode_texts(test, found.vocabulary, frozen=True, **reading)
    assert (matrix(asked, names) != vectorizer.transform(test)).nnz == 0


def test_arrow_columns_are_read_in_place(posts):
    pyarrow = pytest.importorskip("pyarrow")
    column = pyarrow.array(posts["train"][:1000], pyarrow.string())
    _, offsets, data = column.buffers()
    found = encode(np.frombuffer(data, dtype=np.uint8), np.frombuffer(offsets, dtype=np.int32)[:1001])
    again = encode_texts(column.to_pylist())
    assert found.vocabulary == again.vocabulary
    assert np.array_equal(found.ids, again.ids)
    assert np.array_equal(found.counts, again.counts)
