"""Pictures: every one is well-formed, accessible, in both colour schemes, and shows the numbers it is drawn from."""

import math
import re
import xml.etree.ElementTree as ET
from fractions import Fraction
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pytest

import likely
from commands import LOANS, TENNIS, document, run
from likely.errors import UsageError
from likely.plots import escaping
from likely.plots.axes import Axes, legend_rows, palette, runs
from likely.plots.lines import Chart, Series, lines_svg
from likely.teaching import examples
from scripted import script

pytestmark = pytest.mark.usefixtures("own_folder")
SVG = "{http://www.w3.org/2000/svg}"
CORNERS = {"x": [1, 3, 1, 3, 5, 7, 5, 7], "y": [1, 1, 3, 3, 3, 3, 7, 7], "class": ["A"] * 4 + ["B"] * 4}


def parsed(svg):
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("aria-label") == root.find(f"{SVG}title").text
    assert len(root.find(f"{SVG}desc").text) > 20
    assert "prefers-color-scheme:dark" in root.find(f"{SVG}style").text
    assert "nan" not in svg
    return root


def tips(root, tag="circle"):
    return [mark.find(f"{SVG}title").text for mark in root.iter(f"{SVG}{tag}") if mark.find(f"{SVG}title") is not None]


@pytest.mark.parametrize("name", list(examples.PICTURES))
def test_every_picture_command_writes_an_accessible_svg(name):
    told = document("examples", name, "--picture", f"{name}.svg")
    assert told["picture"] == f"{name}.svg"
    root = ET.fromstring(Path(f"{name}.svg").read_text(encoding="utf-8"))
    assert root.find(f"{SVG}title").text
    assert root.find(f"{SVG}desc").text
    assert "prefers-color-scheme:dark" in root.find(f"{SVG}style").text
    assert len(list(root.iter(f"{SVG}path"))) + len(list(root.iter(f"{SVG}rect"))) > 2
    assert f"Picture written to {name}.svg" in run("examples", name, "--picture", f"{name}.svg").stdout


def test_every_example_has_a_figure():
    assert examples.PICTURES.keys() == examples.EXAMPLES.keys()


def test_a_figure_of_no_example_is_refused_with_those_that_have_one():
    assert "tennis, ball, candies" in run("examples", "--picture", "all.svg", expect=2).stderr
    run("examples", "candies", "--picture", "candies.png", expect=2)
    assert not list(Path().iterdir())


def test_the_candies_have_the_posterior_and_the_prediction_of_every_draw():
    marks = tips(parsed(examples.picture("candies")))
    assert "h5, 3: 0.421053" in marks  # 8/19
    assert "h3, 1: 0.4" in marks
    assert "Bayes-optimal, Σ P(v | h) P(h | d), 3: 0.796053" in marks  # 121/152
    assert "h_MAP alone, 3: 1" in marks
    assert "h_MAP alone, 2: 0.75" in marks
    assert len(marks) == 7 * 11


def test_the_insurance_densities_are_the_gaussians_of_the_classes():
    svg = examples.picture("insurance")
    root = parsed(svg)
    described = root.find(f"{SVG}desc").text
    assert "High: μ 25.75, σ 10.18" in svg
    assert "Low: μ 50, σ 18" in svg
    peaks = [float(p) for p in re.findall(r"highest ([\d.]+) at", described)]
    assert peaks == pytest.approx([1 / (10.182706 * math.sqrt(2 * math.pi)), 1 / (18 * math.sqrt(2 * math.pi))], rel=2e-3)


def test_the_likelihood_curve_has_its_maximum_at_the_estimate():
    described = parsed(examples.picture("wrappers")).find(f"{SVG}desc").text
    assert re.search(r"L\(θ\) / L\(θ_ML\): .*highest 1 at 0\.6\.", described)
    assert re.search(r"log L\(θ\): .*highest -67\.3 at 0\.6", described)


def test_theta_shows_prior_and_posterior():
    svg = examples.picture("theta")
    assert "θ_MAP 0.7, mean 0.6667, 95 % from 0.3903 to 0.8907" in svg
    assert "highest 2.935 at 0.7" in parsed(svg).find(f"{SVG}desc").text


