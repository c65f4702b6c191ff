"""Words are what Python's `re` finds, runs are what CountVectorizer forms, and how the work is cut changes nothing."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from likely.kernels import kernel
from likely.tokenizer import (
    Bags,
    Vocabulary,
    encode,
    encode_in_parts,
    encode_texts,
    encode_tokens,
    look_up,
    spans,
    utf8,
)
from likely.tokenizer import (
    _bags as bags,
)
from likely.tokenizer import (
    _slabs as slabs,
)
from likely.tokenizer import (
    _vocabulary as vocabulary,
)

WORD = re.compile(r"(?u)\b\w\w+\b")
AWKWARD = "aB_1 \n\t\0'.Σσςİ\u0307\u0345ʰ·éÉßẞKÅȺ٣೨中ｱ\u00a0\u2003\u3000😀𐐀𐐨\U000e0067\U000e0001\U0010fffd"


def texts(exclude: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """Any text at all, with more sigmas, growing letters, marks and planes than chance would give."""
    anything = st.characters(exclude_categories=exclude)
    awkward = st.sampled_from([*AWKWARD, "a" * 6, "b" * 7, "c" * 8, "d" * 14, "e" * 15])
    return st.lists(anything | awkward, max_size=30).map("".join)


def as_counters(found: Bags) -> list[dict[str, int]]:
    """Counts of the words of each text, as plain dicts: two Counters are compared word by word in Python."""
    words = found.vocabulary.words()
    pairs = [(words[i], n) for i, n in zip(found.ids.tolist(), found.counts.tolist(), strict=True)]
    return [dict(pairs[a:b]) for a, b in pairwise(found.indptr.tolist())]


def words_of(text: str, lowercase: bool = True) -> Counter[str]:
    return Counter(WORD.findall(text.lower() if lowercase else text))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every loop compiled, however small its input."""
    monkeypatch.setattr(kernel, "LARGE", 0)
    monkeypatch.setattr(kernel, "PATIENCE", -1.0)
    monkeypatch.setattr(kernel, "PATIENCE_LOADED", -1.0)
    monkeypatch.setattr(kernel, "announce", lambda message: None)


def same_bags(a: Bags, b: Bags) -> bool:
    arrays = ("indptr", "ids", "counts", "unknown")
    return a.vocabulary == b.vocabulary and all(np.array_equal(getattr(a, x), getattr(b, x)) for x in arrays)


# ---------------------------------------------------------------- words


@given(st.lists(texts(), max_size=5), st.booleans())
@example(["ΑΣ ΑΣΑ Σ ΣΣ Α'Σ Α\u0345Σ' ΑΣ'Β", "İİ aİ İa", "", "a", "ab"], True)
def test_words_are_what_re_finds_in_any_unicode_text(documents: list[str], lowercase: bool) -> None:
    found = encode_texts(documents, lowercase=lowercase)
    assert as_counters(found) == [words_of(text, lowercase) for text in documents]


@pytest.mark.usefixtures("compiled")
@settings(deadline=None)
@given(st.lists(texts(), max_size=5), st.booleans())
def test_compiled_words_are_what_re_finds_in_any_unicode_text(documents: list[str], lowercase: bool) -> None:
    found = encode_texts(documents, lowercase=lowercase)
    assert as_counters(found) == [words_of(text, lowercase) for text in documents]


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("letter", ["a", "É", "中"])
def test_words_that_lie_across_any_two_blocks_of_bytes_are_found_whole(letter: str) -> None:
    words = [letter, letter * 2, letter * 3, "b" + letter * 61, letter * 130]
    documents = [" " * blanks + word + end for blanks in range(130) for word in words for end in ("", " x", " yz")]
    assert as_counters(encode_texts(documents)) == [words_of(text) for text in documents]


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("lowercase", [False, True])
def test_every_pair_of_ascii_characters_is_read_as_python_reads_it(lowercase: bool) -> None:
    documents = [f"{a}{b} x{a}{b}Z" for a in map(chr, range(128)) for b in map(chr, range(128))]
    found = encode_texts(documents, lowercase=lowercase)
    assert as_counters(found) == [words_of(text, lowercase) for text in documents]


@pytest.mark.slow
def test_every_code_point_is_read_as_python_reads_it() -> None:
    documents = []
    for first in range(0, sys.maxunicode + 1, 128):
        block = [chr(point) for point in range(first, first + 128)]
        documents.append("\n".join(f"{c}{c} x{c}y a{c}Σ 1{c}Σ AΣ{c} AΣ{c}A Σ{c}" for c in block))
    assert as_counters(encode_texts(documents)) == [words_of(text) for text in documents]


