"""Messages and output: values that look alike, headings that fit the numbers, plain values, a legend of colours."""

import math

import pytest

import likely
from commands import DAY, LOANS, NEW, TENNIS, document, run
from likely.errors import LikelyWarning
from likely.latent.component_picture import picture
from likely.schema import EVERY_FAMILY, look_alikes
from likely.teaching import lesson

pytestmark = pytest.mark.usefixtures("own_folder")

WIND = {"Wind": ["Strong", "strong", "Weak", "Weak ", "weak"] * 4, "y": ["yes", "no", "yes", "no", "Yes "] * 4}


# ---------------------------------------------------------------- values that differ only by case or blanks


def test_values_that_differ_only_by_case_or_blanks_are_found():
    assert look_alikes(("Strong", "strong", "Weak", "Wea k", 1, True, None)) == [("Strong", "strong")]
    assert look_alikes((" yes", "YES", "yes  ", "no")) == [(" yes", "YES", "yes  ")]


def test_learn_points_them_out_in_columns_and_labels():
    with pytest.warns(LikelyWarning) as caught:
        likely.learn(WIND, "y")
    reported = " ".join(str(warning.message) for warning in caught)
    assert "column 'Wind': 'Strong' and 'strong'" in reported
    assert "differ only by case or blanks, and count as different values" in reported
    assert "column 'y': 'Yes ' and 'yes'" in reported


def test_inspect_points_them_out_in_data_and_models():
    with open("wind.csv", "w", encoding="utf-8") as file:
        file.write(
            "Wind,n,y\n" + "".join(f"{w},{i},{y}\n" for i, (w, y) in enumerate(zip(*WIND.values(), strict=True)))
        )
    assert "'Strong' and 'strong'" in run("inspect", "wind.csv").stdout
    assert (
        "'Strong' and 'strong'"
        in {c["column"]: c for c in document("inspect", "wind.csv")["columns"]}["Wind"]["look_alikes"]
    )
    done = run("learn", "wind.csv", "--target", "y", "-o", "m.likely")
    assert "'Strong' and 'strong'" in done.stderr
    assert "'Strong' and 'strong'" in run("inspect", "m.likely").stdout
    assert len(document("inspect", "m.likely")["look_alikes"]) == 2


def test_many_groups_are_cut_with_a_count():
    data = {
        "c": [f"{'Ab'[i % 2]}{i // 2}" for i in range(20)] + [f"{'aB'[i % 2]}{i // 2}" for i in range(20)],
        "y": [0, 1] * 20,
    }
    with pytest.warns(LikelyWarning, match="and 17 more such groups differ only by case"):
        likely.learn(data, "y", families={"c": "categorical"})


# ---------------------------------------------------------------- accounts


def test_the_heading_fits_the_numbers_under_it():
    run("learn", TENNIS, "--target", "PlayTennis", "-o", "d.likely")
    reported = run("explain", "d.likely", *DAY).stdout
    assert "for No" in reported
    assert "log P(" not in reported
    run("learn", TENNIS, "--target", "PlayTennis", "--plain", "-o", "p.likely")
    reported = run("explain", "p.likely", *DAY).stdout
    assert "log P(·|No)" in reported
    numbers = [cell for line in reported.splitlines()[4:9] for cell in line.split() if cell[-1].isdigit()]
    assert all(float(number) <= 0 for number in numbers)
    page = likely.load("d.likely").explain(dict(pair.split("=") for pair in DAY[1::2]))._repr_html_()
    assert "<th>for No</th>" in page


def test_values_are_printed_plainly_and_numbers_in_one_format():
    data = {"a": [1234567.0, 0.125, 1e-7, 3.0] * 5, "b": ["it's", "x"] * 10, "y": ["p", "q", "q", "p"] * 5}
    model = likely.learn(data, "y", joint=[("a", "b")])
    text = str(model.explain({"a": 1234567.0, "b": "it's"}))
    assert "1234567, it's" in text
    assert not set("()'\"") & set(text.split("it's", maxsplit=1)[0].split("a with b")[1])
    alone = likely.learn({"a": data["a"], "y": data["y"]}, "y", plain=True)
    assert alone.explain({"a": 1234567.5}).lines()[1][1] == "1234567.5"
    assert alone.explain({"a": 3.0}).lines()[1][1] == "3"
    assert alone.explain({"a": None}).lines()[1][1:2] == [""]
    for line in alone.explain({"a": 0.125}).lines():
        assert all(len(cell.rpartition(".")[2]) == 4 for cell in line[2:4])


