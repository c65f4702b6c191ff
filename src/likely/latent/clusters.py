"""A fitted finite mixture: a model whose classes are the components, and the summary of the EM run that found it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.bayes import Posterior
from likely.errors import LikelyWarning, UsageError
from likely.families import Block, Parameters
from likely.latent import em
from likely.latent.fit_summary import FitSummary
from likely.latent.latent_file import save_latent
from likely.model.ledger import Ledger
from likely.model.model import Model
from likely.model.parameter_tables import ParameterTable
from likely.model.parameters import ParameterCount
from likely.model.serialization.latent_part import MIXTURE
from likely.plots.shown import Shown, ShownTable
from likely.plots.svg import Svg
from likely.priors import Priors
from likely.schema import NUMBER, Schema
from likely.sources import Batch, ReadOptions, open_source
from likely.sources.row_access import complete
from likely.tally import Tally

Array = NDArray[np.float64]
UNKNOWN = (
    "the log-likelihood is not known, because the counts changed since EM ended (merged, updated, forgotten or relearned): "
    "compute it with clusters.with_log_likelihood(data)"
)
# Names that other modules use; `dir` shows what users need.
INTERNAL = {
    "as_of", "average", "batches", "block_parameters", "blocks", "frozen", "missing", "of", "posterior_of", "reading",
    "weights",
}  # fmt: skip


@dataclass(frozen=True)
class Clusters(Shown):
    """A finite mixture, from `cluster`: it has a model, whose classes are the components, and what EM reported.

    Whatever changes the counts (`+`, `update`, `forget`, `relearn`) gives a clustering without a summary: its trace is
    empty, and asking for its log-likelihood, BIC, ICL or AIC is an error until `with_log_likelihood` has computed it.

    Attributes
    ----------
    model : Model
        The counts and the prior; its classes are the components.
    summary : FitSummary or None
        What EM reported: log-likelihood, trace, entropy, convergence, seed. None where the counts changed since.
    tried : dict
        With k="auto", the criterion of each number of clusters.
    steps : tuple
        The steps of EM, with steps=True; they are not written to the model file.
    """

    model: Model
    summary: FitSummary | None = None
    tried: Mapping[int, float] = field(default_factory=dict)
    steps: tuple[em.EMStep, ...] = field(default=(), repr=False)

    @staticmethod
    def of(fit: em.EMResult, tried: Mapping[int, float] | None = None) -> Clusters:
        """The clustering at the end of a run of EM."""
        return Clusters(fit.model, fit.summary, dict(tried or {}), fit.steps)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self)} - INTERNAL)

    def _recounted(self, model: Model) -> Clusters:
        """A clustering of the same components with another model; the summary of EM is dropped."""
        return Clusters(model)

    # Results of EM.

    @property
    def _known(self) -> FitSummary:
        if self.summary is None:
            raise UsageError(UNKNOWN)
        return self.summary

    @property
    def trace(self) -> tuple[float, ...]:
        """Penalised log-likelihood of every EM iteration; empty where the counts changed since."""
        return self.summary.trace if self.summary else ()

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
    def log_likelihood(self) -> float:
        """Log-likelihood of the rows."""
        return self._known.log_likelihood

    @property
    def entropy(self) -> float:
        """Entropy of the responsibilities, in nats."""
        return self._known.entropy

    @property
    def free_parameters(self) -> int:
        """Number of free parameters; fixed component weights are not among them."""
        return em.free_parameters(self.model)

    @property
    def bic(self) -> float:
        """Bayesian information criterion: −2 log-likelihood + free parameters · log(rows), the lower the better."""
        return self._known.bic(self.free_parameters, float(self.tally.classes.sum()))

    @property
    def icl(self) -> float:
        """Integrated completed likelihood: the BIC plus twice the entropy of the responsibilities."""
        return self._known.icl(self.free_parameters, float(self.tally.classes.sum()))

    @property
    def aic(self) -> float:
        """Akaike information criterion: −2 log-likelihood + 2 · free parameters."""
        return self._known.aic(self.free_parameters)

    def with_log_likelihood(self, data: Any, **how: Any) -> Clusters:
        """The same clustering with the log-likelihood and entropy of these rows, which should be those it has counted.

        Parameters
        ----------
        data : path, frame, dict of columns or any other source
            The rows. Where the model has a column of weights, it is read from them.
        **how
            How a file is read, as for `learn`.

        Returns
        -------
        Clusters
            The clustering, with a summary of one E-step: no trace, not converged.
        """
        source, weights = open_source(data, self.model.read_as(how)), em.column_weights(self.weights)
        kinds = {column.name: column.kind for column in self.schema.columns}
        kinds |= {} if self.weights is None else {self.weights: NUMBER}

        def batches() -> Iterator[Batch]:
            return (complete(batch, self.schema.columns, source, "error") for batch in source.batches(kinds))

        found = em.e_step(self.model, em.StreamedRows(batches, self.schema, weights), entropy=True)
        return replace(self, summary=FitSummary(found.log_likelihood, entropy=found.entropy))

    def as_of(self, step: em.EMStep) -> Model:
        """The model as it was at a step of EM."""
        return replace(self.model, tally=step.tally)

    # Attributes of the model.

    @property
    def tally(self) -> Tally:
        """The expected counts: component weights and one sufficient statistic for each block of columns."""
        return self.model.tally

    @property
    def prior(self) -> Priors:
        """The priors of the parameters."""
        return self.model.prior

    @property
    def schema(self) -> Schema:
        """What the columns mean."""
        return self.model.schema

    @property
    def classes(self) -> tuple[Any, ...]:
        """The names of the components."""
        return self.model.classes

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The columns as they are modelled: alone, or together."""
        return self.model.blocks

    @property
    def missing(self) -> tuple[str, ...]:
        """Texts that stand for a missing cell."""
        return self.model.missing

    @property
    def weights(self) -> str | None:
        """The column of row weights, if there is one."""
        return self.model.weights

    @property
    def average(self) -> bool:
        """Whether the model averages over which columns depend on the component."""
        return self.model.average

    @property
    def reading(self) -> ReadOptions:
        """How rows are read for this model."""
        return self.model.reading

    @property
    def class_prior(self) -> Array:
        """The component weights."""
        return self.model.class_prior

    @property
    def block_parameters(self) -> tuple[Parameters, ...]:
        """The parameters of every block."""
        return self.model.block_parameters

    @property
    def parameters(self) -> dict[str, ParameterTable]:
        """Readable tables: the component weights, then one table for each column or block."""
        return self.model.parameters

    @property
    def parameter_count(self) -> ParameterCount:
        """Entries of all tables, free parameters, and free parameters if nothing were independent."""
        return self.model.parameter_count

    @property
    def stale(self) -> bool:
        """Whether something fitted on top of the counts is older than they are."""
        return self.model.stale

    @property
    def frozen(self) -> bool:
        """Whether something is fitted on top of the counts, and no rows are kept to fit it again."""
        return self.model.frozen

    def top_words(self, most: int = 10, column: str | None = None) -> dict[Any, list[tuple[str, float]]]:
        """For every component, the words with the highest weights of evidence, as `Model.top_words`."""
        return self.model.top_words(most, column)

    def batches(self, rows: Any, absent: str, reading: ReadOptions | None, **how: Any) -> Iterator[Batch]:
        """The batches of a source, each with every column that the model needs."""
        return self.model.batches(rows, absent, reading, **how)

    def posterior(self, rows: Any, **options: Any) -> Posterior:
        """Responsibilities of the components for every row; options as for `Model.posterior`."""
        return self.model.posterior(rows, **options)

    def posterior_of(self, batch: Batch) -> Posterior:
        """Responsibilities for rows that have every column already."""
        return self.model.posterior_of(batch)

    def predict(self, rows: Any, **options: Any) -> NDArray[Any]:
        """Most probable component of every row."""
        return self.model.predict(rows, **options)

    def predict_proba(self, rows: Any, **options: Any) -> Array:
        """Responsibilities of the components as an array, rows × components."""
        return self.posterior(rows, **options).probabilities

    def explain(self, row: Any, **options: Any) -> Ledger:
        """Contribution of each column to the log-odds of each component, for one row; options as for `Model.explain`."""
        return self.model.explain(row, **options)

    # What changes the counts.

    def __add__(self, other: Clusters | Model) -> Clusters:
        """Add the counts of components of the same name; the log-likelihood is that of neither part, and is dropped."""
        if not isinstance(other, Clusters | Model):
            return NotImplemented
        if isinstance(other, Clusters):
            warnings.warn(
                "components are merged by their names, which two separate fits need not give to the same rows; "
                "the sum has no log-likelihood until with_log_likelihood(data) computes it",
                LikelyWarning,
                stacklevel=2,
            )
        return self._recounted(self.model + (other.model if isinstance(other, Clusters) else other))

    def __radd__(self, other: Model) -> Clusters:
        """The same with a plain model on the left."""
        return self._recounted(other + self.model) if isinstance(other, Model) else NotImplemented

    def update(self, rows: Any, **options: Any) -> Clusters:
        """Also count these rows, whose column of components must be there; the summary of EM is dropped."""
        return self._recounted(self.model.update(rows, **options))

    def forget(self, rows: Any, **options: Any) -> Clusters:
        """Take these rows out of the counts; the summary of EM is dropped."""
        return self._recounted(self.model.forget(rows, **options))

    def relearn(self, **options: Any) -> Clusters:
        """The same counts under another prior or tying; the summary of EM is dropped."""
        return self._recounted(self.model.relearn(**options))

    def recalibrate(self) -> Clusters:
        """Fit anew what is fitted on top of the counts."""
        return replace(self, model=self.model.recalibrate())

    def without_rows(self) -> Clusters:
        """The same clustering without any rows of the table; its predictions are the same."""
        return replace(self, model=self.model.without_rows())

    def save(self, path: str | Path, *, replacing: str | None = None) -> str:
        """Write the model file, with the summary of EM; `likely.load` gives the clustering back.

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
        part = {"kind": MIXTURE, "summary": self.summary, "tried": self.tried}
        return save_latent(path, self.model, part, {}, replacing=replacing)

    def _shown_tables(self) -> list[ShownTable]:
        """The components with their shares, then the columns."""
        named = zip(self.classes, self.model.class_prior, self.tally.classes, strict=True)
        rows = [{"component": str(label), "share": float(p), "rows": float(n)} for label, p, n in named]
        tried = [{"k": k, "criterion": value} for k, value in self.tried.items()]
        columns = [{"column": b.name, "family": b.family.name} for b in self.blocks]
        tables = [ShownTable(repr(self), rows), ShownTable("Columns", columns)]
        return [*tables, *([ShownTable("Number of components", tried)] if tried else [])]

    def to_dict(self) -> dict[str, Any]:
        """Components, and what EM reported, as plain data."""
        return {
            "components": [dict(row) for row in self._shown_tables()[0].rows], "trace": list(self.trace),
            "converged": self.converged, "log_likelihood": self.summary.log_likelihood if self.summary else None,
            "tried": {str(k): value for k, value in self.tried.items()},
        }  # fmt: skip

    def plot(self) -> Svg:
        """Progress of EM, or the shares of the components where it is not known; `.save("x.svg")` writes the picture."""
        from likely.latent.em_pictures import em_trace, shares

        return em_trace(self.trace) if len(self.trace) > 1 else shares(self.classes, self.model.class_prior)

    def __repr__(self) -> str:
        known = f"log-likelihood {self.summary.log_likelihood:,.2f}" if self.summary else "log-likelihood not known"
        return f"<Clusters: {len(self.classes)} components, {self.tally.rows:,} rows counted, {known}>"
