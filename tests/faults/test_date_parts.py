"""Weekday, month and hour of dates: candidate columns from every source, kept where they are informative about the class."""

import warnings

import numpy as np
import pandas as pd
import pytest

import likely
from commands import document, rows, run
from likely.errors import LikelyWarning, ModelFileError, SchemaError, UsageError
from likely.sources.date_parts import PARTS, DatePart
from tables import learn

RNG = np.random.default_rng(7)
WHEN = pd.Timestamp("2022-01-01") + pd.to_timedelta(RNG.integers(0, 3 * 365 * 24 * 60, 1200), unit="min")
NOISE = RNG.normal(size=1200).round(3)


def table(often, rare=0.15):
    """A table in which the class is mostly "yes" where `often` holds, and mostly "no" elsewhere."""
    y = np.where(RNG.random(len(WHEN)) < np.where(often, 1 - rare, rare), "yes", "no")
    return pd.DataFrame({"when": WHEN, "noise": NOISE, "y": y})


WEEKENDS = table(WHEN.day_of_week >= 5)
TABLES = {
    "weekday": WEEKENDS,
    "month": table(WHEN.month.isin([6, 7, 8])),
    "hour": table((WHEN.hour >= 8) & (WHEN.hour < 11)),
}


def columns(model):
    return [column.name for column in model.schema.columns]


@pytest.fixture
def written(tmp_path):
    """A frame as CSV and as Parquet."""

    def write(frame):
        frame.to_csv(tmp_path / "d.csv", index=False)
        frame.to_parquet(tmp_path / "d.parquet")
        return [str(tmp_path / "d.csv"), str(tmp_path / "d.parquet"), frame, frame.to_dict("list")]

    return write


def test_the_parts_are_those_of_the_calendar():
    seconds = WHEN.as_unit("s").asi8.astype(float)
    names = {"weekday": WHEN.day_name(), "month": WHEN.month_name(), "hour": WHEN.hour}
    for name in PARTS:
        part = DatePart("t", name)
        assert [part.values[code] for code in part.codes(seconds)] == list(names[name])
    old = np.array([-1.0, np.nan, -86400.0 * 365.25 * 400])
    assert DatePart("t", "hour").codes(old)[:2].tolist() == [23, -1]
    assert DatePart("t", "weekday").values[DatePart("t", "weekday").codes(old)[0]] == "Wednesday"
    assert DatePart("t", "month").numbers(np.array([0.0, np.nan])).tolist() == pytest.approx([1.0, np.nan], nan_ok=True)


@pytest.mark.parametrize("part", PARTS)
def test_informative_date_parts_are_kept_in_every_source_and_the_others_are_reported(written, part):
    others = " and ".join(name for name in PARTS if name != part)
    probabilities = []
    for source in written(TABLES[part]):
        model = learn(source)
        assert columns(model) == ["when", "noise", f"when.{part}"]
        assert model.schema.by_name["when"].reason.endswith(f"; its {others} are not informative about the class")
        assert "depends on the class with probability 1.000" in model.schema.by_name[f"when.{part}"].reason
        probabilities.append(model.posterior(TABLES[part]).probabilities)
    assert np.allclose(probabilities, probabilities[0], atol=1e-12)
    without = likely.evaluate(TABLES[part], target="y", date_parts="none")
    assert likely.evaluate(TABLES[part], target="y").log_loss < without.log_loss - 0.01


def test_uninformative_dates_leave_no_columns_behind():
    for seed in range(5):
        y = np.random.default_rng(seed).choice(["no", "yes"], len(WHEN))
        assert columns(learn(pd.DataFrame({"when": WHEN, "noise": NOISE, "y": y}))) == ["when", "noise"]


def test_a_trend_is_not_taken_for_a_season():
    """Within one year the month is a function of the date, which says it already."""
    when = pd.Timestamp("2023-01-01") + pd.to_timedelta(RNG.integers(0, 360 * 24 * 60, 1200), unit="min")
    y = np.where(when > pd.Timestamp("2023-07-01"), "late", "early")
    assert columns(learn(pd.DataFrame({"when": when, "noise": NOISE, "y": y}))) == ["when", "noise"]


def test_days_have_no_hour_and_a_column_of_the_table_goes_first(written):
    frame = WEEKENDS.assign(when=WHEN.normalize())
    found = [row["column"] for row in likely.inspect(written(frame)[0], target="y")]
    assert found == ["when", "noise", "y", "when.weekday", "when.month"]
    own = frame.assign(**{"when.weekday": "x"})
    assert "when.weekday" not in [c.name for c in learn(own).schema.columns if c.form.startswith("weekday")]


