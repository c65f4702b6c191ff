"""What the program asks of a likelihood term, whatever its form: one answer for each question, and a default."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from likely.families.word_counts import Words
    from likely.tokenizer import Bags

Array = NDArray[np.float64]
Codes = NDArray[Any]


class ScoringLoop(enum.IntEnum):
    """Loop by which scorers add a term; the terms of a row are added in this order."""

    WORDS = 0  # of a text: the tokenizer runs in parallel by itself
    LOOKUP = 1  # line of a table for the code of a cell
    CELLS = 2  # line of a table for the codes of several cells
    PARABOLA = 3  # of one number
    LINE = 4  # of each number of a block
    OWN = 5  # none: the form's own `add`


class LikelihoodForm:
    """Term of a score as a function of the cells of a block.

    A form overrides what it has; the defaults are those of a form that scorers add by its own `add`, and that has no table, no
    moments and no coefficients. An exporter needs a function of its own for it.
    """

    loop: ClassVar[ScoringLoop] = ScoringLoop.OWN
    reads: ClassVar[str] = "category"  # what the codes of a table are: "category", "bins" of a number, or "yes" above zero
    all_numbers: ClassVar[bool] = False  # whether it is a term of all numbers together, which is explained without their values

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        raise NotImplementedError(f"{type(self).__name__} is not added row by row")

    def codes(self, numbers: Array) -> Codes:
        """Line of the table for every number of its column."""
        raise NotImplementedError(f"{type(self).__name__} is no table over a number")

    def code(self, number: float) -> int:
        """Line of the table for one number."""
        return int(self.codes(np.array([number]))[0])

    @property
    def bin_edges(self) -> Array | None:
        """Edges of the bins of its column; None where it has none."""
        return None

    @property
    def extent(self) -> tuple[float, float]:
        """Lowest and highest number seen; NaN where the form does not know."""
        return np.nan, np.nan

    def far(self, value: Any) -> bool:
        """Whether a value lies far from everything that was seen."""
        return False

    def moments(self) -> tuple[Array, Array] | None:
        """Means (classes × numbers) and covariances (classes × numbers × numbers) of a Gaussian; None of any other form."""
        return None

    def linear(self) -> tuple[Array, Array] | None:
        """Slopes (numbers × classes) and intercept by class; None where the term is not linear in its numbers."""
        return None

    def weighted(self, weight: float) -> LikelihoodForm:
        """The term times a weight."""
        return ScaledTerm(self, weight)

    @property
    def unscaled(self) -> tuple[LikelihoodForm, float]:
        """The term without its weight, and the weight."""
        return self, 1.0


@dataclass(frozen=True)
class ScaledTerm(LikelihoodForm):
    """Likelihood term times a weight."""

    likelihood: Any
    weight: float

    def add(self, codes: Codes, numbers: Array, out: Array) -> None:
        """Add this block's term for every row and class."""
        term = np.zeros_like(out)
        self.likelihood.add(codes, numbers, term)
        out += self.weight * term

    @property
    def unscaled(self) -> tuple[LikelihoodForm, float]:
        """The term without its weight, and the weight."""
        return self.likelihood, self.weight


class TextForm(LikelihoodForm):
    """Term of a text: a sum over the words of each document."""

    loop = ScoringLoop.WORDS
    family: Any
    words: Words
    idf: Any  # inverse document frequency of each word, or None
    curve: Any  # calibration of the weights, or None

    def terms(self, bags: Bags, missing: NDArray[np.bool_]) -> Array:
        """Log-likelihood term of each document, by class."""
        raise NotImplementedError

    def details(self, bags: Bags) -> list[tuple[str, float, Array]]:
        """The words of one document, each with its count and its term for each class."""
        raise NotImplementedError
