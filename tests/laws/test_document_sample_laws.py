"""Laws of the sample of documents: the same for any order and split, copies are one document, forgetting undoes counting."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likely
from likely.errors import ForgetError
from likely.families import document_sample
from likely.families.document_sample import LIMIT, DocumentSample, document_keys
from likely.kernels.keys import OPEN
from likely.tokenizer import encode_texts, text_hashes, utf8
from strategies import quietly

MOST = 12  # documents of a sample in these tests
WORDS = ("red", "green", "blue", "cyan")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
DOCUMENTS = st.lists(st.tuples(TEXTS, st.integers(0, 1), st.sampled_from([1.0, 0.5])), min_size=1, max_size=60)


@pytest.fixture(autouse=True, scope="module")
def few():
    """Samples of few documents."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document_sample, "SIZE", MOST)
        yield


def sample(documents):
    texts, labels, weights = (list(part) for part in zip(*documents, strict=True))
    vocabulary = encode_texts(WORDS).vocabulary  # the same words have the same numbers in all samples
    bags = encode_texts(texts, vocabulary)
    return DocumentSample.of(bags, document_keys(texts), np.array(labels), np.array(weights))


def parts_of(one):
    return {name: array.tolist() for name, array in one.arrays().items()}


@given(DOCUMENTS, st.data())
def test_the_sample_is_the_same_for_any_order_and_split_of_the_documents(documents, data):
    whole = parts_of(sample(documents))
    shuffled = data.draw(st.permutations(documents))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(documents)), max_size=3)) | {0, len(documents)})
    some = [sample(shuffled[a:b]) for a, b in pairwise(cuts)]
    assert parts_of(DocumentSample.together(some)) == whole
    added = DocumentSample.empty()
    for each in some:
        added = added + each
    assert parts_of(added) == whole


def test_documents_are_added_one_by_one_to_a_full_sample():
    documents = [(f"{a} {b} {c}", 0, 1.0) for a in WORDS for b in WORDS for c in WORDS]
    added = DocumentSample.empty()
    for i in range(0, len(documents), 4):
        added = added + sample(documents[i : i + 4])
    assert parts_of(added) == parts_of(sample(documents))


@given(DOCUMENTS)
def test_copies_of_one_class_are_one_document_with_their_weights_added(documents):
    one = sample(documents)
    held = {(text, label): 0.0 for text, label, _ in documents}
    for text, label, weight in documents:
        held[text, label] += weight
    assert len(one) <= MOST
    assert (one.limit == OPEN) == (len(one) == len(held))
    key = {text: int(document_keys([text])[0]) for text, _ in held}
    found = {(k, y): w for k, y, w in zip(one.keys.tolist(), one.labels.tolist(), one.weights.tolist(), strict=True)}
    assert found == {(key[t], y): w for (t, y), w in held.items() if key[t] < one.limit}


@given(DOCUMENTS, DOCUMENTS)
def test_subtracting_documents_undoes_adding_them(first, second):
    both = sample(first) + sample(second)
    left = both - sample(second)
    once = sample(first)
    if both.limit == OPEN:
        assert parts_of(left) == parts_of(once)
    below = once.keys < both.limit
    assert left.keys.tolist() == once.keys[below].tolist()
    assert left.weights.tolist() == once.weights[below].tolist()


@given(DOCUMENTS, DOCUMENTS)
def test_after_forgetting_no_document_is_kept_beyond_those_that_were_dropped(first, second):
    one = sample(first)
    again = (one - one) + sample(second)
    assert again.limit <= one.limit
    assert (again.keys < again.limit).all()


def test_a_sample_is_multiplied():
    one = sample([("red green", 0, 1.0), ("blue", 1, 0.5)])
    assert sorted((one * 4.0).weights.tolist()) == [2.0, 4.0]
    assert len(one * 0.0) == 0


def test_classes_that_become_one_make_copies_of_their_equal_documents():
    one = sample([("red green", 0, 1.0), ("red green", 1, 0.5), ("blue", 1, 1.0)]).with_labels(np.array([0, 0]))
    assert sorted(one.weights.tolist()) == [1.0, 1.5]
    assert one.labels.tolist() == [0, 0]


def test_a_file_of_an_older_version_has_copies_apart_and_no_limit():
    one = sample([("red green", 0, 1.0), ("blue", 1, 1.0)])
    twice = one.take(np.array([0, 0, 1]))
    old = {name: array for name, array in twice.arrays().items() if name != LIMIT}
    read = DocumentSample.from_arrays(old, len(WORDS), 2)
    assert (read.weights.tolist(), read.limit) == ([2.0, 1.0], OPEN)
    many = sample([(f"{a} {b}", 0, 1.0) for a in WORDS for b in WORDS])
    old = {name: array for name, array in many.arrays().items() if name != LIMIT}
    assert len(many) == MOST
    assert DocumentSample.from_arrays(old, len(WORDS), 2).limit == many.keys[-1]
    assert DocumentSample.from_arrays(many.arrays(), len(WORDS), 2).limit == many.limit


def test_a_document_that_was_never_learned_is_not_forgotten():
    texts = ["red green", "blue green", "red red blue", "green cyan"] * 3
    model = quietly(likely.learn, {"text": texts, "y": ["a", "b"] * 6}, "y", families={"text": "text"})
    with pytest.raises(ForgetError, match="column 'text': holds a document that was never counted"):
        model.forget({"text": ["green red"], "y": ["a"]})
    assert model.forget({"text": ["red green"], "y": ["a"]}).tally.rows == 11


def test_hashes_of_texts_are_the_same_in_every_process_and_form():
    texts = ["", None, "abc", "abcdefgh", "é x", "a" * 100_000, "a" * 2_000_000, "b"]
    found = text_hashes(texts)
    assert found[:5].tolist() == [0, 0, 216172782120297057, 8811273770304191267, 288230378167118275]
    assert len(set(found.tolist())) == len(texts) - 1
    buffer, ends = utf8([text or "" for text in texts])
    assert np.array_equal(text_hashes((buffer[: ends[-1]], ends)), found)  # nothing follows the last text
    assert all(text_hashes([text])[0] == each for text, each in zip(texts, found, strict=True))
    assert len(text_hashes([])) == 0
