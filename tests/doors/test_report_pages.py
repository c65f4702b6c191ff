"""Pages of many columns or classes, and pictures: small, legible, and open about what they leave out."""

import html
import math
import re

import numpy as np
import pytest

import likely
from likely.plots.axes import legend_rows, simplified, text_width
from likely.plots.bars import Bar, BarChart, bars_svg


def wide(columns: int, classes: int, n: int) -> dict[str, list]:
    """Half numbers, half categories, with long names and values."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % classes)
    found = {f"a rather long name of number {i}": (rng.normal(0, 1, n) + y * (i % 7) / classes).tolist()
             for i in range(columns // 2)}  # fmt: skip
    found |= {f"category {i}": [f"value {v} of many" for v in (y + rng.integers(0, 9, n)) % 12] for i in range(columns // 2)}
    return found | {"class": [f"class {v}" for v in y]}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("columns", "classes"), [(240, 2), (50, 45)])
def test_a_page_of_many_columns_or_classes_stays_small_and_lists_what_it_leaves_out(columns: int, classes: int) -> None:
    rows = wide(columns, classes, 200)
    model = likely.learn(rows, "class", plain=True)
    chosen = list(rows)[-3]
    made = likely.report(model, rows, columns=[chosen])
    page = made.html()
    assert len(page.encode()) < 500_000
    told = made.to_dict()
    assert len(told["columns"]) == columns
    assert all("effect" in column for column in told["columns"])
    assert len(told["evaluation"]["confusion"]) == classes
    drawn = re.findall(r"<title>Evidence of ([^<]+)</title>", page)
    assert drawn[0] == chosen
    assert 6 <= len(drawn) < columns
    assert f"{columns - len(drawn):,} columns with less evidence have no picture here" in page
    for column in told["columns"]:
        assert column["name"] in page
    if classes > 30:
        assert "A matrix of 45 classes is too large to be read" in page
        assert "the 40 most frequent of 45 classes" in page
    else:
        assert "The table has the 80 columns with the most evidence" in page


def test_a_line_with_fewer_points_is_the_same_line() -> None:
    bent = [(float(x), math.sin(x / 9) * 40) for x in range(200)]
    points = [*bent[:80], None, *bent[80:81], None, *bent[81:]]
    kept = simplified(points)
    assert len(kept) < len(points) / 2
    assert [kept[0], kept[-1]] == [points[0], points[-1]]
    assert kept.count(None) == 2
    assert bent[80] in kept
    there = [p for p in kept if p]
    at = np.interp([x for x, _ in bent], [x for x, _ in there], [y for _, y in there])
    assert np.abs(at - [y for _, y in bent])[:80].max() <= 0.3
    assert simplified([]) == []
    assert simplified([(0.0, 1.0)]) == [(0.0, 1.0)]
    steps = [(0.0, 0.0), (0.0, 5.0), (1.0, 5.0), (1.0, 9.0)]
    assert simplified(steps) == steps


def test_an_uninformative_number_is_drawn_as_a_flat_line() -> None:
    rows = {"x": [1.0, 2.0, 3.0, 4.0] * 60, "a": ["u", "v"] * 120, "y": ["p", "q"] * 120}
    told = likely.report(likely.learn(rows, "y")).to_dict()
    for column in told["columns"]:
        effect = column["effect"]
        effect["weights"] = [[0.0, 0.0] for _ in effect["weights"]]
        effect["errors"] = [[0.0, 0.0] for _ in effect["errors"]]
    assert "Evidence of x" in likely.Report(told).html()


def test_changes_of_a_prediction_are_listed_for_columns_derived_from_dates() -> None:
    days = np.arange("2024-01-01", "2025-01-01", dtype="datetime64[D]")
    weekday = (days.astype(np.int64) + 3) % 7
    rows = {"when": [str(day) for day in days], "noise": (np.arange(len(days)) % 5).tolist(),
            "y": ["rest" if day >= 5 else "work" for day in weekday]}  # fmt: skip
    model = likely.learn(rows, "y")
    assert "when.weekday" in [column.name for column in model.schema.columns]
    checked = 0
    for each in likely.report(model, rows).to_dict()["predictions"]:
        first = each["changes"][0]
        assert first["column"] == "when.weekday"
        assert first["label"] != each["label"]
        if first["to"] != "missing":
            place = each["row"] - 1
            near = [day for day in days[max(place - 7, 0) : place + 7] if day.astype(object).strftime("%A") == first["to"]]
            row = {"noise": rows["noise"][place], "when": str(near[0])}
            p = model.posterior(row).to_dicts()[0]["probabilities"][each["for"]]
            assert p == pytest.approx(first["probability"], abs=0.01)  # the date itself is a few days off
            checked += 1
    assert checked


def test_labels_of_capitals_and_signs_have_room_in_the_picture() -> None:
    for name in ("HYPOVOLEMIA → LVEDVOLUME", "<=50K >=50K", "WWWWMMMMWWWWMMMM", "a plain name of a column"):
        drawn = str(bars_svg(BarChart("t", "s", "x", [(name, [Bar(1.0, value="1")])])))
        shown = re.escape(html.escape(name, quote=False))
        end = float(re.search(rf'x="([\d.]+)"[^>]*text-anchor="end"[^>]*>{shown}', drawn)[1])
        assert end >= text_width(name)
    first, second = (x for _, x in legend_rows(["<=50K", ">50K"])[0])
    assert second - first > 32 + text_width("<=50K")
    assert text_width("HYPOVOLEMIA") > text_width("hypovolemia")
