"""Common parts of the scikit-learn estimators: input of rows and labels, columns by name, seeds, and fitted attributes."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_consistent_length, check_random_state
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from likely.engines import Plan
from likely.engines.e_step import CachedBatch, LabelledRows
from likely.engines.memory import sorted_labels
from likely.engines.planning import plan_columns
from likely.errors import DataError, LikelyWarning, UsageError
from likely.estimators._sklearn_bases import BaseEstimator
from likely.families.base_measures import MULTINOMIAL
from likely.kernels.parallel import held_at_fork
from likely.kernels.thread_count import from_n_jobs, limited_to
from likely.latent.em import MORE_ROUNDS, warn_if_stopped
from likely.latent.missing_cells import filled, has_gaps, warn_of_filled
from likely.latent.semi_supervised import SemiSupervisedFit, partly_labelled
from likely.model.model import Model
from likely.sources import Batch, Coded, Frame, Matrix, MissingTokens, ReadOptions, open_source
from likely.sources.arrow_arrays import DAMAGED
from likely.sources.batch import code_arrow, code_list, to_arrow
from likely.sources.cell_values import half_characters
from likely.sources.frames import from_memory
from likely.tally import Tally

Array = NDArray[np.float64]
Owner = TypeVar("Owner")
Made = TypeVar("Made")
Given = ParamSpec("Given")
NOTES_SHOWN = 3
CONTINUOUS = (
    "Unknown label type: continuous. A classifier expects discrete classes, and y looks like a regression target: "
    "bin it (sklearn.preprocessing.KBinsDiscretizer(encode='ordinal') on y, or likely.learn(X, y, target_bins=4)), "
    "or turn it into text"
)


_turns: dict[int, threading.RLock] = {}
_LOCK = held_at_fork(threading.RLock(), 0)


def in_turn(estimator: Any) -> threading.RLock:
    """The lock under which an estimator learns: rows that several threads hand to `partial_fit` are all counted.

    It is kept beside the estimator and not in it, so that copies, clones and files of it know nothing of locks.
    """
    with _LOCK:
        if id(estimator) not in _turns:
            _turns[id(estimator)] = threading.RLock()
            weakref.finalize(estimator, _turns.pop, id(estimator), None)
        return _turns[id(estimator)]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_turns.clear)  # no thread of the parent process runs here


def with_threads(method: Callable[Concatenate[Owner, Given], Made]) -> Callable[Concatenate[Owner, Given], Made]:
    """A method that uses at most as many threads as its estimator's `n_jobs`."""

    @wraps(method)
    def limited(self: Owner, /, *args: Given.args, **named: Given.kwargs) -> Made:
        with limited_to(from_n_jobs(getattr(self, "n_jobs", None))):
            return method(self, *args, **named)

    return limited


def also_called(**names: str) -> Callable[[Callable[Given, None]], Callable[Given, None]]:
    """Decorator of `__init__` that takes parameters under their former names (old="new") as well, with a warning.

    The signature, from which scikit-learn reads the parameters, has the present names alone.
    """

    def decorate(init: Callable[Given, None]) -> Callable[Given, None]:
        @wraps(init)
        def renaming(*args: Given.args, **given: Given.kwargs) -> None:
            named: dict[str, Any] = dict(given)
            for old in names.keys() & named.keys():
                warnings.warn(f"{old}= is now called {names[old]}=", FutureWarning, stacklevel=2)
                named.setdefault(names[old], named.pop(old))
            call: Callable[..., None] = init
            call(*args, **named)

        return renaming

    return decorate


class TableEstimator(BaseEstimator):
    """Estimator of mixed tables: numbers, categories and text, with missing cells."""

    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def rows_of(estimator: Any, X: Any, reset: bool) -> Batch:
    """The rows as a batch, neither copied nor scanned; columns are named by name or position."""
    if not is_frame(X):
        X = validate_data(estimator, as_array(X), reset=reset, dtype=None, ensure_all_finite=False)
        batch = from_memory(X, MissingTokens()).batch  # an array is of one type, which is taken as it is
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        batch = next(
            open_source(X, _reading(estimator, reset)).batches(None if reset else {}), from_memory(X, MissingTokens()).batch
        )
        _refuse_nothing(batch.rows, len(batch.names), estimator)
    names = column_names(estimator)
    if isinstance(batch, Matrix):
        return replace(batch, columns=tuple(names))
    assert isinstance(batch, Frame)
    return replace(batch, columns=dict(zip(names, batch.columns.values(), strict=True)))


def without_coefficients(model: Model, batch: Batch, joint: Array) -> Array:
    """Log joint probabilities without the coefficients of multinomial counts, which scikit-learn leaves out."""
    for each in model.plain_parameters:
        if getattr(each.likelihood, "base", None) == MULTINOMIAL:
            base = MULTINOMIAL.prepare(batch.numbers(list(each.columns), 0, batch.rows))[1].sum(1, keepdims=True)
            joint = joint - np.where(np.isfinite(base), base, 0.0)
    return joint


