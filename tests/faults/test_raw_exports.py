"""Raw exports: decimal commas, thousands, currencies, percentages, dates, times and odd cells, read by a stated rule."""

import datetime as dt
import shlex
import warnings

import numpy as np
import pandas as pd
import pytest

import likely
from commands import run
from likely.errors import DataError, LikelyWarning, UsageError
from tables import learn

LABELS = ["p", "q"] * 60


def column(file, cells, delimiter=",", name="data.csv", **how):
    """How a column of a CSV file is read: its form, what is reported of it, and its numbers."""
    cells = [cells[i % len(cells)] for i in range(120)]
    path = file(f"x{delimiter}y\n" + "".join(f'"{c}"{delimiter}{y}\n' for c, y in zip(cells, LABELS, strict=True)), name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        model = likely.learn(path, "y", plain=True, **how)
        batch = next(likely.sources.open_source(path, model.reading).batches({"x": "number"}))
    known = model.schema.by_name["x"]
    return known.kind, known.reason, batch.numbers(["x"], 0, 4)[:, 0].tolist() if known.kind == "number" else []


@pytest.mark.parametrize(
    ("cells", "reported", "numbers"),
    [
        (["-0,62", "1,5", "3", "0,25"], "numbers with a decimal comma", [-0.62, 1.5, 3, 0.25]),
        (["1,520", "2,000,000", "12", "999.5"], "numbers with thousands commas", [1520, 2e6, 12, 999.5]),
        (["1.520,5", "939,91", "12", "1.000"], "numbers with a decimal comma and thousands points", [1520.5, 939.91, 12, 1000]),
        (["1 520", "1\u00a0520,5", "12", "3"], "numbers with a decimal comma and thousands blanks", [1520, 1520.5, 12, 3]),
        (["1'520", "1'520.5", "12", "3"], "numbers with thousands apostrophes", [1520, 1520.5, 12, 3]),
        (["$1,520", "$12.50", "-$3", "$4"], "numbers with thousands commas", [1520, 12.5, -3, 4]),
        (["€ 939,91", "€ 2,5", "1,5 €", "€ 7"], "numbers with a decimal comma", [939.91, 2.5, 1.5, 7]),
        (["9.6%", "12%", "-3 %", "0.5%"], "numbers with a currency, percent or minus sign", [9.6, 12, -3, 0.5]),
        (["1:30:00", "0:05", "26:00:01", "-1:00"], "times or durations (h:mm:ss), as seconds", [5400, 300, 93601, -3600]),
        (["90 min", "1.5 h", "2 days", "30 s"], "durations with a unit, as seconds", [5400, 5400, 172800, 30]),
    ],
)  # fmt: skip
def test_numbers_are_read_in_the_form_they_are_written_in(file, cells, reported, numbers):
    kind, reason, found = column(file, cells)
    assert (kind, reason, found) == ("number", reported, pytest.approx(numbers))


@pytest.mark.parametrize(
    ("cells", "order", "first"),
    [
        (["2024-02-29", "1969-12-31"], "year, month, day", "2024-02-29"),
        (["2024-02-29T17:05:06Z", "2024-02-29T19:05:06+02:00"], "year, month, day", "2024-02-29T17:05:06"),
        (["31.12.2024", "01.02.2024"], "day, month, year", "2024-12-31"),
        (["3.4.2024 17:05", "13.4.2024 08:00:30"], "day, month, year", "2024-04-03T17:05"),
        (["12/31/2024", "01/02/2024"], "month, day, year", "2024-12-31"),
        (["12/31/24 5:30 PM", "1/2/24 12:00 am"], "month, day, year", "2024-12-31T17:30"),
        (["31/12/2024", "01/02/2024"], "day, month, year", "2024-12-31"),
    ],
)
def test_dates_are_seconds_since_1970_in_the_order_that_their_own_cells_show(file, cells, order, first):
    kind, reason, found = column(file, cells)
    assert (kind, reason) == ("number", f"dates ({order}), as seconds since 1970")
    assert found[0] == np.datetime64(first, "s").astype(int)


def test_an_ambiguous_order_of_dates_is_reported_and_can_be_given(file):
    path = file("d,y\n" + "03/04/2024,p\n05/06/2024,q\n07/08/2024,p\n09/10/2024,q\n" * 30)
    reported = r"column 'd' of .*dates \(month, day, year\).*could also be dates \(day, month, year\).*--dates dmy"
    with pytest.warns(LikelyWarning, match=reported):
        likely.learn(path, "y", plain=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LikelyWarning)
        model = likely.learn(path, "y", plain=True, dates="dmy")
    assert model.schema.by_name["d"].form == "ddmy"
    other = file("d,e,y\n" + "03/04/2024,13/01/2024,p\n05/06/2024,14/01/2024,q\n" * 30, "other.csv")
    forms = {c.name: c.form for c in learn(other, plain=True).schema.columns}
    assert forms == {"d": "ddmy", "e": "ddmy"}


def test_an_ambiguous_comma_is_reported_and_decided_by_the_file_or_by_the_caller(file):
    cells = ["1,520", "939", "2,750", "12"]
    kind, reason, found = column(file, cells)
    assert (kind, found) == ("number", [1520, 939, 2750, 12])
    assert "could also be numbers with a decimal comma: decimal=',' (--decimal ,) reads them so" in reason
    assert column(file, cells, decimal=",")[2] == pytest.approx([1.52, 939, 2.75, 12])
    assert column(file, cells, delimiter=";")[2] == pytest.approx([1.52, 939, 2.75, 12])
    assert column(file, ["1.520", "939", "2.750", "12"])[2] == pytest.approx([1.52, 939, 2.75, 12])
    assert column(file, ["1.520", "939", "2.750", "12"], thousands=".")[2] == [1520, 939, 2750, 12]


def test_what_is_no_number_stays_text(file):
    for cells in (["10.0.0.1", "10.0.0.2"], ["555-1234", "555-9999"], ["1-2", "3-4"], ["$5", "€5"], ["5%", "7"],
                  ["01234", "99999"], ["30.02.2024x", "a"], ["12 Main St", "9 Elm St"]):  # fmt: skip
        assert column(file, cells)[0] == "category", cells


def test_settings_that_are_not_known_are_refused(file):
    path = file("x,y\n1,p\n2,q\n")
    for how in ({"decimal": ";"}, {"thousands": "-"}, {"dates": "ydm"}, {"decimal": ",", "thousands": ","}):
        with pytest.raises(UsageError, match=next(iter(how))):
            likely.learn(path, "y", **how)


@pytest.fixture
def shops(tmp_path):
    """One table with types as Parquet, and as a raw export in German."""
    rng = np.random.default_rng(1)
    n = 400
    day = pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D")
    at = day + pd.to_timedelta(rng.integers(0, 86400, n), "s")
    amount = rng.normal(2000, 900, n).round(2)
    y = np.where(amount + 400 * (day.day_of_week >= 5) > 2200, "p", "q")
    table = pd.DataFrame({"day": day.date, "at": at, "amount": amount, "y": y})
    table.to_parquet(tmp_path / "t.parquet", index=False)

    def german(x):
        return f"{x:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")

    raw = pd.DataFrame({"day": day.strftime("%d.%m.%Y"), "at": at.strftime("%d.%m.%Y %H:%M:%S"), "amount": amount, "y": y})
    raw["amount"] = raw["amount"].map(german)
    raw.to_csv(tmp_path / "t.csv", index=False, sep=";")
    return str(tmp_path / "t.parquet"), str(tmp_path / "t.csv")


