"""The service over HTTP: what it answers, in a server process, to a real client."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import likely
import likely.families
from processes import run
from serving import Server, served
from strategies import quietly

pytestmark = pytest.mark.xdist_group("serve")  # one server

msgspec = pytest.importorskip("msgspec", reason="NOT TESTED: msgspec is not installed")
DATA = Path(likely.__file__).parent / "data"
ROW = {"employment": "employed", "late_payments": 2, "amount": 4100.0, "income": 2500.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models")
    quietly(likely.learn, str(DATA / "loans.csv"), "outcome").save(made / "loans.likely")
    quietly(likely.learn, str(DATA / "tennis.csv"), "PlayTennis", plain=True).save(made / "tennis.likely")
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with served(str(folder / "loans.likely"), str(folder / "tennis.likely")) as running:
        yield running


def test_a_row_a_list_of_rows_and_columns_get_the_library_s_probabilities(server: Server, folder: Path) -> None:
    model = likely.load(folder / "loans.likely")
    rows: list[dict[str, Any]] = [ROW, ROW | {"employment": "never seen"}, {"amount": None, "income": 1e9}]
    wanted = quietly(model.posterior, rows)
    status, one = server.ask("/api/predict", {"rows": rows[:1]})
    assert status == 200
    assert one["predictions"][0]["label"] == wanted.labels[0]
    assert list(one["predictions"][0]["probabilities"].values()) == wanted.probabilities[0].tolist()
    status, many = server.ask("/api/predict", {"rows": rows})
    found = [list(each["probabilities"].values()) for each in many["predictions"]]
    np.testing.assert_array_equal(found, wanted.probabilities)
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    status, wide = server.ask("/api/predict", {"columns": columns})
    assert wide["labels"] == wanted.labels.tolist()
    np.testing.assert_array_equal(np.array(list(wide["probabilities"].values())).T, wanted.probabilities)
    assert one["model_version"] == many["model_version"] == wide["model_version"]


def test_large_batches_get_the_library_s_probabilities_in_both_forms(server: Server, folder: Path) -> None:
    """Beyond 64 KiB a body is scanned by a kernel."""
    model = likely.load(folder / "loans.likely")
    rows = [
        ROW | {"amount": i * 7.25, "employment": ("employed", "student", None, "never seen")[i % 4], "note": f"a:{i % 9}"}
        for i in range(1_500)
    ]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    wanted = quietly(model.posterior, columns, absent="missing")
    _, many = server.ask("/api/predict", {"rows": rows})
    assert [each["label"] for each in many["predictions"]] == wanted.labels.tolist()
    np.testing.assert_array_equal([list(each["probabilities"].values()) for each in many["predictions"]], wanted.probabilities)
    _, wide = server.ask("/api/predict", {"columns": columns})
    assert wide["labels"] == wanted.labels.tolist()
    np.testing.assert_array_equal(np.array(list(wide["probabilities"].values())).T, wanted.probabilities)
    assert many["unknown_columns"] == wide["unknown_columns"] == ["note"]


def test_explanations_are_the_library_s_and_name_their_model_version(server: Server, folder: Path) -> None:
    status, found = server.ask("/api/explain", {"rows": [ROW]})
    ledger = quietly(likely.load(folder / "loans.likely").explain, ROW)
    assert status == 200
    assert found["model_version"]
    assert found["explanations"][0]["evidence"] == json.loads(json.dumps(ledger.to_dict()))["evidence"]
    assert list(found["explanations"][0]["probabilities"].values()) == pytest.approx(list(ledger.probabilities))


def test_several_models_are_served_by_name_and_a_misspelt_column_is_reported(server: Server) -> None:
    day = {"Outlook": "Sunny", "Temprature": "Cool"}
    status, found = server.ask("/api/models/tennis/predict", {"rows": [day]})
    assert (status, found["predictions"][0]["label"]) == (200, "No")
    assert found["unknown_columns"] == ["Temprature"]
    status, health = server.ask("/health")
    assert set(health["models"]) == {"loans", "tennis"}
    status, about = server.ask("/api/models/tennis")
    assert about["target"] == "PlayTennis"
    assert [column["name"] for column in about["columns"]] == ["Outlook", "Temperature", "Humidity", "Wind"]
    assert server.ask("/api/models/nobody/predict", {"rows": [day]})[0] == 404


def test_openapi_describes_the_columns_of_this_very_model(server: Server) -> None:
    status, document = server.ask("/openapi.json")
    assert status == 200
    assert document["openapi"] == "3.1.0"
    row = document["components"]["schemas"]["Row"]["properties"]
    assert row["amount"]["type"] == ["number", "null"]
    assert "employed" in row["employment"]["examples"]
    assert "/api/models/tennis/predict" in document["paths"]
    assert "/api/update" not in document["paths"]


def test_metrics_count_requests_rows_and_models(server: Server) -> None:
    server.ask("/api/predict", {"rows": [ROW, ROW, ROW]})
    status, text = server.ask("/metrics")
    assert status == 200
    lines = text.decode().splitlines()
    assert any(line.startswith('likely_requests_total{method="POST",route="/api/predict",status="200"}') for line in lines)
    rows = next(line for line in lines if line.startswith('likely_rows_total{verb="predict"}'))
    assert int(rows.split()[-1]) >= 3
    assert any('likely_model_info{model="tennis"' in line for line in lines)


def test_bad_requests_are_refused_with_code_message_and_details(server: Server) -> None:
    status, found = server.ask("/api/predict", {"rows": [{"amount": "lots"}]})
    assert status == 422
    assert found["error"]["code"] == "bad_data"
    assert found["error"]["details"]["column"] == "amount"
    assert "amount" in found["error"]["message"]
    for document in ({}, {"rows": []}, {"rows": {}}, {"rows": [[1]]}, {"rows": [{}]}, {"row": {}}, [], {"rows": [{"a": {}}]}):
        status, found = server.ask("/api/predict", document)
        assert status == 422, document
        assert set(found["error"]) == {"code", "message", "details"}
    assert server.ask("/api/predict")[0] == 405
    assert server.ask("/nothing")[0] == 404


def test_changing_calls_are_refused_without_writable(server: Server, folder: Path) -> None:
    document = {"rows": [ROW | {"outcome": "repaid"}]}
    assert server.ask("/api/update", document)[0] == 401
    assert server.ask("/api/update", document, token="wrong")[0] == 401
    with served(str(folder / "tennis.likely"), "--token", "secret-token") as other:
        assert other.ask("/api/update", {"rows": [{"PlayTennis": "Yes"}]}, token="secret-token")[0] == 403


def test_a_replaced_model_file_is_loaded_again_and_a_damaged_one_is_not(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.likely"
    shutil.copy(folder / "tennis.likely", path)
    day = {"rows": [{"Outlook": "Sunny", "Wind": "Strong"}]}
    with served(str(path), "--token", "secret-token") as running:
        first = running.ask("/api/predict", day)[1]["model_version"]
        path.write_bytes(b"nonsense")
        status, _ = running.ask("/api/reload", {}, token="secret-token")
        assert status == 415
        assert running.ask("/api/predict", day)[1]["model_version"] == first
        quietly(likely.learn, str(DATA / "tennis.csv"), "PlayTennis", plain=True, smoothing=5).save(path)
        deadline = time.monotonic() + 30
        while running.ask("/api/predict", day)[1]["model_version"] == first and time.monotonic() < deadline:
            time.sleep(0.2)
        assert running.ask("/api/predict", day)[1]["model_version"] != first


def test_signals_end_it_with_their_exit_codes_and_log_lines_are_json(folder: Path) -> None:
    with served(str(folder / "tennis.likely")) as running:
        running.ask("/health")
        running.ask("/%1b%5b31mred")
        assert running.stop() == 143
    lines = [json.loads(line) for line in running.log]  # type: ignore[attr-defined]
    assert {"method": "GET", "path": "/health", "status": 200}.items() <= lines[0].items()
    assert "\x1b" not in lines[1]["path"]


def test_usage_is_checked_before_anything_is_served(folder: Path, tmp_path: Path) -> None:
    assert "serve it on 127.0.0.1" in run("serve", "--host", "0.0.0.0", expect=2).stderr
    assert "needs a model file" in run("serve", "--writable", expect=2).stderr
    assert "too short" in run("serve", str(folder / "tennis.likely"), "--token", "x", expect=2).stderr
    run("serve", str(tmp_path / "absent.likely"), expect=4)


def test_the_workbench_offers_every_family_that_a_column_can_have_by_name_alone() -> None:
    from likely.web._workbench import FAMILIES

    assert FAMILIES == ("auto", "categorical", "binned", "bernoulli", "poisson", "gaussian", "text", "ignore")
    for name in FAMILIES[1:-1]:
        assert likely.families.family(name).for_each_column
