"""Databases as sources and destinations: types, names, locks, limits, and what ends a long query."""

import contextlib
import datetime as dt
import decimal
import os
import signal
import sqlite3
import subprocess
import threading
import time

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from commands import document, run
from likely.errors import DataError, UsageError
from likely.sources import ReadOptions, open_source
from processes import COMMAND, environment
from tables import learn


def made(server, *statements):
    with server.connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    server.connection.commit()


def sqlite_file(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return str(path)


def test_a_relation_s_connection_is_free_after_bad_rows_and_no_thread_reads_on():
    connection = duckdb.connect()
    x = "case when range = 900000 then 'inf'::double else range % 7 end"
    relation = connection.sql(f"select {x} as x, range % 2 as y from range(3000000)")
    with pytest.raises(DataError, match="not a finite number") as kept:
        learn(relation)
    assert kept.value.column == "x"
    assert not [thread for thread in threading.enumerate() if thread.name == "likely-read"]
    assert connection.execute("select 1").fetchone() == (1,)


def test_bad_rows_of_a_duckdb_query_end_the_command_and_nothing_but_its_message_is_printed(tmp_path):
    path, model = str(tmp_path / "a.duckdb"), str(tmp_path / "m.likely")
    with duckdb.connect(path) as connection:
        connection.execute("create table t as select range as i, range % 7 / 3 as x, range % 2 as y from range(1000000)")
    run("learn", path, "--query", "select x, y from t limit 1000", "--target", "y", "-o", model)
    query = ("--query", "select y, case when i = 300000 then 'inf'::double else x end as x from t")
    for words in (("learn", path, "--target", "y", "-o", str(tmp_path / "n.likely")), ("predict", model, path)):
        done = subprocess.run([*COMMAND, *words, *query], capture_output=True, env=environment(), timeout=300, check=False)
        errors = [line for line in done.stderr.decode().splitlines() if "compiling" not in line]
        assert done.returncode == 3
        assert len(errors) == 1
        assert "'x'" in errors[0]


def test_truncate_waits_for_the_passes_over_a_postgres_table(postgres):
    postgres.put("kept", pa.table({"x": list(range(50)), "y": [0, 1] * 25}))
    for reading in (ReadOptions(table="kept"), ReadOptions(query="select * from kept")):
        source = open_source(postgres.uri, reading)
        assert sum(batch.rows for batch in source.batches()) == 50
        with pytest.raises(Exception, match="lock timeout"):
            made(postgres, "set lock_timeout = '300ms'", "truncate kept")
        postgres.connection.rollback()
        assert sum(batch.rows for batch in source.batches()) == 50
        likely.sources.release(source)
    made(postgres, "set lock_timeout = '300ms'", "truncate kept")
    made(postgres, "set lock_timeout = 0")


def test_a_table_may_be_replaced_after_it_was_learned_from_and_by_its_own_predictions(postgres, tmp_path):
    postgres.put("own", pa.table({"x": [float(i % 7) for i in range(60)], "y": [0, 1] * 30}))
    made(postgres, "set lock_timeout = '5s'")
    model = learn(postgres.uri, table="own", plain=True)
    made(postgres, "alter table own add column z int")
    model.save(tmp_path / "m.likely")
    run("predict", str(tmp_path / "m.likely"), postgres.uri, "--table", "own", "-o", postgres.uri, "--output-table", "own",
        "--replace-table")  # fmt: skip
    assert len(postgres.ask("select label from own")["label"]) == 60
    made(postgres, "set lock_timeout = 0")


TYPED = """create table typed as select i % 2 as y, (i % 5)::float8 as x, interval '1 day 2 hours' * i as gap,
    (12345678901234567890.125 + i)::numeric(30,3) as amount, (1 / 3.0::numeric) * i as free, '$5.25'::money as price,
    ('00000000-0000-0000-0000-0000000000' || lpad(i::text, 2, '0'))::uuid as id, '10.0.0.1'::inet as host
    from generate_series(1, 40) i"""


def test_columns_of_postgres_are_written_beside_predictions_with_every_digit(postgres, tmp_path):
    made(postgres, "drop table if exists typed, typed_scored", TYPED)
    model = str(tmp_path / "m.likely")
    run("learn", postgres.uri, "--table", "typed", "--target", "y", "--plain", "--ignore", "id", "-o", model)
    run("predict", model, postgres.uri, "--table", "typed", "-o", postgres.uri, "--output-table", "typed_scored")
    same = postgres.ask("""select count(*) as n, count(*) filter (where s.amount = t.amount) as amount,
        count(*) filter (where s.free::numeric = t.free) as free, count(*) filter (where s.gap::interval = t.gap) as gap,
        count(*) filter (where s.price::numeric = t.price::numeric) as price, min(pg_typeof(s.amount)::text) as kind
        from typed_scored s join typed t on s.id::uuid = t.id""")
    assert same == {"n": [40], "amount": [40], "free": [40], "gap": [40], "price": [40], "kind": ["numeric"]}
    run("predict", model, postgres.uri, "--table", "typed", "-o", str(tmp_path / "out.parquet"))
    assert pq.read_table(tmp_path / "out.parquet")["host"][0].as_py() == "10.0.0.1/32"


def test_money_is_an_amount_and_a_uuid_is_text(postgres):
    made(postgres, "drop table if exists typed", TYPED)
    asked = {"table": "typed", "plain": True, "families": {"price": "gaussian", "id": "categorical"}}
    model = learn(postgres.uri, **asked)
    place = [block.name for block in model.blocks].index("price")
    assert model.tally.statistics[place].mean.tolist() == [5.25, 5.25]
    assert "00000000-0000-0000-0000-000000000007" in model.schema.by_name["id"].values
    there = learn(postgres.uri, in_database=True, **asked)
    assert there.schema.by_name["id"].values == model.schema.by_name["id"].values
    assert there.tally.statistics[place].mean.tolist() == [5.25, 5.25]


def test_columns_of_duckdb_are_written_beside_predictions_with_every_digit(tmp_path):
    path, model = str(tmp_path / "a.duckdb"), str(tmp_path / "m.likely")
    columns = "range % 2 as y, (range % 5)::double as x, to_days(range::int) as gap, [to_days(1)] as gaps, "
    columns += "(2::hugeint ** 90)::hugeint + range as wide, uuid() as id, (range / 3)::decimal(30, 10) as amount"
    with duckdb.connect(path) as connection:
        connection.execute(f"create table t as select {columns} from range(40)")
    run("learn", path, "--table", "t", "--target", "y", "--plain", "--ignore", "id", "-o", model)
    run("predict", model, path, "--table", "t", "-o", path, "--output-table", "scored")
    with duckdb.connect(path) as connection:
        same = "s.wide = t.wide and s.gap::interval = t.gap and s.amount = t.amount"
        joined = f"select count(*), count(*) filter ({same}) from scored s join t on s.id::uuid = t.id"
        assert connection.execute(joined).fetchone() == (40, 40)


def test_a_column_that_no_parquet_file_holds_is_refused_by_name(tmp_path):
    model, data = learn({"x": [1.0, 2.0] * 4, "y": [0, 1] * 4}, plain=True), tmp_path / "a.arrow"
    gaps = pa.array([pa.scalar((0, 1, 0), pa.month_day_nano_interval())] * 4)
    table = pa.table({"x": [1.0, 2.0, 1.0, 2.0], "gap": gaps})
    with pa.ipc.new_file(data, table.schema) as file:
        file.write_table(table)
    model.save(tmp_path / "m.likely")
    done = run("predict", str(tmp_path / "m.likely"), str(data), "-o", str(tmp_path / "b.parquet"), expect=3)
    assert "column 'gap' contains month_day_nano_interval, which no Parquet file holds" in done.stderr


@contextlib.contextmanager
def command(*words):
    """A command that runs, and is stopped by Ctrl-C as soon as the block says so."""
    with subprocess.Popen([*COMMAND, *words], stderr=subprocess.PIPE, env=environment()) as process:
        try:
            yield process
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
            assert (process.returncode, errors.decode().splitlines()[-1]) == (130, "error: interrupted")
        finally:
            process.kill()


def until(ready):
    for _ in range(600):
        if ready():
            time.sleep(0.5)
            return
        time.sleep(0.1)
    raise AssertionError("the query has not begun")


@pytest.mark.parametrize("where", ["where a.x + b.x + c.x < 0", ""], ids=["streamed", "in the database"])
def test_ctrl_c_ends_a_long_query_of_sqlite(where, tmp_path):
    rows = "insert into t with recursive r(i) as (select 1 union all select i + 1 from r where i < 4000) select i, i % 2 from r"
    path = sqlite_file(tmp_path / "a.sqlite", "create table t (x, y)", rows)
    query = f"select a.x as x, b.x as z, c.y as y from t a, t b, t c {where}"
    words = ("--plain",) if where else ("--plain", "--in-database")

    busy = []  # seconds of the processor since the file was opened: by then everything is imported, and the query runs

    def begun():
        with contextlib.suppress(OSError), open(f"/proc/{process.pid}/stat") as file:
            if any(os.readlink(f.path) == path for f in os.scandir(f"/proc/{process.pid}/fd")):
                busy.append(int(file.read().rpartition(")")[2].split()[11]) / os.sysconf("SC_CLK_TCK"))
        return bool(busy) and busy[-1] - busy[0] > 6

    with command("learn", path, "--query", query, "--target", "y", "-o", str(tmp_path / "m.likely"), *words) as process:
        until(begun)
    assert not (tmp_path / "m.likely").exists()


def test_ctrl_c_ends_a_long_query_of_postgres(postgres, tmp_path):
    query = "select 1 as x, 0 as y from pg_sleep(300)"
    active = "select count(*) as n from pg_stat_activity where query like '%pg_sleep(300)%' and pid <> pg_backend_pid()"
    with command("learn", postgres.uri, "--query", query, "--target", "y", "-o", str(tmp_path / "m.likely")):
        until(lambda: postgres.ask(f"{active} and state = 'active'")["n"] == [1])


def test_the_memory_limit_reaches_duckdb_and_its_sorts_may_use_the_disk(tmp_path, monkeypatch):
    from likely.sources import databases

    path, limit = str(tmp_path / "a.duckdb"), 8_000_000_000
    with duckdb.connect(path) as connection:
        connection.execute("create table t as select range as x, hash(range) as h, range % 2 as y from range(3000000)")
    settings = "select current_setting('memory_limit') as m, current_setting('temp_directory') as d"
    (batch,) = open_source(path, ReadOptions(query=settings, memory_limit=limit)).batches()
    folder = batch.columns["d"][0].as_py()
    assert batch.columns["m"][0].as_py() == "3.6 GiB"
    assert folder
    assert not os.path.exists(folder)
    monkeypatch.setattr(databases, "database_bytes", lambda _: 60_000_000)  # a small limit would be that of all these tests
    query = "select x, y, h from t order by h"
    assert sum(b.rows for b in open_source(path, ReadOptions(query=query, memory_limit=limit)).batches()) == 3_000_000
    grouped = ReadOptions(query="select list(x order by h) as x, 1 as y from t", memory_limit=limit)
    with pytest.raises(likely.errors.ResourceError, match="memory limit does not suffice"):
        list(open_source(path, grouped).batches())


def test_tables_are_named_alike_in_every_database(postgres, tmp_path):
    path = str(tmp_path / "a.duckdb")
    columns = "select i % 2 as y, i / 3.0 as x from generate_series(1, 20) t(i)"
    odd = ("create schema if not exists \"my s\"", f'create table "my s"."T.x" as {columns}',
           f'create table "dotted.name" as {columns}')  # fmt: skip
    made(postgres, 'drop table if exists "my s"."T.x", "dotted.name"', *odd, f"create view vv as {columns}",
         f"create materialized view mv as {columns}")  # fmt: skip
    with duckdb.connect(path) as connection:
        for statement in (*odd, f"create view vv as {columns}"):
            connection.execute(statement)
    for table in ("vv", "public.vv", '"my s"."T.x"', 'my s."T.x"', '"dotted.name"', "dotted.name", "mv"):
        assert learn(postgres.uri, table=table, plain=True).tally.rows == 20
    for table in ("vv", "main.vv", '"my s"."T.x"', '"dotted.name"', "dotted.name"):
        assert learn(path, table=table, plain=True).tally.rows == 20
    with pytest.raises(DataError, match=r"'\"dotted.name\"', 'vv', 'my s.\"T.x\"'"):
        learn(path, table="no")
    small = sqlite_file(tmp_path / "a.sqlite", 'create table "a.b" (x, y)', 'insert into "a.b" values (1, 0), (2, 1)')
    for table in ("main.\"a.b\"", '"a.b"', "a.b"):
        assert learn(small, table=table, plain=True).tally.rows == 2


def test_predictions_are_written_into_the_schema_that_is_named(postgres, tmp_path):
    data, model, path = str(tmp_path / "a.csv"), str(tmp_path / "m.likely"), str(tmp_path / "a.duckdb")
    (tmp_path / "a.csv").write_text("x,y\n" + "1,n\n2,p\n" * 10)
    run("learn", data, "--target", "y", "--plain", "-o", model)
    made(postgres, "drop schema if exists s2 cascade", "create schema s2")
    with duckdb.connect(path) as connection:
        connection.execute("create schema s2")
    for output in (postgres.uri, path):
        words = ("predict", model, data, "-o", output, "--output-table")
        run(*words, "s2.scored")
        run(*words, "s2.scored", expect=2)
        run(*words, "s2.scored", "--replace-table")
        run(*words, '"s2.scored"')
    tables = "select table_schema as s, table_name as t from information_schema.tables where table_name ~ 'scored$' order by 1"
    assert postgres.ask(tables)["s"].count("s2") == 1
    assert postgres.ask('select count(*) as n from s2.scored')["n"] == [20]
    assert postgres.ask('select count(*) as n from "s2.scored"')["n"] == [20]
    with duckdb.connect(path) as connection:
        assert connection.execute(tables).fetchall() == [("main", "s2.scored"), ("s2", "scored")]
    small = ("predict", model, data, "-o", str(tmp_path / "a.sqlite"), "--output-table")
    assert "SQLite has no schema 's2'" in run(*small, "s2.scored", expect=2).stderr
    run(*small, "main.scored")
    run(*small, '"s2.scored"')


def test_an_infinite_time_is_refused_as_an_infinite_number_is(postgres, tmp_path):
    times = "case when i = 7 then 'infinity'::{0} else '2024-01-01'::{0} end as t, i % 2 as y from generate_series(1, 20) r(i)"
    path = str(tmp_path / "a.duckdb")
    for kind in ("timestamp", "timestamptz", "date"):
        made(postgres, "drop table if exists ends", f"create table ends as select {times.format(kind)}")
        with duckdb.connect(path) as connection:
            connection.execute(f"create or replace table ends as select {times.format(kind)}")
        for data in (postgres.uri, path):
            for there in (False, True):
                with pytest.raises(DataError, match="not a finite number"):
                    learn(data, table="ends", plain=True, in_database=there)
            assert learn(data, query="select *, y as x from ends", plain=True, ignore=["t"]).tally.rows == 20


def test_dates_far_away_are_numbers_still():
    far = [dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1)] * 8  # noqa: DTZ001 - a naive time
    model = learn({"t": pa.array(far), "d": pa.array([t.date() for t in far]), "y": [0, 0, 1, 1] * 4}, plain=True)
    assert {"t", "d"} <= model.schema.by_name.keys()


