"""What all tests share: Hypothesis without a stop-watch, and the way to the real data sets."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

# Workers of pytest are as many as cores: threads of BLAS and OpenMP beside them would spin, and cost more than the work itself.
# NumPy reads this when it is imported, which is later.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

# Some hundred tests start a process: where bytecode is not kept, each of them parses the whole package again (0.7 s).
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Counting small tables is fast, but the first call on a busy machine may load a compiler: no test is timed.
# A hunt for rarer cases: pytest --hypothesis-profile=deep
COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    "phases": [phase for phase in Phase if phase is not Phase.explain],
}
settings.register_profile("likely", max_examples=30, **COMMON)
settings.register_profile("quick", max_examples=10, **COMMON)
settings.register_profile("deep", max_examples=1000, **COMMON)
settings.load_profile("likely")

SHARED = Path(__file__).resolve().parents[2] / "shared"
ABSENT = pytest.StashKey[list[str]]()

# Files whose tests start the same server run in one process; a file that is not listed is a group of its own.
TOGETHER = {"export/test_databases": "postgres", "engines/test_in_database": "postgres", "export/test_sql": "postgres",
            "export/test_sql_texts": "postgres",
            "engines/test_faults_on_engines": "postgres", "engines/test_contract": "postgres",
            "faults/test_database_sources": "postgres", "faults/test_counting_in_databases": "postgres"}  # fmt: skip
# Groups that take longest, in this order: whatever begins late with a long group ends late.
LONGEST = ["spark", "pgmpy", "house/test_readme", "items", "faults/test_scale", "faults/test_tables", "serve page"]


def pytest_configure(config):
    config.stash[ABSENT] = []
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # pytest-xdist would begin with the groups of most tests, which are short ones


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """One process runs a whole file, so that it makes what its tests share once; the longest come first."""
    ranks = {}
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        file = f"{item.path.parent.name}/{item.path.stem}"
        group = mark.args[0] if mark else TOGETHER.get(file, file)
        if mark is None:
            item.add_marker(pytest.mark.xdist_group(group))
        ranks[item] = LONGEST.index(group) if group in LONGEST else len(LONGEST)
    items.sort(key=ranks.__getitem__)


@pytest.fixture(scope="session")
def shared_data(request):
    """The path of a real data set beside the repository; the test is skipped, and says so at the end, without it."""

    def find(name):
        path = SHARED / "data" / name
        if not path.exists():
            request.config.stash[ABSENT].append(name)
            pytest.skip(f"NOT TESTED: the real data set {name!r} is not in ../shared/data")
        return path

    return find


@pytest.fixture(scope="session")
def postgres():
    import databases

    with databases.postgres_server() as uri:
        opened = databases.Postgres(uri)
        yield opened
        opened.connection.close()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A standalone Spark cluster of two workers; tests that use it are in the group "spark", so that there is one."""
    from spark_cluster import Cluster, why_not

    if reason := why_not():
        pytest.skip(f"NOT TESTED: no Spark cluster can be started, {reason}")
    found = Cluster(tmp_path_factory.mktemp("spark"))
    yield found
    found.stop()


@pytest.fixture(scope="session")
def spark(cluster):
    session = cluster.session()
    yield session
    session.stop()


def pytest_terminal_summary(terminalreporter, config):
    absent = sorted(set(config.stash[ABSENT]))
    if absent:
        terminalreporter.section("REAL DATA NOT TESTED", red=True)
        terminalreporter.line(f"../shared/data lacks {', '.join(absent)}: tests of them were skipped; where they serve,")
        terminalreporter.line("tables of scikit-learn and docstrings stood in for the published ones")
