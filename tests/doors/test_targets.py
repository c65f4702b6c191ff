"""What may stand for the target: a name, an integer, an array, a quantity cut into bins."""

import json

import numpy as np
import pandas as pd
import pytest

import likely
from commands import document, run
from likely.errors import DataError, LikelyWarning, ModelFileError, UsageError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
PRICE = np.round(100 + 20 * X[:, 0] + RNG.normal(size=300), 2)


@pytest.fixture
def houses(tmp_path):
    """A CSV file whose target is a quantity."""
    path = tmp_path / "houses.csv"
    pd.DataFrame({"a": X[:, 0].round(3), "b": X[:, 1].round(3), "price": PRICE}).to_csv(path, index=False)
    return str(path)


class TestQuantities:
    def test_many_numbers_are_refused_with_the_remedy(self, houses):
        frame = pd.read_csv(houses)
        for call in (
            lambda: likely.learn(houses, "price"),
            lambda: likely.learn(frame, "price"),
            lambda: likely.learn(frame.to_numpy(), "x2"),
            lambda: likely.learn(frame[["a", "b"]], frame["price"]),
            lambda: likely.evaluate(houses, target="price"),
            lambda: likely.curve(houses, target="price"),
        ):
            with pytest.raises(DataError, match=r"different numbers in 300 rows.*target_bins=4 \(--target-bins 4"):
                call()
        for command in ("learn", "curve", "compare"):
            assert "--target-bins 4" in run(command, houses, "--target", "price", expect=3).stderr

    def test_classes_that_are_numbers_are_not(self):
        for labels in (np.arange(300) % 2, (np.arange(300) % 4) / 2, np.arange(300) % 25, np.arange(2000) % 100):
            rows = RNG.normal(size=(len(labels), 2))
            assert likely.learn(rows, labels, plain=True).tally.rows == len(labels)
        many = np.arange(1_000) % 300
        assert len(likely.learn(RNG.normal(size=(1_000, 1)), many, target_bins="none", plain=True).classes) == 300

    def test_bins_hold_about_equally_many_rows(self, houses):
        model = likely.learn(houses, "price", target_bins=4)
        assert len(model.classes) == 4
        assert np.abs(model.tally.classes - 75).max() <= 3
        low = model.target_edges[0]
        assert f"up to {low:g}" in model.classes
        assert model.tally.classes[model.classes.index(f"up to {low:g}")] == (low >= PRICE).sum()

    def test_the_model_remembers_its_bins(self, houses, tmp_path):
        model = likely.learn(houses, "price", target_bins=3)
        model.save(tmp_path / "m.likely")
        again = likely.load(tmp_path / "m.likely")
        assert again.target_edges == model.target_edges
        assert likely.evaluate(houses, model=again).accuracy > 0.7
        doubled = again.update(houses)
        assert doubled.classes == model.classes
        assert (doubled.tally.classes == 2 * model.tally.classes).all()
        assert doubled.forget(houses).tally.rows == 300
        predicted = pd.read_csv(houses).assign(price=model.predict(houses))  # the names of bins are bins, too
        assert likely.evaluate(predicted, model=model).accuracy == 1
        assert likely.evaluate(houses, model=model, folds=3).accuracy > 0.6
        with pytest.raises(DataError, match="learn both with the same target_bins"):
            model + likely.learn(houses, "price", target_bins=2)
        with pytest.raises(DataError, match="'dear'"):
            likely.evaluate(predicted.assign(price="dear"), model=model)

    def test_edges_of_ones_own_and_gaps(self, houses):
        model = likely.learn(houses, "price", target_bins=[90, 110])
        assert model.classes == ("up to 90", "90 to 110", "above 110")
        frame = pd.read_csv(houses)
        frame.loc[:9, "price"] = np.nan
        with pytest.warns(LikelyWarning, match="10 of 300 rows have no 'price'"):
            assert likely.learn(frame, "price", target_bins=[90, 110]).tally.rows == 290
        for bad in ([110, 90], [], 1, "4", True, [float("nan")]):
            with pytest.raises(UsageError, match="target_bins="):
                likely.learn(houses, "price", target_bins=bad)

    def test_bins_stand_in_the_order_of_their_edges_everywhere(self, houses, tmp_path):
        edges = [-5, 5, 90, 110, 1e6]
        labels = ("up to -5", "-5 to 5", "5 to 90", "90 to 110", "110 to 1000000", "above 1000000")
        wide = pd.read_csv(houses)
        wide.loc[:5, "price"] = [-7, -6, 0, 1, 2e6, 3e6]
        model = likely.learn(wide, "price", target_bins=edges, keep_rows=False)
        assert model.classes == labels
        assert (model + likely.learn(wide[::-1], "price", target_bins=edges, keep_rows=False)).classes == labels
        assert model.update(wide).classes == labels
        path = str(tmp_path / "m.likely")
        model.save(path)
        assert likely.load(path).classes == labels
        found = likely.evaluate(wide, model=likely.load(path))
        assert found.total.classes == labels
        frame = tmp_path / "wide.csv"
        wide.to_csv(frame, index=False)
        head = run("predict", path, str(frame), "--probabilities").stdout.splitlines()[0]
        assert head.split(",")[-6:] == [f"p_{label}" for label in labels]
        judged = likely.evaluate(wide, target="price", target_bins=[90, 110])
        assert judged.total.classes == ("up to 90", "90 to 110", "above 110")

    def test_the_error_of_the_estimator_names_how_to_bin(self):
        with pytest.raises(ValueError, match=r"KBinsDiscretizer.*likely\.learn\(X, y, target_bins=4\)"):
            likely.NaiveBayes().fit(X, PRICE)

    def test_few_different_numbers_make_fewer_bins(self):
        with pytest.warns(LikelyWarning, match="is cut into 2 bins, not 4"):
            model = likely.learn(X, [1.0] * 200 + [2.0] * 100, target_bins=4)
        assert model.classes == ("up to 1", "above 1")
        with pytest.raises(DataError, match="nothing to bin"):
            likely.learn(X, [1.0] * 300, target_bins=4)

    def test_the_shell(self, houses, tmp_path):
        model = str(tmp_path / "m.likely")
        assert len(document("learn", houses, "--target", "price", "--target-bins", "4", "-o", model)["classes"]) == 4
        assert document("evaluate", model, houses)["accuracy"] > 0.6
        assert document("update", model, houses)["rows_after"] == 600
        edged = document("learn", houses, "--target", "price", "--target-bins", "90,110", "-o", model, "--folds", "3")
        assert [row["class"] for row in edged["classes"]] == ["up to 90", "90 to 110", "above 110"]
        assert "is not a number" in run("learn", houses, "--target", "price", "--target-bins", "four", expect=2).stderr

    def test_edges_that_do_not_increase_are_no_model(self, houses, tmp_path):
        from likely.model import model_file

        path = tmp_path / "m.likely"
        likely.learn(houses, "price", target_bins=3).save(path)
        header, arrays, _ = model_file.read(path)
        bad = json.loads(json.dumps({k: v for k, v in header.items() if k != "arrays"}))
        bad["settings"]["target_edges"] = bad["settings"]["target_edges"][::-1]
        model_file.write(path, bad, arrays)
        with pytest.raises(ModelFileError, match="do not increase"):
            likely.load(path)


