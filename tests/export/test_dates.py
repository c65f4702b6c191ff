"""Dates, times of day and their parts in SQL: the same seconds in every database, whatever the time zone of the session."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from databases import Duckdb, Sqlite
from export_help import both_ways
from likely.errors import UsageError
from tables import learn

ROWS = 600
PARTS = ["when.weekday", "when.month", "when.hour", "day.month"]
FAST = ("duckdb", "sqlite", "postgres")


def calendar():
    """Times before and after 1970, dates, and times of day; the label depends on all of them."""
    start = dt.datetime(1969, 12, 20, 5, 30)  # noqa: DTZ001 - databases have naive times
    when = [None if i % 17 == 4 else start + dt.timedelta(hours=7 * i, milliseconds=i) for i in range(ROWS)]
    day = [None if i % 7 == 0 else dt.date(1960, 1, 1) + dt.timedelta(days=11 * i) for i in range(ROWS)]
    clock = [None if i % 5 == 0 else dt.time(i % 24, i % 60, (i * 7) % 60, 1000 * i) for i in range(ROWS)]
    times = zip(when, clock, strict=True)
    labels = ["weekend" if t and t.weekday() > 4 else "late" if c and c.hour > 11 else "weekday" for t, c in times]
    return pa.table({"when": when, "day": day, "clock": clock, "z": [i % 5 for i in range(ROWS)], "y": labels})


@pytest.mark.parametrize("settings", [{"date_parts": PARTS}, {"plain": True, "families": {"clock": "gaussian"}}])
@pytest.mark.parametrize("database", FAST, indirect=True)
def test_dates_times_and_their_parts_are_read_as_seconds(database, request, settings):
    table = calendar()
    both_ways(learn(table, **settings), table, database, request.node.callspec.params["database"])


@pytest.mark.parametrize("database", FAST, indirect=True)
def test_parts_of_dates_that_are_taken_as_numbers_are_scored(database, request):
    table = calendar()
    model = learn(table, plain=True, date_parts=PARTS, families=dict.fromkeys(PARTS, "gaussian"))
    assert all(model.schema.by_name[name].kind == "number" for name in PARTS)
    both_ways(model, table, database, request.node.callspec.params["database"])


@pytest.mark.parametrize("database", FAST, indirect=True)
def test_dates_that_were_text_are_scored_where_they_are_dates(database, request, tmp_path):
    table = calendar().drop_columns(["clock"])
    path = tmp_path / "dates.csv"
    lines = [",".join("" if cell is None else str(cell) for cell in row.values()) for row in table.to_pylist()]
    path.write_text("\n".join([",".join(table.schema.names), *lines]))
    model = learn(str(path), date_parts=PARTS)
    assert {model.schema.by_name[name].form for name in ("when", "day")} == {"dymd"}
    both_ways(model, table, database, request.node.callspec.params["database"])


def test_a_text_that_is_no_date_has_no_answer_in_sqlite():
    model, database = learn(calendar(), date_parts=PARTS), Sqlite()
    rows = {"when": ["2024-03-01 10:00", "soon", "NA", None], "day": ["2024-03-01", "2024-03-01", "", None]}
    rows |= {"clock": ["10:00", "10:00", "10:00:30.5", "late"], "z": [1, 1, 1, 1]}
    database.put("data", pa.table(rows))
    found = database.ask(model.sql(dialect="sqlite"))
    assert [label is None for label in found["label"]] == [False, True, False, True]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_the_time_zone_of_a_session_changes_nothing(postgres, zone):
    table = calendar().drop_columns(["clock"])
    model = learn(table, date_parts=PARTS)
    aware = table.set_column(0, "when", table["when"].cast(pa.timestamp("us", "UTC")))
    with postgres.connection.cursor() as cursor:
        cursor.execute(f"set timezone to '{zone}'")
    postgres.connection.commit()
    try:
        both_ways(model, table, postgres, "postgres")
        both_ways(model, aware, postgres, "postgres")
    finally:
        with postgres.connection.cursor() as cursor:
            cursor.execute("reset timezone")
        postgres.connection.commit()
    database = Duckdb()
    database.connection.execute(f"set timezone to '{zone}'")
    both_ways(model, aware, database, "duckdb")


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("kind", ["timestamp_ntz", "timestamp"])
def test_timestamps_of_spark_are_scored_alike_in_any_session(spark, kind):
    table = calendar().drop_columns(["clock"])
    model = learn(table, date_parts=PARTS)
    zone = spark.conf.get("spark.sql.session.timeZone")
    micros = table["when"].cast(pa.timestamp("us")).cast(pa.int64())
    days = [None if d is None else str(d) for d in table["day"].to_pylist()]
    given = pa.table({"n": list(range(ROWS)), "when": micros, "day": days, "z": table["z"]})
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        since = "timestamp_ntz'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, `when` / 1000000)"
        when = since if kind == "timestamp_ntz" else "timestamp_micros(`when`)"
        asked = spark.createDataFrame(given).selectExpr("n", f"{when} as `when`", "cast(day as date) as day", "z")
        assert dict(asked.dtypes)["when"] == kind
        asked.createOrReplaceTempView("dated")
        found = spark.sql(model.sql("dated", dialect="spark")).orderBy("n").toArrow().to_pydict()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    shares = np.column_stack([found[f"p_{label}"] for label in model.classes])
    assert np.abs(shares - model.predict_proba(table)).max() < 1e-9


@pytest.mark.parametrize("dialect", ["bigquery", "snowflake", "mysql"])
def test_dates_of_databases_that_cannot_be_run_here_are_written_so_that_they_parse(dialect):
    import sqlglot

    statement = learn(calendar(), date_parts=PARTS).sql(dialect=dialect)
    assert sqlglot.parse_one(statement, dialect=dialect).sql(dialect=dialect) == statement


def test_times_and_durations_in_text_are_refused_where_they_are_not_written(tmp_path):
    path = tmp_path / "times.csv"
    path.write_text("took,y\n" + "".join(f"{i % 9} min {i % 60} s,{'np'[i % 9 > 4]}\n" for i in range(1, 200)))
    model = learn(str(path), plain=True, families={"took": "gaussian"})
    assert model.schema.by_name["took"].form == "u"
    with pytest.raises(UsageError, match="'took' holds times of day or durations, which are not written in the SQL of spark"):
        model.sql(dialect="spark")
    database = Duckdb()
    database.connection.execute("create table data as select to_seconds(range * 7) as took from range(90)")
    found = database.ask(model.sql())
    seconds = {"took": [f"{i * 7 // 60} min {i * 7 % 60} s" for i in range(90)]}
    assert np.abs(np.array(found["p_p"]) - model.predict_proba(seconds)[:, 1]).max() < 1e-9
