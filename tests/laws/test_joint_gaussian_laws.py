"""Joint Gaussians of all numbers in the second stage: one for each class, or a mixture; rows are left out in closed form."""

import numpy as np
import pyarrow as pa
import pytest

import databases
import likely
from export_help import both_ways
from likely.calibration import _stages
from likely.calibration._component_moments import ClassRows, ComponentMoments, Regularisation
from likely.families.likelihoods import GaussianComponents
from likely.kernels.thread_count import limited_to
from likely.model import model_file
from likely.model.serialization import from_file, model_to_file
from tables import learn

pytestmark = pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning")
DIMENSIONS = 4


def log_gaussian(x, mean, covariance):
    """Log density without the constant of the dimensions."""
    d = x - mean
    return -0.5 * (np.linalg.slogdet(covariance)[1] + d @ np.linalg.solve(covariance, d))


def direct(x, shares):
    """Weight, mean and covariance of each component."""
    for share in shares.T:
        mean = share @ x / share.sum()
        yield share.sum(), mean, ((x - mean) * share[:, None]).T @ (x - mean) / share.sum()


@pytest.mark.parametrize("components", [1, 3])
def test_leaving_a_row_out_in_closed_form_equals_counting_without_it(components):
    rng = np.random.default_rng(components)
    x = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3))
    rows = [np.arange(0, 60, 2), np.arange(1, 60, 2)]
    weights = rng.choice([1.0, 2.0], (60, 1))
    members = [ClassRows(own, rng.dirichlet(np.ones(components), len(own)) * weights[own]) for own in rows]
    moments = ComponentMoments.of(x, members, Regularisation(0.0, 0.0))
    found = moments.left_out(x, members, len(x))
    for i in (0, 7, 31, 58):
        c = i % 2
        for other in (0, 1):
            kept = members[other].shares * (rows[other] != i)[:, None]
            parts = list(direct(x[rows[other]], kept))
            whole = sum(n for n, _, _ in parts)
            expected = np.logaddexp.reduce([np.log(n / whole) + log_gaussian(x[i], m, v) for n, m, v in parts])
            assert found[i, other] == pytest.approx(expected, rel=1e-9), (c, other)


def test_densities_of_components_are_summed_by_class():
    rng = np.random.default_rng(0)
    root = np.stack([np.linalg.inv(np.linalg.cholesky(np.eye(2) * (k + 1.0))) for k in range(3)])
    held = GaussianComponents(rng.normal(size=(3, 2)), root, np.log([0.25, 0.75, 1.0]), np.array([0, 0, 1]))
    x = rng.normal(size=(5, 2))
    covariances = [np.eye(2) * (k + 1.0) for k in range(3)]
    single = [[held.log_share[k] + log_gaussian(row, held.mean[k], v) for k, v in enumerate(covariances)] for row in x]
    expected = [[np.logaddexp(one[0], one[1]), one[2]] for one in single]
    np.testing.assert_allclose(held.log_densities(x), expected, rtol=1e-12)


def islands(n, seed=0):
    """Two classes of six clouds each, at places that no single column, direction or covariance tells apart."""
    places = np.random.default_rng(7).normal(scale=3.0, size=(12, DIMENSIONS))
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 12, n)
    x = places[which] + rng.normal(scale=0.8, size=(n, DIMENSIONS))
    return pa.table({f"x{j}": x[:, j] for j in range(DIMENSIONS)} | {"y": np.array(["a", "b"])[which % 2]})


def loss(model, rows):
    shares = model.posterior(rows).probabilities
    return -np.log(shares[np.arange(rows.num_rows), (np.array(rows["y"]) == "b").astype(int)]).mean()


@pytest.fixture(scope="module")
def islanders():
    return likely.learn(islands(2500), "y")


def test_classes_of_several_clouds_get_several_components(islanders):
    held = islanders.calibration.joint.components
    assert (np.bincount(held.owner) > 2).all()
    np.testing.assert_allclose([np.exp(held.log_share[held.owner == c]).sum() for c in (0, 1)], 1.0, rtol=1e-9)
    alone = np.mean(np.array(islands(2500)["y"]) == "a")
    assert loss(islanders, islands(2000, 1)) < 0.12 < -np.log(max(alone, 1 - alone))