def _reading(estimator: Any, reset: bool) -> ReadOptions | None:
    """How rows are read: as the model that was fitted does, if there is one."""
    model = getattr(estimator, "model_", None)
    return None if reset or model is None else model.reading


def is_frame(X: Any) -> bool:
    """Whether X is a data frame: its columns have names and types."""
    return bool(nw.dependencies.is_into_dataframe(X))


def as_array(X: Any) -> Any:
    """Nested lists as an array that keeps numbers beside text; anything else as it is."""
    if not isinstance(X, (list, tuple)):
        return X
    array = np.asarray(X)
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array


def column_names(estimator: Any) -> list[str]:
    """Names of the columns: those of the data frame, or x0, x1 and so on."""
    given = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if given is None else [str(name) for name in given]


def _name(key: Any, names: Sequence[str]) -> Any:
    """The name of a column given by name or position; a tuple of names for several columns."""
    if isinstance(key, (int, np.integer)):
        if not -len(names) <= key < len(names):
            raise DataError(f"there is no column {int(key)}: there are {len(names)}")
        return names[int(key)]
    return key if isinstance(key, str) else tuple(_name(part, names) for part in key)


def by_name(given: Any, names: Sequence[str]) -> Any:
    """A dict by column names instead of positions; any other setting is returned unchanged."""
    if not isinstance(given, Mapping):
        return given
    return {_name(key, names): value for key, value in given.items()}


def _refuse_nothing(rows: int, columns: int, estimator: Any) -> None:
    """Refuse an empty frame with the message that scikit-learn has for arrays."""
    for count, what in ((rows, "sample"), (columns, "feature")):
        if not count:
            raise ValueError(
                f"Found a frame with 0 {what}(s) (shape=({rows}, {columns})) while a minimum of 1 is required by "
                f"{type(estimator).__name__}."
            )


def planned(estimator: Any, batch: Batch, target: str, plain: bool) -> Plan:
    """The counting plan for an estimator's `families` and `joint`; no column has the name of the target."""
    names = list(batch.names)
    while target in names:
        target += "_"
    families, joint = by_name(estimator.families, names), [_name(block, names) for block in estimator.joint]
    return plan_columns(batch, names, target, families, joint, keep_all=True, plain=plain)


def encode_labels(y: Any) -> tuple[Coded, np.dtype[Any]]:
    """The labels as codes without a sort, and the type they return in; an absent label is -1, unless all are."""
    try:
        y = column_or_1d(y, warn=True)
    except IndexError:  # raised by pandas for a categorical code out of range
        raise DataError("y has a code that is none of its categories", remedy=DAMAGED) from None
    if y.dtype.kind in "biuf":
        gaps = np.isnan(y) if y.dtype.kind == "f" else np.zeros(0, bool)
        if not gaps.any() or gaps.all():
            assert_all_finite(y, input_name="y")
            return _integer_labels(y), y.dtype
        assert_all_finite(y[~gaps], input_name="y")
        seen = _integer_labels(y[~gaps])
        codes = np.full(len(y), -1, np.int64)
        codes[~gaps] = seen.codes - seen.low
        return Coded(codes, seen.values), y.dtype
    if y.dtype.kind == "U":
        # Many labels, few of them distinct: a dict is faster than Arrow and needs less memory.
        listed: list[str] = y.tolist()
        place = {label: i for i, label in enumerate(dict.fromkeys(listed))}
        if half_characters(list(place)) is None:
            return Coded(np.fromiter(map(place.__getitem__, listed), np.int32, len(listed)), list(place)), y.dtype
    column = to_arrow(y, "y")
    coded = code_list(column) if isinstance(column, list) else code_arrow(column)
    if len(coded.codes) and (coded.codes < 0).all():
        raise ValueError("Input y contains NaN: no row has a label; Mixture finds classes without any")
    if any(isinstance(value, float) and not value.is_integer() for value in coded.values):
        raise ValueError(CONTINUOUS)
    return coded, y.dtype


def refuse_hidden(labels: Coded) -> None:
    """Refuse rows without a label where rows are counted batch by batch."""
    absent = labels.codes < labels.low
    if absent.any():
        row = int(absent.argmax())
        raise ValueError(f"Input y contains NaN: row {row} has no label; leave such rows out, or fit all rows at once")


def refuse_without_rows(estimator: Any) -> None:
    """Refuse keep_rows=False in a first partial_fit: later calls would have no rows to calibrate on."""
    if not estimator.keep_rows:
        raise UsageError("partial_fit has to keep rows to be calibrated on: call fit first, or pass keep_rows=True")


