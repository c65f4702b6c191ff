"""Databases as sources and as destinations: tables, queries, relations; what goes wrong half way leaves nothing behind."""

import shutil
import sqlite3
import subprocess
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from commands import document, refused, run
from hostile import hostile
from likely.errors import DataError, UsageError
from tables import learn


def same(one, other):
    """Whether two models have counted the same; moments up to the order of summation."""
    assert one.classes == other.classes
    assert one.schema.by_name.keys() == other.schema.by_name.keys()
    rows = hostile(50, seed=3)
    assert np.abs(one.posterior(rows).probabilities - other.posterior(rows).probabilities).max() < 1e-9


@pytest.fixture
def shop(tmp_path):
    """A DuckDB file with two tables."""
    path = str(tmp_path / "shop.duckdb")
    given = hostile(400)
    with duckdb.connect(path) as connection:
        connection.register("given", given)
        connection.execute("create table orders as select * from given")
        connection.execute("create table other as select 1 as x")
    return path


def test_a_query_of_a_duckdb_file_is_learned_from(shop):
    wanted = learn(hostile(400), plain=True)
    same(learn(shop, table="orders", plain=True), wanted)
    same(learn(shop, query="select * from orders -- all of them", plain=True), wanted)
    assert learn(shop, query="select * from orders limit 100;", plain=True).tally.rows == 100
    with pytest.raises(UsageError, match="exclude each other"):
        learn(shop, query="select 1", table="orders")
    with pytest.raises(DataError, match="cannot be read as a DuckDB database"):
        learn(shop, query="select * from nowhere")
    with pytest.raises(DataError, match="cannot be read as a DuckDB database"):
        learn(shop, query="create table x as select 1")


def test_a_query_of_a_sqlite_file_is_learned_from(tmp_path):
    path = str(tmp_path / "shop.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (a text, y integer)")
        connection.executemany("insert into t values (?, ?)", [("u", 0), ("v", 1)] * 20)
    connection.close()
    assert learn(path, query="select a, y from t where rowid <= 10", plain=True).tally.rows == 10
    with pytest.raises(DataError, match="cannot be read as a SQLite database"):
        learn(path, query="delete from t")
    with pytest.raises(UsageError, match="is for databases"):
        learn(str(tmp_path / "x.csv") if (tmp_path / "x.csv").write_text("a,y\n1,2\n") else "", query="select 1")


def test_a_relation_is_streamed_and_equals_its_table():
    given = hostile(400)
    connection = duckdb.connect()
    connection.register("given", given)
    relation = connection.sql("select * from given")
    same(learn(relation, plain=True), learn(given, plain=True))
    same(learn(relation), learn(given))
    gone = duckdb.connect()
    broken = gone.sql("select range as x, range % 2 as y from range(10)")
    gone.close()
    with pytest.raises(DataError, match="the relation cannot be read"):
        learn(broken)


def test_a_postgres_table_or_query_is_learned_from(postgres):
    given = hostile(400)
    postgres.put("orders", given)
    wanted = learn(given, plain=True)
    same(learn(postgres.uri, table="orders", plain=True), wanted)
    same(learn(postgres.uri, query="select * from orders", plain=True), wanted)
    with pytest.raises(DataError, match="did you mean 'orders'"):
        learn(postgres.uri, table="order")
    with pytest.raises(DataError, match="does not exist"):
        learn(postgres.uri, query="select * from nowhere")
    with pytest.raises(DataError, match="could not be read"):
        learn("postgresql://u:secret@127.0.0.1:1/x", table="t")


def test_a_password_is_never_shown():
    from likely.sources._postgres import label_of

    assert label_of("postgresql://u:secret@host/x") == "'postgresql://u@host/x'"
    assert "secret" not in label_of("postgresql:///x?user=u&password=secret&host=h")