@pytest.mark.parametrize("plain", [True, False])
def test_a_model_of_one_source_gives_the_same_answers_about_the_other(shops, plain, tmp_path):
    parquet, csv = shops
    for learned_from in shops:
        model = learn(learned_from, plain=plain)
        assert {c.name: c.kind for c in model.schema.columns} == {"day": "number", "at": "number", "amount": "number"}
        model.save(tmp_path / "m.likely")
        for asked in (model, likely.load(tmp_path / "m.likely")):
            np.testing.assert_array_equal(asked.posterior(parquet).log_joint, asked.posterior(csv).log_joint)
            raw = pd.read_csv(csv, sep=";", dtype=str)
            np.testing.assert_array_equal(asked.posterior(parquet).log_joint, asked.posterior(raw).log_joint)
        assert model.update(csv).tally == model.update(parquet).tally
        assert model.explain(csv, number=7).posterior == model.explain(parquet, number=7).posterior
    one, other = learn(parquet, plain=plain), learn(csv, plain=plain)
    np.testing.assert_array_equal(one.posterior(csv).log_joint, other.posterior(csv).log_joint)


def test_a_column_of_numbers_is_not_read_as_dates_nor_the_other_way_round(shops, file):
    model = learn(shops[0])
    with pytest.raises(DataError, match=r"column 'amount' has '01\.02\.2024' in row 1, which is not a number"):
        model.predict(file("day,at,amount\n2024-01-01,2024-01-01,01.02.2024\n"))