def border(svg, panel):
    """Ends of the segments of a border, in pixels."""
    root = parsed(svg)
    found = [path for path in root.iter(f"{SVG}path") if path.get("class") == "lk-border"][2 * panel]
    numbers = np.array(re.findall(r"[-\d.]+", found.get("d")), float).reshape(-1, 2)
    areas = [path for path in root.iter(f"{SVG}path") if "lk-area" in path.get("class", "")][2 * panel : 2 * panel + 2]
    corners = np.concatenate([np.array(re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)v([\d.]+)", a.get("d")), float) for a in areas])
    left, right = corners[:, 0].min(), corners[:, 2].max()
    top, bottom = corners[:, 1].min(), (corners[:, 1] + corners[:, 3]).max()
    x = 0.52 + (numbers[:, 0] - left) / (right - left) * 6.96
    y = 0.52 + (bottom - numbers[:, 1]) / (bottom - top) * 6.96
    return x, y


def test_tied_variances_give_the_line_and_untied_ones_the_parabola_of_the_formula():
    svg = examples.picture("discriminant")
    x, y = border(svg, 0)
    assert len(x) > 100
    np.testing.assert_allclose(4 * x + 1.2 * y, 20.2, atol=0.05)
    x, y = border(svg, 1)
    curve = 0.375 * y**2 + 4 * x - 0.75 * y - 1.125 - math.log(2) - 16
    np.testing.assert_allclose(curve, 0, atol=0.05)
    assert np.ptp(0.375 * y**2) > 10


def test_a_surface_takes_any_model_and_refuses_what_it_cannot_draw():
    model = likely.learn(LOANS, "outcome")
    svg = likely.pictures.decision_surface(model, "income", "amount", LOANS, title="Loans")
    assert parsed(svg).get("aria-label") == "Loans"
    assert len(tips(ET.fromstring(svg), "path")) > 200
    with pytest.raises(UsageError, match="pass data="):
        likely.pictures.decision_surface(model, "income", "amount")
    with pytest.raises(UsageError, match="named twice"):
        likely.pictures.decision_surface(model, "income", "income", LOANS)
    with pytest.raises(UsageError, match="not a column of numbers"):
        likely.pictures.decision_surface(model, "income", "housing", LOANS)
    with pytest.raises(UsageError, match="not a Gaussian column"):
        likely.pictures.class_densities(model, "income")


def test_the_densities_of_a_column_are_drawn_beside_interactions():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 2000))
    table = {"a": np.array(["u", "v"])[a], "b": np.array(["s", "t"])[b], "x": rng.normal(a ^ b), "y": (a ^ b).astype(str)}
    model = likely.learn(table, "y", families={"x": "gaussian"})
    assert len(model.block_parameters) > len(model.blocks)  # the interaction of a and b
    assert "highest" in likely.pictures.class_densities(model, "x")


def test_a_plane_without_data_is_where_the_gaussians_are():
    model = likely.learn(CORNERS, "class", families="gaussian", smoothing=0)
    svg = likely.pictures.decision_surface(model, "x", "y")
    assert "Share of the plane: A" in svg
    weighted = likely.pictures.class_densities(model, "x", weighted=True)
    assert "highest 0.199" in weighted  # 1/2 of 1/sqrt(2 pi)


def test_three_classes_have_borders_and_marks_of_their_own():
    rng = np.random.default_rng(0)
    means = np.repeat([[0, 0], [5, 0], [0, 5]], 30, axis=0)
    points = rng.normal(means, 1)
    data = {"x": points[:, 0], "y": points[:, 1], "c": np.repeat(["a", "b", "<c>"], 30)}
    svg = likely.pictures.decision_surface(likely.learn(data, "c", families="gaussian"), "x", "y", data)
    root = parsed(svg)
    assert len([p for p in root.iter(f"{SVG}path") if p.get("class") == "lk-border"]) == 3
    assert sum(tip.startswith("<c>: ") for tip in tips(root, "path")) == 30


def test_naive_bayes_is_drawn_with_an_arc_to_every_column():
    svg = examples.picture("tennis")
    described = ET.fromstring(svg).find(f"{SVG}desc").text
    for column in ("Outlook", "Temperature", "Humidity", "Wind"):
        assert f"PlayTennis to {column}" in described
    assert "P(Outlook | PlayTennis)" in svg


def test_hypotheses_on_labelled_data_are_drawn_too():
    prior = {"up": Fraction(1, 2), "down": Fraction(1, 2)}
    space = likely.Hypotheses.supervised(prior=prior, predict={"up": lambda x: x > 0, "down": lambda x: x < 0}, noise=0.1)
    assert "up, 2: 0.987805" in tips(parsed(likely.pictures.hypotheses(space, [(1, True), (2, True)])))
    coin = likely.Hypotheses(prior={"h": 1}, likelihood={"h": {"a": 1}})
    with pytest.raises(UsageError, match="not an outcome"):
        likely.pictures.hypotheses(coin, ["a"], "b")


