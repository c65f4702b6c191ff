"""Words of documents: drawn from a class, or found by a user's own pattern."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.errors import UsageError
from likely.tokenizer.documents import TextChunk


def drawn_documents(
    likelihood: Any, names: NDArray[Any], known: NDArray[np.int64], classes: NDArray[np.int64], rng: np.random.Generator,
) -> list[str]:  # fmt: skip
    """Documents of known words, drawn for each of the classes with Poisson lengths of the class's mean."""
    words = likelihood.words
    if not len(known):
        return [""] * len(classes)
    logs = likelihood.weights(known)
    if likelihood.family.kind == "bernoulli":
        share = (words.seen[known] + likelihood.pseudocount) / (words.documents + 2 * likelihood.pseudocount)
        return [" ".join(names[rng.random(len(known)) < share[:, c]]) for c in classes]
    chance = np.exp(logs - logs.max(0))
    chance /= chance.sum(0)
    mean = words.seen[known].sum(0) / np.maximum(words.documents, 1e-300)
    lengths = rng.poisson(mean[classes])
    documents = [""] * len(classes)
    for c in np.unique(classes).tolist():  # all words of a class are drawn at once
        rows = np.flatnonzero(classes == c)
        ends = np.cumsum(lengths[rows])
        drawn = names[rng.choice(len(known), int(ends[-1]), p=chance[:, c])]
        for row, a, b in zip(rows.tolist(), ends - lengths[rows], ends, strict=True):
            documents[row] = " ".join(drawn[a:b])
    return documents


def words_by_pattern(text: TextChunk, pattern: str, lowercase: bool) -> list[list[str]]:
    """Words that a user's pattern finds."""
    import re

    try:
        find: Callable[[str], list[str]] = re.compile(pattern).findall
    except re.error as error:
        raise UsageError(f"the pattern {pattern!r} cannot be read: {error}") from None
    documents = [document or "" for document in text] if isinstance(text, list) else _decoded(*text)
    return [find(document.lower() if lowercase else document) for document in documents]


def _decoded(buffer: NDArray[np.uint8], offsets: NDArray[Any]) -> list[str]:
    raw = buffer.tobytes()
    return [raw[a:b].decode("utf-8", "replace") for a, b in pairwise(offsets.tolist())]
