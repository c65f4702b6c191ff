"""Counting the words of 20 Newsgroups beside other tokenizers: best of interleaved runs, printed as ratios.

    python bench/tokens.py [--rounds N]

Each is given the same texts and only counts. Times of one round are measured next to each other, so that a noisy machine
is noisy for all; one line has how many cores were free.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numba import njit

from likely.tokenizer import encode, encode_texts, utf8

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "twenty_newsgroups.parquet"


@njit(nogil=True, cache=True)
def read(buffer: Any, table: Any) -> int:  # the same table look-up for every byte, and nothing else
    total = 0
    for i in range(buffer.size):
        total += table[buffer[i]]
    return total


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def work_of(work: Callable[[], Any]) -> tuple[float, float]:
    """Wall seconds, and CPU seconds of all cores: the second is the better measure on a busy machine."""
    cpu = time.process_time()
    return timed(work), time.process_time() - cpu


def free_cores(buffer: Any, table: Any) -> float:
    """How many cores two threads got just now."""

    def spin() -> None:
        for _ in range(3):
            read(buffer, table)

    one = timed(spin)
    threads = [threading.Thread(target=spin) for _ in range(2)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 2 * one / (time.perf_counter() - start)


def learn(texts: list[str], labels: Any) -> Any:
    """Strings to counts by class and word: what a multinomial model has counted."""
    bags = encode_texts(texts)
    rows = np.repeat(labels, np.diff(bags.indptr))
    size = len(bags.vocabulary)
    counts = np.bincount(rows * size + bags.ids, weights=bags.counts, minlength=20 * size)
    return bags.vocabulary, counts.reshape(20, size)


def baselines(train: list[str], labels: Any) -> dict[str, Callable[[], Any]]:
    import duckdb
    import polars as pl
    import pyarrow as pa
    from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
    from sklearn.naive_bayes import MultinomialNB

    arrow = pa.table({"text": train, "row": np.arange(len(train))})
    connection = duckdb.connect().register("posts", arrow)
    frame = pl.from_arrow(arrow)
    assert isinstance(frame, pl.DataFrame)
    words = pl.col("text").str.to_lowercase().str.extract_all(r"\b\w\w+\b").alias("word")
    query = (
        "SELECT row, word, count(*) FROM (SELECT row, unnest(regexp_extract_all(lower(text), '\\b\\w\\w+\\b')) AS word"
        " FROM posts) GROUP BY ALL"
    )
    return {
        "CountVectorizer": lambda: CountVectorizer().fit_transform(train),
        "CountVectorizer + MultinomialNB": lambda: MultinomialNB().fit(CountVectorizer().fit_transform(train), labels),
        "HashingVectorizer": lambda: HashingVectorizer(alternate_sign=False, norm=None).fit_transform(train),
        "Polars extract_all + group_by": lambda: (
            frame.select("row", words).explode("word").group_by("row", "word").len()
        ),
        "DuckDB regexp_extract_all": lambda: connection.sql(query).to_arrow_table(),
    }


def compare(rounds: int) -> None:
    table = pq.read_table(DATA)
    split = {s: table.filter(pc.equal(table["split"], s)) for s in ("train", "test")}
    train, test = (split[s]["text"].to_pylist() for s in ("train", "test"))
    labels = np.unique(split["train"]["label"].to_pylist(), return_inverse=True)[1]
    buffer, offsets = utf8(train)
    ones = np.ones(256, dtype=np.uint8)
    known = encode_texts(train).vocabulary
    ours: dict[str, Callable[[], Any]] = {
        "read the bytes, one core": lambda: read(buffer, ones),
        "encode, bytes in": lambda: encode(buffer, offsets),
        "encode, bytes in, one thread": lambda: encode(buffer, offsets, threads=1),
        "encode_texts, strings in": lambda: encode_texts(train),
        "encode_texts + counts by class": lambda: learn(train, labels),
        "encode_texts, known words, test split": lambda: encode_texts(test, known, frozen=True),
        "encode_texts, word pairs": lambda: encode_texts(train, ngrams=(1, 2)),
    }
    theirs = baselines(train, labels)
    theirs["CountVectorizer.transform, test split"] = _transform(train, test)
    best: dict[str, Any] = {}
    for name, work in {**ours, **theirs}.items():
        work()
        best[name] = np.full(2, np.inf)
    cores = 0.0
    for _ in range(rounds):
        cores = max(cores, free_cores(buffer, ones))
        for name, work in {**ours, **theirs}.items():
            for _ in range(3 if name in ours else 1):
                best[name] = np.minimum(best[name], work_of(work))
    print(f"{len(train):,} posts, {buffer.size / 1e6:.1f} MB, {len(known):,} words; cores free at best {cores:.1f}\n")
    for name, (seconds, cpu) in best.items():
        size = sum(map(len, test)) if "test split" in name else buffer.size
        print(f"{name:42} {seconds * 1e3:9.1f} ms {cpu * 1e3:9.1f} ms of CPU {size / seconds / 1e6:9.0f} MB/s")
    share = best["read the bytes, one core"][1] / best["encode, bytes in, one thread"][1]
    print(f"\none thread counts words at {share:.1%} of the speed of reading the bytes through a table")
    pairs = [(name, "encode_texts, strings in") for name in theirs if "+ M" not in name and "split" not in name]
    pairs += [("CountVectorizer + MultinomialNB", "encode_texts + counts by class")]
    pairs += [("CountVectorizer.transform, test split", "encode_texts, known words, test split")]
    for their, our in pairs:
        clock, cpu = best[their] / best[our]
        print(f"{clock:6.1f}x on the clock, {cpu:6.1f}x less CPU   {our} against {their}")


def _transform(train: list[str], test: list[str]) -> Callable[[], Any]:
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer().fit(train)
    return lambda: vectorizer.transform(test)


def vector_instructions() -> None:
    """CPU time of the hand-written vector code against the plain compiled loops, in alternating processes."""
    print()
    code = (
        f"import time, pyarrow.parquet as pq\nfrom likely.tokenizer import encode, utf8\n"
        f"text = utf8(pq.read_table({str(DATA)!r}, columns=['text'])['text'].to_pylist())\n"
        "def once():\n"
        "    start = time.process_time(); encode(*text, threads=1); return time.process_time() - start\n"
        "once(); print(min(once() for _ in range(5)))"
    )
    best = {"0": float("inf"), "1": float("inf")}
    for _ in range(2):
        for off, seconds in best.items():
            env = os.environ | {"LIKELY_NO_SIMD": off}
            done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
            best[off] = min(seconds, float(done.stdout))
    gain = best["1"] / best["0"]
    print(f"vector instructions: {best['0'] * 1e3:.1f} ms of CPU, plain loops {best['1'] * 1e3:.1f} ms: {gain:.2f}x less CPU")


def awkward() -> None:
    """Time for documents that are hard for tokenizers, and for twice as much of them."""
    print()
    cases = {
        "one word of letters": lambda n: "x" * n,
        "combining marks": lambda n: "a" + "\u0301" * (n // 2),
        "sigmas and marks": lambda n: "AΣ\u0301" * (n // 5),
        "two-letter words": lambda n: "ab " * (n // 3),
        "all words different": lambda n: " ".join(map(str, range(n // 8))),
    }
    for name, make in cases.items():
        texts = [[make(10_000_000)], [make(20_000_000)]]
        once, twice = (min(timed(lambda text=text: encode_texts(text)) for _ in range(3)) for text in texts)
        print(f"{name:42} {once * 1e3:9.1f} ms for 10 MB, {twice / once:4.2f} times as long for 20 MB")


def small() -> None:
    """One document against a large vocabulary, and what the first text beyond ASCII costs."""
    print()
    texts = pq.read_table(DATA, columns=["text"])["text"].to_pylist()
    known = encode_texts(texts).vocabulary
    text = texts[7]
    words = sum(encode_texts([text]).counts)
    for name, vocabulary in (("few words known", encode_texts(texts[:5]).vocabulary), ("all words known", known)):
        work = [timed(lambda v=vocabulary: encode_texts([text], v, frozen=True)) for _ in range(200)]
        print(f"one document of {words} words, {name:20} {min(work) * 1e6 / words:9.2f} µs a word")
    code = (
        "import time; from likely.tokenizer._unicode import entries; import numpy as np\n"
        "for lead in (0xC3, 0xF0, 0xF3):\n"
        "    s = time.perf_counter(); entries('word', True, np.array([lead], dtype=np.uint8))\n"
        "    print(f'table for lead bytes up to {lead:X}: {(time.perf_counter() - s) * 1e3:.1f} ms')"
    )
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout, end="")


def memory() -> None:
    """Peak memory beyond that of holding the texts, each in a process of its own."""
    print()
    for name, work in {
        "encode_texts": "from likely.tokenizer import encode_texts as f; f(['warm up'] * 20_000)",
        "CountVectorizer": "from sklearn.feature_extraction.text import CountVectorizer as C; f = C().fit_transform",
    }.items():
        code = (
            f"import pathlib, pyarrow.parquet as pq\n{work}\n"
            f"texts = pq.read_table({str(DATA)!r})['text'].to_pylist()\n"
            "status = pathlib.Path('/proc/self/status')\n"
            "peak = lambda: int(status.read_text().split('VmHWM:')[1].split()[0]) / 1024\n"
            "pathlib.Path('/proc/self/clear_refs').write_text('5')  # forget the peak so far\n"
            "before = peak(); kept = f(texts); print(round(peak() - before))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        print(f"{name:42} {done.stdout.strip():>9} MB more at the peak, 18,846 posts")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    if not DATA.exists():
        sys.exit(f"{DATA} is absent: nothing to count")
    compare(rounds)
    vector_instructions()
    awkward()
    small()
    memory()
    print(f"\npeak memory of this bench {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