@pytest.mark.parametrize("learned", range(4))
def test_a_model_learned_from_one_source_is_asked_from_any_other(written, tmp_path, learned):
    sources = written(WEEKENDS)
    model = learn(sources[learned])
    path = tmp_path / "m.likely"
    model.save(path)
    again = likely.load(path)
    assert [c.form for c in again.schema.columns] == [c.form for c in model.schema.columns]
    expected = model.posterior(WEEKENDS).probabilities
    for source in (*sources, WEEKENDS.to_dict("records")):
        assert np.allclose(again.posterior(source).probabilities, expected, atol=1e-12)
    saturday = again.explain({"when": "2024-03-02 10:00:00", "noise": 0.0})
    assert {entry.name: entry.value for entry in saturday.entries}["when.weekday"] == "Saturday"
    assert again.explain(sources[0], number=3).label == model.predict(WEEKENDS.iloc[2:3])[0]


def test_counting_on_forgetting_and_adding_up():
    whole, first, second = learn(WEEKENDS), learn(WEEKENDS[:600]), learn(WEEKENDS[600:])
    assert columns(first) == columns(second) == columns(whole)
    added, updated = first + second, first.update(WEEKENDS[600:])
    for model in (added, updated):
        assert model.tally.statistics[2] == whole.tally.statistics[2]
    assert updated.forget(WEEKENDS[600:]).tally.statistics[2] == first.tally.statistics[2]
    days = first.schema.by_name["when.weekday"].values
    assert days == ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    without = learn(WEEKENDS[600:], date_parts="none")
    for sides in ((first, without), (without, first)):
        with pytest.raises(UsageError, match=r"when\.weekday.*the same date_parts="):
            sides[0] + sides[1]


def test_parts_by_name_and_none():
    assert columns(learn(WEEKENDS, date_parts="none")) == ["when", "noise"]
    assert columns(learn(WEEKENDS, date_parts=("hour", "weekday"))) == ["when", "noise", "when.weekday", "when.hour"]
    alone = learn(WEEKENDS, date_parts="when.weekday", ignore=["when"])
    assert columns(alone) == ["noise", "when.weekday"]
    assert alone.predict([{"when": "2024-03-02", "noise": 0.0}, {"when": "2024-03-05", "noise": 0.0}]).tolist() == ["yes", "no"]
    with pytest.raises(SchemaError, match="has no column 'when'"):
        alone.predict(pd.DataFrame({"noise": [0.1]}))
    plain = learn(WEEKENDS, plain=True, date_parts="hour", families={"when.hour": "gaussian"})
    assert plain.schema.by_name["when.hour"].kind == "number"
    assert columns(learn(WEEKENDS, plain=True)) == ["when", "noise"]
    assert "when.hour" in columns(learn(WEEKENDS, families={"when.hour": "categorical"}))
    with pytest.raises(UsageError, match=r"no 'weekdy' of a date.*did you mean 'weekday'"):
        learn(WEEKENDS, date_parts="weekdy")
    with pytest.raises(UsageError, match="there are no dates"):
        learn(WEEKENDS.drop(columns="when"), date_parts="weekday")


def test_the_order_of_a_date_is_remembered_where_only_a_part_of_it_is_used(tmp_path):
    path, other = tmp_path / "d.csv", tmp_path / "o.csv"
    WEEKENDS.assign(when=WHEN.strftime("%d/%m/%Y")).to_csv(path, index=False)
    model = learn(str(path), date_parts="weekday", ignore=["when"])
    other.write_text("when,noise\n05/03/2024,0\n")  # a Tuesday in March, a Friday in May
    ledger = model.explain(str(other))
    assert {entry.name: entry.value for entry in ledger.entries}["when.weekday"] == "Tuesday"


