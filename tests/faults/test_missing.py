"""What is missing: null in typed sources, a stated list in text files, a shorter one in the target; all of it reported."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import likely
from commands import document, run
from likely.errors import LikelyWarning
from likely.sources import LABELS, MISSING
from tables import FORMS, learn, written

TYPED = [kind for kind in FORMS if kind not in ("csv", "tsv")]
WORDS = ("none", "None", "NA", "n/a", "null", "?", "nan", "NaN", "<NA>", "")


def test_the_lists_are_those_of_the_documentation():
    assert MISSING == ("", "?", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "<NA>")
    assert LABELS == ("", "?")


@pytest.mark.parametrize("kind", TYPED)
def test_in_typed_sources_every_text_is_a_value_in_columns_and_in_the_target(kind, tmp_path):
    table = {"t": [*WORDS, *WORDS, None, None], "y": [*WORDS, *reversed(WORDS), "u", "v"]}
    model = learn(written(table, kind, tmp_path), plain=True, families={"t": "categorical"})
    assert set(model.schema.by_name["t"].values) == set(WORDS)
    assert set(model.classes) == {*WORDS, "u", "v"}
    assert sum(row["count"] for row in model.parameters["t"]) == 2 * len(WORDS)
    assert model.missing == ()


def test_none_is_never_missing_in_a_text_file_and_only_blank_and_a_question_mark_are_in_its_target(file):
    words = ("none", "None", "NA", "n/a", "null", "nan", "<NA>", "N/A", "NULL", "#N/A", "NaN")
    rows = [f"{w},{w}\n{w},{w}\n" for w in words]
    path = file("t,y\n" + "".join(rows) + "u,?\nv,\nv,u\nv,u\nu,u\n")
    with pytest.warns(LikelyWarning, match=r"2 of 27 rows have no 'y' \('\?' once, blank once; missing=\[\.\.\.\]"):
        model = likely.learn(path, "y", plain=True, families={"t": "categorical"})
    assert set(model.schema.by_name["t"].values) == {"none", "None", "n/a", "u", "v"}
    assert set(model.classes) == {*words, "u"}
    assert model.missing == MISSING
    assert model.missing_labels == LABELS
    numbers = file("t,y\n" + "".join(f"{i % 3},{i % 2}\n0,NA\n" for i in range(12)))
    assert set(learn(numbers, plain=True).classes) == {"0", "1", "NA"}


@pytest.mark.parametrize("kind", FORMS)
def test_an_explicit_list_holds_for_every_source_and_for_the_target(kind, tmp_path):
    table = {"t": ["-", "NA", "u", "v", "u", "v"], "y": ["p", "q", "p", "q", "-", "none"]}
    model = learn(written(table, kind, tmp_path), missing=["-"], plain=True, families={"t": "categorical"})
    assert model.schema.by_name["t"].values == ("NA", "u", "v")
    assert model.classes == ("none", "p", "q")
    assert model.missing == ("-",)


def test_the_largest_class_may_be_called_none(tmp_path):
    table = pd.DataFrame({"x": np.arange(60) % 7, "y": ["none"] * 30 + ["short", "long"] * 15})
    for data in (table, str(tmp_path / "t.csv"), str(tmp_path / "t.parquet")):
        if isinstance(data, str):
            table.to_csv(data, index=False) if data.endswith("csv") else table.to_parquet(data)
        with warnings.catch_warnings():
            warnings.simplefilter("error", LikelyWarning)
            model = likely.learn(data, "y", plain=True)
        counted = {row["class"]: row["count"] for row in model.parameters["y"]}
        assert counted == {"none": 30, "short": 15, "long": 15}


@pytest.fixture
def both(tmp_path):
    """One table as Parquet and as CSV; NA is a text in it, and null is blank in the CSV."""
    rng = np.random.default_rng(3)
    kinds = np.array(["NA", "None", "u", "v", None, "?"], dtype=object)
    t = kinds[rng.integers(0, 6, 300)]
    x = np.where(rng.random(300) < 0.2, np.nan, rng.normal(size=300).round(2))
    y = np.where((t == "NA") | (np.nan_to_num(x) > 0.3), "p", "q")
    table = pd.DataFrame({"t": t, "x": x, "y": y})
    table.to_parquet(tmp_path / "t.parquet", index=False)
    table.to_csv(tmp_path / "t.csv", index=False)
    return str(tmp_path / "t.parquet"), str(tmp_path / "t.csv")


@pytest.mark.parametrize("plain", [True, False])
def test_a_model_reads_every_source_by_the_list_it_was_learned_with(both, plain, tmp_path):
    parquet, csv = both
    known = {"parquet": ("?", "NA", "None", "u", "v"), "csv": ("None", "u", "v")}
    for learned_from in both:
        model = learn(learned_from, plain=plain)
        assert model.schema.by_name["t"].values == known[learned_from.rsplit(".", 1)[1]]
        model.save(tmp_path / "m.likely")
        for asked in (model, likely.load(tmp_path / "m.likely")):
            np.testing.assert_array_equal(asked.posterior(parquet).log_joint, asked.posterior(csv).log_joint)
        for number in range(1, 12):
            flags = [[e.flags for e in model.explain(p, number=number).entries] for p in both]
            assert flags[0] == flags[1]
        updated = [model.update(path) for path in both]
        assert updated[0].tally == updated[1].tally
        assert model.forget(csv).tally.rows == model.forget(parquet).tally.rows == 0


def test_a_text_among_numbers_is_missing_whatever_the_model_was_learned_from(both, file):
    model = learn(both[0])
    path = file("t,x\nu,NA\nu,\nu,nan\n")
    joint = model.posterior(path).log_joint
    np.testing.assert_array_equal(joint, model.posterior({"t": ["u"] * 3, "x": [None] * 3}).log_joint)


def test_another_list_may_be_given_to_every_question(both, file):
    model = learn(both[0])
    path = file("t,x,y\nNA,1,p\n")
    flags = [{e.columns: e.flags for e in model.explain(path, **how).entries} for how in ({}, {"missing": ["NA"]})]
    assert [found["t",] for found in flags] == [(), ("missing",)]
    blank = model.posterior({"t": [None], "x": [1.0]}).log_joint
    np.testing.assert_array_equal(model.posterior(path, missing=["NA"]).log_joint, blank)
    assert model.update(path, missing=["NA"]).tally.rows == model.tally.rows + 1


def test_what_was_taken_as_missing_is_noted_by_text_column_and_count(file, tmp_path):
    path = file("t,x,y\n" + "NA,1.5,p\n,2,q\nu,NA,p\nv,nan,q\nu,?,p\nv,3,?\n" * 20)
    model = learn(path, plain=True)
    taken = {c.name: dict(c.taken) for c in (model.schema.target, *model.schema.columns)}
    assert taken == {"y": {"?": 20}, "t": {"NA": 20, "": 20}, "x": {"NA": 20, "nan": 20, "?": 20}}
    assert "'t': category, 2 values (text); taken as missing: 'NA' 20 times, blank 20 times" in str(model.schema)
    model.save(tmp_path / "m.likely")
    assert str(likely.load(tmp_path / "m.likely").schema) == str(model.schema)
    looked = {c["column"]: c["taken"] for c in likely.inspect(path, target="y")}
    assert looked == taken
    typed = learn({"t": ["NA", None, "u", "v"] * 9, "y": ["p", "q"] * 18}, plain=True)
    assert typed.schema.by_name["t"].taken == ()


def test_a_missing_value_token_with_a_synonym_among_the_values_is_reported(file):
    path = file("t,y\n" + "NA,p\nNone,q\nu,p\nv,q\n" * 10)
    reported = r"column 't': 'NA' was read as missing in 10 of 40 rows, while 'None' is a value: .*\(--missing '\?'\)"
    with pytest.warns(LikelyWarning, match=reported):
        likely.learn(path, "y", plain=True)
    assert "while 'None' is a value" in likely.inspect(path, target="y")[0]["doubt"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", LikelyWarning)
        likely.learn(path, "y", plain=True, missing=["?"])


def test_the_command_line_prints_what_was_taken_and_the_switch(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file("t,x,y\n" + "NA,1.5,p\n,2,q\nu,NA,p\nv,3,q\n" * 10)
    of_y = ["--target", "y"]
    for command in (["learn", "data.csv", *of_y], ["inspect", "data.csv", *of_y], ["inspect", "data.likely"]):
        reported = run(*command).stdout
        assert "'NA' 10 times, blank 10 times" in reported
        assert "--missing TOKEN" in reported
    found = json.loads(run("learn", "data.csv", "--target", "y", "--json").stdout)
    assert found["taken_as_missing"] == {"t": {"NA": 10, "": 10}, "x": {"NA": 10}}
    found = json.loads(run("inspect", "data.csv", "--json").stdout)
    assert [c["taken"] for c in found["columns"]] == [{"NA": 10, "": 10}, {"NA": 10}, {}]


def test_the_command_line_takes_another_list_for_a_question(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"t": ["NA", "u", "v"] * 10, "y": ["p", "q", "p"] * 10}).to_parquet("t.parquet")
    run("learn", "t.parquet", "--target", "y", "-o", "m.likely")
    file("t\nNA\n")
    assert "missing" not in run("explain", "m.likely", "data.csv").stdout
    assert "missing" in run("explain", "m.likely", "data.csv", "--missing", "NA").stdout


def test_what_was_taken_for_missing_is_counted_on_forgotten_and_added_up(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = file("t,x,y\n" + "NA,1.5,p\n,2,q\nu,NA,p\nv,3,q\n" * 10)
    more = file("t,x,y\n" + "NA,1.5,p\nnull,?,q\nu,3,q\nv,2,p\n" * 5, "more.csv")
    model = learn(path)
    both = {"t": {"NA": 15, "": 10, "null": 5}, "x": {"NA": 10, "?": 5}}

    def taken(known):
        return {c.name: dict(c.taken) for c in known.schema.columns}

    assert taken(model.update(more)) == both
    assert taken(model + learn(more, classes=["p", "q"])) == both
    assert taken(model.update(more).forget(more)) == taken(model) == {"t": {"NA": 10, "": 10}, "x": {"NA": 10}}
    run("learn", path, "--target", "y", "-o", "m.likely")
    run("update", "m.likely", more)
    assert json.loads(run("inspect", "m.likely", "--json").stdout)["taken_as_missing"] == both


def test_models_with_other_lists_of_what_is_missing_are_added_up_with_a_word(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = file("t,y\n" + "NA,p\nu,q\nv,p\n" * 10)
    text, own = learn(path), learn(path, missing=["-"])
    reported = r"different texts for missing, .*'NA'.* and \['-'\].*the sum reads rows by the first list"
    with pytest.warns(LikelyWarning, match=reported):
        assert (text + own).missing == text.missing
    with warnings.catch_warnings():
        warnings.simplefilter("error", LikelyWarning)
        assert (own + own).missing == ("-",)
    text.save("a.likely")
    own.save("b.likely")
    assert "different texts for missing" in run("merge", "a.likely", "b.likely", "-o", "c.likely").stderr


def test_clusters_and_sequences_name_what_they_took_for_missing(file):
    rows = "".join(f"{i % 7},{token},{i}\n" for i, token in enumerate(["NA", "None", "good", "bad"] * 30))
    path = file("x,health,row\n" + rows)
    reported = "column 'health': 'NA' was read as missing in 30 of 120 rows, while 'None' is a value"
    with pytest.warns(LikelyWarning, match=reported):
        model = likely.cluster(path, 2, ignore=["row"])
    assert dict(model.schema.by_name["health"].taken) == {"NA": 30}
    for command in (("cluster", path, "-k", "2", "--ignore", "row"), ("sequences", path, "--ignore", "row")):
        result = run(*command)
        assert reported in result.stderr
        assert "health  'NA' 30 times" in result.stdout
        assert document(*command)["taken_as_missing"] == {"health": {"NA": 30}}


def test_clusters_remember_the_odd_cells_of_numbers(file, tmp_path):
    cells = ["n.d." if i == 60 else f"{i % 9 + 5 * (i % 2)}.5" for i in range(200)]
    path, model = file("x\n" + "\n".join(cells) + "\n"), str(tmp_path / "m.likely")
    run("cluster", path, "-k", "2", "-o", model)
    assert run("predict", model, file("x\nn.d.\n3.5\n", "new.csv")).exit_code == 0
