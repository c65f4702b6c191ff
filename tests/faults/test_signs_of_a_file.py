"""Decimal signs and times that one column leaves open: what other columns, a currency or a percent sign decide."""

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import pytest

import likely
from commands import run
from likely.errors import LikelyWarning

ROWS = 240


def number(x, decimal, thousands, digits=2):
    """A number with other signs."""
    return f"{x:,.{digits}f}".replace(",", "_").replace(".", decimal).replace("_", thousands)


@pytest.fixture
def exports(tmp_path):
    """One table as Parquet, as a German, an English and an ISO export."""
    rng = np.random.default_rng(3)
    y = rng.choice(["p", "q"], ROWS)
    up = (y == "q").astype(float)
    share, amount = rng.normal(up, 1).round(2), rng.integers(1000, 9999, ROWS) + (3000 * up).astype(int)
    price = (rng.uniform(500, 2500, ROWS) + 500 * up).round(2)
    hours, minutes = rng.integers(0, 12, ROWS) + (12 * up).astype(int), rng.integers(0, 60, ROWS)
    clock = [dt.time(h, m) for h, m in zip(hours.tolist(), minutes.tolist(), strict=True)]
    spent = pd.to_timedelta(rng.integers(5, 4000, ROWS) + (900 * up).astype(int), "min")
    typed = pd.DataFrame({"share": share, "amount": amount, "price": price, "clock": clock, "spent": spent, "y": y})
    typed.to_parquet(tmp_path / "typed.parquet", index=False)
    typed.to_csv(tmp_path / "iso.csv", index=False)
    german = typed.assign(
        share=[number(x, ",", ".") for x in share], amount=[number(x, ",", ".", 0) for x in amount],
        price=["€ " + number(x, ",", ".") for x in price], clock=[t.strftime("%H:%M") for t in clock],
    )  # fmt: skip
    german.to_csv(tmp_path / "german.csv", index=False, sep=";")
    english = typed.assign(
        amount=[number(x, ".", ",", 0) for x in amount], price=[f"${x:,.2f}" for x in price],
        clock=[t.strftime("%I:%M %p") for t in clock], spent=[f"{int(t.total_seconds() // 60)} min" for t in spent],
    )  # fmt: skip
    english.to_csv(tmp_path / "english.csv", index=False)
    return tmp_path


