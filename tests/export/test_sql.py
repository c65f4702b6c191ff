"""A model as SQL gives the probabilities of `posterior`, in every database that can be run here."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from databases import Spark
from export_help import both_ways
from hostile import hostile, strange
from likely.errors import DataError, UsageError
from tables import learn

FAST = ("duckdb", "sqlite", "postgres")
FAMILIES = {
    "default": {},
    "plain": {"plain": True},
    "asked for": {"families": {'a"b': "gaussian", "n": "poisson"}},
    "joint numbers": {"plain": True, "joint": [('a"b', "x")], "families": {"n": "poisson"}},
    "joint categories": {"plain": True, "joint": [("c.d", "Ünï `tick`")], "families": {"n": "bernoulli"}},
    "counts": {"plain": True, "families": {"n": "binomial:1000000", "select * from x; --": "categorical"}},
    "no smoothing": {"smoothing": 0, "families": {"select * from x; --": "categorical", "n": "poisson"}},
}


@pytest.mark.parametrize("settings", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("database", FAST, indirect=True)
def test_the_statement_equals_the_posterior(database, request, settings):
    dialect = request.node.callspec.params["database"]
    table = hostile()
    model = learn(table, **settings)
    both_ways(model, pa.concat_tables([table, strange(table)]), database, dialect)


@pytest.mark.xdist_group("spark")
def test_the_statement_equals_the_posterior_in_spark(spark):
    table = hostile(200)
    model = learn(table, families={'a"b': "gaussian", "n": "poisson"})
    both_ways(model, pa.concat_tables([table, strange(table)]), Spark(spark), "spark")


REAL = {"credit_g": "class", "titanic": "survived", "penguins": "species"}


@pytest.mark.real
@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("database", FAST, indirect=True)
def test_the_default_model_of_a_published_table_scores_alike(database, request, name, shared_data):
    table = pq.read_table(shared_data(f"{name}.parquet"))
    model = learn(table, REAL[name])
    both_ways(model, table, database, request.node.callspec.params["database"])


@pytest.mark.real
def test_large_models_score_alike_in_duckdb(shared_data):
    import databases

    table = pq.read_table(shared_data("adult.parquet"))
    both_ways(learn(table.slice(0, 10_000), "income"), table.slice(20_000, 10_000), databases.Duckdb(), "duckdb")
    table = pq.read_table(shared_data("soybean.parquet"))
    both_ways(learn(table, "class"), table, databases.Duckdb(), "duckdb")


def test_the_name_of_a_table_has_the_parts_that_the_name_of_a_source_has():
    import sqlglot

    from likely.sources.table_names import name_parts

    model = learn({"a": ["u", "v"] * 3, "y": [0, 1] * 3}, plain=True)
    for name in ("t", "s.t", 'c.s."my.t"', '"a""b".t', "a..b", "a.", 'x"y', "a.b.c.d", "select"):
        parsed = sqlglot.parse_one(model.sql(name, dialect="duckdb"))
        first = next(each for each in parsed.find_all(sqlglot.exp.Table) if not each.name.startswith("likely__"))
        assert [part.name for part in first.parts] == name_parts(name, most=3)


@pytest.mark.parametrize("name", ["orders", "a.b", 'q"uote', "select", "; drop table x"])
def test_a_table_of_any_name_is_scored(name):
    import databases

    table, database = hostile(60), databases.Duckdb()
    given = '"' + name.replace('"', '""') + '"' if "." in name else name
    both_ways(learn(table, plain=True), table, database, "duckdb", name=name, given=given)


def test_a_table_in_a_schema_is_named_with_a_point():
    statement = learn(hostile(60), plain=True).sql('shop."or.ders"', dialect="postgres")
    assert 'FROM "shop"."or.ders" AS "likely__table"' in statement


def test_only_the_columns_that_are_asked_for_are_returned():
    import databases

    table, database = hostile(60), databases.Sqlite()
    database.put("data", table)
    found = database.ask(learn(table, plain=True).sql(dialect="sqlite", columns=["x"]))
    assert list(found) == ["x", "label", "p_it's no", "p_yes"]


@pytest.mark.parametrize("dialect", ["bigquery", "snowflake", "mysql"])
def test_databases_that_cannot_be_run_here_get_a_statement_that_parses(dialect):
    import sqlglot

    table = hostile(300).rename_columns(["a", "b", "c", "d", "e", "f", "y"])
    statement = learn(table).sql(dialect=dialect)
    assert sqlglot.parse_one(statement, dialect=dialect).sql(dialect=dialect) == statement


@pytest.mark.parametrize("kind", ["view", "without rowid", "collated", "columns named like row numbers"])
def test_views_and_tables_without_row_numbers_are_scored_in_sqlite(kind):
    import databases

    table, database = hostile(400), databases.Sqlite()
    if kind == "columns named like row numbers":
        table = table.rename_columns([*table.schema.names[:3], "rowid", "oid", "_rowid_", "y"])
    model = learn(table, ignore=[], plain=kind == "collated")
    asked = pa.concat_tables([table, table.slice(50, 100)])  # equal rows, too
    database.put("stored", asked)
    columns = ", ".join(map(databases.quoted, asked.schema.names))
    how = {"without rowid": "id integer primary key, ", "collated": "id integer, "}.get(kind)
    if how is None:
        database.connection.execute("create view data as select * from stored order by 5 desc")
    else:
        typed = [f"{databases.quoted(name)}{' collate nocase' if kind == 'collated' else ''}" for name in asked.schema.names]
        end = " without rowid" if kind == "without rowid" else ""
        database.connection.execute(f"create table data ({how}{', '.join(typed)}){end}")
        numbered = f"insert into data select row_number() over () as id, {columns} from stored"
        database.connection.execute(numbered)
    wanted = database.ask("select * from data")
    found = database.ask(model.sql(dialect="sqlite"))
    assert [name for name in found if name in wanted] == list(wanted)
    assert all(found[name] == wanted[name] for name in wanted)
    known = pa.table({name: wanted[name] for name in asked.schema.names})
    shares = np.column_stack([found[f"p_{label}"] for label in model.classes])
    assert np.abs(shares - model.predict_proba(known)).max() < 1e-9


def test_texts_that_a_collation_of_sqlite_takes_for_one_are_scored_apart():
    import databases

    cells = ["u", "U", "v", None]
    table = pa.table({"a": [cells[i % 4] for i in range(80)], "y": ["np"[i % 4 == 1] for i in range(80)]})
    model, database = learn(table, plain=True), databases.Sqlite()
    database.put("stored", table)
    database.connection.execute("create table data (a text collate nocase)")
    database.connection.execute("insert into data select a from stored")
    found = database.ask(model.sql(dialect="sqlite"))
    assert len(found["label"]) == 80
    assert np.abs(np.array(found["p_p"]) - model.predict_proba(table)[:, 1]).max() < 1e-9


@pytest.mark.parametrize("database", FAST, indirect=True)
def test_logarithms_of_little_more_than_one_have_all_digits(database, request):
    from likely.export._dialects import dialect_of
    from likely.export._expressions import ExpressionWriter
    from likely.export._sql_averages import log_of_one_more

    dialect = request.node.callspec.params["database"]
    given = [0.0, 1e-300, 1e-17, 3e-14, 1e-9, 0.1, 1e300]
    database.put("data", pa.table({"u": given}))
    written = log_of_one_more(ExpressionWriter(dialect_of(dialect)), "u").sql(dialect=dialect)
    assert database.ask(f"select {written} as r from data")["r"] == pytest.approx(np.log1p(given).tolist(), rel=1e-15, abs=0)


def test_as_many_columns_as_an_index_of_sqlite_has_and_more_are_scored():
    import databases

    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 300)
    table = pa.table({f"x{j}": np.round(rng.normal(y), 1) for j in range(150)} | {"y": y})
    both_ways(learn(table, plain=True), table, databases.Sqlite(), "sqlite")


AVERAGED = {
    "numbers": {"average": True},
    "known variance": {"average": True, "families": {'a"b': likely.Gaussian(variance=1.0)}},
    "shared variance": {"average": True, "families": {'a"b': likely.Gaussian(tie="class")}},
}
MIXED = {
    "one category": [("c.d", "x", 'a"b')],
    "two categories": [('a"b', "c.d", "Ünï `tick`")],
}


@pytest.mark.parametrize("settings", AVERAGED.values(), ids=AVERAGED)
@pytest.mark.parametrize("database", FAST, indirect=True)
def test_numbers_averaged_over_whether_they_depend_on_the_class_are_scored(database, request, settings):
    table = hostile(600)
    asked = pa.concat_tables([table, strange(table)])
    both_ways(learn(table, **settings), asked, database, request.node.callspec.params["database"])


@pytest.mark.parametrize("database", FAST, indirect=True)
def test_an_average_of_both_predictions_and_of_very_many_rows_is_scored(database, request):
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 200_000)
    table = pa.table({"x": rng.normal(size=len(y)) + 0.02 * y, "w": rng.normal(y), "y": y})
    model = learn(table, average=True)
    shares = [math.exp(block.likelihood.log_on) for block in model.block_parameters]
    assert any(0.01 < share < 0.99 for share in shares)  # an average in earnest
    asked = pa.table({"x": [*rng.normal(size=60), 1e-12, None, 1e200, -1e308], "w": [*rng.normal(size=62), None, 0.0]})
    both_ways(model, asked, database, request.node.callspec.params["database"])


@pytest.mark.parametrize("smoothing", [1.0, 0])
@pytest.mark.parametrize("joint", MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("database", FAST, indirect=True)
def test_a_joint_block_of_categories_and_numbers_is_scored(database, request, joint, smoothing):
    table = hostile(600)
    model = learn(table, plain=True, joint=joint, smoothing=smoothing)
    both_ways(model, pa.concat_tables([table, strange(table)]), database, request.node.callspec.params["database"])


def test_an_infinite_number_has_no_answer():
    import databases

    table, database = hostile(60), databases.Duckdb()
    model = learn(table, plain=True)
    endless = table.slice(0, 2).set_column(4, "x", pa.array([np.inf, 1.0]))
    database.put("data", endless)
    found = database.ask(model.sql())
    assert found["label"][0] is None
    assert found["p_yes"][0] is None
    assert found["label"][1] is not None
    with pytest.raises(DataError, match="not a finite number"):
        model.posterior(endless)


def test_labels_keep_their_type():
    import databases

    for classes in ((0, 1), (False, True), (0.5, 1.5), ("a", 1)):
        table = {"x": [1.0, 2.0, 3.0, 4.0], "y": [classes[i % 2] for i in range(4)]}
        model, database = learn(table, plain=True), databases.Duckdb()
        database.put("data", pa.table({"x": table["x"]}))
        found = database.ask(model.sql())["label"]
        wanted = model.predict(table).tolist()
        assert found == (wanted if classes != ("a", 1) else [str(label) for label in wanted])


def test_names_that_differ_only_by_case_are_refused_where_they_are_one_column():
    model = learn({"a": [1.0, 2.0, 3.0, 4.0], "A": ["u", "v", "u", "v"], "y": [0, 1, 0, 1]}, plain=True)
    assert '"A"' in model.sql(dialect="postgres")
    with pytest.raises(UsageError, match="'a' and 'A' differ only by case"):
        model.sql(dialect="duckdb")


def test_an_answer_does_not_take_the_name_of_a_column():
    model = learn({"label": ["u", "v", "u", "v"], "y": [0, 1, 0, 1]}, plain=True)
    with pytest.raises(UsageError, match="rename the new ones with prefix="):
        model.sql()
    assert '"new_label"' in model.sql(prefix="new_")


def test_what_has_no_sql_is_refused_with_a_reason():
    with pytest.raises(UsageError, match="did you mean 'postgres'"):
        learn({"a": ["u", "v"], "y": [0, 1]}, plain=True).sql(dialect="postgress")
    with pytest.raises(UsageError, match="no column of text"):
        learn({"a": ["u", "v"], "y": [0, 1]}, plain=True).word_weights()


def test_another_name_of_a_dialect_is_the_dialect():
    model = learn({"a": ["u", "v"], "y": [0, 1]}, plain=True)
    assert model.sql(dialect="postgresql") == model.sql(dialect="postgres")


def test_the_numbers_of_a_table_are_one_part_of_the_statement():
    from likely.export._dialects import dialect_of
    from likely.export._expressions import ExpressionWriter

    found = ExpressionWriter(dialect_of("sqlite")).lookup("c", np.linspace(0, 1, 5000).tolist())
    assert len(list(found.walk())) == 1  # a node of each number takes seconds
    assert found.sql().count("CASE") == 4999


@pytest.mark.parametrize("names", [("t", "s"), ("rowid", "data"), ("_ROWID_", "oid")], ids="-".join)
@pytest.mark.parametrize("database", FAST, indirect=True)
def test_columns_may_have_the_names_of_tables_and_of_row_numbers(database, request, names):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 80)
    one, other = names
    table = pa.table({one: np.array(["u", "v", "w"])[y + rng.integers(0, 2, 80)], other: rng.normal(y), "y": y.astype(bool)})
    both_ways(learn(table), table.drop_columns(["y"]), database, request.node.callspec.params["database"])


@pytest.mark.parametrize("database", FAST, indirect=True)
def test_classes_that_differ_only_by_case_have_columns_of_their_own(database, request):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 90)
    table = pa.table({"a": rng.normal(y), "y": np.array(["Yes", "yes", "YES"])[y]})
    both_ways(learn(table), table.drop_columns(["y"]), database, request.node.callspec.params["database"])


@pytest.mark.parametrize("database", FAST, indirect=True)
def test_labels_that_are_fractions_come_back_as_such(database, request):
    table = pa.table({"a": [1.0, 2.0, 3.0, 7.0, 8.0, 9.0] * 4, "y": [1 / 3] * 3 * 4 + [0.75] * 3 * 4})
    both_ways(learn(table, plain=True), table.drop_columns(["y"]), database, request.node.callspec.params["database"])


def test_a_class_whose_column_postgres_would_cut_off_is_refused():
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "y": ["L" * 62 + "1", "L" * 62 + "2"] * 2})
    with pytest.raises(UsageError, match="postgres cuts off names after 63: rename the class"):
        learn(table, plain=True).sql(dialect="postgres")


@pytest.mark.xdist_group("spark")
def test_values_that_spark_takes_for_variables_are_texts(spark):
    values = ["${c}", "a${b}${c}", "${", "$", ""]
    cells = [values[i % 5] for i in range(60)]
    table = pa.table({"a": cells, "i": list(range(60)), "y": ["n" if i % 5 < 2 else "p" for i in range(60)]})
    model = learn(table, plain=True, ignore=["i"])
    both_ways(model, table.drop_columns(["y"]), Spark(spark), "spark", by=["i"])
    named = learn({"${c}": ["u", "v"] * 4, "y": ["n", "p"] * 4}, plain=True)
    assert "${c}" in named.sql(dialect="duckdb")
    with pytest.raises(UsageError, match=r"spark takes .* for a variable; rename it"):
        named.sql(dialect="spark")