def test_small_numbers_of_a_table_have_four_digits_as_the_others():
    from likely.cli._terminal import shown

    assert [shown(x) for x in (5.94414123e-05, -0.000391723, 0.1035499, 0.0, 1234.56789)] == [
        "5.944e-05", "-0.0003917", "0.1035", "0", "1234.57",
    ]  # fmt: skip


def test_only_the_strongest_are_named_and_the_rest_still_adds_up():
    run("learn", LOANS, "--target", "outcome", "-o", "m.likely")
    reported = run("explain", "m.likely", NEW, "--top", "2").stdout
    assert "(7 more)" in reported
    ledger = likely.load("m.likely").explain(NEW)
    lines = ledger.lines(2)
    assert len(lines) == 1 + 2 + 1 + 2
    for c in range(2):
        total = math.fsum(float(line[2 + c]) for line in lines[:-2])
        assert total == pytest.approx(float(lines[-2][2 + c]), abs=5e-4)
    assert ledger.lines(100) == ledger.lines()


def test_a_page_with_shaded_words_has_a_key_to_its_colours():
    mails = {"t": ["cheap pills buy now please", "lunch at noon tomorrow then"] * 6, "y": ["spam", "good"] * 6}
    model = likely.learn(mails, "y", families={"t": "text"})
    page = model.explain({"t": "buy lunch tomorrow"}).page("a mail")
    key = page.partition('class="likely-key"')[2].partition("</p>")[0]
    assert ">good</span>" in key
    assert ">spam</span>" in key
    assert "style=" not in page.partition("<body>")[2]  # the page's policy allows no style attribute
    assert "likely-key" in model.explain({"t": "buy lunch tomorrow"})._repr_html_()
    assert "likely-key" not in likely.learn(TENNIS, "PlayTennis").explain({"Wind": "Weak"}, absent="missing").page(
        "a day"
    )


# ---------------------------------------------------------------- EM


@pytest.mark.parametrize(("smoothing", "reported"), [(1.0, True), (0.0, False)])
def test_em_reports_a_penalised_log_likelihood_only_with_a_prior(smoothing, reported):
    data = {"x": [0.1, 0.4, 0.2, 0.9, 5.1, 5.9, 5.3, 4.8] * 3}
    found = likely.cluster(data, 2, smoothing=smoothing, steps=True)
    page = lesson.page(found, data)
    for text in (page, picture(found, data)):
        assert ("enalised" in text) == reported
        assert "og likelihood" in text


# ---------------------------------------------------------------- nothing is fitted where every family was asked for

PAIRS = {"x": [float(i % 7) for i in range(60)], "z": [float(i % 5) for i in range(60)], "y": ["a", "b", "b"] * 20}


@pytest.mark.parametrize("families", ["binned", {"*": "binned"}, {"x": "binned", "z": "gaussian"}, {("x", "z"): "joint"}])
def test_a_family_for_every_column_is_a_plain_model_and_the_schema_says_so(families):
    model = likely.learn(PAIRS, "y", families=families)
    assert model.calibration is None
    assert model.schema.every_family_asked_for
    assert EVERY_FAMILY in str(model.schema)
    assert EVERY_FAMILY in model.schema._repr_html_()
    assert model.schema.to_dict()["every_family_asked_for"]


@pytest.mark.parametrize("families", ["auto", {"x": "binned"}])
def test_with_a_column_left_to_be_chosen_the_model_is_calibrated_and_nothing_is_said(families):
    model = likely.learn(PAIRS, "y", families=families)
    assert model.calibration is not None
    assert not model.schema.every_family_asked_for
    assert EVERY_FAMILY not in str(model.schema)


def test_the_shell_says_so_when_it_learns_and_inspects_and_in_its_help():
    with open("pairs.csv", "w", encoding="utf-8") as file:
        file.write("x,z,y\n" + "".join(f"{x},{z},{y}\n" for x, z, y in zip(*PAIRS.values(), strict=True)))
    for family, said in (["--family", "binned"], True), (["--family", "x=binned"], False):
        learned = run("learn", "pairs.csv", "--target", "y", "-o", "m.likely", *family)
        assert (EVERY_FAMILY in learned.stdout) is said
        assert (EVERY_FAMILY in run("inspect", "m.likely").stdout) is said
        assert document("inspect", "m.likely")["every_family_asked_for"] is said
    assert "every column is named, the model is plain: nothing is fitted" in " ".join(run("learn", "--help").stdout.split())


def test_the_docs_say_so_where_families_are_named():
    said = "model is plain: nothing is fitted on top of the counts"
    for documented in (likely.learn, likely.NaiveBayes):
        assert said in " ".join(documented.__doc__.split())