def test_unsupported_types_are_left_out_by_name(postgres, tmp_path):
    path = str(tmp_path / "odd.duckdb")
    columns = "a % 2 as y, a / 3 as x, {'k': a} as s, [a] as l, to_days(a::int) as i, (a / 4)::decimal(9,2) as d"
    with duckdb.connect(path) as connection:
        connection.execute(f"create table t as select {columns} from range(40) t(a)")
    model = learn(path, plain=True)
    left_out = dict(model.schema.ignored)
    assert {"s", "l", "i"} <= left_out.keys()
    assert "neither text nor number" in left_out["s"]
    assert {"x", "d"} <= model.schema.by_name.keys()
    typed = "a % 2 as y, a / 3.5::float8 as x, array[a] as l, make_interval(days => a) as i, a / 4.0::numeric as d"
    with postgres.connection.cursor() as cursor:
        cursor.execute(f"create table odd_types as select {typed} from generate_series(1, 40) a")
    postgres.connection.commit()
    model = learn(postgres.uri, table="odd_types", plain=True)
    assert {"x", "d"} <= model.schema.by_name.keys()
    assert {"l", "i"} <= {name for name, _ in model.schema.ignored}


def test_all_passes_over_a_postgres_table_see_one_snapshot(postgres):
    from likely.sources import open_source

    postgres.put("moving", pa.table({"x": list(range(50)), "y": [0, 1] * 25}))
    from likely.sources import ReadOptions

    source = open_source(postgres.uri, ReadOptions(table="moving"))
    assert sum(batch.rows for batch in source.batches()) == 50
    with postgres.connection.cursor() as cursor:
        cursor.execute("insert into moving select 1, 0 from generate_series(1, 7)")
    postgres.connection.commit()
    assert sum(batch.rows for batch in source.batches()) == 50


def test_a_file_that_changes_between_two_passes_is_refused(shop):
    from likely.sources import ReadOptions, open_source

    source = open_source(shop, ReadOptions(table="orders"))
    assert sum(batch.rows for batch in source.batches()) == 400
    with duckdb.connect(shop) as connection:
        connection.execute("insert into orders select * from orders limit 5")
    with pytest.raises(DataError, match="has changed while it was read"):
        list(source.batches())


def test_a_database_that_disconnects_half_way_is_an_error_and_nothing_is_written(postgres, tmp_path):
    with postgres.connection.cursor() as cursor:
        columns = "a % 2 as y, a::float8 as x, repeat('z', 200) as w"
        cursor.execute(f"create table large as select {columns} from generate_series(1, 200000) a")
    postgres.connection.commit()
    model = learn({"x": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1]}, plain=True)
    from likely.sources import ReadOptions, open_source

    source = open_source(postgres.uri, ReadOptions(table="large"))
    batches = source.batches({"x": "number", "w": "category"})
    next(batches)
    with postgres.connection.cursor() as cursor:
        cursor.execute("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")
        cursor.fetchall()
    postgres.connection.commit()
    with pytest.raises(DataError, match="could not be read to its end"):
        list(batches)
    with pytest.raises(DataError, match="could not be read to its end"):  # the snapshot is gone with its connection
        model.posterior(source)


def test_predictions_are_written_back_as_a_table(shop, tmp_path):
    model = str(tmp_path / "m.likely")
    run("learn", shop, "--table", "orders", "--target", "y", "--plain", "-o", model)
    asked = ("predict", model, shop, "--table", "orders", "-o", shop, "--output-table", "scored", "--probabilities")
    told = document(*asked)
    assert told["rows"] == 400
    with duckdb.connect(shop) as connection:
        found = connection.sql("select * from scored").to_arrow_table()
    wanted = likely.load(model).posterior(hostile(400))
    assert np.abs(found["p_yes"].to_numpy() - wanted.probabilities[:, 1]).max() < 1e-12
    run(*asked, expect=2)  # the table is there already
    run(*asked, "--replace-table")
    run("predict", model, shop, "--table", "orders", "-o", shop, expect=2)
    run("predict", model, shop, "--table", "orders", "-o", "x.csv", "--output-table", "t", expect=2)


def test_predictions_are_written_to_sqlite_and_postgres(shop, postgres, tmp_path):
    model, small = str(tmp_path / "m.likely"), str(tmp_path / "new.sqlite")
    run("learn", shop, "--table", "orders", "--target", "y", "--plain", "-o", model)
    asked = ("predict", model, shop, "--table", "orders", "--probabilities", "--output-table", 'sco"red')
    run(*asked, "-o", small)
    run(*asked, "-o", postgres.uri)
    run(*asked, "-o", postgres.uri, expect=2)
    run(*asked, "-o", postgres.uri, "--replace-table")
    with sqlite3.connect(small) as connection:
        labels = [label for (label,) in connection.execute('select label from "sco""red"')]
    connection.close()
    wanted = likely.load(model).predict(hostile(400)).tolist()
    assert labels == wanted
    assert postgres.ask('select label from "sco""red"')["label"] == wanted


