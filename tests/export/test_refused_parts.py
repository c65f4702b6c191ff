"""What cannot be exported is refused by its name with a remedy; with the remedy it is exported."""

import numpy as np
import pyarrow as pa
import pytest

import databases
import likely
from commands import refused
from export_help import both_ways
from hostile import hostile, strange
from likely.errors import UsageError
from tables import learn

GAUSSIANS = [f"x{j}" for j in range(7)]


def wide(rows=300):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, rows)
    shared = rng.normal(size=rows)
    return pa.table({name: rng.normal(y) + shared for name in GAUSSIANS} | {"y": np.array(["n", "p"])[y]})


def levels(rows=900):
    """A category of so many values that a Gaussian for each is too much."""
    columns = {"c": [f"level {i % 600}" for i in range(rows)], "x": [float(i % 7) for i in range(rows)]}
    return pa.table(columns | {"y": [["n", "p"][i % 3 == 0] for i in range(rows)]})


def texts():
    return pa.table({"a": ["free prize now", "free lunch here"] * 20, "y": ["n", "p"] * 20})


PARTS = {
    "mixed joint block": (
        levels(), {"plain": True, "joint": [("c", "x")]},
        "columns 'c', 'x' are a joint block with 601 combinations of values", "smaller blocks, of at most 1,024",
    ),
    "wide joint Gaussian": (
        wide(), {"plain": True, "joint": [tuple(GAUSSIANS)]},
        "a joint Gaussian of 7 columns .* has 128 patterns of missing cells", "smaller blocks",
    ),
    "averaged counts": (
        hostile(200), {"average": True, "families": {"n": "poisson"}}, "column 'n' is averaged", "Gaussian, binned",
    ),
    "averaged trials": (
        hostile(200), {"average": True, "families": {"n": "binomial:1000000"}}, "column 'n' is averaged", "Gaussian, binned",
    ),
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("form", ["sql", "onnx"])
def test_a_part_without_an_exported_form_is_named_with_the_remedy(part, form, tmp_path):
    table, settings, named, remedy = PARTS[part]
    model = learn(table, **settings)
    with pytest.raises(UsageError, match=f"{named}.*{remedy}"):
        getattr(model, form)()
    model.save(tmp_path / "m.likely")
    out = tmp_path / f"m.{form}"
    assert remedy in refused("export", str(tmp_path / "m.likely"), "--to", form, "-o", str(out), code=2)
    assert not out.exists()


@pytest.mark.parametrize("settings", [{"pattern": "[a-z]+"}, {"unit": "char", "ngrams": (2, 3)}])
def test_text_of_characters_or_a_pattern_is_named_with_the_remedy(settings):
    model = learn(texts(), families={"a": likely.Text("multinomial", **settings)})
    with pytest.raises(UsageError, match=r"column 'a' is text with a pattern, or n-grams of characters.*from words: Text\(\)"):
        model.sql()
    with pytest.raises(UsageError, match=r"column 'a' is text, which is not exported to ONNX.*ignore=\["):
        model.onnx()


def test_smaller_blocks_and_averages_of_binned_numbers_are_exported():
    table = wide()
    both_ways(learn(table, plain=True, joint=[tuple(GAUSSIANS[:4]), tuple(GAUSSIANS[4:])]), table, databases.Duckdb(), "duckdb")
    table = hostile(600)
    binned = {'a"b': "binned", "select * from x; --": "categorical", "x": "binned", "n": "categorical"}
    model = learn(table, average=True, families=binned)
    both_ways(model, pa.concat_tables([table, strange(table)]), databases.Duckdb(), "duckdb")