def test_odd_numbers_break_no_picture():
    chart = Chart("<T>\x00", "", "x", "y", [Series("a&b", [0, 1, 2, 3], [1, math.nan, math.inf, 2]), Series("", [1], [5])])
    assert "a&amp;b" in lines_svg([chart])
    parsed(lines_svg([chart]))
    nothing = Chart("Nothing", "of it", "x", "y", [Series("empty", [], [])])
    assert "nothing finite to draw" in lines_svg([nothing])
    flat = Chart("Flat", "one point", "x", "y", [Series("c", [2.0], [3.0])], marks=True)
    assert tips(parsed(lines_svg([flat]))) == ["c, 2: 3"]
    assert runs([(0, 0), None, (1, 1), (2, 2)]) == "M0.0 0.0h.1M1.0 1.0L2.0 2.0"
    assert len(legend_rows(["a rather long name of a hypothesis"] * 8)) > 2
    assert palette(11).count(".lk-s10{") == 2


def test_axes_map_corners_to_corners():
    axes = Axes((0, 10), (-1, 1), top=100, bottom=300, left=50, right=250)
    assert (axes.px(0), axes.px(10), axes.py(-1), axes.py(1)) == (50, 250, 300, 100)


def test_draw_command():
    run("learn", LOANS, "--target", "outcome", "--family", "income=gaussian", "--family", "amount=gaussian", "-o", "m.likely")
    assert document("draw", "m.likely", "--columns", "income", "-o", "d.svg")["columns"] == ["income"]
    parsed(Path("d.svg").read_text(encoding="utf-8"))
    told = run("draw", "m.likely", LOANS, "--columns", "income,amount", "-o", "s.svg", "--title", "Loans").stdout
    assert "Picture of income and amount written to s.svg" in told
    assert parsed(Path("s.svg").read_text(encoding="utf-8")).get("aria-label") == "Loans"
    assert run("draw", "m.likely", "--columns", "amount").stdout.startswith("<svg")
    assert "name one column" in run("draw", "m.likely", "--columns", "a,b,c", "-o", "x.svg", expect=2).stderr
    assert "leave DATA out" in run("draw", "m.likely", LOANS, "--columns", "amount", "-o", "x.svg", expect=2).stderr


def test_independence_command():
    told = document("independence", TENNIS, "Outlook", "Humidity", "--given", "PlayTennis", "--permutations", "99")
    assert told["rows"] == 14
    assert told["degrees"] == 3
    assert 0 < told["permutation_p_value"] <= 1
    shown = run("independence", TENNIS, "Wind", "PlayTennis", "--given", "Humidity", "--event", "Yes").stdout
    assert "P(PlayTennis = Yes | Wind)" in shown
    assert "Simpson's paradox" in shown
    assert "--given" in run("independence", TENNIS, "Wind", "PlayTennis", "--event", "Yes", expect=2).stderr
    assert "no column 'Winds'" in run("independence", TENNIS, "Winds", "PlayTennis", expect=3).stderr


def test_the_gallery_is_what_its_script_makes():
    made = script("make_gallery")
    assert (made.DOCS / "gallery.md").read_text(encoding="utf-8") == made.page()
    for name in made.SHOWN:
        committed = (made.DOCS / "gallery" / f"{name}.svg").read_text(encoding="utf-8")
        drawn = ET.fromstring(examples.picture(name))
        assert f"<desc>{escape(drawn.find(f'{SVG}desc').text)}</desc>" in committed, "run scripts/make_gallery.py"
        assert f"likely examples {name} --picture {name}.svg" in made.page()
    assert set(made.SHOWN) == set(examples.PICTURES)


def test_the_axis_of_a_check_holds_every_finite_distance_and_infinite_ones_are_named():
    from likely.plots.charts import Dot, Dots, dots_svg

    values = {"usual": 0.2, "other": 0.3, "far": 10.0, "never": math.inf}
    far = [Dot(name, value, math.nan) for name, value in values.items()]
    whole = dots_svg("check", "", [Dots("distance", far, whole=True)])
    assert ">10.000</text>" in whole
    assert ">∞ →</text>" in whole
    assert whole.count("<circle") == len(far)
    assert ">10.000 →</text>" in dots_svg("check", "", [Dots("distance", far)])  # an outlier of a comparison


def test_text_is_escaped_as_the_standard_library_does_for_xml():
    hostile = """<a href="x">'Tom' & "Jerry" &amp;</a>"""
    assert escaping.escape(hostile) == escape(hostile)
    assert escaping.escape_attribute(hostile) == escape(hostile, {'"': "&quot;"})
