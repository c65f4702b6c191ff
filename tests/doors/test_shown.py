"""Results show themselves: short reprs, small HTML tables, plain data, data frames and pictures."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import likely
from likely.errors import MissingDependencyError, UsageError
from likely.plots.bars import Bar, BarChart, bars_svg
from likely.plots.figure import Figure, Trace, figure_svg
from likely.plots.svg import Svg, bare

HOSTILE = "<script>alert(1)</script>\"'&"
CLASSES = 3
WORDLESS = ("schema", "parameters")  # shown as tables only


def rows(n: int = 240) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    y = rng.integers(0, CLASSES, n)
    return {"x": rng.normal(y, 1.0), f"v{HOSTILE}": [f"{HOSTILE}{v}" for v in y % 2], "y": [f"{HOSTILE}{v}" for v in y]}


@pytest.fixture(scope="module")
def things() -> Mapping[str, Any]:
    data = rows()
    model = likely.learn(data, target="y")
    plain = [likely.learn({"v": ["a", "b"] * 9, "y": [0, 1] * 9}, "y", plain=True, smoothing=s) for s in (1, 2)]
    likelihood = {"h1": {"c": 1, "l": 0}, HOSTILE: {"c": 0.5, "l": 0.5}}
    bags = likely.Hypotheses(prior={"h1": 0.1, HOSTILE: 0.9}, likelihood=likelihood)
    rng = np.random.default_rng(0)
    return {
        "model": model, "posterior": model.posterior(data), "evaluation": likely.evaluate(data, model=model),
        "schema": model.schema, "calibration": model.calibration, "importance": likely.importance(model),
        "hypotheses": bags.observe("c"), "estimate": likely.estimate([1, 0, 1], family="bernoulli", prior=likely.Dirichlet(2)),
        "ledger": model.explain(data), "parameters": model.parameters["x"], "comparison": likely.compare_models(*plain),
        "clusters": likely.cluster({"x": data["x"]}, 2, n_init=1),
        "curve": likely.curve(data, target="y", seeds=1, sizes=[60, 120]),
        "states": likely.sequences({"x": np.concatenate([rng.normal(0, 1, 40), rng.normal(6, 1, 40)])}, 2, n_init=1),
    }  # fmt: skip


def test_a_repr_is_short_and_an_html_table_is_small_and_escaped(things: Mapping[str, Any]) -> None:
    for name, each in things.items():
        if name != "parameters":  # a table prints as a table
            assert len(repr(each)) < 300, name
        page = each._repr_html_()
        assert page.count("<table") >= 1, name
        assert "<script>alert" not in page, name
        assert len(page) < 30_000, name


def test_everything_is_plain_data_and_a_data_frame(things: Mapping[str, Any]) -> None:
    for name, each in things.items():
        assert json.dumps(each.to_dict(), default=str), name
        assert len(each.to_pandas()) > 0, name
    assert things["posterior"].to_pandas().shape == (240, 1 + CLASSES)
    assert things["ledger"].to_pandas()[f"{HOSTILE}0"].sum() == pytest.approx(things["ledger"].log_joint[0])


def test_a_picture_is_accessible_svg_without_script(things: Mapping[str, Any]) -> None:
    for name, each in things.items():
        if name in WORDLESS:
            continue
        picture = each.plot()
        assert isinstance(picture, Svg), name
        assert picture._repr_svg_() == picture
        root = ET.fromstring(str(picture))
        assert root.get("role") == "img"
        children = [child.tag.partition("}")[2] for child in root]
        assert children[:2] == ["title", "desc"], name
        assert "script" not in {element.tag.partition("}")[2] for element in root.iter()}
        assert "<style>" not in bare(picture)


def test_pictures_are_saved_as_svg_png_and_pdf(things: Mapping[str, Any], tmp_path: Path) -> None:
    picture = things["model"].plot()
    picture.save(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_text(encoding="utf-8") == picture
    with pytest.raises(UsageError, match=r"use \.svg, \.png, \.pdf"):
        picture.save(tmp_path / "x.gif")
    pytest.importorskip("cairosvg", reason="cairosvg is not here: PNG and PDF are not written")
    picture.save(tmp_path / "x.png")
    picture.save(tmp_path / "x.pdf")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")


def test_without_the_converter_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(MissingDependencyError, match=r"likely\[images\]"):
        Svg("<svg/>").save(tmp_path / "x.png")


def test_a_legend_never_lies_over_the_plot_area() -> None:
    names = [f"a rather long name of class {i}" for i in range(8)]
    picture = figure_svg(Figure("t", "s", "x", "y", [Trace(name, [0, 1], [0, 1]) for name in names]))
    root = ET.fromstring(str(picture))
    texts = {element.text: float(element.get("y", 0)) for element in root.iter() if element.tag.endswith("text")}
    grid = [e.get("d", "") for e in root.iter() if e.get("class") == "lk-grid"]
    top = min(float(d.split("H")[0].split()[-1]) for d in grid)
    assert max(texts[name] for name in names) < top
    bars = bars_svg(BarChart("t", "s", "x", [("row", [Bar(1.0, colour=i) for i in range(8)])], names))
    places = {e.text: float(e.get("y", 0)) for e in ET.fromstring(str(bars)).iter() if e.tag.endswith("text")}
    assert max(places[name] for name in names) < places["row"]


def test_numbers_that_are_not_finite_are_left_out_of_a_picture() -> None:
    nan = float("nan")
    assert "nothing finite" in figure_svg(Figure("t", "s", "x", "y", [Trace("", [nan], [nan])]))
    picture = figure_svg(Figure("t", "s", "x", "y", [Trace("", [0, 1, 2], [0, nan, 1], marks=True)]))
    assert "nan" not in picture.split("<desc>")[1]


def test_a_class_that_is_not_there_is_refused(things: Mapping[str, Any]) -> None:
    for name in ("model", "ledger"):
        with pytest.raises(UsageError, match="is no class"):
            things[name].plot("nobody")
    with pytest.raises(UsageError, match="no row 999"):
        things["posterior"].plot(999)
    with pytest.raises(UsageError, match="choose from"):
        things["importance"].plot("beauty")
