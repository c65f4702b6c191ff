"""The published tables, or those that scikit-learn ships: learning works on each, and agrees with scikit-learn."""

import csv

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.naive_bayes import CategoricalNB, GaussianNB

import likely
import standins
from strategies import quietly

pytestmark = pytest.mark.real

HERE = (standins.PUBLISHED / "INDEX.csv").exists()
PUBLISHED = [
    "adult.parquet", "mushroom.parquet", "vote.parquet", "car.parquet", "titanic.parquet", "breast_cancer_wisconsin.parquet",
    "breast_cancer_ljubljana.parquet", "credit_g.parquet", "heart_cleveland.parquet", "iris.csv", "wine.csv", "zoo.parquet",
    "soybean.parquet", "nursery.parquet", "spambase.parquet", "letter.parquet", "penguins.parquet",
]  # fmt: skip


TABLES = PUBLISHED if HERE else list(standins.TABLES)


def chosen(published, own):
    """The published tables that a test is about; where they are not there, scikit-learn's own that serve."""
    return published if HERE else own


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return standins.PUBLISHED if HERE else tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="session")
def index(folder):
    if not HERE:
        return standins.write(folder)
    with (folder / "INDEX.csv").open(encoding="utf-8") as file:
        return {row["file"]: row for row in csv.DictReader(file)}


@pytest.fixture
def described(index, folder):
    """Path, target and the columns to leave out of one table."""

    def find(name):
        about = index[name]
        ignore = [*about["ignore"].split(), *([about["split_column"]] if about["split_column"] else [])]
        return str(folder / name), about["target"], ignore

    return find


def read(path):
    return pyarrow.csv.read_csv(path) if path.endswith(".csv") else pq.read_table(path)


