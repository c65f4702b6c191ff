"""Each command is a verb of the library: what it prints, what it writes, and that both say the same."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from commands import DAY, LOANS, NEW, TENNIS, document, rows, run

pytestmark = pytest.mark.usefixtures("own_folder")


# ---------------------------------------------------------------- learn


def test_learn_prints_rows_classes_columns_and_reasons() -> None:
    reported = run("learn", LOANS, "--target", "outcome", "--folds", "5").stdout
    assert "600 rows" in reported
    assert "repaid" in reported
    assert "binned" in reported
    assert "an ID or a name" in reported
    assert "5-fold cross-validation" in reported
    assert "log loss" in reported


def test_learn_names_the_model_after_the_data_in_the_current_folder() -> None:
    run("learn", TENNIS, "--target", "PlayTennis")
    assert likely.load("tennis.likely").tally.rows == 14


def test_learn_from_standard_input_writes_model_likely() -> None:
    run("learn", "-", "--target", "PlayTennis", stdin=Path(TENNIS).read_bytes())
    assert likely.load("model.likely").tally.rows == 14


def test_the_learned_model_is_the_librarys_own(tennis: str) -> None:
    by_hand = likely.learn(TENNIS, target="PlayTennis", plain=True)
    by_hand.save("hand.likely")
    assert Path(tennis).read_bytes() == Path("hand.likely").read_bytes()


def test_learn_as_json_holds_everything_that_it_prints() -> None:
    found = document("learn", LOANS, "--target", "outcome", "--folds", "3")
    assert found["rows"] == 600
    assert [c["class"] for c in found["classes"]] == ["default", "repaid"]
    assert {c["column"]: c["family"] for c in found["columns"]}["income"] == "binned"
    keep = "families={'application_id': 'categorical'} (--family application_id=categorical) keeps it"
    assert found["left_out"] == [
        {"column": "application_id", "reason": f"an ID or a name: 600 different values in 600 rows; {keep}"}
    ]
    assert 0 < found["evaluation"]["accuracy"] <= 1
    assert found["model"] == "loans.likely"


def test_the_options_of_learn_reach_the_library() -> None:
    run(
        "learn", LOANS, "--target", "outcome", "-o", "m.likely", "--family", "late_payments=poisson",
        "--family", "income,amount=joint:class", "--family", "years_employed=gaussian:class",
        "--joint", "housing,purpose", "--smoothing", "1/3", "--smoothing", "employment=2",
        "--class-prior", "repaid=1/2", "--class-prior", "default=0.5",
        "--ignore", "application_id", "--missing", "", "--missing", "n.a.", "--plain", "--engine", "memory",
    )  # fmt: skip
    model = likely.load("m.likely")
    families = {block.columns: block.family for block in model.blocks}
    assert families["late_payments",] == likely.Poisson()
    assert families["income", "amount"] == likely.Joint(tie="class")
    assert families["housing", "purpose"] == likely.Joint()
    assert families["years_employed",] == likely.Gaussian(tie="class")
    assert model.prior.default == likely.Pseudocount(1 / 3)
    assert model.prior.columns["employment"] == likely.Pseudocount(2.0)
    assert model.class_prior.tolist() == [0.5, 0.5]
    assert dict(model.schema.ignored)["application_id"] == "asked for"
    assert model.missing == ("", "n.a.")


def test_a_binomial_names_its_column_of_trials() -> None:
    Path("shots.csv").write_text("hits,shots,team\n1,4,a\n3,4,a\n0,5,b\n1,5,b\n", encoding="utf-8")
    run("learn", "shots.csv", "--target", "team", "--family", "hits=binomial:shots", "-o", "m.likely")
    (block,) = likely.load("m.likely").blocks
    assert block.family == likely.Binomial("shots")


def test_one_family_alone_is_for_every_column() -> None:
    Path("x.csv").write_text("a,b,y\n1,2,p\n2,4,p\n3,1,q\n4,4,q\n", encoding="utf-8")
    run("learn", "x.csv", "--target", "y", "--family", "categorical", "-o", "m.likely")
    assert {block.family for block in likely.load("m.likely").blocks} == {likely.Categorical()}


def test_a_class_prior_finds_labels_of_another_type() -> None:
    pq.write_table(pa.table({"x": ["a", "b", "a", "b"], "y": [0, 1, 0, 1]}), "t.parquet")
    run("learn", "t.parquet", "--target", "y", "--class-prior", "0=0.9", "--class-prior", "1=0.1", "-o", "m.likely")
    model = likely.load("m.likely")
    assert model.classes == (0, 1)
    assert model.class_prior.tolist() == [0.9, 0.1]


def test_declared_classes_exist_without_rows() -> None:
    Path("x.csv").write_text("a,y\nu,p\nv,p\n", encoding="utf-8")
    run("learn", "x.csv", "--target", "y", "--classes", "p,q", "-o", "m.likely")
    assert likely.load("m.likely").classes == ("p", "q")


def test_weights_count_rows_more_than_once() -> None:
    Path("x.csv").write_text("a,w,y\nu,3,p\nv,1,q\n", encoding="utf-8")
    found = document("learn", "x.csv", "--target", "y", "--weights", "w", "-o", "m.likely")
    assert [c["count"] for c in found["classes"]] == [3, 1]


def test_a_model_goes_through_a_pipe() -> None:
    learned = run("learn", TENNIS, "--target", "PlayTennis", "--plain", "-o", "-")
    assert "Learned" in learned.stderr
    reported = run("explain", "-", *DAY, stdin=learned.stdout_bytes).stdout
    assert "No, with probability 0.7201" in reported


# ---------------------------------------------------------------- predict


def test_predict_writes_the_label_beside_all_columns_of_the_input(loans: str) -> None:
    given = rows(Path(NEW).read_text(encoding="utf-8"))
    found = rows(run("predict", loans, NEW, "--probabilities").stdout)
    library = likely.load(loans).posterior(NEW)
    assert [{k: row[k] for k in given[0]} for row in found] == given
    assert [row["label"] for row in found] == library.labels.tolist()
    assert [float(row["p_repaid"]) for row in found] == library.probabilities[:, 1].tolist()


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_predict_writes_every_format_with_the_same_answers(loans: str, ending: str) -> None:
    reported = run("predict", loans, NEW, "-o", f"out.{ending}").stdout
    assert "6 rows written" in reported
    assert sorted(path.name for path in Path().iterdir()) == ["loans.likely", f"out.{ending}"]
    if ending == "parquet":
        table = pq.read_table("out.parquet")
        assert not pa.types.is_string(table.schema.field("income").type)
        labels = table["label"].to_pylist()
    elif ending == "jsonl":
        records = [json.loads(line) for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()]
        assert records[1]["income"] is None
        labels = [record["label"] for record in records]
    else:
        text = Path(f"out.{ending}").read_text(encoding="utf-8")
        labels = [row["label"] for row in csv.DictReader(text.splitlines(), delimiter="\t" if ending == "tsv" else ",")]
    assert labels == likely.load(loans).predict(NEW).tolist()


def test_predict_as_json_has_one_record_a_row(loans: str) -> None:
    found = document("predict", loans, NEW)
    assert found["rows"] == 6
    assert sum(found["labels"].values()) == 6
    assert [p["label"] for p in found["predictions"]] == likely.load(loans).predict(NEW).tolist()
    assert found["predictions"][0]["probabilities"]["repaid"] > 0.9


def test_predict_into_a_file_as_json_prints_the_counts(loans: str) -> None:
    found = document("predict", loans, NEW, "-o", "out.csv")
    assert found == {"output": "out.csv", "rows": 6, "labels": {"default": 2, "repaid": 4}}


def test_cells_keep_their_spelling_in_csv() -> None:
    Path("x.csv").write_text("id,a,y\n007,1.50,p\n008,2.50,q\n9007199254740993,1e3,q\n", encoding="utf-8")
    run("learn", "x.csv", "--target", "y", "-o", "m.likely", "--ignore", "id")
    found = rows(run("predict", "m.likely", "x.csv").stdout)
    assert [(row["id"], row["a"]) for row in found] == [("007", "1.50"), ("008", "2.50"), ("9007199254740993", "1e3")]


def test_a_column_called_label_is_not_overwritten(tennis: str) -> None:
    text = Path(TENNIS).read_text(encoding="utf-8").replace("PlayTennis", "label")
    Path("x.csv").write_text(text, encoding="utf-8")
    assert "--prefix" in run("predict", tennis, "x.csv", expect=2).stderr
    found = rows(run("predict", tennis, "x.csv", "--prefix", "said_", "--probabilities").stdout)
    assert {"label", "said_label", "said_p_No", "said_p_Yes"} < found[0].keys()


def test_a_column_that_is_not_there_is_refused_or_taken_for_missing(tennis: str) -> None:
    Path("x.csv").write_text("Outlook,Wind\nSunny,Weak\n", encoding="utf-8")
    refused = run("predict", tennis, "x.csv", expect=3).stderr
    assert "'Temperature'" in refused
    assert "--absent missing" in refused
    found = rows(run("predict", tennis, "x.csv", "--absent", "missing").stdout)
    assert found[0]["label"] == "Yes"


@pytest.mark.parametrize(
    "text",
    [
        "Outlook,Temperature,Humidity,Wind\nSunny,Cool,High,Strong\n",
        "Outlook\tTemperature\tHumidity\tWind\r\nSunny\tCool\tHigh\tStrong\r\n",
        '[{"Outlook": "Sunny", "Temperature": "Cool", "Humidity": "High", "Wind": "Strong"}]',
        '{"Outlook": "Sunny", "Temperature": "Cool", "Humidity": "High", "Wind": "Strong"}\n',
        '{"Outlook": ["Sunny"], "Temperature": ["Cool"], "Humidity": ["High"], "Wind": ["Strong"]}',
        '{\n "Outlook": ["Sunny"],\n "Temperature": ["Cool"], "Humidity": ["High"], "Wind": ["Strong"]\n}',
    ],
    ids=["csv", "tsv", "json rows", "jsonl", "json columns", "json over lines"],
)
def test_standard_input_is_known_by_its_first_bytes(tennis: str, text: str) -> None:
    found = document("predict", tennis, "-", stdin=text)
    assert found["predictions"][0]["probabilities"]["No"] == pytest.approx(0.720067, abs=5e-7)


# ---------------------------------------------------------------- explain, evaluate


def test_explain_prints_a_sum_that_adds_up(tennis: str) -> None:
    reported = run("explain", tennis, *DAY).stdout
    assert "PlayTennis of the given row: No, with probability 0.7201" in reported
    found = document("explain", tennis, *DAY)
    lines = [found["log_prior"], *(entry["log_likelihood"] for entry in found["evidence"])]
    assert [sum(column) for column in zip(*lines, strict=True)] == pytest.approx(found["log_joint"], abs=1e-12)


def test_explain_counts_rows_from_one(loans: str) -> None:
    first, second = document("explain", loans, NEW), document("explain", loans, NEW, "--row", "2")
    assert first["evidence"] == document("explain", loans, NEW, "--row", "1")["evidence"]
    assert {e["columns"][0]: e["values"][0] for e in second["evidence"]}["employment"] == "student"
    assert "has no row 7" in run("explain", loans, NEW, "--row", "7", expect=3).stderr


def test_explain_takes_one_of_data_and_cells(tennis: str) -> None:
    assert "--set" in run("explain", tennis, expect=2).stderr
    assert "--set" in run("explain", tennis, TENNIS, *DAY, expect=2).stderr
    assert "--row" in run("explain", tennis, *DAY, "--row", "2", expect=2).stderr
    assert "no column 'Sky'" in run("explain", tennis, "--set", "Sky=Blue", expect=2).stderr
    assert "COLUMN=VALUE" in run("explain", tennis, "--set", "Outlook", expect=2).stderr


def test_explain_flags_what_was_never_seen_and_what_is_missing(tennis: str) -> None:
    reported = run("explain", tennis, "--set", "Outlook=Hail").stdout
    assert "unseen" in reported
    assert "missing" in reported


def test_evaluate_prints_figures_classes_and_confusion(loans: str) -> None:
    reported = run("evaluate", loans, LOANS).stdout
    assert "calibration error" in reported
    assert "precision" in reported
    assert "predicted repaid" in reported
    found = document("evaluate", loans, LOANS)
    assert found["accuracy"] == pytest.approx(likely.evaluate(LOANS, model=likely.load(loans)).accuracy)
