"""A fitted hidden Markov model: expected counts of initial states, transitions and emissions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.engines.e_step import LabelledRows
from likely.engines.forward_backward import StatePosteriors, best_path, state_posteriors
from likely.engines.sequence_rows import SequenceRows, in_sequences, named_by
from likely.errors import UsageError
from likely.kernels.parallel import cached_property
from likely.latent.fit_summary import FitSummary
from likely.latent.latent_file import save_latent
from likely.model.model import Model
from likely.model.row_drawing import sample_classes
from likely.model.serialization.latent_part import HIDDEN_MARKOV
from likely.plots.shown import Shown, ShownTable
from likely.plots.svg import Svg
from likely.sources import ReadOptions, open_source

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class HiddenMarkovModel(Shown):
    """A hidden Markov model, from `sequences`: counts of initial states and transitions, and a model of the emissions.

    Attributes
    ----------
    emission : Model
        The model of the emissions; its classes are the states.
    starts : array
        Weight of the sequences that begin in each state.
    moves : array
        Weight of the transitions from each state (row) to each (column).
    pseudocount : float
        Pseudocount of each initial state and each transition.
    summary : FitSummary or None
        What EM reported: log-likelihood, trace, convergence, seed. None for a model that EM did not fit.
    tried : dict
        With k="auto", the BIC of each number of states.
    """

    emission: Model
    starts: Array
    moves: Array
    pseudocount: float = 0.0
    summary: FitSummary | None = None
    tried: Mapping[int, float] = field(default_factory=dict)

    @property
    def trace(self) -> tuple[float, ...]:
        """Penalised log-likelihood of every EM iteration."""
        return self.summary.trace if self.summary else ()

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood of the sequences that EM was given."""
        if self.summary is None:
            raise UsageError("the log-likelihood is not known, as EM did not fit this model: sum log_evidence(rows) instead")
        return self.summary.log_likelihood

    @property
    def converged(self) -> bool:
        """Whether EM converged."""
        return self.summary is not None and self.summary.converged

    @property
    def distance_left(self) -> float:
        """Estimated distance to the local maximum, in nats of penalised log-likelihood."""
        return self.summary.distance_left if self.summary else float("inf")

    @property
    def seed(self) -> int | None:
        """Seed of the random starts."""
        return self.summary.seed if self.summary else None

    @property
    def states(self) -> tuple[Any, ...]:
        """The names of the states."""
        return self.emission.classes

    @cached_property
    def start(self) -> Array:
        """Probability of each initial state."""
        return np.asarray(_probabilities(self.starts[None] + self.pseudocount)[0])

    @cached_property
    def transition(self) -> Array:
        """Transition probabilities, from state (row) to state (column)."""
        return _probabilities(self.moves + self.pseudocount)

    @property
    def free_parameters(self) -> int:
        """Number of free parameters."""
        k = len(self.states)
        return self.emission.parameter_count.free + k * (k - 1)

    @property
    def bic(self) -> float:
        """Bayesian information criterion: −2 log-likelihood + free parameters · log(rows), the lower the better."""
        return FitSummary(self.log_likelihood).bic(self.free_parameters, float(self.emission.tally.classes.sum()))

    @property
    def tables(self) -> dict[str, Sequence[dict[str, Any]]]:
        """Readable tables: initial states, transitions, then the emission parameters, column by column."""
        named = zip(self.states, self.starts, self.start, strict=True)
        start = [{"state": s, "count": float(n), "probability": float(p)} for s, n, p in named]
        moves = [
            {"state": s, **{str(t): float(p) for t, p in zip(self.states, row, strict=True)}}
            for s, row in zip(self.states, self.transition, strict=True)
        ]
        return {"start": start, "transition": moves, **dict(list(self.emission.parameters.items())[1:])}

    def opened(
        self, data: Any, *, by: str | None = None, lengths: Any = None, reading: ReadOptions | None = None
    ) -> SequenceRows:
        """Read rows as sequences for `decode`, `posterior` and `log_evidence`.

        Parameters
        ----------
        data : path, frame, dict of columns or any other source
            The rows in their order, with the columns of the model.
        by : str or None, default=None
            Column that identifies the sequence of each row.
        lengths : sequence of int or None, default=None
            Number of rows of each sequence, in order. Without `by` and `lengths` all rows are one sequence.
        reading : ReadOptions or None, default=None
            How the source is read; by default as the rows that the model was learned from.

        Returns
        -------
        SequenceRows
            The rows as sequences.
        """
        source = open_source(data, reading or self.emission.reading)
        batches: Iterator[Any] = self.emission.batches(source, "error", None)
        parts = [LabelledRows(batch, np.full(batch.rows, -1, np.int64), np.ones(batch.rows)) for batch in batches]
        return in_sequences(parts, lengths, None if by is None else named_by(source, by))

    def decode(self, rows: SequenceRows) -> Whole:
        """Position of the state of every row on the most probable path (Viterbi)."""
        logs = rows.log_likelihoods(self.emission.scorer)
        return rows.as_read(best_path(logs, self.start, self.transition, rows.edges))

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

    def posterior(self, rows: SequenceRows) -> Array:
        """Posterior probability of each state for every row, given its complete sequence (forward–backward)."""
        found = self.forward_backward(rows, np.ones(rows.rows)).responsibilities
        return np.asarray(rows.as_read(found / found.sum(1, keepdims=True)))

    def log_evidence(self, rows: SequenceRows) -> Array:
        """Log-likelihood of every sequence."""
        return self.forward_backward(rows, np.ones(rows.rows)).log_likelihood

    def sample(self, length: int, seed: Any = None) -> tuple[dict[str, NDArray[Any]], Whole]:
        """Draw one sequence of `length` rows: its columns, and the position of the state of each row."""
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
        return save_latent(path, self.emission, part, {"starts": self.starts, "moves": self.moves}, replacing=replacing)

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
