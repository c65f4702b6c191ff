"""Folders of tables, as other engines write them: every row is read, and the columns that folders are named after."""

import numpy as np
import pandas as pd
import pytest

import likely
from likely.errors import DataError

ROWS = 600


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    found = pd.DataFrame(
        {"x": rng.normal(size=ROWS), "c": rng.choice(list("abc"), ROWS), "year": rng.choice([2020, 2021], ROWS)}
    )
    found["y"] = np.where(found.x + (found.year - 2020) + rng.normal(size=ROWS) > 0.5, "p", "q")
    return found.sort_values("year", kind="stable").reset_index(drop=True)


@pytest.fixture
def folder(frame, tmp_path):
    """A folder of Parquet files in folders named after a year, with the marks of a writer."""
    for year, part in frame.groupby("year"):
        (tmp_path / "t" / f"year={year}").mkdir(parents=True)
        part.drop(columns="year").to_parquet(tmp_path / "t" / f"year={year}" / "part-0.parquet", index=False)
    (tmp_path / "t" / "_SUCCESS").touch()
    (tmp_path / "t" / "year=2020" / ".part-0.parquet.crc").write_bytes(b"crc")
    return tmp_path / "t"


@pytest.mark.parametrize("pattern", ["", "*/*.parquet"])
def test_a_folder_of_parquet_files_is_the_same_table_as_the_frame(folder, frame, pattern):
    model, expected = likely.learn(str(folder / pattern), "y"), likely.learn(frame, "y")
    assert model.tally.rows == ROWS
    np.testing.assert_array_equal(model.posterior(frame).probabilities, expected.posterior(frame).probabilities)
    np.testing.assert_array_equal(
        model.posterior(str(folder)).probabilities, expected.posterior(frame).probabilities
    )


def test_the_files_of_one_folder_have_no_column_of_its_name(folder):
    model = likely.learn(str(folder / "year=2020" / "*.parquet"), "y")
    assert [column.name for column in model.schema.columns] == ["x", "c"]


def test_a_value_that_is_null_in_the_name_of_a_folder_is_missing(folder, frame):
    (folder / "year=2021").rename(folder / "year=__HIVE_DEFAULT_PARTITION__")
    model = likely.learn(str(folder), "y")
    gaps = frame.assign(year=frame.year.where(frame.year == 2020))
    assert model.tally.rows == ROWS
    expected = likely.learn(gaps, "y").posterior(gaps).probabilities
    np.testing.assert_array_equal(model.posterior(gaps).probabilities, expected)


def test_a_column_in_the_file_and_in_the_name_of_its_folder_is_refused(folder, frame):
    frame.to_parquet(folder / "year=2020" / "part-0.parquet", index=False)
    with pytest.raises(DataError, match="has a column 'year', and its folder has one as well"):
        likely.learn(str(folder), "y")


def test_text_files_in_folders_named_after_a_column_are_refused_with_the_remedy(folder, frame):
    for year in (2020, 2021):
        (folder / f"year={year}" / "part-0.parquet").unlink()
        frame.drop(columns="year").to_csv(folder / f"year={year}" / "part.csv", index=False)
    with pytest.raises(DataError, match=r"named after a column, 'year'.*write it as Parquet"):
        likely.learn(str(folder), "y")


def test_a_folder_of_csv_files_is_one_table(frame, tmp_path):
    for i in range(3):
        frame[i::3].to_csv(tmp_path / f"part{i}.csv", index=False)
    assert likely.learn(str(tmp_path), "y").tally.rows == ROWS
