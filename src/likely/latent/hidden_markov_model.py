"""A fitted hidden Markov model: expected counts of initial states, transitions and emissions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from likely.bayes.rule import labels_array
from likely.engines.forward_backward import StatePosteriors, best_path, state_posteriors
from likely.engines.sequence_rows import SequenceRows, check_ends, hidden_rows, named_by
from likely.errors import LikelyWarning, UsageError
from likely.kernels.parallel import cached_property
from likely.latent.fit_summary import FitSummary, FittedByEM
from likely.latent.latent_file import save_latent
from likely.model.model import Model
from likely.model.model_keywords import RowReading
from likely.model.row_drawing import sample_classes
from likely.model.serialization.latent_part import HIDDEN_MARKOV
from likely.plots.shown import Shown, ShownTable
from likely.plots.svg import Svg
from likely.sources import ReadOptions, RowKeywords, open_source
from likely.tally import Tally

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HiddenMarkovModel(FittedByEM, Shown):
    """A hidden Markov model, from `sequences`: counts of initial states and transitions, and a model of the emissions.

    Methods that take rows read any source that `sequences` takes; `by` or `lengths` define where sequences end.

    `a + b` adds the counts of states of the same name. That is exact where the names mean the same: states that were known,
    or one E-step on each part from the same `start`. What EM reported is dropped, as it belongs to neither part's counts;
    `with_log_likelihood` computes the log-likelihood of the sum. There is no `update`: the states of new rows are hidden, and
    counting them by their present posterior would depend on the order of updates. Fit all sequences again, with `start` as
    the initial values, or add a model of the new ones.

    Attributes
    ----------
    emission : Model
        The model of the emissions, also called `model`; its classes are the states.
    start_counts : array
        Weight of the sequences that begin in each state.
    transition_counts : array
        Weight of the transitions from each state (row) to each (column).
    pseudocount : float
        Pseudocount of each initial state and each transition.
    summary : FitSummary or None
        What EM reported: log-likelihood, trace, convergence, seed. None for counts that EM did not end with.
    tried : dict
        With k="auto", the BIC of each number of states.
    """

    emission: Model
    start_counts: Array
    transition_counts: Array
    pseudocount: float = 0.0
    summary: FitSummary | None = None
    tried: Mapping[int, float] = field(default_factory=dict)

    _not_known = (
        "the log-likelihood is not known, as EM did not end with these counts (merged, or not fitted): "
        "compute it with with_log_likelihood(data)"
    )
    _internal = frozenset(("expectations", "forward_backward", "opened", "tally"))

    def __eq__(self, other: object) -> bool:
        """Whether counts, priors and what EM reported are equal."""
        if not isinstance(other, HiddenMarkovModel):
            return NotImplemented
        names = ("emission", "pseudocount", "summary", "tried")
        counts = ("start_counts", "transition_counts")
        same = all(getattr(self, name) == getattr(other, name) for name in names)
        return same and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in counts)

    __hash__ = None  # type: ignore[assignment]

    @property
    def model(self) -> Model:
        """The model of the emissions; its classes are the states."""
        return self.emission

    @property
    def tally(self) -> Tally:
        """The expected counts of the emissions."""
        return self.emission.tally

    @property
    def states(self) -> tuple[Any, ...]:
        """The names of the states."""
        return self.emission.classes

    @cached_property
    def start(self) -> Array:
        """Probability of each initial state."""
        return np.asarray(_probabilities(self.start_counts[None] + self.pseudocount)[0])

    @cached_property
    def transition(self) -> Array:
        """Transition probabilities, from state (row) to state (column)."""
        return _probabilities(self.transition_counts + self.pseudocount)

    @property
    def free_parameters(self) -> int:
        """Number of free parameters: k − 1 of the initial state, k (k − 1) of the transitions, and those of the emissions."""
        k = len(self.states)
        return self.emission.parameter_count.free + k * (k - 1)  # with the emissions stand those of the initial state

    @property
    def tables(self) -> dict[str, Sequence[dict[str, Any]]]:
        """Readable tables: initial states, transitions, then the emission parameters, column by column."""
        named = zip(self.states, self.start_counts, self.start, strict=True)
        start = [{"state": s, "count": float(n), "probability": float(p)} for s, n, p in named]
        transition = [
            {"state": s, **{str(t): float(p) for t, p in zip(self.states, row, strict=True)}}
            for s, row in zip(self.states, self.transition, strict=True)
        ]
        return {"start": start, "transition": transition, **dict(list(self.emission.parameters.items())[1:])}

    def opened(
        self, data: Any, *, by: str | None = None, lengths: Any = None, reading: ReadOptions | None = None,
        **how: Unpack[RowKeywords],
    ) -> SequenceRows:  # fmt: skip
        """Read rows as sequences once, where several methods need them.

        Parameters
        ----------
        data : path, frame, dict of columns or any other source
            The rows in their order, with the columns of the model.
        by : str or None, default=None
            Column that identifies the sequence of each row.
        lengths : sequence of int or None, default=None
            Number of rows of each sequence, in order. Without `by` and `lengths` all rows are one sequence.
        reading : ReadOptions or None, default=None
            How the source is read, as one object instead of keywords; by default as the rows that the model was learned from.
        **how
            How a file is read: `missing`, `encoding`, `table` and more, as for `sequences`.

        Returns
        -------
        SequenceRows
            The rows as sequences, for `predict`, `decode`, `posterior` and `log_evidence`.
        """
        check_ends(by, lengths)
        source = open_source(data, reading or self.emission.read_as(how))
        batches = self.emission.batches(source, "error", None)
        return hidden_rows(batches, lengths, None if by is None else named_by(source, by))

    def _sequences(self, rows: Any, by: str | None, lengths: Any, how: RowReading) -> SequenceRows:
        if not isinstance(rows, SequenceRows):
            return self.opened(rows, by=by, lengths=lengths, **how)
        given = {"by": by, "lengths": lengths, **how}
        if useless := [name for name, value in given.items() if value is not None]:
            raise UsageError(f"{useless[0]}= has no effect on rows that are opened: pass it to opened(data)")
        return rows

    def predict(
        self, rows: Any, *, by: str | None = None, lengths: Any = None, **how: Unpack[RowReading]
    ) -> NDArray[Any]:
        """State of every row on the most probable path through its sequence (Viterbi).

        Parameters
        ----------
        rows : path, frame, dict of columns or any other source
            The rows in their order, with the columns of the model.
        by : str or None, default=None
            Column that identifies the sequence of each row.
        lengths : sequence of int or None, default=None
            Number of rows of each sequence, in order. Without `by` and `lengths` all rows are one sequence.
        **how
            How the source is read: `missing`, `encoding`, `reading` and more, as for `sequences`.

        Returns
        -------
        array
            Names of states, as in `states`.
        """
        path = self.decode(rows, by=by, lengths=lengths, **how)
        return np.asarray(labels_array(self.states)[path])

    def decode(
        self, rows: Any, *, by: str | None = None, lengths: Any = None, **how: Unpack[RowReading]
    ) -> Whole:
        """Position of the state of every row on the most probable path through its sequence (Viterbi).

        Parameters
        ----------
        rows : path, frame, dict of columns or any other source
            The rows in their order, with the columns of the model.
        by : str or None, default=None
            Column that identifies the sequence of each row.
        lengths : sequence of int or None, default=None
            Number of rows of each sequence, in order. Without `by` and `lengths` all rows are one sequence.
        **how
            How the source is read: `missing`, `encoding`, `reading` and more, as for `sequences`.

        Returns
        -------
        array
            Positions in `states`, from 0; `predict` gives the names.
        """
        found = self._sequences(rows, by, lengths, how)
        logs = found.log_likelihoods(self.emission.scorer)
        return found.as_read(best_path(logs, self.start, self.transition, found.edges))

    def posterior(
        self, rows: Any, *, by: str | None = None, lengths: Any = None, **how: Unpack[RowReading]
    ) -> Array:
        """Posterior probability of each state for every row, given its complete sequence (forward–backward).

        Parameters
        ----------
        rows : path, frame, dict of columns or any other source
            The rows in their order, with the columns of the model.
        by : str or None, default=None
            Column that identifies the sequence of each row.
        lengths : sequence of int or None, default=None
            Number of rows of each sequence, in order. Without `by` and `lengths` all rows are one sequence.
        **how
            How the source is read: `missing`, `encoding`, `reading` and more, as for `sequences`.

        Returns
        -------
        array
            Probabilities, rows × states, in the order of `states`.
        """
        found = self._sequences(rows, by, lengths, how)
        shares = self.forward_backward(found, np.ones(found.rows)).responsibilities
        return np.asarray(found.as_read(shares / shares.sum(1, keepdims=True)))

    predict_proba = posterior  # as models and estimators call it

    def log_evidence(
        self, rows: Any, *, by: str | None = None, lengths: Any = None, **how: Unpack[RowReading]
    ) -> Array:
        """Log-likelihood of every sequence; their sum is that of all rows.

        Parameters
        ----------
        rows : path, frame, dict of columns or any other source
            The rows in their order, with the columns of the model.
        by : str or None, default=None
            Column that identifies the sequence of each row.
        lengths : sequence of int or None, default=None
            Number of rows of each sequence, in order. Without `by` and `lengths` all rows are one sequence.
        **how
            How the source is read: `missing`, `encoding`, `reading` and more, as for `sequences`.

        Returns
        -------
        array
            One number a sequence, in nats.
        """
        found = self._sequences(rows, by, lengths, how)
        return self.forward_backward(found, np.ones(found.rows)).log_likelihood

    def with_log_likelihood(
        self, rows: Any, *, by: str | None = None, lengths: Any = None, **how: Unpack[RowReading]
    ) -> HiddenMarkovModel:
        """The same model with the log-likelihood of these rows, which should be those it has counted.

        Parameters
        ----------
        rows : path, frame, dict of columns or any other source
            The rows in their order, with the columns of the model.
        by : str or None, default=None
            Column that identifies the sequence of each row.
        lengths : sequence of int or None, default=None
            Number of rows of each sequence, in order. Without `by` and `lengths` all rows are one sequence.
        **how
            How the source is read: `missing`, `encoding`, `reading` and more, as for `sequences`.

        Returns
        -------
        HiddenMarkovModel
            The model, with a summary of one E-step: no trace, not converged.
        """
        total = float(self.log_evidence(rows, by=by, lengths=lengths, **how).sum())
        return replace(self, summary=FitSummary(total))

    def forward_backward(self, rows: SequenceRows, weights: Array) -> StatePosteriors:
        """Responsibilities of the states and expected transitions, sequence by sequence."""

        def read() -> Array:
            return rows.log_likelihoods(self.emission.scorer)

        return state_posteriors(read, self.start, self.transition, rows.edges, weights)

    def expectations(self, rows: SequenceRows, weights: Array) -> tuple[StatePosteriors, SequenceRows]:
        """The same with equal rows scored once, and the rows that the responsibilities belong to."""
        if rows.distinct is None:
            return self.forward_backward(rows, weights), rows
        distinct, place = rows.distinct

        def read() -> Array:
            return distinct.log_likelihoods(self.emission.scorer)

        return state_posteriors(read, self.start, self.transition, rows.edges, weights, place=place), distinct

    def __add__(self, other: HiddenMarkovModel) -> HiddenMarkovModel:
        """Add the counts of states of the same name; pseudocount and priors are those of the first."""
        if not isinstance(other, HiddenMarkovModel):
            return NotImplemented
        if {*self.states} != {*other.states}:
            both = f"{list(self.states)} and {list(other.states)}"
            raise UsageError(f"the states are {both}: fit both models with the same number of states")
        warnings.warn(
            "states are merged by their names, which two separate fits need not give to the same rows; "
            "the sum has no log-likelihood until with_log_likelihood(data) computes it",
            LikelyWarning,
            stacklevel=2,
        )
        emission = self.emission + other.emission
        starts, moves = np.zeros_like(self.start_counts), np.zeros_like(self.transition_counts)
        for part in (self, other):
            order = [part.states.index(state) for state in emission.classes]
            starts, moves = starts + part.start_counts[order], moves + part.transition_counts[np.ix_(order, order)]
        return HiddenMarkovModel(emission, starts, moves, self.pseudocount)

    def sample(self, length: int, seed: Any = None) -> tuple[dict[str, NDArray[Any]], Whole]:
        """Draw one sequence.

        Parameters
        ----------
        length : int
            Number of rows.
        seed : int, optional
            Makes the draw repeatable.

        Returns
        -------
        cells, states : dict of arrays, array
            The columns, and the position of the state of each row in `states`.
        """
        if isinstance(length, bool) or not isinstance(length, int | np.integer) or length < 1:
            raise UsageError(f"{length!r} rows cannot be drawn: pass a whole number, one or more")
        rng = np.random.default_rng(seed)
        edges = np.cumsum(np.vstack([self.start, self.transition]), axis=1)
        edges /= edges[:, -1:]
        path, at = np.empty(length, np.int64), 0
        for t, chance in enumerate(rng.random(length)):
            path[t] = np.searchsorted(edges[at], chance, side="right")
            at = path[t] + 1
        return sample_classes(self.emission, path, rng), path

    def save(self, path: str | Path, *, replacing: str | None = None) -> str:
        """Write the model file; `likely.load` gives the hidden Markov model back.

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
        part = {
            "kind": HIDDEN_MARKOV, "summary": self.summary, "tried": self.tried, "pseudocount": float(self.pseudocount)
        }  # fmt: skip
        arrays = {"starts": self.start_counts, "moves": self.transition_counts}
        return save_latent(path, self.emission, part, arrays, replacing=replacing)

    def _shown_tables(self) -> list[ShownTable]:
        """Transitions, then initial states."""
        found = self.tables
        return [ShownTable(f"{self!r}: transitions", found["transition"]), ShownTable("Initial states", found["start"])]

    def to_dict(self) -> dict[str, Any]:
        """States, initial and transition probabilities as plain data."""
        names = [str(state) for state in self.states]
        return {"states": names, "start": self.start.tolist(), "transition": self.transition.tolist()}

    def plot(self) -> Svg:
        """Transition probabilities as a heat map, which `.save("x.svg")` writes; also .png and .pdf."""
        from likely.latent.em_pictures import transitions

        return transitions(self.states, self.transition)

    def __repr__(self) -> str:
        known = f"log-likelihood {self.summary.log_likelihood:,.2f}" if self.summary else "not fitted by EM"
        return f"<HiddenMarkovModel: {len(self.states)} states, {self.emission.tally.rows:,} rows counted, {known}>"


def _probabilities(counts: Array) -> Array:
    """Each row divided by its sum; a row of zeros becomes uniform."""
    total = counts.sum(1, keepdims=True)
    return np.asarray(np.divide(counts, total, out=np.full(counts.shape, 1.0 / counts.shape[1]), where=total > 0))
