"""Levels that begin like numbers: each is tested against the formats of numbers and dates once, however many rows there are."""

import pyarrow as pa
import pytest

import likely
from likely.sources import number_formats
from likely.sources.number_formats import FormatDetector, candidates


def test_a_column_of_few_levels_is_tested_once_for_each_level(monkeypatch):
    seen = []
    read = number_formats.read
    monkeypatch.setattr(number_formats, "read", lambda column, code: seen.append(len(column)) or read(column, code))
    levels = ["5 to 10", "10 to 20", "20 and more"]
    detector = FormatDetector(candidates(None, None, None))
    detector.update(pa.array(levels * 500), 0, ())
    assert detector.result() is None
    assert set(seen) == {3}


def test_names_with_an_underscore_are_read_by_no_format(monkeypatch):
    monkeypatch.setattr(number_formats, "read", lambda *_: pytest.fail("no number has an underscore"))
    detector = FormatDetector(candidates(None, None, None))
    detector.update(pa.array(["5_to_10", "10_to_20", None, "7_"]), 0, ())
    assert detector.result() is None


def test_the_first_rows_and_the_number_of_texts_that_are_no_numbers_are_kept():
    detector = FormatDetector(candidates(None, None, None))
    cells = ["1,5"] * 300 + ["none"] + ["2,5"] * 300
    detector.update(pa.array(cells), 0, ())
    detector.update(pa.array(["3,5", None, "none", "4,5"]), len(cells), ())
    found = detector.result()
    assert found.code == "n,"
    assert found.non_numeric == {"none": (301, 2)}
    assert found.cells == 604


def test_a_column_without_a_cell_has_no_format():
    detector = FormatDetector(candidates(None, None, None))
    detector.update(pa.array([None, None], pa.string()), 0, ())
    assert detector.result() is None


def test_numbers_written_with_units_are_still_read_where_they_repeat():
    model = likely.learn({"x": ["$ 1,520.50", "$ 2,000.00", "$ 3,100.25"] * 20, "y": ["a", "b", "b"] * 20}, "y", plain=True)
    assert {c.name: c.kind for c in model.schema.columns}["x"] == "number"