def test_the_command_line_shows_and_takes_the_forms(shops, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in (["inspect", "t.csv", "--target", "y"], ["learn", "t.csv", "--target", "y"]):
        reported = " ".join(run(*command, "--json").stdout.split())
        assert "numbers with a decimal comma and thousands points" in reported
        assert "dates (day, month, year), as seconds since 1970" in reported
    run("predict", "t.likely", "t.parquet", "-o", "a.csv")
    run("predict", "t.likely", "t.csv", "-o", "b.csv")
    assert pd.read_csv("a.csv")["label"].tolist() == pd.read_csv("b.csv")["label"].tolist()
    run("predict", "t.likely", "t.csv", "-o", "b.csv", "--dates", "dmy", "--decimal", ",", "--thousands", ".")


def test_one_odd_cell_among_numbers_is_named_and_missing(file):
    numbers = [f"{i / 7:.3f}" for i in range(768)]
    numbers[11] = "n.d."
    rows = "".join(f"{x},{'pq'[i % 2]}\n" for i, x in enumerate(numbers))
    path = file("x,y\n" + rows)
    reported = r"column 'x' of .*767 of 768 are numbers; 'n\.d\.' in row 12 is not: read as missing"
    with pytest.warns(LikelyWarning, match=reported):
        model = likely.learn(path, "y", plain=True)
    known = model.schema.by_name["x"]
    assert (known.kind, dict(known.taken)) == ("number", {"n.d.": 1})
    assert sum(row["count"] for row in model.parameters["x"]) == 767
    asked = model.posterior(file("x\nn.d.\n", "one.csv")).log_joint
    np.testing.assert_array_equal(asked, model.posterior({"x": [None]}).log_joint)
    many = file("x,y\n" + "".join(f"{'n.d.' if i % 20 == 0 else i},{'pq'[i % 2]}\n" for i in range(400)), "many.csv")
    looked = likely.inspect(many, target="y")[0]
    assert (looked["kind"], looked["used"]) == ("category", False)


def test_digits_as_text_in_frames_follow_the_rule_of_text_files(tmp_path):
    frame = pd.DataFrame({"n": [str(i % 17) for i in range(60)], "zip": ["01234", "12345"] * 30, "y": ["p", "q"] * 30})
    frame.to_parquet(tmp_path / "t.parquet")
    for data in (frame, str(tmp_path / "t.parquet"), frame.to_dict("list"), frame.to_dict("records")):
        kinds = {c.name: c.kind for c in learn(data, plain=True).schema.columns}
        assert kinds == {"n": "number", "zip": "category"}
    declared = frame.astype({"n": "category"})
    declared.to_parquet(tmp_path / "d.parquet")
    for data in (declared, str(tmp_path / "d.parquet")):
        assert learn(data, plain=True).schema.by_name["n"].kind == "category"


def test_the_message_of_a_column_left_out_names_how_to_keep_it_and_inspect_agrees_with_learn(tmp_path):
    words = ["the", "quick", "brown", "fox", "jumps", "over", "lazy", "dogs", "in", "a", "park", "near", "some", "old", "town"]
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "id": range(100, 160),
        "name": [f"name {i}" for i in range(60)],
        "note": [" ".join(rng.choice(words, 8)) for _ in range(60)],
        "x": rng.normal(size=60),
        "y": ["p", "q"] * 30,
    })  # fmt: skip
    table.index = pd.Index([f"r{i % 7}" for i in range(60)])
    table.to_parquet(tmp_path / "t.parquet")
    model = learn(str(tmp_path / "t.parquet"), plain=True)
    left_out = dict(model.schema.ignored)
    assert "families={'id': 'gaussian'} (--family id=gaussian) keeps it" in left_out["id"]
    assert "families={'name': 'categorical'} (--family name=categorical) keeps it" in left_out["name"]
    assert left_out["__index_level_0__"] == "the index that pandas wrote beside the columns"
    looked = {c["column"]: c for c in likely.inspect(str(tmp_path / "t.parquet"), target="y")}
    for name, known in model.schema.by_name.items():
        assert (looked[name]["kind"], looked[name]["used"], looked[name]["reason"]) == (known.kind, True, known.reason)
    for name, reason in left_out.items():
        assert (looked[name]["used"], looked[name]["reason"]) == (False, reason)


def test_a_date_of_python_and_a_date_as_text_are_one():
    day = dt.date(2024, 2, 29)
    typed = learn({"d": [day, dt.date(2023, 1, 1)] * 20, "y": LABELS[:40]}, plain=True)
    joint = [typed.posterior({"d": [value]}).log_joint for value in (day, "2024-02-29", "29.02.2024")]
    np.testing.assert_array_equal(joint[0], joint[1])
    np.testing.assert_array_equal(joint[0], joint[2])


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_the_index_that_pandas_writes_without_a_name_is_no_feature_even_after_a_split(file, name):
    rows = np.random.default_rng(0).permutation(300)[:200]  # as a split leaves them
    path = file(f"{name},x,y\n" + "".join(f"{i},{i % 7},{'pq'[i % 2]}\n" for i in rows))
    model = likely.learn(path, "y")
    assert [column.name for column in model.schema.columns] == ["x"]
    reported = dict(model.schema.ignored)[name]
    assert "an ID: 200 different whole numbers" in reported
    assert f"families={{{name!r}: 'gaussian'}}" in reported
    assert ("--family" in reported) == bool(name)  # a name that is empty cannot be written in the shell


@pytest.mark.parametrize("name", ["Unnamed: 0", "id, old", 'the "id"', "a=id", "$x id"])
def test_the_option_that_keeps_a_column_works_as_it_is_printed(file, tmp_path, name):
    quoted = name.replace('"', '""')
    path = file(f'"{quoted}",x,y\n' + "".join(f"{i},{i % 7},{'pq'[i % 2]}\n" for i in range(200)))
    reported = dict(likely.learn(path, "y").schema.ignored)[name]
    option = shlex.split(reported[reported.index("(--family") + 1 : reported.rindex(") keeps it")])
    run("learn", path, "--target", "y", *option, "-o", str(tmp_path / "m.likely"))
    found = likely.load(tmp_path / "m.likely").schema.by_name[name]
    assert found.reason == "gaussian as asked for"