def quietly(task, *args, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        return task(*args, **settings)


def answers(model, rows):
    return model.posterior(rows).log_joint


@pytest.mark.parametrize("learned", ["typed.parquet", "iso.csv", "german.csv", "english.csv"])
def test_a_model_of_one_export_answers_alike_on_the_others(exports, learned):
    model = quietly(likely.learn, str(exports / learned), "y")
    assert [c.kind for c in model.schema.columns] == ["number"] * 5
    expected = answers(model, str(exports / "typed.parquet"))
    for asked in ("iso.csv", "german.csv", "english.csv"):
        np.testing.assert_array_equal(quietly(answers, model, str(exports / asked)), expected, err_msg=asked)
        frame = pd.read_csv(exports / asked, sep=";" if asked == "german.csv" else ",", dtype=str)
        np.testing.assert_array_equal(quietly(answers, model, frame), expected, err_msg=f"{asked} as a frame")


def test_points_are_thousands_where_another_column_has_decimal_commas_and_a_warning_names_the_switch(exports):
    reported = r"column 'amount' of .*thousands points; they could also be numbers with a decimal point: .*--decimal \."
    with pytest.warns(LikelyWarning, match=reported):
        model = likely.learn(str(exports / "german.csv"), "y", plain=True)
    amounts = pd.read_parquet(exports / "typed.parquet")
    table = {row["class"]: row["mean"] for row in model.parameters["amount"]}
    assert table == pytest.approx(dict(amounts.groupby("y")["amount"].mean()))
    out = run("inspect", str(exports / "german.csv")).stdout
    assert "numbers with a decimal comma and thousands points" in next(r for r in out.splitlines() if r.startswith("amount"))


def test_points_stay_decimal_where_the_other_columns_contradict_each_other(file):
    path = file("a;b;c;y\n" + "1.520;0,5;48.25;p\n2.750;1,5;47.5;q\n" * 60)
    with pytest.warns(LikelyWarning, match="column 'a' of .*could also be numbers with a decimal comma and thousands points"):
        model = likely.learn(path, "y", plain=True)
    assert [row["mean"] for row in model.parameters["a"]] == [1.52, 2.75]


@pytest.mark.parametrize(
    ("one", "other", "numbers"),
    [
        ("$1,520", "$950", [1520, 950]),  # no amount of money has three decimals, whatever other columns are written with
        ("€ 1.520", "€ 950", [1520, 950]),
        ("9,625%", "8,125%", [9.625, 8.125]),  # and no percentage thousands
        ("9.625%", "8.125%", [9.625, 8.125]),
    ],
)
def test_a_currency_or_a_percent_sign_decides_before_other_columns_do(file, one, other, numbers):
    path = file("x;z;y\n" + f"{one};0,5;p\n{other};1,5;q\n" * 60)
    model = quietly(likely.learn, path, "y", plain=True)
    assert [row["mean"] for row in model.parameters["x"]] == pytest.approx(numbers)


def test_the_order_of_dates_is_that_of_the_file_that_is_asked_about(file):
    days = pd.date_range("2024-01-01", periods=120)
    first = [day.replace(day=day.day % 12 + 1) for day in days]  # which leaves their own order open

    def table(order, name):
        rows = zip(first, days, ["p", "q"] * 60, strict=True)
        return file("d,e,y\n" + "".join(f"{d:{order}},{e:{order}},{y}\n" for d, e, y in rows), name)

    model = quietly(likely.learn, table("%m/%d/%Y", "us.csv"), "y", plain=True)
    expected = answers(model, table("%Y-%m-%d", "iso.csv"))
    np.testing.assert_array_equal(quietly(answers, model, table("%d/%m/%Y", "uk.csv")), expected)


@pytest.mark.parametrize(
    ("cells", "seconds"),
    [
        (["12:05 AM", "1:05 pm", "12:00 p.m."], [300, 47100, 43200]),
        (["0 days 00:57:00", "1 days 15:16:59.5", "-1 days +23:59:00"], [3420, 141419.5, -60]),
        (["1 day, 15:16:59", "0:57:00", "-1 day, 23:59:00"], [141419, 3420, -60]),
        (["PT39H16M59S", "P1DT30M", "-PT1.5H"], [141419, 88200, -5400]),
        (["2h 30m", "45 Min", "1 hour 5 seconds"], [9000, 2700, 3605]),
    ],
)
def test_times_of_twelve_hours_and_durations_of_several_units_are_seconds(file, cells, seconds):
    path = file("x,y\n" + "".join(f'"{cell}",{y}\n' for cell, y in zip(cells * 40, "pqr" * 40, strict=True)))
    model = quietly(likely.learn, path, "y", plain=True)
    assert [row["mean"] for row in model.parameters["x"]] == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["(1,520.50)", "3,000.00", "12.00"], [-1520.5, 3000, 12]),
        (["1520.50-", "3000", "12"], [-1520.5, 3000, 12]),
        (["2,5E+03", "1,25E-01", "-1,0E+00"], [2500, 0.125, -1]),
        (["R$ 1.520,50", "R$ 3", "R$ 12"], [1520.5, 3, 12]),
        (["US$1,520.50", "-US$3", "US$12"], [1520.5, -3, 12]),
        (["2024-03-03 10:05:00+01", "2024-03-03 09:05:00+00", "2024-03-03 04:05:00-05"], [1709456700] * 3),
        (["Sun Mar  3 10:05:00 2024", "Mon Mar  4 10:05:00 2024", "Thu Mar 14 10:05:00 2024"],
         [1709460300, 1709546700, 1710410700]),
    ],
)  # fmt: skip
def test_other_common_ways_to_write_numbers_and_dates_are_read(file, cells, numbers):
    path = file("x;y\n" + "".join(f"{cell};{y}\n" for cell, y in zip(cells * 40, "pqr" * 40, strict=True)))
    model = quietly(likely.learn, path, "y", plain=True)
    assert [row["mean"] for row in model.parameters["x"]] == pytest.approx(numbers)


def test_what_is_no_duration_stays_text(file):
    for cells in (["P", "T"], ["5 x", "7 x"], ["13:05 PM", "14:05 PM"], ["Paris 3", "Paris 4"]):
        path = file("x,y\n" + "".join(f"{cell},{y}\n" for cell, y in zip(cells * 60, "pq" * 60, strict=True)))
        assert quietly(likely.learn, path, "y", plain=True).schema.by_name["x"].kind == "category", cells


@pytest.mark.parametrize("base", [2**53, 10**21])
@pytest.mark.parametrize("kind", ["csv", "text", "typed"])
def test_whole_numbers_that_fall_together_are_named_and_can_be_kept_apart(file, base, kind):
    if (kind, base) == ("typed", 10**21):
        pytest.skip("beyond the integers of Arrow")
    numbers = [base + i % 8 for i in range(160)]
    labels = ["p" if i % 2 else "q" for i in range(160)]
    table = {"k": [str(n) for n in numbers] if kind == "text" else numbers, "y": labels}
    data = file("k,y\n" + "".join(f"{n},{y}\n" for n, y in zip(numbers, labels, strict=True))) if kind == "csv" else table
    with pytest.warns(LikelyWarning, match=r"column 'k': whole numbers beyond 2\^53 are rounded, and \d+ and \d+ become one"):
        likely.learn(data, "y")
    with warnings.catch_warnings():
        warnings.simplefilter("error", LikelyWarning)
        model = likely.learn(data, "y", families={"k": "categorical"})
        likely.learn({"k": [2**53 + 2 * i for i in range(160)], "y": labels}, "y")  # none of which is rounded
    assert len(model.schema.by_name["k"].values) == 8
    assert model.predict(data).tolist() == labels
