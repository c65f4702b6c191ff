"""A model as SQL gives the probabilities of `posterior`, in every database that can be run here."""

import datetime as dt

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


def test_dates_and_their_parts_are_read_as_seconds(postgres):
    import databases

    start = dt.datetime(1969, 12, 20, 5, 30)  # noqa: DTZ001 - databases have naive times
    when = [None if i % 17 == 4 else start + dt.timedelta(hours=7 * i) for i in range(600)]
    labels = ["weekend" if t and t.weekday() > 4 else "weekday" for t in when]
    table = pa.table({"when": when, "z": [i % 5 for i in range(600)], "y": labels})
    model = learn(table, date_parts=["when.weekday", "when.month", "when.hour"])
    both_ways(model, table, databases.Duckdb(), "duckdb")
    both_ways(model, table, postgres, "postgres")
    with pytest.raises(UsageError, match="'when' holds dates"):
        model.sql(dialect="sqlite")


TEXTS = ["Free prize, call NOW", "it's lunch", "", "Prize prize prize!", None, "ÄRGER über äpfel", "call at 5", "x", "lunch?"]
KINDS = {
    "auto": likely.Text(),
    "multinomial": likely.Text("multinomial"),
    "bernoulli": likely.Text("bernoulli"),
    "complement": likely.Text("complement", idf=True, length="l2"),
    "n-grams": likely.Text("multinomial", ngrams=(1, 2)),
    "longer n-grams": likely.Text("bernoulli", ngrams=(2, 3)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("database", ["duckdb", "postgres"], indirect=True)
def test_texts_are_joined_with_a_table_of_words(database, request, kind):
    scored_texts(database, request.node.callspec.params["database"], kind)


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("kind", ["multinomial", "n-grams"])
def test_texts_are_joined_with_a_table_of_words_in_spark(spark, kind):
    scored_texts(Spark(spark), "spark", kind)


@pytest.mark.parametrize("database", ["duckdb", "postgres"], indirect=True)
def test_pairs_of_words_of_the_default_are_scored(database, request):
    rng = np.random.default_rng(0)
    texts, labels = [], []
    for i in range(600):
        words = rng.choice(["ein", "zwei", "drei", "vier", "Fünf, sechs!", "x"], 5).tolist()
        at = int(rng.integers(0, 4))
        words[at : at + 2] = ("not", "good") if i % 2 else ("good", "not")
        texts.append(" ".join(words))
        labels.append("bad" if (i % 2) ^ (rng.random() < 0.05) else "fine")
    model = learn(pa.table({"say": texts, "y": labels}), families={"say": likely.Text()})
    (block,) = model.block_parameters
    assert block.likelihood.family.ngrams == (1, 2)
    assert any(" " in word for word in model.word_weights()["word"].to_pylist())
    database.put("likely_words", model.word_weights())
    asked = pa.table({"say": [*texts[:40], "good", "", None, "not good good not", "NOT   good; x good -not"]})
    both_ways(model, asked, database, request.node.callspec.params["database"], by=("say",))


def scored_texts(database, dialect, kind, rows=240):
    table = pa.table({
        "say": [TEXTS[(i * 7) % len(TEXTS)] for i in range(rows)],
        "z": [float(i % 9) for i in range(rows)],
        "y": ["spam" if "prize" in (TEXTS[(i * 7) % len(TEXTS)] or "").lower() or i % 10 == 0 else "ham" for i in range(rows)],
    })  # fmt: skip
    model = learn(table, families={"say": KINDS[kind]}, plain=kind != "auto")
    database.put("likely_words", model.word_weights())
    both_ways(model, table, database, dialect, by=("say", "z"))


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
    texts = learn({"a": ["free prize", "free lunch"] * 9, "y": [0, 1] * 9}, families={"a": likely.Text("multinomial")})
    with pytest.raises(UsageError, match="sqlite cannot split it into words"):
        texts.sql(dialect="sqlite")
    with pytest.raises(UsageError, match="no column of text"):
        learn({"a": ["u", "v"], "y": [0, 1]}, plain=True).word_weights()
    mixed = learn(hostile(200), plain=True, joint=[("c.d", "x")])
    with pytest.raises(UsageError, match="joint block of categories and numbers"):
        mixed.sql()


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
