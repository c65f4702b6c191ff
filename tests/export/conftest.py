"""The databases of these tests, each started when it is first asked for."""

import pytest

import databases


@pytest.fixture
def database(request):
    """A database by the name of its dialect."""
    made = {"duckdb": databases.Duckdb, "sqlite": databases.Sqlite}
    return made[request.param]() if request.param in made else request.getfixturevalue(request.param)