@given(st.lists(st.binary(max_size=20) | st.sampled_from([b"ab\xff", b"\xe2\x82", b"ab\xc3\x28cd", b"\xf0\x9f\x98"])))
def test_bytes_that_are_not_utf8_read_as_the_replacement_character(pieces: list[bytes]) -> None:
    buffer = np.frombuffer(b"".join(pieces), dtype=np.uint8)
    offsets = np.cumsum([0, *map(len, pieces)])
    decoded = [piece.decode("utf-8", "replace") for piece in pieces]
    assert as_counters(encode(buffer, offsets)) == [words_of(text) for text in decoded]
    assert as_counters(encode(buffer, offsets, unit="char", lowercase=False)) == [
        Counter(re.sub(r"\s\s+", " ", text)) for text in decoded
    ]


def test_a_missing_text_is_an_empty_bag() -> None:
    found = encode_texts([None, "one two", ""])
    assert found.indptr.tolist() == [0, 0, 2, 2]


def test_offsets_of_arrow_may_be_short_integers_and_begin_anywhere() -> None:
    buffer = np.frombuffer(b"xx one two three", dtype=np.uint8)
    found = encode(buffer, np.array([3, 7, 11], dtype=np.int32))
    assert as_counters(found) == [Counter(["one"]), Counter(["two"])]


@pytest.mark.parametrize("offsets", [[0, 99], [-1, 2], [3, 2], []])
def test_offsets_outside_the_buffer_are_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets must rise"):
        encode(np.frombuffer(b"some bytes", dtype=np.uint8), np.array(offsets, dtype=np.int64))


@pytest.mark.parametrize("settings", [{"unit": "line"}, {"ngrams": (0, 1)}, {"ngrams": (3, 2)}])
def test_a_reading_without_meaning_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"is not known|has no run"):
        encode_texts(["some text"], **settings)  # type: ignore[arg-type]


# ---------------------------------------------------------------- runs of words and of characters


@given(
    texts(exclude=("Cs",)),
    st.sampled_from(["word", "char", "char_wb"]),
    st.integers(1, 4),
    st.integers(0, 3),
    st.booleans(),
)
def test_runs_are_what_count_vectorizer_forms(text: str, unit: str, least: int, more: int, lowercase: bool) -> None:
    vectorizer = pytest.importorskip("sklearn.feature_extraction.text").CountVectorizer
    analyse = vectorizer(analyzer=unit, ngram_range=(least, least + more), lowercase=lowercase).build_analyzer()
    found = encode_texts([text], unit=unit, ngrams=(least, least + more), lowercase=lowercase)
    assert as_counters(found) == [Counter(analyse(text))]


@pytest.mark.usefixtures("compiled")
@settings(deadline=None)
@given(st.lists(texts(exclude=("Cs",)), max_size=4), st.sampled_from(["word", "char", "char_wb"]))
def test_compiled_runs_are_what_count_vectorizer_forms(documents: list[str], unit: str) -> None:
    vectorizer = pytest.importorskip("sklearn.feature_extraction.text").CountVectorizer
    analyse = vectorizer(analyzer=unit, ngram_range=(1, 3)).build_analyzer()
    found = encode_texts(documents, unit=unit, ngrams=(1, 3))
    assert as_counters(found) == [Counter(analyse(text)) for text in documents]


@given(st.lists(st.lists(st.text(max_size=10), max_size=6), max_size=5), st.integers(1, 3))
def test_tokens_found_by_somebody_else_are_counted_as_they_are(documents: list[list[str]], longest: int) -> None:
    found = encode_tokens(documents, ngrams=(1, longest))
    runs = [
        [" ".join(tokens[i : i + n]) for n in range(1, longest + 1) for i in range(len(tokens) - n + 1)]
        for tokens in documents
    ]
    assert as_counters(found) == [Counter(tokens) for tokens in runs]


# ---------------------------------------------------------------- cutting changes nothing


@given(st.lists(texts(), max_size=8), st.integers(0, 8))
def test_two_batches_are_one(documents: list[str], cut: int) -> None:
    whole = encode_texts(documents)
    first = encode_texts(documents[:cut])
    second = encode_texts(documents[cut:], first.vocabulary)
    assert second.vocabulary == whole.vocabulary
    assert as_counters(first) + as_counters(second) == as_counters(whole)
    assert np.array_equal(np.concatenate([first.ids, second.ids]), whole.ids)


