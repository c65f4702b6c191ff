"""A fitted finite mixture: a model whose classes are the components, and the summary of the EM run that found it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from likely.bayes import Posterior
from likely.errors import LikelyWarning, SchemaError
from likely.latent import em
from likely.latent._component_model import HasModel
from likely.latent.fit_summary import FitSummary, FittedByEM
from likely.latent.latent_file import save_latent
from likely.model.ledger import Ledger
from likely.model.model import Model
from likely.model.model_keywords import CountKeywords, PosteriorKeywords
from likely.model.serialization.latent_part import MIXTURE
from likely.plots.shown import Shown, ShownTable
from likely.plots.svg import Svg
from likely.schema import NUMBER
from likely.sources import Batch, RowKeywords, open_source
from likely.sources.row_access import complete

Array = NDArray[np.float64]
UNKNOWN = (
    "the log-likelihood is not known, because the counts changed since EM ended (merged, updated, forgotten or relearned): "
    "compute it with clusters.with_log_likelihood(data)"
)


@dataclass(frozen=True)
class Clusters(HasModel, FittedByEM, Shown):
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

    _not_known = UNKNOWN
    _internal = frozenset((
        "as_of", "average", "batches", "block_parameters", "blocks", "frozen", "missing", "of", "posterior_of", "reading",
        "weights",
    ))  # fmt: skip

    @staticmethod
    def of(fit: em.EMResult, tried: Mapping[int, float] | None = None) -> Clusters:
        """The clustering at the end of a run of EM."""
        return Clusters(fit.model, fit.summary, dict(tried or {}), fit.steps)

    def _recounted(self, model: Model) -> Clusters:
        """A clustering of the same components with another model; the summary of EM is dropped."""
        return Clusters(model)

    # Results of EM.

    @property
    def entropy(self) -> float:
        """Entropy of the responsibilities, in nats."""
        return self._known.entropy

    @property
    def free_parameters(self) -> int:
        """Number of free parameters; fixed component weights are not among them."""
        return em.free_parameters(self.model)

    @property
    def icl(self) -> float:
        """Integrated completed likelihood: the BIC plus twice the entropy of the responsibilities."""
        return self._known.icl(self.free_parameters, self._weight)

    def with_log_likelihood(self, data: Any, **how: Unpack[RowKeywords]) -> Clusters:
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

    def top_words(self, most: int = 10, column: str | None = None) -> dict[Any, list[tuple[str, float]]]:
        """For every component, the words with the highest weights of evidence.

        Parameters
        ----------
        most : int, default=10
            Number of words a component.
        column : str or None, default=None
            The text column; needed only where there are several.

        Returns
        -------
        dict
            Component → list of (word, weight); the weight is in nats, against the average of the components.
        """
        return self.model.top_words(most, column)

    def posterior(self, rows: Any, **options: Unpack[PosteriorKeywords]) -> Posterior:
        """Responsibilities of the components for every row.

        Parameters
        ----------
        rows : path, frame, dict of columns, list of dicts or one dict
            The rows; any source that `cluster` takes.
        **options
            `absent` and how a file is read, as for `Model.posterior`.

        Returns
        -------
        Posterior
            `.classes` (the components), `.probabilities` (rows × components), `.log_probabilities`, `.labels`.
        """
        return self.model.posterior(rows, **options)

    def predict(
        self, rows: Any, *, costs: Any = None, threshold: Any = None, **options: Unpack[PosteriorKeywords]
    ) -> NDArray[Any]:
        """Most probable component of every row.

        Parameters
        ----------
        rows : path, frame, dict of columns, list of dicts or one dict
            The rows; any source that `cluster` takes.
        costs : {true component: {decision: cost}}, optional
            As for `Model.predict`.
        threshold : float or {component: float}, optional
            As for `Model.predict`.
        **options
            `absent` and how a file is read, as for `Model.posterior`.

        Returns
        -------
        array
            The names of the components.
        """
        return self.model.predict(rows, costs=costs, threshold=threshold, **options)

    def predict_proba(self, rows: Any, **options: Unpack[PosteriorKeywords]) -> Array:
        """Responsibilities of the components as an array.

        Parameters
        ----------
        rows : path, frame, dict of columns, list of dicts or one dict
            The rows; any source that `cluster` takes.
        **options
            `absent` and how a file is read, as for `Model.posterior`.

        Returns
        -------
        array
            Probabilities, rows × components, in the order of `classes`.
        """
        return self.posterior(rows, **options).probabilities

    def explain(self, row: Any, *, number: int = 1, absent: str = "error", **how: Unpack[RowKeywords]) -> Ledger:
        """Contribution of each column to the log-odds of each component, for one row.

        Parameters
        ----------
        row : dict, path, frame or any other source
            The row, or a table that holds it.
        number : int, default=1
            Which row of the table, from 1.
        absent : "error" or "missing", default="error"
            What to do when a column of the model is not there: refuse, or treat its cells as missing.
        **how
            How a file is read, as for `learn`.

        Returns
        -------
        Ledger
            The explanation; it prints as a table and adds up to the responsibilities.
        """
        return self.model.explain(row, number=number, absent=absent, **how)

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

    def update(self, rows: Any, **options: Unpack[CountKeywords]) -> Clusters:
        """Also count these rows, each in the component that it names; the summary of EM is dropped.

        Parameters
        ----------
        rows : path, frame, dict of columns, list of dicts or one dict
            The rows, with the component of each in the column named `schema.target.name`, "cluster". For rows without it,
            `predict` gives the most probable component, and `likely.cluster` finds the clusters of all rows anew.
        **options
            `weights`, `engine` ("auto", "memory", "spark" or "spark-rows") and how a file is read, as for `learn`.

        Returns
        -------
        Clusters
            The new clustering; this one is unchanged.
        """
        with self._components_named():
            return self._recounted(self.model.update(rows, **options))

    def forget(self, rows: Any, **options: Unpack[CountKeywords]) -> Clusters:
        """Take these rows, each of the component that it names, out of the counts; the summary of EM is dropped.

        Parameters
        ----------
        rows : path, frame, dict of columns, list of dicts or one dict
            The rows, with the component of each in the column named `schema.target.name`, "cluster". For rows without it,
            `predict` gives the most probable component, and `likely.cluster` finds the clusters of all rows anew.
        **options
            `weights`, `engine` ("auto", "memory", "spark" or "spark-rows") and how a file is read, as for `learn`.

        Returns
        -------
        Clusters
            The new clustering; this one is unchanged.
        """
        with self._components_named():
            return self._recounted(self.model.forget(rows, **options))

    @contextmanager
    def _components_named(self) -> Iterator[None]:
        """Name the remedy where rows to count lack the column of components.

        They are not counted by their responsibilities: later counts would change these, so that the order of updates would
        matter, and `forget` could not undo one.
        """
        name = self.schema.target.name
        try:
            yield
        except SchemaError as error:
            if error.column != name:
                raise
            raise SchemaError(
                f"the rows have no column {name!r}, and only rows of known components can be counted: fill it with the labels "
                "of predict(rows), which counts each row in its most probable component, or find the clusters of all rows anew",
                column=name,
            ) from None

    def relearn(
        self, *, smoothing: Any = None, class_prior: Any = None, families: Any = None, average: bool | None = None
    ) -> Clusters:
        """The same counts under another prior or tying; the summary of EM is dropped.

        Parameters
        ----------
        smoothing : float, prior, dict of them or None, default=None
            As for `cluster`; None keeps the present one.
        class_prior : dict, float, prior or None, default=None
            Component weights, or a pseudocount for each; None keeps the present one.
        families : name, family, dict of them or None, default=None
            As for `Model.relearn`.
        average : bool or None, default=None
            As for `learn`; None keeps the present setting.

        Returns
        -------
        Clusters
            The new clustering; this one is unchanged.
        """
        changed = self.model.relearn(smoothing=smoothing, class_prior=class_prior, families=families, average=average)
        return self._recounted(changed)

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