def test_the_explanation_of_a_mixture_adds_up(islanders):
    row = islands(3, 2).drop_columns(["y"]).to_pylist()[1]
    ledger = islanders.explain(row)
    assert [entry.columns for entry in ledger.entries].count(("(all numbers together)",)) == 1
    summed = np.array(ledger.log_prior) + sum(np.array(entry.evidence) for entry in ledger.entries)
    np.testing.assert_allclose(summed, ledger.log_joint, atol=1e-9)
    expected = islanders.posterior([row]).probabilities[0]
    np.testing.assert_allclose(np.exp(summed - np.logaddexp.reduce(summed)), expected, rtol=1e-9)


def test_a_mixture_is_saved_and_that_of_parts_is_that_of_the_whole(islanders, tmp_path):
    table, rows = islands(2500), islands(50, 3)
    expected = islanders.posterior(rows).probabilities
    both = likely.learn(table.slice(0, 1100), "y") + likely.learn(table.slice(1100), "y")
    np.testing.assert_allclose(both.posterior(rows).probabilities, expected, atol=1e-9)
    islanders.save(tmp_path / "m.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "m.likely").posterior(rows).probabilities, expected)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_a_mixture_is_scored_alike_by_a_database(islanders, dialect):
    rows = islands(120, 4)
    gaps = pa.array([None if i % 9 == 0 else v for i, v in enumerate(rows["x1"].to_pylist())])
    made = {"duckdb": databases.Duckdb, "sqlite": databases.Sqlite}[dialect]()
    both_ways(islanders, rows.set_column(1, "x1", gaps), made, dialect)


def test_a_mixture_is_scored_alike_by_onnx(islanders):
    runtime = pytest.importorskip("onnxruntime")
    rows = islands(60, 5)
    session = runtime.InferenceSession(islanders.onnx().SerializeToString())
    given = {f"x{j}": np.array(rows[f"x{j}"], dtype=float)[:, None] for j in range(DIMENSIONS)}
    found = session.run(["probabilities"], given)[0]
    np.testing.assert_allclose(found, islanders.posterior(rows).probabilities, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_noise_is_not_split(seed):
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(size=(500, 6))) if seed % 2 else rng.normal(size=(500, 6))
    x[rng.random(x.shape) < 0.2] = np.nan
    model = learn({f"x{j}": x[:, j] for j in range(6)} | {"y": rng.choice(["a", "b", "c"], 500)})
    held = model.calibration.joint
    assert held is None or len(held.components.owner) == 3


def test_columns_of_one_unit_may_keep_their_common_scale():
    datasets = pytest.importorskip("sklearn.datasets")
    x, y = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:1200], order[1200:]
    names = [f"p{j}" for j in range(x.shape[1])]
    model = learn(dict(zip(names, x[train].T, strict=True)) | {"y": y[train].astype(str)})
    numbers = dict(zip(model.calibration.joint.columns, model.calibration.joint.numbers, strict=True))
    wide, narrow = (np.ptp(numbers[name]) for name in ("p20", "p1"))
    assert wide > 1.3 * narrow, "the brighter pixel varies more"
    shares = model.posterior(dict(zip(names, x[test].T, strict=True))).probabilities
    assert -np.log(shares[np.arange(len(test)), y[test]]).mean() < 0.08


@pytest.mark.parametrize(
    ("array", "change"),
    [
        ("joint_owner", lambda owner: np.where(owner == 1, 2, owner)),
        ("joint_owner", lambda owner: owner[::-1].copy()),
        ("joint_owner", lambda owner: owner * 0),
        ("joint_share", lambda share: share + 1.0),
        ("joint_share", lambda share: share[:-1]),
    ],
)
def test_components_of_a_damaged_file_are_refused(islanders, array, change):
    header, arrays = model_to_file(islanders)
    (name,) = [name for name in arrays if name.endswith(array)]
    changed = model_file.to_bytes(header, arrays | {name: change(arrays[name])})
    read, found, _ = model_file.from_bytes(changed, "a damaged file")
    with pytest.raises(ValueError, match="joint Gaussian"):
        from_file(read, found)