class TestArrays:
    def test_rows_and_labels_apart(self):
        y = np.where(X[:, 0] > 0, "dear", "cheap")
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        together = likely.learn(frame.assign(y=y), "y")
        for rows, labels in ((frame, y), (frame, pd.Series(y, name="y")), (frame, list(y)), (X, y[:, None])):
            model = likely.learn(rows, labels)
            assert model.classes == ("cheap", "dear")
            assert list(model.predict(rows)) == list(together.predict(frame))
        assert likely.learn(frame, pd.Series(y, name="y")).schema.target.name == "y"
        assert likely.learn(frame, y).schema.target.name == "target"
        by_array = likely.evaluate(frame, target=y, model=together)
        assert by_array.accuracy == likely.evaluate(frame.assign(y=y), model=together).accuracy
        assert likely.evaluate(frame, target=y, folds=3).rows == 300

    def test_labels_that_do_not_fit(self, houses):
        with pytest.raises(DataError, match="there are 299 labels for 300 rows"):
            likely.learn(X, np.zeros(299))
        with pytest.raises(DataError, match="array of 2 columns"):
            likely.learn(X, np.zeros((300, 2)))
        with pytest.raises(UsageError, match="the target of a file must be the name"):
            likely.learn(houses, np.zeros(300))


class TestIntegerNames:
    def test_a_frame_whose_columns_are_numbered(self, tmp_path):
        frame = pd.DataFrame(X)
        frame[3] = np.where(X[:, 0] > 0, "p", "q")
        frame[4] = 1.0
        model = likely.learn(frame, 3, ignore=[2], weights=4, families={1: "gaussian"})
        assert model.schema.target.name == "3"
        assert [c.name for c in model.schema.columns] == ["0", "1"]
        assert model.weights == "4"
        model.save(tmp_path / "m.likely")
        again = likely.load(tmp_path / "m.likely")
        assert list(again.predict(frame)) == list(model.predict(frame))
        assert again.update(frame, weights=4).tally.rows == 600
        assert likely.evaluate(frame, target=3, model=again).accuracy > 0.9
        frame.to_csv(tmp_path / "t.csv", index=False)
        assert list(again.predict(str(tmp_path / "t.csv"))) == list(model.predict(frame))

    def test_names_that_would_be_one_are_refused(self):
        frame = pd.DataFrame([[1, 2, "a"], [3, 4, "b"]], columns=[1, "1", "y"])
        with pytest.raises(DataError, match="column '1' occurs twice"):
            likely.learn(frame, "y")