def test_every_table_of_the_index_is_tested(index, shared_data):
    shared_data("INDEX.csv")
    assert {name for name, row in index.items() if row["kind"] == "table"} == set(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_learning_works_and_does_better_than_the_majority(described, index, name):
    path, target, ignore = described(name)
    model = quietly(likely.learn, path, target, ignore=ignore)
    labels = read(path)[target].to_pylist()
    assert model.tally.rows == len(labels) == int(index[name]["rows"])
    assert len(model.classes) == int(index[name]["n_classes"])
    posterior = model.posterior(path)
    np.testing.assert_allclose(posterior.probabilities.sum(1), 1.0, rtol=1e-12)
    # CSV and Parquet may write one label in two types; the schema knows that they are one.
    truth = model.schema.target.codes(labels)
    right = np.mean(np.array(model.schema.target.codes(posterior.labels.tolist())) == truth)
    majority = np.bincount(truth).max() / len(truth)
    assert right > majority + 0.25 * (1 - majority) or name in HARD
    assert right > majority


# Gaussians on columns of mostly zeros, and labels that two in three features say nothing about: better than the majority,
# but not by a quarter of what is left.
HARD = {"adult.parquet", "breast_cancer_ljubljana.parquet", "credit_g.parquet"}


@pytest.mark.parametrize("name", TABLES)
def test_the_file_the_frame_and_the_halves_are_one_model(described, name):
    path, target, ignore = described(name)
    model = quietly(likely.learn, path, target, ignore=ignore, plain=True)
    families = {block.columns[0]: block.family for block in model.blocks}
    frame = read(path)
    from_frame = quietly(likely.learn, frame, target, families=families, ignore=ignore)
    middle = len(frame) // 2
    halves = [
        quietly(likely.learn, part, target, families=families, ignore=ignore, classes=from_frame.classes)
        for part in (frame.slice(0, middle), frame.slice(middle))
    ]
    for other in (from_frame, halves[0] + halves[1]):
        np.testing.assert_array_equal(other.tally.classes, model.tally.classes)
        for a, b in zip(other.tally.statistics, model.tally.statistics, strict=True):
            for part, array in a.arrays().items():
                exact = part in ("seen", "n")
                np.testing.assert_allclose(
                    array, b.arrays()[part], rtol=0 if exact else 1e-9, atol=0 if exact else 1e-9
                )
        np.testing.assert_allclose(
            other.posterior(frame).log_joint, model.posterior(frame).log_joint, rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("name", chosen(
    ["titanic.parquet", "heart_cleveland.parquet", "vote.parquet", "penguins.parquet"],
    ["tumours_in_words.parquet", "diabetes_in_words.parquet", "wine.csv"],
))  # fmt: skip
def test_calibrated_halves_are_calibrated_as_the_whole(described, name):
    path, target, ignore = described(name)
    model = quietly(likely.learn, path, target, ignore=ignore)
    frame = read(path)
    middle = len(frame) // 2
    halves = [
        quietly(likely.learn, part, target, ignore=ignore, classes=model.classes)
        for part in (frame.slice(0, middle), frame.slice(middle))
    ]
    whole = halves[0] + halves[1]
    assert whole.tally == model.tally
    np.testing.assert_allclose(
        whole.posterior(frame).probabilities, model.posterior(frame).probabilities, rtol=1e-6, atol=1e-9
    )


def codes(column, values):
    place = {value: i for i, value in enumerate(values)}
    return np.array([place[value] for value in column.to_pylist()])


@pytest.mark.parametrize("name", chosen(
    ["mushroom.parquet", "vote.parquet", "adult.parquet"],
    ["digits_in_words.parquet", "tumours_in_words.parquet", "diabetes_in_words.parquet"],
))  # fmt: skip
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_categories_agree_with_scikit_learn(described, name, alpha):
    """On the rows without gaps, where scikit-learn has an answer at all."""
    path, target, ignore = described(name)
    table = read(path).drop_null()
    model = quietly(likely.learn, table, target, ignore=ignore, smoothing=alpha)
    names = [c.name for c in model.schema.columns if c.kind == "category"]
    table = table.select([*names, target])
    model = quietly(likely.learn, table, target, families="categorical", smoothing=alpha)
    X = np.column_stack([codes(table[n], model.schema.by_name[n].values) for n in names])
    y = np.array(table[target].to_pylist())
    peer = CategoricalNB(alpha=alpha).fit(X, y)
    ours = model.posterior(table)
    np.testing.assert_allclose(ours.log_probabilities, peer.predict_log_proba(X), rtol=1e-9, atol=1e-9)
    assert (ours.labels == peer.predict(X)).all()


@pytest.mark.parametrize("name", chosen(
    ["adult.parquet", "iris.csv", "wine.csv", "penguins.parquet", "letter.parquet", "heart_cleveland.parquet"],
    ["iris.csv", "wine.csv", "breast_cancer.parquet", "tumours_in_words.parquet", "diabetes_in_words.parquet"],
))  # fmt: skip
def test_numbers_agree_with_scikit_learn(described, name):
    path, target, ignore = described(name)
    table = read(path).drop_null()
    model = quietly(likely.learn, table, target, ignore=ignore)
    names = [c.name for c in model.schema.columns if c.kind == "number"]
    table = table.select([*names, target])
    model = quietly(likely.learn, table, target, families="gaussian")
    X = np.column_stack([table[n].to_numpy() for n in names]).astype(float)
    y = np.array(table[target].to_pylist())
    peer = GaussianNB(var_smoothing=0).fit(X, y)
    ours = model.posterior(table)
    np.testing.assert_allclose(ours.log_probabilities, peer.predict_log_proba(X), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", chosen(
    ["adult.parquet", "penguins.parquet", "heart_cleveland.parquet", "titanic.parquet"],
    ["tumours_in_words.parquet", "diabetes_in_words.parquet"],
))  # fmt: skip
def test_mixed_tables_are_the_sum_of_both_peers(described, name):
    """log P(class) + log P(categories | class) + log P(numbers | class): each half is one of scikit-learn's."""
    path, target, ignore = described(name)
    table = read(path).drop_columns(ignore).drop_null()
    model = quietly(likely.learn, table, target, plain=True)
    words = [c.name for c in model.schema.columns if c.kind == "category"]
    numbers = [c.name for c in model.schema.columns if c.kind == "number"]
    y = np.array(table[target].to_pylist())
    X = np.column_stack([codes(table[n], model.schema.by_name[n].values) for n in words])
    Z = np.column_stack([table[n].to_numpy() for n in numbers]).astype(float)
    halves = CategoricalNB(alpha=1).fit(X, y), GaussianNB(var_smoothing=0).fit(Z, y)
    joint = halves[0].predict_joint_log_proba(X) + halves[1].predict_joint_log_proba(Z) - np.log(halves[1].class_prior_)
    np.testing.assert_allclose(model.posterior(table).log_joint, joint, rtol=1e-9)


def test_missing_cells_add_nothing_to_the_tally(described):
    path, target, ignore = described("vote.parquet" if HERE else "tumours_in_words.parquet")
    table = read(path)
    kinds = {name: table[name].type for name in table.column_names if name not in (target, *ignore)}
    words = [name for name, kind in kinds.items() if kind in ("string", "large_string")]
    model = likely.learn(table.select([*words, target]), target)
    assert any(table[name].null_count for name in words)
    for block, counts in zip(model.blocks, model.tally.statistics, strict=True):
        column = table[block.columns[0]]
        assert counts.seen.sum() == len(column) - column.null_count


def test_no_more_interactions_are_added_once_a_round_gains_next_to_nothing(shared_data):
    """Mushrooms: the first rounds leave 0.0001 nats a row, and ten more would add a hundred tables that nobody can read."""
    model = likely.learn(shared_data("mushroom.parquet"), target="class")
    assert 0 < len(model.calibration.interactions) <= 40
