"""Databases that tests run for real: DuckDB, SQLite, a PostgreSQL server of the test's own, a Spark session."""

import contextlib
import datetime as dt
import glob
import math
import os
import shutil
import sqlite3
import subprocess
import tempfile

import pytest


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Duckdb:
    def __init__(self):
        import duckdb

        self.connection = duckdb.connect()

    def put(self, name, table):
        self.connection.register("given", table)
        self.connection.execute(f"create or replace table {quoted(name)} as select * from given")
        self.connection.unregister("given")

    def ask(self, statement):
        return self.connection.sql(statement).to_arrow_table().to_pydict()


class Sqlite:
    def __init__(self):
        self.connection = sqlite3.connect(":memory:")

    def put(self, name, table):
        names = table.schema.names
        self.connection.execute(f"drop table if exists {quoted(name)}")
        self.connection.execute(f"create table {quoted(name)} ({', '.join(map(quoted, names))})")
        cells = [[_stored(v) for v in column.to_pylist()] for column in table.columns]
        self.connection.executemany(
            f"insert into {quoted(name)} values ({', '.join('?' * len(names))})", zip(*cells, strict=True)
        )

    def ask(self, statement):
        cursor = self.connection.execute(statement)
        names = [column[0] for column in cursor.description]
        rows = cursor.fetchall()
        return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _stored(value):
    """A cell as SQLite has it: no NaN, and dates and times as text."""
    if isinstance(value, dt.datetime):
        return value.isoformat(" ")
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    return None if isinstance(value, float) and math.isnan(value) else value


class Postgres:
    def __init__(self, uri):
        import adbc_driver_postgresql.dbapi as driver

        self.uri = uri
        self.connection = driver.connect(uri)

    def put(self, name, table):
        with self.connection.cursor() as cursor:
            cursor.execute(f"drop table if exists {quoted(name)}")
            cursor.adbc_ingest(name, table, mode="create")
        self.connection.commit()

    def ask(self, statement):
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            found = cursor.fetch_arrow_table().to_pydict()
        self.connection.rollback()
        return found


class Spark:
    def __init__(self, session):
        self.session = session

    def put(self, name, table):
        self.session.createDataFrame(table).createOrReplaceTempView(name)

    def ask(self, statement):
        return self.session.sql(statement).toArrow().to_pydict()


@contextlib.contextmanager
def postgres_server():
    """The URI of a server that lives in a temporary folder; the test is skipped, loudly, where there is none."""
    pytest.importorskip("adbc_driver_postgresql", reason="NOT TESTED: adbc-driver-postgresql is not installed")
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [os.path.dirname(shutil.which("postgres") or "")]
    if not os.path.exists(os.path.join(found[-1], "initdb")):
        pytest.skip("NOT TESTED: there is no PostgreSQL server on this machine (Debian: apt install postgresql)")
    as_user = ["setpriv", "--reuid", "nobody", "--clear-groups"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="likely-pg-") as folder:
        if as_user:
            shutil.chown(folder, "nobody")

        def run(*command):
            done = subprocess.run([*as_user, *command], cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr + done.stdout

        base, control = f"{folder}/base", f"{found[-1]}/pg_ctl"
        run(f"{found[-1]}/initdb", "-D", base, "-A", "trust", "-U", "likely", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        settings = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        run(control, "-D", base, "-o", settings, "-l", f"{folder}/log", "-w", "start")
        try:
            yield f"postgresql:///postgres?host={folder}&user=likely"
        finally:
            run(control, "-D", base, "-m", "immediate", "stop")