def test_where_the_rows_were_counted_is_said_of_a_server(postgres, tmp_path):
    postgres.put("orders", pa.table({"x": [1.0, 2.0, 3.0, 4.0] * 5, "y": [0, 1] * 10}))
    words = ("learn", postgres.uri, "--table", "orders", "--target", "y", "--plain", "-o", str(tmp_path / "m.likely"))
    assert document(*words)["engine"] == {"name": "memory", "reason": "the rows come from a server, and are read in batches"}
    assert "the rows come from a server" in run(*words).stderr


def test_an_error_of_writing_names_the_schema_that_is_not_there(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n" + "1,n\n2,p\n" * 10)
    model, data = str(tmp_path / "m.likely"), str(tmp_path / "a.csv")
    run("learn", data, "--target", "y", "--plain", "-o", model)
    done = run("predict", model, data, "-o", str(tmp_path / "a.duckdb"), "--output-table", "nowhere.t", expect=6)
    assert "nowhere" in done.stderr
    assert not (tmp_path / "a.duckdb").exists()


def test_decimals_without_declared_digits_are_learned_as_numbers(postgres):
    made(postgres, "drop table if exists free", "create table free as select i % 2 as y, (i / 4.0)::numeric as x "
         "from generate_series(1, 40) i")  # fmt: skip
    model = learn(postgres.uri, table="free", plain=True)
    expected = learn({"x": [decimal.Decimal(i) / 4 for i in range(1, 41)], "y": [i % 2 for i in range(1, 41)]}, plain=True)
    assert model.tally.statistics[0].mean.tolist() == expected.tally.statistics[0].mean.tolist()
    with pytest.raises(UsageError, match="exclude each other"):
        learn(postgres.uri, table="free", query="select 1")


@pytest.mark.parametrize("listed", ["a, a", 'a, y as "A"'])
def test_a_query_that_gives_a_name_twice_is_refused_instead_of_read_under_another_name(tmp_path, listed):
    rows = "create table t as select 1 as a, 'n' as y union all select 2, 'p'"
    lite, duck = sqlite_file(tmp_path / "t.sqlite", rows), str(tmp_path / "t.duckdb")
    query, connection = f"select {listed}, y from t -- a comment", duckdb.connect()
    connection.execute(rows)
    with duckdb.connect(duck) as file:
        file.execute(rows)
    for data, how in ((lite, {"query": query}), (duck, {"query": query}), (connection.sql(query), {})):
        with pytest.raises(DataError, match=r"column 'a' occurs twice|columns 'a' and 'A' .* differ only by case"):
            learn(data, plain=True, **how)
    kept = 'select a, a as "a:1", a as "a_1", y from t'
    for data in (lite, duck):
        (batch,) = open_source(data, ReadOptions(query=kept)).batches()
        assert list(batch.names) == ["a", "a:1", "a_1", "y"]
