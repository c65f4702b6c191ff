"""The model: a schema, a tally and a prior. Parameters, posteriors and explanations are read off them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import store
from likely.averaging import Arc, chance, weigh
from likely.bayes import Posterior
from likely.belief import (
    ParameterCount,
    believed,
    count_parameters,
    fit_stages,
    names_of,
    read_off,
    reading_of,
    refuse_unknown,
    say_other_gaps,
    strongest_words,
    warn_of_gaps,
    why_not_generative,
    with_taken,
)
from likely.calibration import Calibration, calibrate
from likely.calibration.copies import effective
from likely.engines import Plan, Scorer, settled, tally_source
from likely.engines.account import account
from likely.engines.score import bernoulli_blocks
from likely.engines.targets import BinnedTarget, as_name
from likely.engines.weights import with_weights
from likely.errors import DataError, LikelyWarning, ModelFileError, UsageError, no_column
from likely.families import Block, Gaussian, Parameters, counted_alike, family
from likely.families.base import log
from likely.families.curve import Curve
from likely.filing import from_file, to_file
from likely.ledger import Ledger
from likely.prior import Priors, priors
from likely.schema import Schema, ordered
from likely.sources import Batch, Reading, Source, for_target, missing_of, open_source
from likely.sources.rows import complete, one_row, told
from likely.tally import Tally
from likely.threads import cached_property

Array = NDArray[np.float64]
NO_ROWS = "the model holds no rows of its table; learn it anew from the data, with rows"


@dataclass(frozen=True)
class Model:
    """What was counted and what was imagined; everything else is read off."""

    tally: Tally
    prior: Priors
    missing: tuple[str, ...] = ()  # texts that stand for missing, in every source that the model is asked about
    weights: str | None = None
    declared: tuple[Any, ...] = ()  # classes that exist even where no row has them
    stages: Mapping[str, Curve] = field(default_factory=dict)  # what was fitted on top of the tally, block by block
    calibration: Calibration | None = None  # and over all blocks
    dependence: str = "auto"  # how many columns may speak together in it
    missing_labels: tuple[str, ...] | None = None  # the same in the target; None: as in the other columns
    average: bool = False  # over all choices of which columns depend on the class
    target_edges: tuple[float, ...] = ()  # of the bins, where the target is a column of numbers

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
    def reading(self) -> Reading:
        """How rows are read for this model: as those that it was learned from."""
        return reading_of(self.schema, self.missing, self.missing_labels)

    def read_as(self, how: Mapping[str, Any]) -> Reading:
        """The same, but for what keywords say: `missing`, `encoding` and the like."""
        return Reading.of(how.get("missing"), {k: v for k, v in how.items() if k != "missing"}, self.reading)

    @cached_property
    def class_prior(self) -> Array:
        """The share of each class before a row is looked at."""
        return self.prior.class_shares(self.classes, self.tally.classes, self.blocks)

    @cached_property
    def plain_parameters(self) -> tuple[Parameters, ...]:
        """The parameters of every block before anything is averaged or fitted: the tally with the imagined rows added."""
        return read_off(self.tally, self.prior, {}, self._copies)

    @property
    def _copies(self) -> Array | None:
        """How often the rows of each class were counted, in the mean, as far as the sample of rows tells."""
        if self.tally.sample is None or not self.prior.default.chosen:
            return None if self.calibration is None else self.calibration.copies
        copies = effective(self.tally.sample, self.tally).copies
        return None if (copies == 1.0).all() else copies

    @cached_property
    def block_parameters(self) -> tuple[Parameters, ...]:
        """What is believed of every block, and then of every set of columns that speak together."""
        found = list(believed(self.tally, self.prior, self.plain_parameters, self.stages, self.calibration))
        for i in range(len(self.blocks) if self.average else 0):
            if arc := self.arc(i):
                found[i] = arc.average(found[i])
        return tuple(found)

    def arc(self, i: int) -> Arc | None:
        """Whether block i depends on the class, as the tally says; None where it is of a family that always does."""
        return weigh(self, i)

    @cached_property
    def arc_probability(self) -> dict[str, float | None]:
        """How probable it is that each block depends on the class at all; None where its family or prior cannot say."""
        return {block.name: chance(self, i) for i, block in enumerate(self.blocks)}

    @cached_property
    def parameters(self) -> dict[str, Sequence[dict[str, Any]]]:
        """Readable tables: the class prior, then one table for each column or block."""
        pairs = zip(self.classes, self.class_prior, self.tally.classes, strict=True)
        prior = [{"class": label, "count": float(n), "probability": float(p)} for label, p, n in pairs]
        named = zip(self.blocks, self.block_parameters, strict=False)  # sets of columns have no table to read
        # A table of words has a row for each word and class: it is made when somebody reads it.
        tables = {block.name: list(p.rows) if isinstance(p.rows, tuple) else p.rows for block, p in named}
        return {self.schema.target.name: prior, **tables}

    def top_words(self, most: int = 10) -> dict[str, dict[str, list[str]]]:
        """For every column of text and every class, the words that speak most for it."""
        forms: dict[str, Any] = {self.blocks[i].name: self.block_parameters[i].form for i in self.scorer.texts}
        return strongest_words(forms, self.classes, most)

    @cached_property
    def parameter_count(self) -> ParameterCount:
        """Entries of all tables, free parameters, and free parameters if nothing were independent."""
        return count_parameters(self.schema, self.block_parameters)

    @cached_property
    def scorer(self) -> Scorer:
        """Everything believed, laid out for the engine."""
        kinds = bernoulli_blocks([block.family for block in self.blocks])
        bias = self.calibration.bias if self.calibration else None
        return Scorer(self.schema, log(self.class_prior), self.block_parameters, kinds, bias)

    def posterior(self, rows: Any, *, absent: str = "error", reading: Reading | None = None, **how: Any) -> Posterior:
        """The probability of each class for every row; `absent="missing"` takes columns that are not there for missing.

        How a file is read may be said as for `learn`: `table="orders"`, `header=False`, ...
        """
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

    def predict(self, rows: Any, **options: Any) -> NDArray[Any]:
        """The most probable label of every row, in the labels' own type."""
        return self.posterior(rows, **options).labels

    def explain(self, row: Any, *, number: int = 1, absent: str = "error", **how: Any) -> Ledger:
        """The account of one row: prior, what each column says for each class, and what it adds up to."""
        source = open_source(row, self.read_as(how))
        for batch in self.batches(source, absent, None):
            if batch.start < number <= batch.start + batch.rows:
                one = one_row(batch, number - batch.start - 1)
                bells = any(isinstance(block.family, Gaussian) for block in self.blocks)
                curves = self.plain_parameters if bells and (self.average or self.calibration) else ()
                matters = self.arc_probability if self.average else {}
                return account(self.scorer, one, curves, matters, generative=not self.no_evidence)
        raise DataError(f"{source.label} has no row {number}")

    def batches(self, rows: Any, absent: str, reading: Reading | None, **how: Any) -> Iterator[Batch]:
        """The batches of a source, each with every column that the model needs."""
        if absent not in ("error", "missing"):
            raise UsageError(f"absent={absent!r} is not known: choose 'error' or 'missing'")
        source = open_source(rows, reading or self.read_as(how))
        kinds = {column.name: column.kind for column in self.schema.columns}
        for batch in source.batches(kinds):
            yield complete(batch, self.schema.columns, source, absent)

    def without_rows(self) -> Model:
        """The same model with no rows of the table and no documents inside: it predicts the same.

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
        """The same tally with everything that is fitted on top of it fitted anew, from the sample it keeps."""
        if self.frozen:
            raise UsageError(f"the calibration cannot be fitted again: {NO_ROWS}")
        found = fit_stages(self.tally)
        stages = {name: curve for name, (curve, _) in found.items()}
        if not self.calibrates:
            return replace(self, stages=stages, calibration=None)
        documents = {name: left_out for name, (_, left_out) in found.items()}
        calibration = calibrate(self.tally, self.plain_parameters, self.dependence, documents)
        fitted = replace(self, stages=stages, calibration=calibration)
        vars(fitted)["plain_parameters"] = self.plain_parameters  # of the same tally and prior: read off once
        return fitted

    @property
    def calibrates(self) -> bool:
        """Whether there is something to calibrate: a sample of rows of several classes, and nothing said against it."""
        return self.tally.sample is not None and self.prior.default.chosen and int((self.tally.classes > 0).sum()) > 1

    @property
    def stale(self) -> bool:
        """Whether rows were counted or forgotten since the second stage was fitted: `recalibrate` fits it again."""
        named = {block.name: s for block, s in zip(self.blocks, self.tally.statistics, strict=True)}
        fitted = self.calibration
        if self.calibrates if fitted is None else fitted.counted != float(self.tally.classes.sum()):
            return True
        return any(float(named[name].weight().sum()) != stage.documents for name, stage in self.stages.items())

    def recounted(self, tally: Tally) -> Model:
        """The model of another tally.

        The second stage is kept, unless there are other classes than it was fitted for, or nothing left to fit it on.
        """
        other = replace(self, tally=settled(tally))
        new = tally.schema.classes != self.classes
        fitted = bool(self.stages) or self.calibration is not None
        if self.frozen:
            if new:
                odd = ordered({*self.classes} ^ {*tally.schema.classes})
                raise UsageError(
                    f"class {odd[0]!r} came or went, and the calibration has to be fitted again: {NO_ROWS}"
                )
        elif (fitted and new) or other.calibrates != (self.calibration is not None):
            return other.recalibrate()
        kept = self.calibration and self.calibration.without_forgotten(tally.schema)
        return replace(other, calibration=kept)

    def relearn(
        self, *, smoothing: Any = None, class_prior: Any = None, families: Any = None, average: bool | None = None
    ) -> Model:
        """The same tally under another prior, tying or averaging: no data needed."""
        tally = self.tally
        if families is not None:
            refuse_unknown(families, tally.blocks)
            tally = replace(tally, blocks=tuple(self._other_family(block, families) for block in tally.blocks))
        prior = self.prior
        if smoothing is not None:
            own = priors(smoothing, None, plain=tally.sample is None and not self.frozen, blocks=tally.blocks)
            prior = replace(own, classes=prior.classes)
        if class_prior is not None:
            prior = replace(prior, classes=priors(1.0, class_prior, self.classes).classes)
        average = self.average if average is None else bool(average)
        tally = with_room(tally.pruned(self.declared), prior)
        other = replace(self, tally=tally, prior=prior, average=average)
        if self.frozen and not (smoothing is None and class_prior is None and families is None):
            if prior.default.chosen or self.stages:
                raise UsageError(f"the calibration would have to be fitted again: {NO_ROWS}")
            return replace(other, calibration=None)
        return other.recalibrate() if tally.sample is not None else other

    def _other_family(self, block: Block, families: Any) -> Block:
        named = (
            [families[key] for key in names_of(block) if key in families] if isinstance(families, Mapping) else [families]
        )
        given = named[0] if named else None
        if given is None:
            return block
        other = family(given)
        if not counted_alike(other, block.family):
            if not isinstance(families, Mapping) and type(other) is not type(block.family):
                return block
            raise UsageError(
                f"column {block.name!r} was counted as {block.family.name}: another family needs the data again (learn anew)"
            )
        return replace(block, family=other)

    def __add__(self, other: Model) -> Model:
        """Counting together: equals learning from both tables at once."""
        if not isinstance(other, Model):
            return NotImplemented
        if self.target_edges != other.target_edges:
            both = f"{list(self.target_edges)} and {list(other.target_edges)}"
            raise DataError(f"the targets are cut into bins at {both}: learn both with the same target_bins=[...]")
        say_other_gaps(self.reading.gaps(False), other.reading.gaps(False))
        declared = ordered({*self.declared, *other.declared})
        whole = replace(self, tally=self.tally + other.tally, declared=declared)
        return _with_older_stage(whole, self, other) if self.frozen or other.frozen else whole.recalibrate()

    def count(self, rows: Any, reading: Reading | None = None, weights: Any = None, **how: Any) -> Tally:
        """Other rows, counted as this model counts; `weights` as in `learn`."""
        weights = self.weights if weights is None else as_name(weights)
        source, weight_name = with_weights(open_source(rows, reading or self.read_as(how)), weights)
        source = self.aimed(source, self.schema.target.name)
        keep = self.tally.sample is not None
        target, columns = self.schema.target, told(self.schema.columns, source)
        plan = Plan(target.name, self.blocks, columns, weight_name, target_form=target.form, sample=keep)

        def batches() -> Iterator[Batch]:
            for batch in source.batches(plan.kinds()):
                needed = [plan.target, *([plan.weights] if plan.weights is not None else [])]
                absent = [name for name in needed if name not in batch.names]
                if absent:
                    raise no_column(source.label, absent[0], batch.names, "rows to learn from need it")
                hidden = batch.coded(plan.target)
                unlabelled.append(int((hidden.codes < hidden.low).sum()) if hidden.low == 0 else 0)
                yield complete(batch, self.schema.columns, source, "error")

        unlabelled: list[int] = []
        tally = tally_source(batches(), plan)
        warn_of_gaps(tally)
        if any(unlabelled):
            said = f"{sum(unlabelled):,} rows have no {plan.target!r}: they were not counted"
            warnings.warn(said, LikelyWarning, stacklevel=3)
        return with_taken(tally, missing_of(source))

    def aimed(self, source: Source, name: str) -> Source:
        """The source read with `name` as the target, which is cut into bins where bins are this model's classes."""
        source = for_target(source, name)
        return BinnedTarget(source, name, self.target_edges) if self.target_edges else source

    def update(self, rows: Any, **options: Any) -> Model:
        """A new model that has also seen these rows; unseen values and unseen classes are welcome."""
        return self.recounted(self.tally + self.count(rows, **options))

    def forget(self, rows: Any, **options: Any) -> Model:
        """A new model that has not seen these rows; refused where they were never counted or digits would be lost."""
        left = (self.tally - self.count(rows, **options)).pruned(self.declared)
        return self.recounted(with_room(left, self.prior))

    def save(self, path: str | Path, *, replacing: str | None = None) -> str:
        """Write the model file, whole or not at all, and return its digest; it is read back before it takes its place."""
        names = ("missing", "missing_labels", "weights", "declared", "average", "dependence")
        settings = {name: getattr(self, name) for name in names}
        settings |= {"target_edges": self.target_edges} if self.target_edges else {}
        parts = to_file(self.tally, self.prior, settings, self.stages, self.calibration)
        return store.write(path, *parts, replacing=replacing, check=from_file)

    def __repr__(self) -> str:
        size = f"{len(self.classes)} classes, {len(self.schema.columns)} columns, {self.tally.rows:,} rows counted"
        return f"<Model of {self.schema.target.name!r}: {size}>"


