"""Texts are scored in SQL as `posterior` scores them: words are split, joined with a table of their parameters, and summed."""

import numpy as np
import pyarrow as pa
import pytest

import likely
from databases import Spark
from export_help import both_ways
from tables import learn

FAST = ("duckdb", "sqlite", "postgres")
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
@pytest.mark.parametrize("database", FAST, indirect=True)
def test_texts_are_joined_with_a_table_of_words(database, request, kind):
    scored_texts(database, request.node.callspec.params["database"], kind)


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("kind", ["multinomial", "n-grams"])
def test_texts_are_joined_with_a_table_of_words_in_spark(spark, kind):
    scored_texts(Spark(spark), "spark", kind)


@pytest.mark.parametrize("database", FAST, indirect=True)
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


def test_texts_are_split_for_bigquery_as_for_duckdb():
    import sqlglot

    table = pa.table({"say": ["free prize now", "free lunch here"] * 20, "y": ["n", "p"] * 20})
    for kind in ("multinomial", "n-grams", "complement"):
        model = learn(table, families={"say": KINDS[kind]}, plain=True)
        statement = model.sql(dialect="bigquery")
        assert sqlglot.parse_one(statement, dialect="bigquery").sql(dialect="bigquery") == statement
        assert r"REGEXP_EXTRACT_ALL(LOWER(likely__w0), '[\\p{L}\\p{N}_]{2,}')" in statement


@pytest.mark.parametrize("lowercase", [True, False])
def test_words_of_all_scripts_are_those_of_the_tokenizer_in_sqlite(lowercase):
    import databases

    rng = np.random.default_rng(3)
    some = [*"abzABZ019_ÄäßÉéİıŁłŒœƵƶΑσςαЖжЯяդԴأبת中雪あアｱ٣४²½ªǅǈẞ𐐀𐐨👍🏽", *" ,.!?'-–\t\n…·", "\u0301", "\u200d", "\u00ad"]
    texts = ["".join(rng.choice(some, int(rng.integers(1, 40)))) for _ in range(300)]
    texts += ["ab" * 499 + "x ΑΣ" * 700, "ΟΔΥΣΣΕΥΣ και ΑΣ, Σ ΣΑΣ", "İI İİ aİb", "x" * 999 + "yz ab", "", None]
    table = pa.table({"say": texts, "z": [float(i) for i in range(len(texts))], "y": ["n", "p"] * (len(texts) // 2)})
    model = learn(table, families={"say": likely.Text("multinomial", lowercase=lowercase)}, plain=True)
    assert len(model.word_weights()) > 500
    database = databases.Sqlite()
    database.put("likely_words", model.word_weights())
    both_ways(model, table, database, "sqlite", by=("z",))


def test_letters_of_every_code_point_are_those_of_python():
    import re

    from likely.export._letters import letter_runs, word_edges

    for lowercase in (True, False):
        runs = letter_runs(lowercase)
        found = {code: code + shift + step * (code % 2) for a, b, shift, step in runs for code in range(a, b + 1)}
        one = {code: chr(code).lower() if lowercase else chr(code) for code in range(0x110000)}
        assert found == {code: ord(to) for code, to in one.items() if len(to) == 1 and re.match(r"\w", to)}
    places = np.searchsorted(word_edges(), np.arange(0x110000), side="right") % 2
    assert set(np.flatnonzero(places).tolist()) == set(found)


def test_texts_that_a_collation_of_sqlite_takes_for_one_are_split_apart():
    import databases

    table = pa.table({"say": ["free Prize", "FREE prize", "lunch", "LUNCH free"] * 10, "y": ["n", "p", "p", "n"] * 10})
    model = learn(table, families={"say": likely.Text("multinomial", lowercase=False)}, plain=True)
    database = databases.Sqlite()
    database.put("likely_words", model.word_weights())
    database.connection.execute("create table data (say text collate nocase)")
    database.connection.executemany("insert into data values (?)", [(text,) for text in table["say"].to_pylist()])
    found = database.ask(model.sql("data", dialect="sqlite"))
    expected = model.posterior(table.select(["say"])).probabilities
    np.testing.assert_allclose(np.column_stack([found["p_n"], found["p_p"]]), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("dialect", ["snowflake", "mysql"])
@pytest.mark.parametrize("kind", ["auto", "multinomial", "n-grams", "complement"])
def test_texts_are_split_for_databases_that_are_not_run_here(dialect, kind):
    import sqlglot

    table = pa.table({"say": ["free prize now", "free lunch here"] * 20, "x": [1.0, 2.5] * 20, "y": ["n", "p"] * 20})
    model = learn(table, families={"say": KINDS[kind]}, plain=kind != "auto")
    for columns in (None, ["x"]):
        statement = model.sql(dialect=dialect, columns=columns)
        parsed = sqlglot.parse_one(statement, dialect=dialect)
        assert parsed.sql(dialect=dialect) == statement
        words = next(each for each in parsed.find_all(sqlglot.exp.CTE) if each.alias == "likely__words0")
        names = {column.name for column in words.find_all(sqlglot.exp.Column)}
        assert {"likely__w0", "likely__word", "word", "text_column"} <= names
    split = {
        "snowflake": """LATERAL FLATTEN(INPUT => REGEXP_SUBSTR_ALL(LOWER("likely__w0"), '.', 1, 1, 's')) AS "likely__found\"""",
        "mysql": r"""JSON_TABLE(CONCAT('["', REGEXP_REPLACE(LOWER(likely__w0), '[^\\p{L}\\p{N}_]+', '","'), '"]'), '$[*]'""",
    }
    assert split[dialect] in statement


def scored_texts(database, dialect, kind, rows=240):
    table = pa.table({
        "say": [TEXTS[(i * 7) % len(TEXTS)] for i in range(rows)],
        "z": [float(i % 9) for i in range(rows)],
        "y": ["spam" if "prize" in (TEXTS[(i * 7) % len(TEXTS)] or "").lower() or i % 10 == 0 else "ham" for i in range(rows)],
    })  # fmt: skip
    model = learn(table, families={"say": KINDS[kind]}, plain=kind != "auto")
    database.put("likely_words", model.word_weights())
    both_ways(model, table, database, dialect, by=("say", "z"))
