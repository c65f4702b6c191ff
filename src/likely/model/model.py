"""The model: a schema, a tally and a prior, from which parameters, posteriors and explanations are derived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from likely.bayes import Posterior
from likely.calibration import Calibration
from likely.calibration.averaging import arc_of, arc_probability
from likely.engines import Scorer
from likely.engines.engine import is_spark_frame
from likely.engines.row_scorer import RowScorer, RowTerms
from likely.engines.targets import BinnedTarget
from likely.errors import DataError, UsageError
from likely.families import Block, FittedBlock
from likely.families.base import log
from likely.families.posterior_predictive import Arc
from likely.families.text_calibration import TextCalibration
from likely.kernels.parallel import cached_property
from likely.model import model_file
from likely.model._explanation import account
from likely.model._updating import count_rows, merged, with_tally
from likely.model._verbs import ModelVerbs
from likely.model.ledger import Ledger
from likely.model.model_keywords import METHOD_KEYWORDS
from likely.model.parameter_tables import ParameterTable, parameter_tables
from likely.model.parameters import (
    ParameterCount,
    calibrated_parameters,
    count_parameters,
    derived_parameters,
    formats_and_parts,
    strongest_words,
    why_not_generative,
)
from likely.model.relearning import is_stale, recalibrated
from likely.model.serialization import from_file, model_to_file
from likely.priors import Priors
from likely.schema import Schema
from likely.sources import Batch, ReadOptions, RowKeywords, Source, for_target, open_source
from likely.sources.row_access import complete, one_row
from likely.tally import Tally

Array = NDArray[np.float64]
ABSENT = ("error", "missing")


# What `dir(model)` shows; the other attributes serve the rest of the package.
USER_NAMES = (
    "arc_probability", "average", "calibration", "class_prior", "classes", "dependence", "draw_parameters", "engine",
    "explain", "forget", "log_marginal_likelihood", "onnx", "parameter_count", "parameter_posterior", "parameters",
    "plot", "posterior", "predict", "predict_proba", "prepare", "prior", "recalibrate", "relearn", "sample", "save",
    "schema", "sql", "stale", "tally", "to_dict", "to_pandas", "top_words", "update", "without_rows", "word_weights",
)  # fmt: skip


@dataclass(frozen=True)
class Model(ModelVerbs):
    """A classifier: counts and priors, from which everything else is derived. Made by `learn` and `load`.

    Models are values: `update`, `forget` and `relearn` return new ones, and `a + b` equals learning from both tables.

    Attributes
    ----------
    tally : Tally
        What was counted: class counts and one sufficient statistic for each block of columns.
    prior : Priors
        The priors of columns and classes.
    missing : tuple of str
        Texts that stand for a missing cell in every source that the model reads.
    weights : str or None
        The column of row weights.
    declared : tuple
        Classes that exist even if no row has them.
    stages : dict
        Fitted weights of words, for each text column.
    calibration : Calibration or None
        Fitted column weights and interactions; None in a plain model.
    dependence : str
        Which interactions the calibration may add.
    missing_labels : tuple of str or None
        Texts that stand for a missing label; None: as in the other columns.
    average : bool
        Whether parameters are averaged over all choices of which columns depend on the class.
    target_edges : tuple of float
        Edges of the bins of a numeric target.
    engine : str
        Which engine counted the rows and why; empty in a loaded model.
    """

    tally: Tally
    prior: Priors
    missing: tuple[str, ...] = ()  # texts that stand for a missing cell, in every source that the model reads
    weights: str | None = None
    declared: tuple[Any, ...] = ()  # classes that exist even where no row has them
    stages: Mapping[str, TextCalibration] = field(default_factory=dict)  # fitted weights of words, for each text column
    calibration: Calibration | None = None  # fitted column weights and interactions
    dependence: str = "auto"  # which interactions it may have
    missing_labels: tuple[str, ...] | None = None  # the same in the target; None: as in the other columns
    average: bool = False  # over all choices of which columns depend on the class
    target_edges: tuple[float, ...] = ()  # of the bins, where the target is a column of numbers
    engine: str = field(default="", compare=False)  # which engine counted the rows and why; not stored

    def __dir__(self) -> list[str]:
        special = [name for name in object.__dir__(self) if name.startswith("__")]
        own = [name for kind in type(self).__mro__ if kind not in Model.__mro__ for name in _public(kind)]
        return sorted({*special, *USER_NAMES, *own})

    @property
    def schema(self) -> Schema:
        """What the columns mean."""
        return self.tally.schema

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels, in their own type, sorted."""
        return self.schema.classes

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The columns as they are modelled: alone, or together."""
        return self.tally.blocks

    @property
    def reading(self) -> ReadOptions:
        """How rows are read for this model: as those that it was learned from."""
        formats, parts = self._formats
        return ReadOptions(self.missing, missing_labels=self.missing_labels, formats=formats, parts=parts)

    @cached_property
    def _formats(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Formats of the numeric columns, and the columns derived from dates."""
        return formats_and_parts(self.schema, self.missing)

    def read_as(self, how: Mapping[str, Any]) -> ReadOptions:
        """The same, changed by keywords: `missing`, `encoding` and the like."""
        given = {name: value for name, value in how.items() if name != "missing"}
        return ReadOptions.of(how.get("missing"), given, self.reading, beside=METHOD_KEYWORDS)

    @cached_property
    def class_prior(self) -> Array:
        """Prior probability of each class."""
        return self.prior.class_probabilities(self.classes, self.tally.classes, self.blocks)

    plain_parameters = cached_property(derived_parameters)
    block_parameters = cached_property(calibrated_parameters)

    def fitted(self, i: int) -> FittedBlock:
        """Block i as its family's methods take it: columns, sufficient statistic, prior and parameters before calibration."""
        block = self.blocks[i]
        columns = tuple(self.schema.by_name[name] for name in block.columns)
        prior, parameters = self.prior.of(block).for_classes(self.classes), self.plain_parameters[i]
        return FittedBlock(columns, self.tally.statistics[i], prior, parameters, self.tally.classes)

    def arc(self, i: int) -> Arc | None:
        """Evidence that block i depends on the class; None where it is of a family that always does."""
        return arc_of(self, i)

    @cached_property
    def arc_probability(self) -> dict[str, float | None]:
        """Posterior probability that each block depends on the class; None where its family or prior has none."""
        return {block.name: arc_probability(self, i) for i, block in enumerate(self.blocks)}

    @cached_property
    def parameters(self) -> dict[str, ParameterTable]:
        """Tables that print with credible intervals and read as lists of dicts: the class prior, then each column or block."""
        return parameter_tables(self)

    def top_words(self, most: int = 10, column: str | None = None) -> dict[Any, list[tuple[str, float]]]:
        """For every class, the words with the highest weights of evidence.

        Parameters
        ----------
        most : int, default=10
            Number of words a class.
        column : str or None, default=None
            The text column; needed only where there are several.

        Returns
        -------
        dict
            Class → list of (word, weight); the weight is in nats, against the average of the classes.
        """
        forms: dict[str, Any] = {self.blocks[i].name: self.block_parameters[i].likelihood for i in self.scorer.texts}
        return strongest_words(forms, column, self.classes, most)

    @cached_property
    def parameter_count(self) -> ParameterCount:
        """Entries of all tables, free parameters, and free parameters if nothing were independent."""
        return count_parameters(self.schema, self.block_parameters)

    @cached_property
    def scorer(self) -> Scorer:
        """All parameters, laid out for the engine."""
        bias = self.calibration.bias if self.calibration else None
        return Scorer(self.schema, log(self.class_prior), self.block_parameters, bias)

    @cached_property
    def row_scorer(self) -> RowScorer | None:
        """The same parameters, laid out for single rows; None where the reader of tables makes columns from dates."""
        return None if self.reading.parts else RowScorer(self.scorer, self.reading.gaps(False))

    def posterior(
        self, rows: Any, *, absent: str = "error", reading: ReadOptions | None = None, **how: Unpack[RowKeywords]
    ) -> Posterior:
        """Posterior of the classes for every row.

        Parameters
        ----------
        rows : path, frame, dict of columns, list of dicts or one dict
            The rows; any source that `learn` takes.
        absent : "error" or "missing", default="error"
            What to do when a column of the model is not there: refuse, or treat its cells as missing.
        reading : ReadOptions or None, default=None
            How the source is read, as one object instead of keywords.
        **how
            How a file is read, as for `learn`: `encoding`, `table`, `header`, ...

        Returns
        -------
        Posterior
            `.classes`, `.probabilities` (rows × classes), `.log_probabilities`, `.log_joint`, `.labels`. Of a Spark
            DataFrame, a Spark DataFrame: its columns, `label` and `p_<class>` for each class.
        """
        if is_spark_frame(rows):
            return cast("Posterior", self.scored(rows, absent=absent))
        if type(rows) is dict and self.row_scorer and not how and reading is None and absent in ABSENT:
            joint = self.row_scorer.joint_or_none(rows)
            if joint is not None:
                return Posterior(self.classes, joint[None], self.scorer.log_prior, self.no_evidence)
        joints = [self.scorer.log_joint(batch) for batch in self.batches(rows, absent, reading, **how)]
        joint = joints[0] if len(joints) == 1 else np.concatenate(joints or [np.zeros((0, len(self.classes)))])
        return Posterior(self.classes, joint, self.scorer.log_prior, self.no_evidence)

    def posterior_of(self, batch: Batch) -> Posterior:
        """The posterior of rows that have every column already."""
        return Posterior(self.classes, self.scorer.log_joint(batch), self.scorer.log_prior, self.no_evidence)

    @cached_property
    def no_evidence(self) -> str:
        """Why rows have no probability P(x) under this model; empty for a generative one."""
        return why_not_generative(self.blocks, self.prior, self.calibration is not None)

    def explain(self, row: Any, *, number: int = 1, absent: str = "error", **how: Unpack[RowKeywords]) -> Ledger:
        """Weights of evidence of one row: prior, the contribution of each column to each class, and their sum.

        Parameters
        ----------
        row : dict, path, frame or any other source
            The row, or a table that holds it.
        number : int, default=1
            Which row of the table, from 1.
        absent : "error" or "missing", default="error"
            What to do when a column of the model is not there: refuse, or treat its cells as missing.
        **how
            How a file is read, as for `learn`: `encoding`, `table`, `header`, ...

        Returns
        -------
        Ledger
            The explanation; it prints as a table and adds up to the posterior.
        """
        if type(row) is dict and self.row_scorer and not how and number == 1 and absent in ABSENT:
            terms = self.row_scorer.terms_or_none(row)
            if terms is not None:
                return self.explained(terms)
        source = open_source(row, self.read_as(how))
        for batch in self.batches(source, absent, None):
            if batch.start < number <= batch.start + batch.rows:
                return self.explained(RowTerms.of(self.scorer, one_row(batch, number - batch.start - 1)))
        raise DataError(f"{source.label} has no row {number}")

    def explained(self, row: RowTerms) -> Ledger:
        """Weights of evidence of one row, from its terms."""
        curves = self.plain_parameters if self.average or self.calibration else ()
        matters = self.arc_probability if self.average else {}
        return account(self.scorer, row, curves, matters, generative=not self.no_evidence)

    def batches(self, rows: Any, absent: str, reading: ReadOptions | None, **how: Unpack[RowKeywords]) -> Iterator[Batch]:
        """The batches of a source, each with every column that the model needs."""
        if absent not in ABSENT:
            raise UsageError(f"absent={absent!r} is not known: choose 'error' or 'missing'")
        source = open_source(rows, reading or self.read_as(how))
        kinds = {column.name: column.kind for column in self.schema.columns}
        for batch in source.batches(kinds):
            yield complete(batch, self.schema.columns, source, absent)

    def without_rows(self) -> Model:
        """Copy of the model without the sample of rows and documents that it keeps; its predictions are the same.

        It can be updated, merged and made to forget, but not calibrated again. Counts remain, class by class: of categories,
        of words, and of numbers to about 1/4,096 of their range.
        """
        return replace(self, tally=self.tally.without_rows(self.calibration.edges if self.calibration else {}))

    @property
    def frozen(self) -> bool:
        """Whether a calibration is there and no rows to fit it on again."""
        fitted = self.calibration is not None or bool(self.stages)
        held = self.tally.sample is not None or any(getattr(s, "sample", None) for s in self.tally.statistics)
        return fitted and not held

    def recalibrate(self) -> Model:
        """Copy of the model whose weights and interactions are fitted again, from the sample of rows that it keeps."""
        return recalibrated(self)

    @property
    def calibrates(self) -> bool:
        """Whether a calibration can be fitted: rows of several classes are kept, and the smoothing is chosen by data."""
        return self.tally.sample is not None and self.prior.default.chosen and int((self.tally.classes > 0).sum()) > 1

    @property
    def stale(self) -> bool:
        """Whether rows were counted or forgotten since weights and interactions were fitted: see `recalibrate`."""
        return is_stale(self)

    def with_tally(self, tally: Tally) -> Model:
        """The model of another tally.

        The calibration is kept, unless there are other classes than it was fitted for, or nothing left to fit it on.
        """
        return with_tally(self, tally)

    def __add__(self, other: Model) -> Model:
        """The model of both tables: equals learning from both at once."""
        if not isinstance(other, Model):
            return NotImplemented
        return merged(self, other)

    def count(
        self,
        rows: Any,
        reading: ReadOptions | None = None,
        weights: Any = None,
        engine: str = "auto",
        **how: Unpack[RowKeywords],
    ) -> Tally:
        """The tally of other rows, counted as this model counts; `weights` and `engine` as in `learn`."""
        return count_rows(self, rows, reading or self.read_as(how), weights, engine)

    def with_target(self, source: Source, name: str) -> Source:
        """The source with `name` as its target, cut into bins where this model's classes are bins."""
        source = for_target(source, name)
        return BinnedTarget(source, name, self.target_edges) if self.target_edges else source

    def save(self, path: str | Path, *, replacing: str | None = None) -> str:
        """Write the model file; it appears complete or not at all, and is read back before it replaces another.

        Parameters
        ----------
        path : str or Path
            The file, usually ending in .likely.
        replacing : str or None, default=None
            Digest of the file that may be replaced; if it has another one by now, nothing is written.

        Returns
        -------
        str
            Digest of the file.
        """
        return model_file.write(path, *model_to_file(self), replacing=replacing, check=from_file)

    def __repr__(self) -> str:
        size = f"{len(self.classes)} classes, {len(self.schema.columns)} columns, {self.tally.rows:,} rows counted"
        return f"<Model of {self.schema.target.name!r}: {size}>"


def _public(kind: type) -> list[str]:
    return [name for name in vars(kind) if not name.startswith("_")]