def semi_supervised_fit(
    batch: Batch, labels: Coded, sample_weight: Any, plan: Plan, prior: Any, *, max_iter: int, tol: float
) -> SemiSupervisedFit:
    """Semi-supervised fit of rows of which some have no label; warns if EM did not converge."""
    coded = sorted_labels(labels)
    codes = np.asarray(coded.codes - coded.low, dtype=np.int64)
    weights = np.ones(batch.rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    made = partly_labelled(
        plan,
        coded.values,
        prior,
        parts=lambda schema: [LabelledRows(CachedBatch(batch, schema), codes, weights)],
        batches=lambda: [batch],
        weights=lambda _: weights,
    )
    found = made.fit(None, max_iter, tol)
    warn_if_stopped(found.converged, found.rounds, f"{MORE_ROUNDS}, or label more rows", stacklevel=4)
    return found


def filled_in(batch: Batch, labels: Coded, sample_weight: Any, tally: Tally, prior: Any) -> Tally:
    """The tally with rows that miss cells of a joint block counted by EM."""
    if not has_gaps(tally):
        return tally
    weights = np.ones(batch.rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)

    def parts(schema: Any) -> list[Any]:
        places = np.array([*schema.target.codes(labels.values), -1], dtype=np.int64)
        own = places[np.asarray(labels.codes - labels.low, dtype=np.int64)]
        return [LabelledRows(CachedBatch(batch, schema), own, weights)]

    found = filled(tally, prior, parts, lambda: [batch])
    warn_of_filled(tally, found)
    return found


def _integer_labels(y: NDArray[Any]) -> Coded:
    """Integer labels as codes without gaps."""
    whole = y.astype(np.int64, copy=False)
    if y.dtype.kind == "f" and not np.array_equal(whole, y):
        raise ValueError(CONTINUOUS)
    coded = Matrix(whole[:, None], ("y",)).coded("y")
    seen = np.flatnonzero(np.bincount(coded.codes - coded.low, minlength=len(coded.values)))
    if len(seen) < len(coded.values):
        place = np.zeros(len(coded.values), np.int64)
        place[seen] = np.arange(len(seen))
        coded = Coded(place[coded.codes - coded.low], [coded.values[i] for i in seen.tolist()])
    return replace(coded, values=np.array(coded.values).astype(y.dtype).tolist())


def labelled(y: Any, sample_weight: Any, rows: int) -> tuple[Coded, np.dtype[Any], Array | None]:
    """The label of each row, the dtype to return labels in, and the row weights, if given."""
    labels, dtype = encode_labels(y)
    check_consistent_length(labels.codes, range(rows))
    return labels, dtype, weights_of(sample_weight, rows)


def weights_of(given: Any, rows: int) -> Array | None:
    """The row weights, if given: not negative, and not all zero."""
    if given is None:
        return None
    weights: Array = _check_sample_weight(given, range(rows), dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("the sample weights are all zero: nothing would be counted")
    return weights


def seed_of(random_state: Any) -> int:
    """The seed: an integer itself, or one drawn from the random state."""
    return int(random_state) if isinstance(random_state, int | np.integer) else drawn_seed(random_state)


def drawn_seed(random_state: Any) -> int:
    """A seed drawn from any `random_state` that scikit-learn takes."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def stacked(cells: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Columns side by side as one array: of numbers if all are, else of objects."""
    dtype = np.float64 if all(column.dtype.kind == "f" for column in cells.values()) else object
    return np.column_stack([column.astype(dtype) for column in cells.values()])


def gaussian_parameters(model: Model) -> tuple[Array | None, Array | None]:
    """Means and variances of all columns of numbers, classes × columns; covariances of one joint block."""
    parameters = model.block_parameters
    moments: list[tuple[Array, Array] | None] = [each.likelihood.moments() for each in parameters]
    # A joint block with categories has fewer means than columns.
    found = [each for each, p in zip(moments, parameters, strict=True) if each and each[0].shape[1] == len(p.columns)]
    if len(parameters) == 1 and found and not model.blocks[0].family.single:
        return found[0]
    alone = [each for each in found if each[0].shape[1] == 1]
    if not alone:
        return None, None
    return np.column_stack([mean for mean, _ in alone]), np.column_stack([variance[:, :, 0] for _, variance in alone])


def common_dtype(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that holds the labels of both: numeric, text, or object."""
    both = {a.kind, b.kind}
    return np.promote_types(a, b) if both <= set("iuf") or len(both) == 1 else np.dtype(object)


def plan_of(model: Model) -> Plan:
    """The counting plan of a model that counts more rows."""
    keep = model.tally.sample is not None
    target = model.schema.target
    return Plan(target.name, model.blocks, model.schema.columns, target_form=target.form, sample=keep)


def warn_of_notes(model: Model) -> None:
    """Warn once of the notes on all parameters."""
    notes = [note for parameters in model.block_parameters for note in parameters.notes]
    if notes:
        more = f"; and {len(notes) - NOTES_SHOWN} more like these" if len(notes) > NOTES_SHOWN else ""
        warnings.warn("; ".join(notes[:NOTES_SHOWN]) + more, LikelyWarning, stacklevel=3)