@pytest.mark.parametrize("size", [1e-300, 1e-100, 1e150, 1e300])
def test_the_unit_of_the_numbers_does_not_matter(size):
    table, rows = islands(900), islands(50, 3)
    scaled = [
        pa.table({name: np.array(each[name]) * size if name != "y" else each["y"] for name in each.column_names})
        for each in (table, rows)
    ]
    found = likely.learn(scaled[0], "y").posterior(scaled[1]).probabilities
    expected = likely.learn(table, "y").posterior(rows).probabilities
    assert np.abs(found - expected).mean() < 0.01, "rows are in other folds, as their hashes differ"


def test_numbers_of_very_different_sizes_are_learned_from_together():
    table = islands(600)
    sizes = {"x0": 1e300, "x1": 1e-300, "x2": 1.0, "x3": 1e20}
    mixed = pa.table({name: np.array(table[name]) * sizes[name] if name != "y" else table["y"] for name in table.column_names})
    shares = likely.learn(mixed, "y").posterior(mixed).probabilities
    assert np.isfinite(shares).all()


def test_the_joint_gaussian_counts_all_its_numbers_as_entries(islanders):
    held, joint = islanders.calibration.joint.components, islanders.block_parameters[-1]
    components = len(held.owner)
    assert joint.entries == components * DIMENSIONS + components * DIMENSIONS * DIMENSIONS
    others = sum(parameters.entries for parameters in islanders.block_parameters[:-1])
    assert islanders.parameter_count.table_entries == len(islanders.classes) + others + joint.entries


def test_the_calibration_is_the_same_on_one_thread_and_beside_other_work_on_several():
    rng = np.random.default_rng(8)
    y = rng.integers(0, 3, 12_000)
    x = rng.normal(size=len(y))
    columns = {"x": x, "z": (y - 1) * x + rng.normal(size=len(y)), "c": (y + rng.integers(0, 3, len(y))) % 4}
    table = pa.table(columns | {"y": np.array(["a", "b", "c"])[y]})
    made = []
    for most in (1, 2, 4):
        with limited_to(most):
            made.append(likely.learn(table, "y"))
    assert made[0].calibration.joint is not None
    for other in made[1:]:
        assert other.calibration.weights == made[0].calibration.weights
        assert other.calibration.joint.weight == made[0].calibration.joint.weight
        np.testing.assert_array_equal(other.posterior(table).probabilities, made[0].posterior(table).probabilities)


@pytest.mark.parametrize("classes", [1, 2, 3, 7, 8, 9])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_losses_of_few_and_many_classes_are_those_of_the_formula(classes, kind):
    from likely.bayes.rule import log_losses
    from likely.families.likelihoods import relative

    rng = np.random.default_rng(classes)
    for rows in (1, 6, 4_001):
        scores, labels = (rng.normal(size=(rows, classes)) * 30).astype(kind), rng.integers(0, classes, rows)
        top = scores.max(1)
        expected = np.log(np.exp(scores - top[:, None]).sum(1)) + top - scores[np.arange(rows), labels]
        close = 1e-5 if kind is np.float32 else 1e-13
        np.testing.assert_allclose(log_losses(scores, labels), expected, rtol=close, atol=close)
        np.testing.assert_array_equal(relative(scores, -20.0), np.maximum(scores - top[:, None], -20.0))


class _Gains:
    """A fit of which only the gain is known: of joint Gaussians first, or of interactions first."""

    pairs_searched, base, tables = 1, np.zeros(1), ("a table",)

    def __init__(self, interactions_first, joint_first):
        self.interactions_first, self.joint_first, self.is_copy = interactions_first, joint_first, False

    def copy(self):
        made = _Gains(self.interactions_first, self.joint_first)
        made.is_copy = True
        return made

    def add_joint(self, made):
        return True

    def gain(self):
        return self.joint_first if self.is_copy else self.interactions_first


@pytest.mark.parametrize(("ahead", "first"), [(-1.0, "joint"), (3.9, "joint"), (4.1, "interactions"), (50.0, "interactions")])
def test_interactions_come_before_joint_gaussians_only_if_they_then_gain_four_nats_more(ahead, first, monkeypatch):
    monkeypatch.setattr(_stages, "_add_interactions", lambda fit: 7 if fit.is_copy else 9)
    fit, tested = _stages._with_joint_and_interactions(_Gains(100.0 + ahead, 100.0), "joint Gaussians")
    assert (fit.is_copy, tested) == ((True, 7) if first == "joint" else (False, 9))