def test_a_failing_prediction_leaves_the_database_as_it_was(shop, tmp_path):
    model = str(tmp_path / "m.likely")
    run("learn", shop, "--table", "orders", "--target", "y", "--plain", "-o", model)
    with duckdb.connect(shop) as connection:
        connection.execute("create table bad as select * replace (if(rowid = 300, 'inf'::double, x) as x) from orders")
    before = shutil.copy(shop, tmp_path / "before.duckdb")
    run("predict", model, shop, "--table", "bad", "-o", shop, "--output-table", "scored", expect=3)
    with duckdb.connect(shop) as now, duckdb.connect(before) as then:
        assert now.sql("show tables").fetchall() == then.sql("show tables").fetchall()


def test_folds_of_a_postgres_table_are_those_of_the_same_rows_in_memory(postgres):
    table = hostile(300)
    postgres.put("folded", table.take(np.random.default_rng(0).permutation(300)))
    how = {"target": "y", "folds": 3, "plain": True}
    expected = likely.evaluate(table, folds_by="hash", **how)
    found = likely.evaluate(postgres.uri, table="folded", **how)  # the rule for tables without an order of rows
    assert [fold.confusion for fold in found.parts] == [fold.confusion for fold in expected.parts]
    assert found.log_loss == pytest.approx(expected.log_loss, rel=1e-9)


HOLD = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_a_duckdb_file_that_another_process_writes_to_is_an_error_and_stays_unchanged(shop, tmp_path):
    model, other = str(tmp_path / "m.likely"), tmp_path / "held.duckdb"
    run("learn", shop, "--table", "orders", "--target", "y", "--plain", "-o", model)
    with subprocess.Popen([sys.executable, "-c", HOLD, other], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        before = other.read_bytes()
        words = ("predict", model, shop, "--table", "orders", "-o", str(other), "--output-table", "scored")
        assert "lock" in refused(*words, code=6)
        assert "lock" in refused("learn", str(other), "--table", "orders", "--target", "y", "-o", model, code=3)
        assert other.read_bytes() == before
        holder.stdin.close()
    run(*words)


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"NOT TESTED: no small disk can be made here ({mounted.stderr.decode().strip()})")
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("name", ["new.duckdb", "new.sqlite"])
def test_a_new_database_on_a_full_disk_is_not_left_half_written(tmp_path, small_disk, name):
    x = np.random.default_rng(0).normal(size=9_000)
    pq.write_table(pa.table({"x": x, "y": np.array(["n", "p"])[(x > 0).astype(int)]}), tmp_path / "a.parquet")
    data, model = str(tmp_path / "a.parquet"), str(tmp_path / "m.likely")
    run("learn", data, "--target", "y", "--plain", "-o", model)
    asked = ("predict", model, data, "-o", str(small_disk / name), "--output-table", "t", "--probabilities")
    assert "cannot be written" in run(*asked, expect=6).stderr
    assert list(small_disk.iterdir()) == []


def test_integers_that_sqlite_cannot_store_are_refused_by_name(tmp_path):
    table = pa.table({"a": ["u", "v"] * 4, "n": pa.array([2**63] * 8, pa.uint64()), "y": ["n", "p"] * 4})
    pq.write_table(table, tmp_path / "a.parquet")
    model, output = str(tmp_path / "m.likely"), tmp_path / "new.sqlite"
    run("learn", str(tmp_path / "a.parquet"), "--target", "y", "--plain", "--ignore", "n", "-o", model)
    asked = ("predict", model, str(tmp_path / "a.parquet"), "-o", str(output), "--output-table", "t")
    assert "SQLite stores no integer of 2**63 or more" in run(*asked, expect=3).stderr
    assert not output.exists()


def test_a_recursive_query_of_sqlite_is_refused_in_plain_words(tmp_path):
    with sqlite3.connect(tmp_path / "a.sqlite") as connection:
        connection.execute("create table t (a, y)")
    connection.close()
    query = "with recursive c(a) as (select 1 union all select a + 1 from c) select a, a as y from c"
    with pytest.raises(DataError, match="or is recursive, which may never end: pass a plain select"):
        likely.learn(tmp_path / "a.sqlite", "y", query=query)
