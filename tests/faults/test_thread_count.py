"""One setting for the number of threads: n_jobs, LIKELY_THREADS, then the cores that the process may use."""

import ast
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import likely
from likely.kernels import parallel, thread_count
from likely.kernels.thread_count import container_quota, from_n_jobs, limited_to, threads, usable_cores
from source_tree import GROUP, SOURCE, nodes


@pytest.fixture(autouse=True)
def _without_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIKELY_THREADS", raising=False)


def test_by_default_there_are_as_many_threads_as_usable_cores_up_to_sixteen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads() == min(usable_cores(), 16)
    monkeypatch.setattr(thread_count, "usable_cores", lambda: 64)
    assert threads() == 16


def test_the_environment_sets_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, wanted in (("1", 1), (" 3 ", 3), ("40", 40), ("", min(usable_cores(), 16))):
        monkeypatch.setenv("LIKELY_THREADS", given)
        assert threads() == wanted
    for odd in ("0", "-2", "many", "1.5"):
        monkeypatch.setenv("LIKELY_THREADS", odd)
        with pytest.raises(ValueError, match="LIKELY_THREADS"):
            threads()


def test_n_jobs_goes_before_the_environment_and_ends_with_its_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKELY_THREADS", "5")
    with limited_to(from_n_jobs(2)):
        assert threads() == 2
        with limited_to(from_n_jobs(None)):
            assert threads() == 2
    assert threads() == 5
    with pytest.raises(KeyError), limited_to(3):
        raise KeyError
    assert threads() == 5


def test_n_jobs_means_what_it_means_in_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_count, "usable_cores", lambda: 4)
    assert [from_n_jobs(n) for n in (None, 1, 3, -1, -2, -9)] == [None, 1, 3, 4, 3, 1]
    for odd in (0, True, 1.5, "2"):
        with pytest.raises(ValueError, match="n_jobs"):
            from_n_jobs(odd)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no CPU affinity")
def test_a_process_that_may_use_one_core_uses_one_thread() -> None:
    core = min(os.sched_getaffinity(0))
    code = (
        f"import os; os.sched_setaffinity(0, {{{core}}})\n"
        "from likely.kernels.parallel import pool\n"
        "from likely.kernels.thread_count import threads\n"
        "print(threads(), pool()._max_workers)"
    )
    env = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.split() == ["1", "1"]


def quota(root: Path, own: str = "", **files: str) -> float | None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("cpu_max", "cpu.max").replace("cfs", "cpu.cfs")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "own").write_text(own)
    return container_quota(root, root / "own")


def test_the_quota_of_a_container_is_read_from_its_control_groups(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    assert quota(tmp_path / "none") is None
    assert quota(tmp_path / "v2", "0::/\n", cpu_max="150000 100000\n") == 1.5
    assert quota(tmp_path / "open", "0::/\n", cpu_max="max 100000\n") is None
    nested = {"a__cpu_max": "400000 100000\n", "a__b__cpu_max": "max 100000\n", "a__b__c__cpu_max": "250000 100000\n"}
    assert quota(tmp_path / "nested", "0::/a/b/c\n", **nested) == 2.5
    assert quota(tmp_path / "outer", "0::/a/b\n", **nested) == 4.0
    old = {"cpu__x__cfs_quota_us": "50000\n", "cpu__x__cfs_period_us": "100000\n"}
    assert quota(tmp_path / "v1", "3:cpu,cpuacct:/x\n1:memory:/y\n", **old) == 0.5
    free = {"cpu__cfs_quota_us": "-1\n", "cpu__cfs_period_us": "100000\n"}
    assert quota(tmp_path / "v1free", "3:cpu:/\n", **free) is None
    assert quota(tmp_path / "odd", "0::/\n", cpu_max="what\n") is None


@pytest.mark.parametrize(("quota_of", "wanted"), [(None, 6), (0.5, 1), (1.5, 2), (2.0, 2), (64.0, 6)])
def test_a_container_may_use_its_quota_rounded_up(
    quota_of: float | None, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_count, "_quota_at_start", lambda: quota_of)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert usable_cores() == wanted


def test_threads_that_work_for_a_thread_inherit_its_limit() -> None:
    with limited_to(2), parallel.workers(2) as pool:
        assert list(pool.map(lambda _: threads(), range(4))) == [2] * 4
    with limited_to(3):
        assert parallel.pool()._max_workers == 3
        assert set(parallel.in_parallel(lambda _: threads(), range(8))) == {3}


def test_work_that_is_begun_meanwhile_runs_once_beside_this_thread_or_here_where_there_is_no_other():
    here, ran = threading.get_ident(), []
    work = lambda: ran.append(threading.get_ident()) or len(ran)  # noqa: E731
    with limited_to(2):
        result = parallel.meanwhile(work, parallel.FEW_ROWS)
        assert (result(), result()) == (1, 1)
        assert ran != [here]
    for most, rows in ((1, parallel.FEW_ROWS), (2, parallel.FEW_ROWS - 1)):
        ran.clear()
        with limited_to(most):
            result = parallel.meanwhile(work, rows)
            assert not ran
            assert (result(), result()) == (1, 1)
        assert ran == [here]
    with limited_to(2):
        failing = parallel.meanwhile(lambda: 1 // 0, parallel.FEW_ROWS)
        with pytest.raises(ZeroDivisionError):
            failing()



def test_with_one_thread_nothing_is_handed_to_another() -> None:
    here = threading.get_ident()
    with limited_to(1):
        assert set(parallel.in_parallel(lambda _: threading.get_ident(), range(8))) == {here}
    with limited_to(2):
        assert here not in parallel.in_parallel(lambda _: threading.get_ident(), range(8))


def test_a_model_learned_with_one_thread_is_the_one_learned_with_many(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    data = {"a": rng.normal(size=6000), "b": rng.integers(0, 4, 6000), "y": rng.integers(0, 2, 6000)}
    found = []
    for number in ("1", "3"):
        monkeypatch.setenv("LIKELY_THREADS", number)
        found.append(likely.learn(data, "y", plain=True))
    assert found[0] == found[1]


@pytest.mark.xdist_group(GROUP)
def test_only_the_one_setting_reads_the_number_of_cores() -> None:
    askers = {"cpu_count", "process_cpu_count", "sched_getaffinity"}
    found = {path for path, node in nodes() if isinstance(node, ast.Attribute) and node.attr in askers}
    assert found == {Path("kernels", "thread_count.py")}
