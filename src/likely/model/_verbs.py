"""Methods of `Model` that other modules implement: decisions, updates, relearning, samples, parameter posteriors, evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

from numpy.typing import NDArray

from likely.engines.engine import is_spark_frame
from likely.model.model_keywords import CountKeywords, PosteriorKeywords
from likely.plots.shown import ShownTable, frame, html_tables
from likely.plots.svg import Svg

if TYPE_CHECKING:
    from likely.bayes.parameter_posterior import ParameterPosterior
    from likely.model.model import Model
    from likely.model.prepared import Predictor


class ModelVerbs:
    """Methods of `Model` that are implemented in other modules."""

    def predict(
        self, rows: Any, *, costs: Any = None, threshold: Any = None, **options: Unpack[PosteriorKeywords]
    ) -> NDArray[Any]:
        """The most probable label of every row, or the decision that costs and thresholds call for.

        Parameters
        ----------
        rows : path, frame, dict of columns, list of dicts or one dict
            The rows; any source that `learn` takes.
        costs : {true class: {decision: cost}}, optional
            Each row gets the decision with the lowest expected cost. "*" stands for all true classes; a wrong class costs 1
            and the right one 0 unless given. A decision that is no class ("ask") is a reject option.
        threshold : float or {class: float}, optional
            The probability from which a class is predicted; one number is for the second of two classes.
        **options
            As for `posterior`.

        Returns
        -------
        array
            Labels (or decisions) in their own type. Of a Spark DataFrame, a Spark DataFrame as `posterior` gives it.
        """
        if is_spark_frame(rows):
            given = cast("dict[str, Any]", options)  # which of them Spark takes is checked there
            return cast("NDArray[Any]", self.scored(rows, costs=costs, threshold=threshold, **given))
        return cast("Model", self).posterior(rows, **options).decide(costs=costs, threshold=threshold)

    def scored(
        self, rows: Any, *, absent: str = "error", prefix: str = "", probabilities: bool = True, costs: Any = None,
        threshold: Any = None,
    ) -> Any:  # fmt: skip
        """A Spark DataFrame with the label and probabilities of every row, computed in the tasks of Spark when it is used.

        Parameters
        ----------
        rows : Spark DataFrame
            The rows.
        absent : "error" or "missing", default="error"
            What to do when a column of the model is not there: refuse, or treat its cells as missing.
        prefix : str, default=""
            Prefix of the names of the added columns.
        probabilities : bool, default=True
            Whether to add `p_<class>` for each class.
        costs : {true class: {decision: cost}}, optional
            As for `predict`.
        threshold : float or {class: float}, optional
            As for `predict`.

        Returns
        -------
        Spark DataFrame
            The columns of the rows, `label`, and the probabilities.
        """
        from likely.engines.spark.spark_engine import SparkEngine
        from likely.model.parts import Scoring

        decisions = {"costs": costs, "threshold": threshold}
        scoring = Scoring(cast("Model", self), absent, prefix, probabilities, decisions)
        engine = SparkEngine.scoring(rows)
        scoring.check(engine.frame.columns, "the Spark table")
        return engine.score(lambda: None, scoring.task)

    def predict_proba(self, rows: Any, **options: Unpack[PosteriorKeywords]) -> NDArray[Any]:
        """Probability of each class for every row.

        Parameters
        ----------
        rows : path, frame, dict of columns, list of dicts or one dict
            The rows; any source that `learn` takes.
        **options
            `absent` and how a file is read, as for `posterior`.

        Returns
        -------
        array
            Probabilities, rows × classes, in the order of `classes`.
        """
        return cast("Model", self).posterior(rows, **options).probabilities

    def plot(self, label: Any = None, top: int = 10) -> Svg:
        """Nomogram of a class: for each column the weights of evidence of its values.

        Parameters
        ----------
        label : class or None, default=None
            The class; of two classes the second, else the first by default.
        top : int, default=10
            Number of columns, those with the most evidence.

        Returns
        -------
        Svg
            A picture that notebooks show and `.save("x.svg")` writes; also .png and .pdf.
        """
        from likely.model.model_picture import nomogram

        return nomogram(cast("Model", self), label, top)

    def to_dict(self) -> dict[str, Any]:
        """The model as plain data: target, classes with counts and prior, columns with family and evidence."""
        from likely.model.model_picture import described

        return described(cast("Model", self))

    def to_pandas(self) -> Any:
        """The columns of the model as a pandas data frame; needs the extra `pandas`."""
        return frame(self.to_dict()["columns"])

    def _repr_html_(self) -> str:
        found = self.to_dict()
        tables = [ShownTable(repr(self), found["columns"]), ShownTable("Classes", found["classes"])]
        return html_tables(tables)

    def sample(self, n: int, seed: Any = None, *, label: Any = None) -> dict[str, list[Any]]:
        """Draw rows from the model: a class, then every column from its class-conditional distribution.

        Parameters
        ----------
        n : int
            Number of rows.
        seed : int, optional
            Makes the draw repeatable.
        label : class, optional
            Draw rows of this class only.

        Returns
        -------
        dict of lists
            A table with the target as its last column. A calibrated model draws from the distributions before calibration,
            and warns that it does.
        """
        from likely.model.row_drawing import sample_table

        return sample_table(cast("Model", self), n, seed, label)

    def relearn(
        self, *, smoothing: Any = None, class_prior: Any = None, families: Any = None, average: bool | None = None
    ) -> Model:
        """Copy of the model under another prior, tying or averaging; no data needed.

        Parameters
        ----------
        smoothing : float, prior, dict of them or None, default=None
            As for `learn`; None keeps the present one.
        class_prior : dict, float, prior or None, default=None
            As for `learn`; None keeps the present one.
        families : name, family, dict of them or None, default=None
            Families that count the same statistic, such as a Gaussian with another tie; "*" in a dict is for the rest.
        average : bool or None, default=None
            As for `learn`; None keeps the present setting.

        Returns
        -------
        Model
            The new model.
        """
        from likely.model.relearning import relearned

        return relearned(cast("Model", self), smoothing, class_prior, families, average)

    def update(self, rows: Any, **options: Unpack[CountKeywords]) -> Model:
        """New model that has also learned from these rows; new values and new classes are welcome.

        Parameters
        ----------
        rows : path, frame, dict of columns, list of dicts or one dict
            The rows; any source that `learn` takes. Those of a large Spark table are counted in the tasks of Spark.
        **options
            `weights`, `engine` ("auto", "memory", "spark" or "spark-rows") and how a file is read, as for `learn`.

        Returns
        -------
        Model
            The new model; this one is unchanged.
        """
        model = cast("Model", self)
        return model.with_tally(model.tally + model.count(rows, **options))

    def forget(self, rows: Any, **options: Unpack[CountKeywords]) -> Model:
        """New model that has not learned from these rows.

        It is refused if they were never counted, or if digits would be lost.

        Parameters
        ----------
        rows : path, frame, dict of columns, list of dicts or one dict
            The rows; any source that `learn` takes. Those of a large Spark table are counted in the tasks of Spark.
        **options
            `weights`, `engine` ("auto", "memory", "spark" or "spark-rows") and how a file is read, as for `learn`.

        Returns
        -------
        Model
            The new model; this one is unchanged.
        """
        from likely.model.relearning import with_named_values

        model = cast("Model", self)
        left = (model.tally - model.count(rows, **options)).pruned(model.declared)
        return model.with_tally(with_named_values(left, model.prior))

    def prepare(self, *, refresh_every: int | None = None) -> Predictor:
        """The model prepared for single rows: `predict_one`, `predict_proba_one` and `learn_one` take a dict.

        Parameters
        ----------
        refresh_every : int or None, default=None
            Number of learned rows after which the parameters are derived again; None: 5 % of the rows counted so far. With
            1, every prediction is that of all rows learned before it.

        Returns
        -------
        Predictor
            Follows the protocol of river's classifiers; import river first, so that its evaluation accepts it.
        """
        from likely.model.prepared import Predictor

        return Predictor(cast("Model", self), refresh_every)

    def sql(
        self, table: str = "data", dialect: str = "duckdb", *, columns: Sequence[str] | None = None, prefix: str = "",
        parameters: str = "likely_words", pretty: bool = False,
    ) -> str:  # fmt: skip
        """The model as one SQL statement that scores a table inside its database.

        Parameters
        ----------
        table : str, default="data"
            The table, as `table`, `schema.table` or `"quoted.name"`.
        dialect : str, default="duckdb"
            "duckdb", "postgres", "sqlite", "spark", "bigquery", "snowflake" or "mysql".
        columns : sequence of str or None, default=None
            Columns of the table that are returned; None: all.
        prefix : str, default=""
            Prefix of the names of the added columns.
        parameters : str, default="likely_words"
            Table of the weights of words, for models of text: see `word_weights`.
        pretty : bool, default=False
            Whether to write it over several lines.

        Returns
        -------
        str
            A SELECT of the table's columns, `label`, and `p_<class>` for each class, equal to `posterior`. Needs
            `likely[sql]`.
        """
        from likely.export import to_sql

        return to_sql(
            self, table=table, dialect=dialect, columns=columns, prefix=prefix, parameters=parameters, pretty=pretty
        )

    def word_weights(self) -> Any:
        """Table of the weights of words that the SQL of a model of text is joined with.

        Returns
        -------
        pyarrow.Table
            `text_column`, `word`, `known` (1 where a document has it), and one weight `w0`, `w1`, … a class.
        """
        from likely.export.exported_terms import exported
        from likely.export.sql_words import word_table

        return word_table(exported(self))

    def onnx(self) -> Any:
        """The model as an ONNX graph, for tables of categories and numbers.

        Its inputs are named as the columns: double tensors of shape (rows, 1) with NaN where missing, and string tensors
        with "" where missing (see docs/sql.md). Its outputs are `label` and `probabilities`. Needs `likely[onnx]`.

        Returns
        -------
        onnx.ModelProto
            The graph; `SerializeToString()` are the bytes of its file.
        """
        from likely.export import to_onnx

        return to_onnx(self)

    def parameter_posterior(self, name: str, label: Any = None) -> ParameterPosterior:
        """Posterior of the parameters of one column in one class of a plain model.

        Parameters
        ----------
        name : str
            The column or block; of the target, the posterior of the class prior is returned.
        label : class, optional
            The class.

        Returns
        -------
        ParameterPosterior
            `.mean`, `.mode`, `.interval(level)`, `.marginal(parameter)`, `.predictive` and `.draw(n, seed)`.
        """
        from likely.model.parameter_tables import parameter_posterior

        return parameter_posterior(cast("Model", self), name, label)

    def draw_parameters(self, n: int, seed: Any = None) -> dict[str, dict[Any, Any]]:
        """Draw all parameters of a plain model from their posterior.

        Parameters
        ----------
        n : int
            Number of draws.
        seed : int, optional
            Makes the draws repeatable.

        Returns
        -------
        dict
            `drawn[column][class][parameter]` is an array of n; of the target, `drawn[target][class]`. A block whose
            posterior has no closed form is left out, with a warning.
        """
        from likely.model.parameter_tables import draw_parameters

        return draw_parameters(cast("Model", self), n, seed)

    @property
    def log_marginal_likelihood(self) -> float:
        """log P(labels, cells | families, priors) of a plain model, its parameters integrated out exactly."""
        from likely.model.evidence import log_marginal_likelihood

        return log_marginal_likelihood(cast("Model", self))
