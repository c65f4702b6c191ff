"""Protocol of a family: everything the package asks of one kind of column, each with a default or one clear error.

A family is one class in one file. It has the kind of column it takes, its sufficient statistic, the parameters derived from
statistic and prior, and what follows from them. Two methods are required, `count` and `derive`; each of the others has a
default, or an error that names the family and what it cannot do. Subclasses register themselves by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from likely.bayes.continuous import Distribution
from likely.bayes.parameter_posterior import ParameterPosterior
from likely.errors import UsageError
from likely.families.base import BlockPrior, Encoded, Labels, Parameters, first_bad
from likely.families.posterior_predictive import Arc
from likely.families.statistics import Array, Statistic
from likely.schema import CATEGORY, NUMBER, Column

REGISTRY: dict[str, type[Family]] = {}
SampledCells = dict[str, NDArray[Any]]
Totals = Array | dict[Any, Array]  # by class, or for each value by class


@dataclass(frozen=True)
class FittedBlock:
    """One block of a model: its columns, sufficient statistic, prior and parameters."""

    columns: tuple[Column, ...]
    statistic: Any
    prior: BlockPrior
    parameters: Parameters
    class_counts: Array

    @property
    def name(self) -> str:
        """The name of the block in tables and messages."""
        return " with ".join(column.name for column in self.columns)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.class_counts)

    @property
    def likelihood(self) -> Any:
        """The likelihood term of the block."""
        return self.parameters.likelihood


@dataclass(frozen=True)
class LeftOutRows:
    """Training rows: their classes, and the weight of each that is left out."""

    labels: NDArray[np.int64]
    units: Array

    def own(self, classes: int) -> Array:
        """Weight of the row in its own class, rows × classes; 0 elsewhere."""
        return np.where(np.arange(classes) == self.labels[:, None], self.units[:, None], 0.0)

    def some(self, places: Any) -> LeftOutRows:
        """A subset of the rows."""
        return LeftOutRows(self.labels[places], self.units[places])


class Family:
    """One kind of column, or of block of columns. Subclasses are frozen dataclasses whose fields are their settings."""

    name: ClassVar[str] = ""
    column_kind: ClassVar[str | None] = NUMBER  # of the columns that it takes; None: any
    single: ClassVar[bool] = True  # one column per block: all blocks of equal families are counted in one pass
    strict: ClassVar[bool] = False  # whether every number is checked before it is counted, or only when a sum overflows
    shorthand: ClassVar[str] = ""  # the setting that "name:value" stands for
    reads_codes: ClassVar[bool] = False  # whether category codes can be counted without a copy
    reads_columns: ClassVar[bool] = False  # whether columns of numbers can be counted without a copy
    counts_moments: ClassVar[bool] = False  # whether its statistic is weight, mean and spread of the column
    counts_rates: ClassVar[bool] = False  # whether its statistic is rows and events, of which a rate has a gamma prior
    one_column_at_a_time: ClassVar[bool] = False  # whether each column is worth its own thread
    needs_whole_rows: ClassVar[bool] = False  # whether a row with a missing cell in the block adds nothing to it
    columns_have_roles: ClassVar[bool] = False  # whether the order of the block's columns matters
    chooses_smoothing: ClassVar[bool] = False  # whether its pseudocount is chosen by leave-one-out unless one is given
    sums_to_one: ClassVar[bool] = False  # whether its parameters are the probabilities of outcomes
    priors_by_class: ClassVar[bool] = False  # whether pseudocounts may differ by class
    a_vector_is_a_row: ClassVar[bool] = False  # whether `estimate` takes one vector as one row of several columns

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if vars(cls).get("name"):
            REGISTRY[cls.name] = cls

    def __init__(self) -> None:  # for type checkers: frozen dataclasses have their own
        pass

    # ------------------------------------------------------------ settings and columns

    def settings(self) -> dict[str, Any]:
        """Settings that make this family again, as plain data."""
        made: Any = self
        return {field.name: getattr(self, field.name) for field in fields(made)}

    def shown_settings(self) -> dict[str, Any]:
        """Settings shown in summaries."""
        return {name: value for name, value in self.settings().items() if value is not None}

    @classmethod
    def from_shorthand(cls, text: str) -> dict[str, Any]:
        """The settings that "name:text" stands for."""
        if not cls.shorthand:
            raise UsageError(f"the family {cls.name} has no settings: write {cls.name!r}, not {f'{cls.name}:{text}'!r}")
        return {cls.shorthand: int(text) if text.isdigit() else text}

    @classmethod
    def example(cls) -> Family:
        """An instance with ordinary settings, for the tests that run over all families."""
        return cls()

    def counting_settings(self) -> dict[str, Any]:
        """Settings that change the statistic; all others only change what is derived from it."""
        return {}

    def counts_like(self, other: Family) -> bool:
        """Whether the other family counts the same statistic, so that one can be derived from the other's counts."""
        return type(self) is type(other) and self.counting_settings() == other.counting_settings()

    @property
    def for_each_column(self) -> bool:
        """Whether naming the family for all columns means a block for each of them."""
        return self.single

    @classmethod
    def named_for_a_column(cls) -> bool:
        """Whether its name alone, without settings or other columns, is enough for one column."""
        try:
            return cls().for_each_column
        except TypeError:  # it has settings without a default
            return False

    def block_columns(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """All columns of a block that was named by these."""
        return names

    def aliases(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Names by which priors and settings may call a block of these columns, besides its full name."""
        return names if len(names) == 1 else ()

    # ------------------------------------------------------------ counting

    def count(self, rows: Encoded, labels: Labels, weights: Array, classes: int) -> list[Statistic]:
        """The sufficient statistics of a group of blocks, one each; `labels` may be responsibilities, rows × classes."""
        self.cannot("be counted")

    def check(self, name: str, numbers: Array) -> tuple[int, str] | None:
        """The first row whose number this family cannot count, and why."""
        return first_bad(np.isinf(numbers), "is not a finite number")

    def check_block(self, numbers: Array) -> tuple[int, str] | None:
        """The first row whose numbers do not fit together, and why."""
        return None

    def settle(self, statistic: Any) -> Any:
        """The statistic kept within the family's own limits, after a sum."""
        return statistic

    def count_expected(self, likelihood: Any, rows: Encoded, responsibilities: Array) -> Statistic | None:
        """Expected statistic of rows with missing cells in an E-step; None where they add nothing."""
        return None

    # ------------------------------------------------------------ parameters

    def derive(
        self,
        blocks: Sequence[tuple[Column, ...]],
        statistics: Sequence[Any],
        priors: Sequence[BlockPrior],
        classes: Sequence[Any],
        edges: Sequence[Array | None] | None = None,
    ) -> list[Parameters]:
        """Parameters of a group of blocks from their statistics and priors; `edges` fixes bins that were cut before."""
        self.cannot("have parameters")

    def not_generative(self, prior: BlockPrior) -> str:
        """Why the term of the family is not a log-likelihood of the column; empty where it is one."""
        return ""

    # ------------------------------------------------------------ what follows from the parameters

    def log_prior_density(self, block: FittedBlock) -> float:
        """Log density of the parameters under their prior, up to a constant: the penalty of EM's objective."""
        self.cannot("be learned by EM")

    def arc(self, block: FittedBlock) -> Arc | None:
        """Marginal likelihoods with and without dependence on the class; None where the family has no closed form."""
        return None

    def log_marginal(self, block: FittedBlock) -> float:
        """Log marginal likelihood of the block given the classes, without factors that do not depend on the parameters."""
        arc = self.arc(block)
        if arc is None:
            self.cannot("give a marginal likelihood in closed form")
        return arc.log_dependent

    def log_base(self, block: FittedBlock) -> float:
        """Log of the factors of the block's probability that no parameter changes, such as 1 / x! of counts."""
        return 0.0

    def log_marginal_together(self, blocks: Sequence[FittedBlock]) -> float:
        """Log marginal likelihood of all blocks of this family; a sum, unless they share parameters."""
        return sum(self.log_marginal(block) + self.log_base(block) for block in blocks)

    def prior_from_data(self, block: FittedBlock) -> str:
        """What of the prior is estimated from the rows, so that a marginal likelihood uses them twice; empty if nothing."""
        return "pseudocounts by the frequency of the values" if block.prior.background else ""

    def totals(self, block: FittedBlock) -> dict[tuple[str, str], Totals]:
        """What was counted by class, by column and kind of total, in a form that other families of the column share."""
        return {}

    def log_maximum(self, block: FittedBlock) -> float:
        """Log-likelihood of the block at its parameters, without factors that do not depend on the parameters."""
        arrays, classes = block.statistic.arrays(), [row["class"] for row in block.parameters.rows]
        nothing = np.zeros((0, max(len(block.columns), 1)))
        total = 0.0
        for c, label in enumerate(dict.fromkeys(classes)):
            rows = [row for row in block.parameters.rows if row["class"] == label]
            counted = {name: array[c : c + 1] for name, array in arrays.items()}
            of = self.log_likelihood(counted, block.columns, nothing, np.zeros(0))
            total += of(self.named_parameters(rows))
        return total

    def arc_probability(self, block: FittedBlock) -> float | None:
        """Posterior probability that the block depends on the class; None where family or prior has none."""
        try:
            arc = self.arc(block)
        except UsageError:  # an improper prior has no marginal likelihood
            return None
        return arc.probability if arc else None

    @property
    def leaves_out(self) -> bool:
        """Whether the leave-one-out likelihood of a row has a closed form."""
        return False

    def leave_one_out(self, block: FittedBlock, cells: NDArray[Any], rows: LeftOutRows) -> Array:
        """Log-likelihood of each row's cell in every class, the row left out; cells are codes or numbers."""
        self.cannot("leave rows out in closed form")

    def mutual_information(self, block: FittedBlock) -> float | None:
        """The mutual information of block and class, in nats; None where the family has no sum or integral for it."""
        return None

    def sample(self, block: FittedBlock, classes: NDArray[np.int64], rng: np.random.Generator) -> SampledCells:
        """A cell of every column of the block for each of the classes, drawn from its distribution."""
        self.cannot("be sampled from")

    def parameter_posteriors(self, block: FittedBlock) -> list[ParameterPosterior]:
        """Conjugate posterior of the parameters by class; the prior is that of the posterior mean."""
        self.cannot("give a posterior of its parameters in closed form")

    def marginals(self, posterior: ParameterPosterior, line: Mapping[str, Any]) -> dict[str, Distribution]:
        """The marginal posterior of each figure in one line of the table of parameters, by the name of its cell."""
        return {name: posterior.marginals[name] for name in line if name in posterior.marginals}

    def with_parameters(self, block: FittedBlock, by_class: Sequence[Mapping[Any, Any]]) -> FittedBlock:
        """The block with other parameters, one mapping a class, named as in the posterior of the parameters."""
        self.cannot("take parameters drawn from their posterior")

    def distribution(self, parameters: Mapping[Any, float]) -> Any:
        """The distribution of one value with these named parameters."""
        self.cannot("give the distribution of a value alone")

    # ------------------------------------------------------------ EM

    def for_em(self, name: str, asked_for: bool) -> Family | None:
        """Family that EM counts by responsibilities in its place; None: the plain default of the column's kind."""
        return self

    def with_known_variance(self, variance: float | None) -> Self:
        """The same family with a known variance; unchanged where it has none."""
        return self

    def variance_prior(self, rows: float, variances: Sequence[float], parts: int) -> dict[str, Any] | None:
        """Settings of a prior that keeps variances away from zero in a mixture of so many parts; None: not needed."""
        return None

    # ------------------------------------------------------------ one distribution alone

    def together(self, names: Sequence[str], parts: Sequence[ParameterPosterior]) -> ParameterPosterior:
        """The posterior of several independent columns of this family, from those of each."""
        self.cannot("take several columns of values at once: estimate each column on its own")

    def value_columns(self, names: list[str], table: Array, named: Sequence[Any]) -> tuple[list[str], Array]:
        """Columns and their values as `estimate` counts them; `named` are outcomes that the prior names."""
        if self.single and table.shape[1] != 1:
            raise UsageError(f"the family {self.name} takes one column of values: estimate each column on its own")
        return names, table

    def answers(self, values: Any) -> Any:
        """Values as `estimate` reads their numbers; a family of yes and no reads words too."""
        return values

    def named_parameters(self, rows: Sequence[Mapping[str, Any]]) -> dict[Any, float]:
        """The parameters of one class by name, from its table."""
        self.cannot("be estimated alone")

    def estimated(self, rows: Sequence[Mapping[str, Any]], statistic: Any, prior: BlockPrior) -> dict[Any, float]:
        """The parameters of values on their own, by name; a classifier may have to replace a degenerate one."""
        return self.named_parameters(rows)

    def is_possible(self, name: Any, value: Any) -> bool:
        """Whether a parameter can have this value: by default a probability."""
        return bool(0.0 <= value <= 1.0)

    def log_likelihood(
        self, counted: Mapping[str, Array], columns: Sequence[Column], numbers: Array, weights: Array
    ) -> Callable[[Mapping[Any, float]], float]:
        """log P(values | parameters) as a function of the named parameters."""
        self.cannot("be estimated alone")

    def parameter_range(self, name: Any, at: Mapping[Any, float], n: float) -> tuple[float, float]:
        """The range in which the likelihood curve of a parameter is drawn."""
        return 0.0, 1.0

    def cannot(self, what: str) -> NoReturn:
        """Raise the one error for what a family does not offer."""
        raise UsageError(f"the family {self.name} cannot {what}: choose another family for the column")


@dataclass(frozen=True)
class Block:
    """Columns that are modelled together, and the family that models them."""

    family: Family
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the block in tables: its columns joined by 'with'."""
        return " with ".join(self.columns)

    def nothing(self, columns: Sequence[Column], classes: int) -> Statistic:
        """Empty statistic of the block."""
        domains = np.array([len(column.values) for column in columns if column.kind == CATEGORY], np.int64)
        codes, numbers = np.zeros((0, len(domains)), np.int32), sum(column.kind == NUMBER for column in columns)
        rows = Encoded(codes, np.zeros(len(domains), np.int64), domains, np.zeros((0, numbers)))
        return self.family.count(rows, np.zeros(0, np.int64), np.zeros(0), classes)[0]


def groups(blocks: Sequence[Block]) -> list[list[Block]]:
    """Blocks that are counted and derived in one pass: equal families of single columns together, all others alone."""
    together: dict[Any, list[Block]] = {}
    for block in blocks:
        together.setdefault(block.family if block.family.single else block, []).append(block)
    return list(together.values())