def test_the_shell(written, tmp_path):
    csv, parquet, *_ = written(WEEKENDS)
    model = str(tmp_path / "m.likely")
    report = document("learn", csv, "--target", "y", "-o", model, "--folds", "3")
    assert [c["column"] for c in report["columns"]] == ["when", "noise", "when.weekday"]
    assert report["evaluation"]["accuracy"] > 0.75
    assert list(rows(run("predict", model, csv).stdout)[0]) == ["when", "noise", "y", "label"]
    assert document("evaluate", model, parquet)["accuracy"] > 0.75
    assert document("update", model, parquet)["rows_after"] == 2400
    assert "Saturday" in run("explain", model, "--set", "when=2024-03-02", "--set", "noise=0").stdout
    shown = run("inspect", csv).stdout
    assert "weekday of 'when'" in shown
    assert "used if informative about the class" in " ".join(shown.split())
    assert "weekday of 'when'" in run("inspect", model).stdout
    none = document("learn", csv, "--target", "y", "-o", model, "--date-parts", "none")
    assert len(none["columns"]) == 2
    some = document("learn", csv, "--target", "y", "-o", model, "--date-parts", "month,when.hour")
    assert [c["column"] for c in some["columns"]] == ["when", "noise", "when.month", "when.hour"]
    assert "no 'day' of a date" in run("learn", csv, "--target", "y", "-o", model, "--date-parts", "day", expect=2).stderr
    assert run("curve", csv, "--target", "y", "--seeds", "1", "--date-parts", "weekday").stdout


def test_unlabelled_rows_weights_bins_and_selection_work_with_parts():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        hidden = WEEKENDS.assign(y=WEEKENDS["y"].where(np.arange(1200) % 5 == 0))
        assert "when.weekday" in columns(likely.learn(hidden, "y", unlabelled=0.5))
        weighed = likely.learn(WEEKENDS, "y", weights=np.full(1200, 2.0))
        assert "when.weekday" in columns(weighed)
        settings = {"families": "categorical", "ignore": ["when", "noise"], "date_parts": "weekday"}
        chosen = likely.learn(WEEKENDS, "y", select=True, **settings)
        assert columns(chosen) == ["when.weekday"]
        amount = WEEKENDS.assign(y=np.where(WEEKENDS["y"] == "yes", 200, 100) + np.arange(1200) / 100)
        text = amount.assign(when=WHEN.strftime("%d %b %Y %H:%M"))
        for frame in (amount, text):
            binned = likely.learn(frame, "y", target_bins=[150])
            assert columns(binned) == ["when", "noise", "when.weekday"]


def test_copies_of_rows_do_not_make_noise_tell():
    """A weight of 100 is 100 copies of one row, and no more evidence than the row."""
    for seed in range(3):
        y = np.random.default_rng(seed).choice(["no", "yes"], len(WHEN))
        frame = pd.DataFrame({"when": WHEN, "noise": NOISE, "y": y})
        assert columns(learn(frame, weights=np.full(len(frame), 100.0))) == ["when", "noise"]


def test_a_file_that_claims_a_part_of_nothing_is_refused(tmp_path):
    from likely.model import model_file

    model = learn(WEEKENDS)
    path = tmp_path / "m.likely"
    model.save(path)
    header, arrays, _ = model_file.read(path)
    for form in ("week/times", "weekday/sundial", "hour/times"):
        header["columns"][2]["form"] = form
        model_file.write(tmp_path / "odd.likely", header, arrays)
        with pytest.raises(ModelFileError):
            likely.load(tmp_path / "odd.likely")


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (["3 Mar 2024", "17 December 1999"], "2024-03-03"),
        (["03-Mar-24", "17-Dec-99"], "2024-03-03"),
        (["March 3, 2024", "Dec. 17, 1999"], "2024-03-03"),
        (["Sun, 3 Mar 2024 10:05:00 +0100", "Fri, 17 Dec 1999 00:00:00 GMT"], "2024-03-03T09:05"),
        (["3rd March 2024 5:05 pm", "Sept 1st, 2024 5:05 am"], "2024-03-03T17:05"),
        (["2024-Mar-03", "1999-DEC-17"], "2024-03-03"),
    ],
)
def test_months_may_be_written_by_name(tmp_path, cells, first):
    path = tmp_path / "d.csv"
    path.write_text("x,y\n" + "".join(f'"{cells[i % 2]}",{"pq"[i % 2]}\n' for i in range(40)))
    for source in (str(path), pd.read_csv(path)):
        model = learn(source, plain=True)
        assert model.schema.by_name["x"].reason == "dates (month by name), as seconds since 1970"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LikelyWarning)
            batch = next(likely.sources.open_source(source, model.reading).batches({"x": "number"}))
        assert batch.numbers(["x"], 0, 1)[0, 0] == pd.Timestamp(first).timestamp()
    assert columns(learn(str(path), plain=True, dates="mdy")) == ["x"]


def test_texts_that_begin_like_a_date_stay_texts():
    for cells in (["Mar 5", "May 7"], ["march hare", "may fly"], ["12 marbles", "3 may bugs"], ["31 Feb 2024", "30 Feb 2024"]):
        model = learn({"x": cells * 30, "y": ["p", "q"] * 30}, plain=True)
        assert model.schema.by_name["x"].kind == "category"
