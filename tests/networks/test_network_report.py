"""The report of a Bayesian network: one document of plain data, one page, by library and command."""

import json
import math
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import browser
import likely
from commands import document, run
from likely.errors import UsageError
from likely.networks.arc_strength import arc_strengths

ARCS = "C -> S, C -> R, S -> W, R -> W"
LAWN = likely.Network.from_tables(
    ARCS, {node: ["f", "t"] for node in "CSRW"},
    {"C": [0.5, 0.5], "S": [[0.5, 0.5], [0.9, 0.1]], "R": [[0.8, 0.2], [0.2, 0.8]],
     "W": [[[1.0, 0.0], [0.1, 0.9]], [[0.1, 0.9], [0.01, 0.99]]]},
)  # fmt: skip


def numbers(n: int = 2_000) -> dict[str, list]:
    rng = np.random.default_rng(0)
    a, c = rng.normal(size=n), rng.integers(0, 2, n)
    return {"a": a.tolist(), "c": [f"c{v}" for v in c], "b": (2 * a + 3 * c + rng.normal(size=n)).tolist()}


@pytest.fixture(scope="module")
def rows() -> dict[str, list]:
    return LAWN.sample(2_000, seed=1)


@pytest.fixture(scope="module")
def learned(rows) -> likely.Network:
    return likely.Network(ARCS).fit(rows)


def test_every_kind_of_network_has_a_document_that_the_schema_accepts_and_a_page(rows, learned):
    hidden = likely.Network(ARCS, hidden={"C": 2}).fit({n: rows[n][:300] for n in "SRW"}, n_init=1)
    made = {
        "given": likely.report(LAWN, rows), "learned": likely.report(learned, rows), "no data": likely.report(learned),
        "hidden": likely.report(hidden, {n: rows[n] for n in "SRW"}),
        "numbers": likely.report(likely.Network("a -> b, c -> b").fit(numbers()), numbers(200)),
    }  # fmt: skip
    for name, each in made.items():
        jsonschema.validate(json.loads(each.to_json()), likely.Report.schema())
        page = each.html()
        assert page.startswith("<!DOCTYPE html>"), name
        assert "<script" not in page, name
        assert "Bayesian network" in repr(each)
        assert "information" in each._repr_html_()


def test_tables_marginals_and_log_likelihood_are_those_of_the_network(rows, learned):
    told = likely.report(learned, rows).to_dict()
    nodes = {node["name"]: node for node in told["nodes"]}
    for row in nodes["W"]["table"]:
        shares = learned.table("W")[tuple(row["given"])]
        assert row["probabilities"] == pytest.approx(list(shares.values()), abs=1e-5)
    assert sum(row["count"] for row in nodes["W"]["table"]) == 2_000
    assert nodes["S"]["marginal"] == pytest.approx(list(learned.query("S").values()), abs=1e-5)
    assert told["evaluation"]["log_likelihood"] == pytest.approx(learned.log_likelihood(rows), rel=1e-5)
    shares = {node: [column.count(v) / 2_000 for v in column] for node, column in rows.items()}
    alone = sum(math.log(p) for column in shares.values() for p in column)
    assert told["evaluation"]["independent_log_likelihood"] == pytest.approx(alone, rel=1e-3)
    least = told["evaluation"]["unusual_rows"][0]
    each = learned.log_likelihoods(rows)
    assert least["log_likelihood"] == pytest.approx(each.min(), rel=1e-5)
    assert each[least["row"] - 1] == each.min()
    assert likely.report(learned, rows, rows=False).to_dict()["evaluation"]["unusual_rows"] == []


def test_the_strength_of_an_arc_is_what_a_row_loses_without_it(rows):
    plain = likely.Network(ARCS, smoothing=0).fit(rows)
    strengths = arc_strengths(plain)
    for arc, strength in strengths.items():
        fewer = likely.Network([a for a in plain.arcs if a != arc], nodes=list("CSRW"), smoothing=0).fit(rows)
        lost = (plain.log_likelihood(rows) - fewer.log_likelihood(rows)) / 2_000
        assert strength == pytest.approx(lost, abs=1e-9)
    given = arc_strengths(LAWN)
    assert max(abs(given[arc] - strengths[arc]) for arc in given) < 0.03


def test_the_strength_of_an_arc_into_a_number_is_what_a_row_loses_without_it():
    data = numbers()
    strengths = arc_strengths(likely.Network("a -> b, c -> b", smoothing=0).fit(data))
    whole = likely.Network("a -> b, c -> b", smoothing=0).fit(data)
    for arc, others in ((("a", "b"), "c -> b"), (("c", "b"), "a -> b")):
        fewer = likely.Network(others, nodes=["a", "b", "c"], smoothing=0).fit(data)
        assert strengths[arc] == pytest.approx((whole.log_likelihood(data) - fewer.log_likelihood(data)) / 2_000, rel=1e-4)


def test_what_was_never_seen_is_warned_of_and_large_tables_are_cut_with_a_word():
    values = [f"v{i}" for i in range(9)]
    data = {"x": values * 20, "y": values[::-1] * 20, "z": (values[3:] + values[:3]) * 20}
    net = likely.Network("x -> z, y -> z").fit(data)
    made = likely.report(net)
    assert "Node z: 72 of 81 configurations of its parents were never seen" in " ".join(made.to_dict()["warnings"])
    assert len(next(n for n in made.to_dict()["nodes"] if n["name"] == "z")["table"]) == 81
    assert "41 more configurations are not listed" in made.html()


def test_the_command_reports_on_a_network_file(learned, rows, tmp_path: Path):
    learned.save(tmp_path / "lawn.likely")
    data = tmp_path / "lawn.csv"
    data.write_text("\n".join([",".join(rows), *(",".join(line) for line in zip(*rows.values(), strict=True))]))
    given = ["report", str(tmp_path / "lawn.likely"), "--data", str(data)]
    run(*given, "-o", str(tmp_path / "r.html"))
    assert "Strongest arcs" in (tmp_path / "r.html").read_text(encoding="utf-8")
    shown = document(*given)
    assert shown["evaluation"]["rows"] == 2_000
    assert shown["card"]["data"] == "lawn.csv"
    assert shown["arcs"][0]["information"] >= shown["arcs"][-1]["information"]
    assert "has no such view" in run(*given, "--json", "--curve", expect=2).stderr


def test_names_are_escaped_and_settings_of_classifiers_refused(learned):
    odd = "<b>&\"'"
    net = likely.Network([(odd, "y")]).fit({odd: ["<i>", "&"] * 20, "y": ["u", "v"] * 20})
    page = likely.report(net, title=odd).html()
    assert "<i>" not in page
    assert odd not in page
    with pytest.raises(UsageError, match="positive: a report of a Bayesian network has no such view"):
        likely.report(learned, positive="t")
    with pytest.raises(UsageError, match="no parameters yet"):
        likely.report(likely.Network("a -> b"))


@pytest.mark.skipif(browser.found() is None, reason="no Chromium on this machine: pages are not opened")
def test_the_page_renders_without_complaint_at_both_widths(learned, rows, tmp_path: Path):
    likely.report(learned, rows).save(tmp_path / "net.html")
    with browser.opened(str(browser.found()), tmp_path / "profile") as page:
        for width in (1280, 390):
            page.size(width, 900)
            page.open(tmp_path / "net.html")
            found = page.ask("[...document.querySelectorAll('section')].map(s => s.id)")
            assert found == ["summary", "network", "arcs", "rows", "parameters", "card"]
            assert page.ask("document.documentElement.scrollWidth") <= width
        assert page.complaints() == []
