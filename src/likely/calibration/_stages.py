"""Calibration of a tally in stages: column weights, linear discriminant, joint Gaussians and interactions, text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from likely.calibration import _temperature as tempered
from likely.calibration._fit import CalibrationFit
from likely.calibration._interaction_search import InteractionSearch
from likely.calibration._joint_gaussian import fit_joint_gaussian
from likely.calibration._terms import CalibrationData, Single, make_missingness_terms, make_terms
from likely.calibration._text_terms import joined
from likely.calibration.calibration import Calibration, JointGaussian
from likely.calibration.copies import effective, shuffled
from likely.families.base import Parameters
from likely.families.text_calibration import LeftOutDocuments
from likely.kernels.parallel import meanwhile, one_blas_thread
from likely.kernels.progress import announce
from likely.priors import Priors
from likely.tally import Tally

# Maximum number of columns of an interaction; the last two are TAN and AODE.
DEPENDENCE = {"auto": 6, "pairs": 2, "none": 1, "tree": 2, "one-dependence": 2}
ENTRIES, FEWEST_ROWS = 8_000_000, 2_000  # of evidence: fewer rows are used where classes and columns are many
MOST_ENTRIES = 100_000_000  # of evidence, whatever the number of rows
ROUNDS, ROUND_GAIN = 12, 1e-4  # of interactions; nats a row that one must gain for another one to follow
DIRECTION_ROWS = 30  # with fewer, and no more than coefficients, no directions are fitted: those of noise separate the rows
COMPARED = 4_000_000  # pairs of columns times rows times classes up to which both orders are tried
PREFERRED = 4.0  # nats that interactions before joint Gaussians must gain


@one_blas_thread()  # the package's own threads share the work
def calibrate(
    tally: Tally,
    parameters: Sequence[Parameters],
    dependence: str = "auto",
    documents: Mapping[str, LeftOutDocuments] = MappingProxyType({}),
    prior: Priors | None = None,
) -> Calibration | None:
    """Calibration of a tally: weights, interactions and biases, fitted on the sample of rows that it keeps.

    `documents` has, for each column of text, the leave-one-out scores of the documents that are kept; `prior` is that of the
    parameters.
    """
    classes, sample = len(tally.schema.classes), tally.sample
    if sample is None or classes < 2 or not len(sample):
        return None
    rows_once = effective(shuffled(sample, tally.schema), tally)
    if classes > tempered.MANY_CLASSES:
        few = CalibrationData(tally, rows_once.first(tempered.rows_for(classes)), 0, prior=prior)
        return tempered.one_weight(few, parameters)
    rows = max(FEWEST_ROWS, ENTRIES // (classes * max(len(parameters), 1)))
    most = MOST_ENTRIES // (classes * max(len(parameters), 1))
    data = CalibrationData.of(tally, rows_once.first(min(rows, max(tempered.FEWEST_ROWS, most))), parameters, prior)
    announce("column weights")
    terms = make_terms(data, list(enumerate(parameters)))
    if not terms:
        return None
    directions = dependence == "auto" and data.weight > min(DIRECTION_ROWS, len(terms) + 1)
    joint = meanwhile(lambda: fit_joint_gaussian(data, terms), len(data.sample)) if directions else None
    fit = CalibrationFit.start(data, terms, make_missingness_terms(data, terms))
    if dependence in ("tree", "one-dependence"):
        fit.add_pairs(dependence == "tree")
    tested = 0
    if joint is not None:
        fit.add_discriminant()
        fit, tested = _with_joint_and_interactions(fit, joint())
    elif dependence in ("auto", "pairs"):
        tested = _add_interactions(fit, dependence)
    fit.solve(fit.weights)
    fit.shrink(tested)
    fit.rescale()
    fit.add_texts(*joined(data.sample, tally, documents))
    return fit.result(parameters)


def _with_joint_and_interactions(
    fit: CalibrationFit, made: tuple[JointGaussian, Single] | None
) -> tuple[CalibrationFit, int]:
    """The fit with joint Gaussians and interactions, in the order that gains more, and the number of sets tested.

    Components of Gaussians blur the edges of a pattern that a table has exactly, and leave too little for a table to be found
    afterwards; where classes are clouds, tables of two columns would only approximate them.
    """
    first = fit.copy()
    if made is None or not first.add_joint(made):
        return fit, _add_interactions(fit)
    tested = _add_interactions(first)
    if fit.pairs_searched * fit.base.size > COMPARED:
        return first, tested
    other_tested = _add_interactions(fit)
    if not fit.tables:
        return first, tested
    fit.add_joint(made)
    return (fit, other_tested) if fit.gain() > first.gain() + PREFERRED else (first, tested)


def _add_interactions(fit: CalibrationFit, dependence: str = "auto") -> int:
    """Add interactions round by round while they gain; returns the number of sets of columns tested."""
    search = InteractionSearch(fit.grouped_columns, len(fit.terms), DEPENDENCE[dependence])
    for i in range(ROUNDS):
        announce(f"interactions, round {i + 1}")
        before = fit.gain()
        added = fit.add_interactions(search) or fit.add_interactions(search, triples=True)
        if not added or fit.gain() - before < ROUND_GAIN * fit.rows:
            break
    return search.tested