def _with_older_stage(whole: Model, *parts: Model) -> Model:
    """A sum that has no rows to be calibrated on: it keeps the calibration of the part that has counted more rows."""
    fitted = [p for p in parts if p.classes == whole.classes and (p.calibration is not None or p.stages)]
    if not fitted:
        raise UsageError(f"the models have other classes, and the calibration has to be fitted again: {NO_ROWS}")
    best = max(fitted, key=lambda part: part.tally.rows)
    said = "one of the models holds no rows: their sum holds none, and keeps the calibration of the one with more rows"
    warnings.warn(said, LikelyWarning, stacklevel=3)
    kept = best.calibration and best.calibration.without_forgotten(whole.schema)
    return replace(whole, tally=whole.tally.without_rows({}), stages=best.stages, calibration=kept)


def with_room(tally: Tally, prior: Priors) -> Tally:
    """The tally with room for the values that a prior speaks of, though no row has shown them yet."""
    prior.check(tally.blocks)
    return tally.with_values(prior.named(tally.schema, tally.blocks))


def load(path: str | Path) -> Model:
    """Read a model file; anything but a whole, untouched one is refused."""
    return load_with_digest(path)[0]


def load_with_digest(path: str | Path) -> tuple[Model, str]:
    """A model and the digest of the file it came from."""
    header, arrays, digest = store.read(path)
    try:
        tally, prior, settings, stages, calibration = from_file(header, arrays)
        return Model(tally, prior, **settings, stages=stages, calibration=calibration), digest
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ModelFileError(f"{str(path)!r} is no model: {error}") from None
