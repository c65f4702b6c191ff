"""The OpenAPI document as a fuzzer reads it: schemathesis makes valid and invalid requests from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

import likely
from serving import Server, served
from strategies import quietly

pytest.importorskip("msgspec", reason="NOT TESTED: msgspec is not installed")
schemathesis = pytest.importorskip("schemathesis", reason="NOT TESTED: schemathesis is not installed")
DATA = Path(likely.__file__).parent / "data"
TOKEN = "a-token-for-tests"
FEW = settings(
    max_examples=6, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("openapi") / "loans.likely"
    quietly(likely.learn, str(DATA / "loans.csv"), "outcome", plain=True).save(path)
    with served(str(path), "--writable", "--token", TOKEN, "--quiet") as running:
        yield running


def test_requests_made_from_the_openapi_document_never_end_in_a_server_error(server: Server) -> None:
    from schemathesis import GenerationMode

    schema = schemathesis.openapi.from_url(server.address + "openapi.json")
    asked = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            def ask(case: Any, mode: Any = mode) -> None:
                nonlocal asked
                asked += 1
                response = case.call(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60)
                assert response.status_code < 500, (case.method, case.path, case.body, response.text)
                if response.status_code == 200 and mode is GenerationMode.POSITIVE:
                    case.validate_response(response, checks=[schemathesis.checks.not_a_server_error])

            try:
                strategy = operation.as_strategy(generation_mode=mode)
            except Exception as fault:
                if "generat" not in str(fault).lower():
                    raise
                continue
            _run(ask, strategy)
    assert asked > 60
    assert server.ask("/health")[0] == 200


def _run(ask: Any, strategy: Any) -> None:
    from hypothesis import given
    from hypothesis.errors import Unsatisfiable

    try:
        FEW(given(case=strategy)(lambda case: ask(case)))()
    except Unsatisfiable:
        return  # a route without a body has no invalid requests