@given(st.lists(texts(), max_size=12), st.integers(1, 4), st.integers(1, 40), st.integers(0, 9))
def test_threads_slabs_and_notebooks_change_nothing(documents: list[str], threads: int, size: int, most: int) -> None:
    whole = encode_texts(documents, threads=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bags, "SLAB", size)
        patch.setattr(slabs, "MAX_WORDS", most)
        assert same_bags(encode_texts(documents, threads=threads), whole)
        assert same_bags(encode_texts(tuple(documents), threads=threads), whole)
        assert same_bags(encode(*utf8(documents), threads=threads), whole)
        frozen = encode_texts(documents, whole.vocabulary, frozen=True, threads=threads)
    assert same_bags(frozen, whole)


@given(st.lists(texts(), max_size=12), st.integers(1, 3), st.integers(1, 40), st.booleans())
def test_bags_in_parts_end_to_end_are_the_bags_of_all(documents: list[str], threads: int, size: int, raw: bool) -> None:
    whole = encode_texts(documents)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bags, "SLAB", size)
        parts = list(encode_in_parts(utf8(documents) if raw else documents, threads=threads))
    assert [a for a, _, _ in parts] + [len(documents)] == [0, *(b for _, b, _ in parts)]
    for a, b, part in parts:
        expected = whole.part(a, b)
        assert part.vocabulary.words() == whole.vocabulary.words()[: len(part.vocabulary)]
        for name in ("indptr", "ids", "counts", "unknown"):
            np.testing.assert_array_equal(getattr(part, name), getattr(expected, name))
    assert not parts or parts[-1][2].vocabulary == whole.vocabulary


FEW_WORDS = st.lists(st.sampled_from(["ab", "AB", "cd", "Straße", "ΟΔΟΣ", "a", "x" * 20]), max_size=8).map(" ".join)


@given(
    st.lists(st.none() | texts() | FEW_WORDS, max_size=12),
    st.lists(texts() | FEW_WORDS, max_size=4),
    st.integers(1, 3),
    st.integers(1, 40),
)
def test_words_that_are_looked_up_are_those_of_a_frozen_vocabulary(
    documents: list[str | None], learnt: list[str], threads: int, size: int
) -> None:
    taught = encode_texts(learnt).vocabulary
    expected, found = encode_texts(documents, taught, frozen=True), []

    def look(a: int, b: int, part: Bags) -> None:
        assert same_bags(part, expected.part(a, b))  # here and now: it is only lent
        found.extend(range(a, b))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bags, "SLAB", size)
        look_up(documents, taught, look, threads=threads)
    assert sorted(found) == list(range(len(documents)))


@pytest.mark.parametrize("threads", [1, 4])
def test_an_error_while_words_are_looked_up_comes_out_and_ends_the_work(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bags, "SLAB", 10)
    seen = []

    def refuse(a: int, _: int, __: Bags) -> None:
        seen.append(a)
        raise IndexError(f"document {a}")

    with pytest.raises(IndexError, match="document"):
        look_up(["some words here"] * 1000, Vocabulary(), refuse, threads=threads)
    assert len(seen) <= threads


