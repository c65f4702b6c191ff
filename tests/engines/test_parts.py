"""Parts counted anywhere: sums of many tallies, and the recipe for Dask."""

import numpy as np
import pyarrow as pa
import pytest

import likely
from likely.engines.adding import total
from likely.errors import ModelFileError, UsageError
from likely.model.parts import PartPlan

pytestmark = pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning")


def made(rows, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    colours = np.array(["red", "green", "blue", "grey"])
    columns = {
        "colour": colours[(rng.integers(0, 4, rows) * (1 + y)) % 4],
        "size": rng.normal(y, 1.0),
        "age": rng.integers(18, 90, rows),
        "label": np.array(["no", "yes"])[y],
    }
    return pa.table(columns)


def test_the_sum_of_many_tallies_equals_the_tally_of_all_rows():
    table = made(3_000)
    plan = likely.plan(table, "label")
    parts = [plan.count(table.slice(i, 30)) for i in range(0, 3_000, 30)]
    whole = likely.learn(table, "label")
    assert total([part.tally for part in parts]) == whole.tally
    assert total([part.tally for part in reversed(parts)]) == whole.tally
    assert plan.learn(parts).posterior(table).probabilities == pytest.approx(whole.posterior(table).probabilities, abs=1e-12)


def test_values_and_classes_that_only_some_parts_have_are_in_the_sum():
    table = made(600)
    rare = table.slice(0, 1).set_column(0, "colour", pa.array(["violet"])).set_column(3, "label", pa.array(["perhaps"]))
    plan = likely.plan(table, "label", plain=True)
    model = plan.learn([plan.count(table.slice(0, 300)), plan.count(table.slice(300)), plan.count(rare)])
    assert model.classes == ("no", "perhaps", "yes")
    assert "violet" in model.schema.by_name["colour"].values
    whole = likely.learn(pa.concat_tables([table, rare]), "label", plain=True)
    assert model.tally.classes.tolist() == whole.tally.classes.tolist()
    assert model.tally.statistics[0] == whole.tally.statistics[0]  # counts of colours; moments agree but for rounding
    assert model.posterior(table).probabilities == pytest.approx(whole.posterior(table).probabilities, rel=1e-12)


def test_no_parts_at_all_are_refused():
    with pytest.raises(UsageError, match="no parts with rows"):
        likely.plan(made(50), "label").learn([])


def test_a_damaged_plan_is_refused_where_it_arrives():
    content = bytearray(likely.plan(made(50), "label").parts.to_bytes())
    content[-1] ^= 1
    with pytest.raises(ModelFileError, match="damaged"):
        PartPlan.from_bytes(bytes(content))


def test_the_recipe_for_dask_gives_the_model_of_all_rows():
    dask = pytest.importorskip("dask", reason="NOT TESTED: Dask is not installed")
    import pandas as pd

    table = made(900)
    shards = [pd.DataFrame(table.slice(i, 300).to_pydict()) for i in range(0, 900, 300)]
    # The recipe of docs/scale.md: plan from some rows, map(count), add.
    plan = likely.plan(shards[0], target="label")
    parts = dask.compute(*(dask.delayed(plan.count)(shard) for shard in shards), scheduler="processes", num_workers=2)
    model = plan.learn(parts)
    assert model.tally == likely.learn(table, "label").tally
    assert model.engine == "parts: 3 parts, counted elsewhere and added"
