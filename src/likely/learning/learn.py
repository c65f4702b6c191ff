"""From a source to a model: plan the columns, count, derive, calibrate.

Never: rows, SQL.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from likely.calibration import DEPENDENCE
from likely.engines.engine import SPARK, CountedSource, Engine, choose
from likely.engines.in_database import DatabaseEngine
from likely.engines.memory import MOST_VALUES, without_identifiers
from likely.engines.planning import AUTO, plan_for
from likely.engines.row_weights import WEIGHT_COLUMN
from likely.engines.targets import Opened, as_name, edges_of, opened
from likely.errors import DataError, LikelyWarning, UsageError
from likely.latent.em import MAX_ITER, StreamedRows, warn_if_stopped, weights_of
from likely.latent.em_parts import RowsInParts, fit_in_parts
from likely.latent.missing_cells import filled, filled_from, has_gaps, warn_of_filled
from likely.latent.semi_supervised import MORE_ROUNDS, TOL, SemiSupervisedFit, partly_labelled
from likely.model.model import Model
from likely.model.model_keywords import SETTINGS, LearnReading
from likely.model.parameters import with_taken
from likely.model.parts import PartPlan
from likely.model.relearning import recalibrated, warn_of_unaveraged, with_named_values
from likely.model.selection import select as select_columns
from likely.model.selection import without_idle_parts
from likely.priors import Priors, priors, textbook
from likely.schema import Column, in_words
from likely.schema import plain as plainly
from likely.sources import (
    Batch,
    ReadOptions,
    is_source,
    missing_of,
    open_source,
    released,
    require_rows,
)
from likely.sources.date_parts import with_parts
from likely.sources.missing_tokens import token_warnings
from likely.tally import Tally

# Semi-supervised learning is tried if there are more unlabelled rows than this multiple of the labelled ones.
MIN_UNLABELLED_RATIO = 0.5
MOST_NOTES = 20  # notes on parameters that are warned of one by one
MOST_CELLS = 50_000_000  # rows × columns that are kept in memory for EM; larger tables are read in every round


def learn(
    data: Any,
    target: Any = None,
    *,
    target_bins: Any = None, families: Any = AUTO, joint: Sequence[Sequence[str]] = (), date_parts: Any = AUTO,
    smoothing: Any = "auto", class_prior: Any = None, weights: Any = None, ignore: Sequence[str] = (),
    missing: Sequence[str] | None = None, classes: Sequence[Any] = (), plain: bool = False, dependence: str = "auto",
    average: bool = False, select: bool | int | str = False, engine: Any = "auto", in_database: bool = False,
    unlabelled: str | float = "auto",
    max_iter: int = MAX_ITER, tol: float = TOL, keep_rows: bool = True, progress: Callable[[int], None] | None = None,
    **how: Unpack[LearnReading],
) -> Model:  # fmt: skip
    """Learn a model of one column of a table from all others.

    The default model is a naive Bayes classifier with discriminative weights: each column has a weight fitted by
    leave-one-out, and interactions are added where they help. `plain=True` is the textbook's model.

    Parameters
    ----------
    data : path, glob, frame, dict of columns, DuckDB relation or folder of texts
        The table: .csv, .tsv, .parquet, .json, .jsonl, .arrow, .duckdb, .sqlite, .xlsx, .ods, also compressed; a pandas,
        polars, pyarrow or Spark frame; a NumPy array; a folder of tables; a folder with one folder of text files a class.
    target : str, int, array or None, default=None
        The column to predict, or one label a row. A folder of texts brings its own.
    target_bins : int, sequence of float, "none" or None, default=None
        Cut a numeric target into so many bins of about equally many rows, or at these edges; "none": a class a number.
    families : "auto", name, family, or dict of them, default="auto"
        Families of the columns: one for all, or a dict from columns (or tuples of columns) to families, in which "*" stands
        for every column not named. Names are "categorical", "binned", "gaussian", "poisson", "bernoulli", "binomial:n",
        "multinomial", "joint" and "text"; "gaussian:class" names a setting as well. The rest is chosen from the data: see
        `model.schema`. Where every column is named, "*" and a single family included, the model is plain: nothing is fitted on
        top of the counts.
    joint : sequence of tuples of columns, default=()
        Columns that are modelled together, each tuple as one block: a table of categories, a joint Gaussian of numbers, or one
        for each cell of a table. A Gaussian in `families` for a column of a block makes it a number there, and its tie that of
        the covariance: shared by the classes with "class" and "both", one a class otherwise.
    date_parts : "auto", "none" or sequence of str, default="auto"
        Weekday, month and hour of dates as columns: those informative about the class, none, or those named.
    smoothing : "auto", float, prior or dict of them, default="auto"
        Pseudocount for each value (0 is maximum likelihood, 1 Laplace), a prior, or a dict from columns to them with "*" for
        the rest. "auto" chooses it for each column by leave-one-out (1 in a plain model). A number makes the model plain.
    class_prior : dict, float, prior or None, default=None
        Class probabilities, or a pseudocount for each class; None counts them.
    weights : str, array or None, default=None
        Row weights: a column, or one number a row.
    ignore : sequence of str, default=()
        Columns to leave out.
    missing : sequence of str or None, default=None
        Texts that stand for a missing cell, instead of the usual ones.
    classes : sequence, default=()
        Labels that exist even if no row has them.
    plain : bool, default=False
        Whether to learn the textbook's model: categories as counts, numbers Gaussian, pseudocount 1, no weights, no
        interactions, no calibration.
    dependence : "auto", "pairs", "none", "tree" or "one-dependence", default="auto"
        Which interactions between columns the calibration may add.
    average : bool, default=False
        Whether to average the plain model over all choices of which columns depend on the class.
    select : bool, int or str, default=False
        Whether to keep only some columns of the plain model, by forward selection on the leave-one-out log loss: True or
        "forward" as many as help, or so many at most.
    engine : "auto", "memory", "spark", "spark-rows", "duckdb", "database" or Engine, default="auto"
        Where the rows are counted: in this process, in the tasks of a Spark cluster, or by the database they are in (the last
        two names), which for Parquet and CSV files is DuckDB. Tasks of Spark read local Parquet files by themselves, except
        with "spark-rows". "auto" chooses by source and size; `model.engine` has the choice and its reason.
    in_database : bool, default=False
        The same as `engine="database"`: a plain model is counted by GROUP BY in DuckDB, SQLite or PostgreSQL, and only the
        groups leave the database; its columns are planned from the first rows (of a CSV file, from all).
    unlabelled : "auto", "ignore", "error" or float, default="auto"
        What to do with rows without a label: use them by EM if that helps on held-out labels, leave them out, refuse them,
        or count each with this weight (0 to 1).
    max_iter : int, default=1000
        Maximum number of EM iterations.
    tol : float, default=0.1
        EM stops when the maximum of the penalised log-likelihood is estimated to be at most `tol` nats away, in all.
    keep_rows : bool, default=True
        Whether the model keeps a sample of up to 40,000 rows, from which it can be calibrated again.
    progress : callable or None, default=None
        Called with the number of rows after each batch.
    **how
        How a file is read: `encoding`, `decimal`, `thousands`, `dates`, `header`, `table`, `query`, `sheet`, `on_bad_rows`,
        `max_unpacked`, `memory_limit`; see the page "How data is read". `reading` is all of these as one object.

    Returns
    -------
    Model
        The model.

    Examples
    --------
    >>> import likely
    >>> rows = {"sky": ["clear", "clear", "grey", "grey"], "play": ["yes", "yes", "no", "yes"]}
    >>> model = likely.learn(rows, "play", plain=True)
    >>> model.predict([{"sky": "clear"}]).tolist()
    ['yes']
    """
    _one_of(dependence=(dependence, tuple(DEPENDENCE)))
    check_unlabelled(unlabelled)
    given = {name: value for name, value in how.items() if name != "reading"}
    reading = ReadOptions.of(missing, given, how.get("reading"), beside=SETTINGS)
    where, rows = choose(DatabaseEngine() if in_database else engine, data)
    table = _opened(where, rows, target, weights, target_bins, reading=reading)
    with released(None if is_source(data) else table.source):  # a source that is given may be read again
        plain = plain or average or select is not False or textbook(smoothing)
        plan = plan_for(
            table, families, joint, ignore, plain=plain, few_classes=target_bins is None, date_parts=date_parts
        )
        fields = table.known | {"average": bool(average), "dependence": dependence, **missing_of(table.source).stored()}
        strict, gaps = unlabelled == "error", missing_of(table.source)
        parts = functools.cache(lambda: PartPlan.of(plan, gaps, fields, refuse_unlabelled=strict))  # memory counts no parts
        source = where.rows(with_parts(table.source, plan.parts), lambda stream: parts().read_as_planned(stream))
        counted = CountedSource(source, plan, strict)
        found = where.tally(counted, lambda: parts().task(), progress).tally
        tally = without_idle_parts(without_identifiers(found, plan.droppable))
        tally = with_taken(tally, missing_of(source))
        require_rows(counted.rows, table.source.label)
        settings = ModelSettings(
            smoothing, class_prior, tuple(plainly(label) for label in classes), select, Unlabelled(unlabelled, max_iter, tol)
        )
        # The fitted model as it is: a changed copy would have to derive its parameters again.
        fields |= {"engine": f"{where.name}: {where.reason}"}
        tally = declare(tally, settings.classes)
        model = _fitted(_RowsForEM(counted, tally, where), tally, reading, settings, fields)
        return model if keep_rows else model.without_rows()


def _opened(where: Engine, rows: Any, target: Any, weights: Any, target_bins: Any, *, reading: ReadOptions) -> Opened:
    """The rows from which the columns are planned, with target, weights and the edges of target bins."""
    if isinstance(where, DatabaseEngine):
        return where.opened(rows, target, weights, target_bins, reading)
    if where.name != SPARK:
        return opened(rows, target, weights, target_bins, reading)
    for name, given in (("target", target), ("weights", weights)):
        if hasattr(given, "__len__") and not isinstance(given, str):
            raise UsageError(f"{name}= of a Spark table must be the name of one of its columns")
    if isinstance(target_bins, int) and target is not None:
        every = where.rows(open_source(rows, reading), lambda stream: stream)
        target_bins = edges_of(every, as_name(target), target_bins)
    return opened(rows, target, weights, target_bins, reading)


@dataclass(frozen=True)
class Unlabelled:
    """How rows without a label are used, and when EM stops."""

    mode: str | float
    max_iter: int = MAX_ITER
    tol: float = TOL

    @property
    def weight(self) -> float | None:
        """Weight of each unlabelled row; None if it is chosen on held-out labels."""
        return None if self.mode == "auto" else float(self.mode)


@dataclass(frozen=True)
class ModelSettings:
    """Priors, declared classes and feature selection as requested by the caller."""

    smoothing: Any
    class_prior: Any
    classes: tuple[Any, ...]
    select: bool | int | str
    unlabelled: Unlabelled

    def priors(self, tally: Tally) -> Priors:
        """The priors for the classes and columns of a tally."""
        return priors(self.smoothing, self.class_prior, tally.schema.classes, tally.sample is None, tally.blocks)


def _fitted(
    rows: _RowsForEM, tally: Tally, reading: ReadOptions, settings: ModelSettings, fields: dict[str, Any]
) -> Model:
    """The model of a tally: semi-supervised if that helps, missing cells imputed by EM, then calibrated; with warnings."""
    counted = rows.counted
    fields["declared"] = tuple(tally.schema.target.canonical(label) for label in settings.classes)
    prior = settings.priors(tally)
    semi_supervised = _semi_supervised(rows, tally, prior, settings.unlabelled, fields)
    _warn_of_skipped_rows(counted, tally.schema.target, reading, semi_supervised)
    for message in token_warnings([tally.schema.target, *tally.schema.columns], counted.rows):
        warnings.warn(message, LikelyWarning, stacklevel=3)
    _warn_of_many_values(tally)
    if semi_supervised:
        warn_if_stopped(semi_supervised.converged, semi_supervised.rounds, MORE_ROUNDS, stacklevel=4)
        fields["weights"] = None if fields["weights"] == WEIGHT_COLUMN else fields["weights"]
        fitted = semi_supervised.model
        return replace(fitted, tally=with_taken(fitted.tally, missing_of(counted.source)), **fields)
    if has_gaps(tally):
        before, elsewhere = tally, rows.elsewhere(fields)
        tally = filled_from(tally, prior, elsewhere) if elsewhere else filled(tally, prior, rows.parts, rows.batches)
        warn_of_filled(before, tally)
    model = Model(with_named_values(tally, prior), prior, **fields)
    _refuse_one_class(model, counted.source.label)
    if settings.select is not False:
        batches = counted.source.batches(counted.plan.kinds())
        model = select_columns(model, batches, settings.select, counted.plan.weights)
    model = recalibrated(replace(model, weights=None if model.weights == WEIGHT_COLUMN else model.weights))
    _warn_of_notes(model)
    reading.check_memory()
    return model


def check_unlabelled(given: str | float) -> None:
    """Raise UsageError unless `unlabelled` is a known word or a weight from 0 to 1."""
    if isinstance(given, str):
        _one_of(unlabelled=(given, ("auto", "ignore", "error")))
    elif isinstance(given, bool) or not 0 <= given <= 1:
        raise UsageError(f"unlabelled={given!r} is not a weight of unlabelled rows: pass a number from 0 to 1")


def _semi_supervised(
    rows: _RowsForEM, tally: Tally, prior: Priors, unlabelled: Unlabelled, fields: dict[str, Any]
) -> SemiSupervisedFit | None:
    """Semi-supervised fit of all rows, the unlabelled ones by EM; None if it does not help, or is not tried."""
    counted = rows.counted
    if not counted.without_label or unlabelled.mode in ("ignore", "error"):
        return None
    many = counted.without_label > tally.rows * MIN_UNLABELLED_RATIO
    affordable = counted.rows * len(counted.plan.columns) <= MOST_CELLS
    if len(tally.schema.classes) < 2 or (unlabelled.mode == "auto" and not (many and affordable)):
        return None
    if unlabelled.weight is not None and (elsewhere := rows.elsewhere(fields)):
        found = fit_in_parts(
            elsewhere, tally, prior, unlabelled.weight, max_iter=unlabelled.max_iter, tol=unlabelled.tol
        )
    else:
        made = partly_labelled(
            rows.plan, tally.schema.classes, prior, parts=rows.parts, batches=rows.batches,
            weights=weights_of(rows.plan), counted=tally,
        )  # fmt: skip
        found = made.fit(unlabelled.weight, unlabelled.max_iter, unlabelled.tol)
    return found if found.unlabelled else None


class _RowsForEM:
    """The rows of a source, read again for EM with the columns that are kept in the tally."""

    def __init__(self, counted: CountedSource, tally: Tally, engine: Engine) -> None:
        kept = {column.name for column in tally.schema.columns}  # identifiers may have been dropped while counting
        columns = tuple(c for c in counted.plan.columns if c.name in kept)
        self.plan = replace(counted.plan, blocks=tally.blocks, columns=columns, ignored=tally.schema.ignored)
        self.counted, self._classes, self._engine = counted, tally.schema.classes, engine

    def elsewhere(self, fields: dict[str, Any]) -> RowsInParts | None:
        """The rows in the parts that the engine hands out; None if they are read in this process."""
        if not self._engine.supports_parts:
            return None
        return RowsInParts.of(self._engine, self.counted.source, self.plan, fields)

    def batches(self) -> Iterator[Batch]:
        """All rows, in order."""
        return self.counted.source.batches(self.plan.kinds())

    def parts(self, schema: Any) -> Any:
        """The rows with their labels, in memory if the table is small enough."""
        target = replace(schema.target, values=self._classes)
        rows = StreamedRows(self.batches, replace(schema, target=target), weights_of(self.plan), labelled=True)
        return list(rows) if self.counted.rows * len(self.plan.columns) <= MOST_CELLS else rows


def _one_of(**settings: tuple[str, tuple[str, ...]]) -> None:
    for name, (given, known) in settings.items():
        if given not in known:
            raise UsageError(f"{name}={given!r} is not known: choose one of {', '.join(known)}")


def _refuse_one_class(model: Model, label: str) -> None:
    if len(model.classes) < 2:
        target = model.schema.target.name
        if not model.classes and model.weights is not None:
            named = None if model.weights == WEIGHT_COLUMN else model.weights
            subject = "the weights give" if named is None else f"column {named!r} gives"
            raise DataError(f"{subject} no labelled row of {label} a weight above zero: check the weights", column=named)
        raise DataError(
            f"column {target!r} has {'only one class, ' + repr(model.classes[0]) if model.classes else 'no class'} "
            f"in {label}: a classifier needs two classes; declare the others with classes=[...] to learn a part",
            column=target,
        )


def declare(tally: Tally, classes: Sequence[Any]) -> Tally:
    """The tally with declared classes added, which may have no rows yet."""
    if not classes:
        return tally
    column = tally.schema.target
    column = column.union(replace(column, values=tuple(classes)))
    return tally.with_schema(replace(tally.schema, target=column))


def _warn_of_skipped_rows(
    counted: CountedSource, target: Column, reading: ReadOptions, semi_supervised: SemiSupervisedFit | None
) -> None:
    """Warn of rows without a label, and of bad rows that were skipped."""
    if counted.without_label:
        used = f"used by EM with weight {semi_supervised.unlabelled:g}" if semi_supervised else "not counted"
        tokens = any(token for token, _ in target.taken)
        why = f" ({in_words(dict(target.taken))}; missing=[...] changes the missing-value tokens)" if tokens else ""
        message = f"{counted.without_label:,} of {counted.rows:,} rows have no {target.name!r}{why}: they were {used}"
        warnings.warn(message, LikelyWarning, stacklevel=4)
    if reading.rejects:
        shown = "; ".join(reading.rejects[:5])
        message = f"{len(reading.rejects):,} bad rows were skipped, {counted.rows:,} were read: {shown}"
        warnings.warn(message, LikelyWarning, stacklevel=4)


def _warn_of_notes(model: Model) -> None:
    """Warn of what the parameters of some columns had to make do with."""
    warn_of_unaveraged(model)
    notes = [note for parameters in model.block_parameters for note in parameters.notes]
    more = [f"and {len(notes) - MOST_NOTES:,} more columns with such notes"] if len(notes) > MOST_NOTES else []
    for note in notes[:MOST_NOTES] + more:
        warnings.warn(note, LikelyWarning, stacklevel=4)


def _warn_of_many_values(tally: Tally) -> None:
    """Warn of columns with so many distinct values that few rows share one."""
    for column in tally.schema.columns:
        if len(column.values) > MOST_VALUES:
            warnings.warn(
                f"column {column.name!r} has {len(column.values):,} different values in {tally.rows:,} rows: most of them "
                f"carry little information; leave it out with ignore=[{column.name!r}] (--ignore), or group its values",
                LikelyWarning,
                stacklevel=5,
            )