@pytest.mark.parametrize("most", [1 << 14, 500])
def test_large_batches_on_many_threads_equal_one_thread(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    documents = [" ".join(f"word{n}" for n in rng.zipf(1.3, 200) % 50_000) for _ in range(3_000)]
    one = encode_texts(documents, threads=1)
    monkeypatch.setattr(slabs, "MAX_WORDS", most)  # vocabularies of 500 words are full, replaced and reused all the time
    assert same_bags(one, encode_texts(documents, threads=4))
    assert as_counters(one)[:50] == [words_of(text) for text in documents[:50]]


# ---------------------------------------------------------------- the vocabulary


@given(st.lists(texts(), max_size=6), st.lists(texts(), max_size=6))
def test_a_frozen_vocabulary_only_counts_what_it_does_not_know(learnt: list[str], asked: list[str]) -> None:
    taught = encode_texts(learnt).vocabulary
    known = set(taught.words())
    found = encode_texts(asked, taught, frozen=True)
    expected = [words_of(text) for text in asked]
    assert found.vocabulary is taught
    assert as_counters(found) == [Counter({w: n for w, n in row.items() if w in known}) for row in expected]
    assert found.unknown.tolist() == [sum(n for w, n in row.items() if w not in known) for row in expected]


@given(st.lists(st.text(max_size=12)))
def test_a_vocabulary_holds_distinct_words_in_the_order_of_first_sight(words: list[str]) -> None:
    taught = Vocabulary.from_words(words)
    distinct = list(dict.fromkeys(words))
    assert taught.words() == distinct
    assert [taught.lookup(word) for word in distinct] == list(range(len(distinct)))
    assert taught.lookup("a word that nobody wrote") == -1
    assert pickle.loads(pickle.dumps(taught)) == taught
    assert Vocabulary.from_bytes(taught.buffer, taught.offsets) == taught


@given(st.lists(st.text("ab", min_size=8, max_size=17) | st.text(max_size=9)))
def test_words_whose_keys_collide_are_told_apart(words: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spans, "SECRET", 0)  # every long word has the same key now, and every word the same slot
        patch.setattr(vocabulary, "SECRET", 0)
        found = Vocabulary.from_words(words)
        assert found.words() == list(dict.fromkeys(words))
        assert encode_tokens([words], found, frozen=True).counts.sum() == len(words)


@given(st.lists(st.text(max_size=9)), st.lists(st.text(max_size=9)))
def test_a_union_has_the_words_of_both_and_the_new_number_of_each(mine: list[str], theirs: list[str]) -> None:
    a, b = Vocabulary.from_words(mine), Vocabulary.from_words(theirs)
    both, (from_a, from_b) = a.union(b)
    words = both.words()
    assert words == list(dict.fromkeys([*mine, *theirs]))
    assert [words[i] for i in from_a] == a.words()
    assert [words[i] for i in from_b] == b.words()


def test_growing_leaves_the_older_vocabulary_as_it_was() -> None:
    old = Vocabulary.from_words(["one", "two"])
    left = encode_texts(["three four"], old).vocabulary
    right = encode_texts(["five three"], old).vocabulary
    assert old.words() == ["one", "two"]
    assert left.words() == ["one", "two", "three", "four"]
    assert right.words() == ["one", "two", "five", "three"]
    assert "three" not in old
    assert old.union(left)[0] == left
    assert encode_texts(["three two"], old, frozen=True).unknown.tolist() == [1]


def test_a_vocabulary_with_a_word_twice_is_damaged() -> None:
    with pytest.raises(ValueError, match="1 words occur twice"):
        Vocabulary.from_bytes(np.frombuffer(b"oneone", dtype=np.uint8), np.array([0, 3, 6]))


# ---------------------------------------------------------------- the cap


def test_pruning_keeps_the_words_of_most_documents_and_the_earlier_among_equals() -> None:
    found = encode_texts(["one two three", "two three four", "three five five five"])
    pruned, kept = found.prune(3)
    assert pruned.vocabulary.words() == ["one", "two", "three"]
    assert kept.tolist() == [0, 1, 2]
    assert pruned.unknown.tolist() == [0, 1, 3]
    assert as_counters(pruned) == [Counter(["one", "two", "three"]), Counter(["two", "three"]), Counter(["three"])]
    assert found.vocabulary.words() == ["one", "two", "three", "four", "five"]


def test_pruning_counts_the_documents_of_earlier_batches() -> None:
    first = encode_texts(["old old", "old", "rare"])
    second = encode_texts(["new rare", "new", "newer"], first.vocabulary)
    pruned, kept = second.prune(3, seen=first.document_frequency)
    assert pruned.vocabulary.words() == ["old", "rare", "new"]
    assert kept.tolist() == [0, 1, 2]


@given(st.lists(texts(), max_size=6), st.integers(0, 10))
def test_pruning_loses_no_token(documents: list[str], limit: int) -> None:
    found = encode_texts(documents)
    pruned, kept = found.prune(limit)
    assert len(pruned.vocabulary) == min(limit, len(found.vocabulary)) == kept.size
    assert pruned.counts.sum() + pruned.unknown.sum() == found.counts.sum()
    if kept.size < len(found.vocabulary):
        dropped = np.delete(found.document_frequency, kept)
        assert kept.size == 0 or found.document_frequency[kept].min() >= dropped.max()


# ---------------------------------------------------------------- time and weight


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["x" * 10_000_000, "a" + "\u0301" * 1_000_000, "AΣ" + "\u0301" * 1_000_000 + "Σ" * 1_000_000, "ab cd " * 1_000_000],
    ids=["one word of ten million letters", "a million marks", "sigmas among marks", "two million words"],
)
def test_awkward_documents_take_linear_time(text: str) -> None:
    encode_texts(["warm up é"] * 20_000)
    start = time.process_time()
    found = encode_texts([text])
    seconds = time.process_time() - start
    assert as_counters(found) == [words_of(text)]
    assert seconds < 2.0  # 10 MB a second even where every letter is awkward; quadratic time would be hours


def test_a_small_job_imports_no_compiler() -> None:
    code = "import sys; from likely.tokenizer import encode_texts as e; e(['ΟΔΟΣ, Straße']); print('numba' in sys.modules)"
    env = os.environ | {"PYTHONPATH": str(Path(kernel.__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
