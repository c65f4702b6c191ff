"""Threads and processes: nothing is lost, nothing differs, and nobody waits for ever."""

import copy
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import likely
from likely import NaiveBayes, TextNaiveBayes
from likely.kernels.parallel import cached_property
from processes import SOURCE

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(1700, 3)), RNG.integers(0, 5, (1700, 2))])
Y = np.where(X[:, 0] + X[:, 3] > 2, "high", "low")
DOCUMENTS = [f"{'spam' if i % 2 else 'ham'} word{i % 31} other{i % 77} é{i % 5}" for i in range(1700)]
LABELS = ["spam" if i % 2 else "ham" for i in range(1700)]
TABLE = {f"c{j}": X[:, j] for j in range(5)} | {"y": Y}


def at_once(works: list[Callable[[], Any]]) -> list[Any]:
    """What each piece of work returns, all of them begun at the same moment."""
    ready = threading.Barrier(len(works))

    def begin(work: Callable[[], Any]) -> Any:
        ready.wait()
        return work()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads take turns often, so that a race is lost if it can be
    try:
        with ThreadPoolExecutor(len(works)) as pool:
            return list(pool.map(begin, works))
    finally:
        sys.setswitchinterval(before)


def teach(estimator: Any, rows: Any, labels: Any) -> Any:
    """Eight threads hand their rows to one estimator, ten at a time."""

    def some(t: int) -> Callable[[], None]:
        def work() -> None:
            for a in range(10 * t, len(labels), 80):
                estimator.partial_fit(rows[a : a + 10], labels[a : a + 10])

        return work

    at_once([some(t) for t in range(8)])
    return estimator


def test_rows_that_threads_teach_one_estimator_are_all_counted() -> None:
    taught = teach(NaiveBayes(plain=True), X, Y)
    assert taught.model_.tally.rows == 1700
    whole = NaiveBayes(plain=True).fit(X, Y)
    np.testing.assert_allclose(taught.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-9)


def test_documents_that_threads_teach_one_estimator_are_all_counted() -> None:
    taught = teach(TextNaiveBayes("multinomial"), DOCUMENTS, LABELS)
    assert taught.model_.tally.rows == 1700
    whole = TextNaiveBayes("multinomial").fit(DOCUMENTS, LABELS)
    np.testing.assert_allclose(taught.predict_proba(DOCUMENTS), whole.predict_proba(DOCUMENTS), rtol=0, atol=1e-9)


def test_predicting_meanwhile_loses_nothing() -> None:
    """What is fitted on top of the counts is fitted by whoever predicts: it must not put an older model back."""
    estimator = NaiveBayes().partial_fit(X[:100], Y[:100])

    def learn() -> None:
        for a in range(100, 1700, 100):
            estimator.partial_fit(X[a : a + 100], Y[a : a + 100])

    def predict() -> None:
        for _ in range(10):
            assert set(estimator.predict(X[:50])) <= {"high", "low"}

    at_once([learn, predict, predict])
    assert estimator.model_.tally.rows == 1700


def test_a_model_of_text_stays_what_it_is_while_its_sums_are_made() -> None:
    """A sum takes over the table of its summand: whoever reads the summand meanwhile must not see the sum."""
    model = likely.learn({"text": DOCUMENTS[:200], "y": LABELS[:200]}, "y", families={"text": "text:multinomial"})
    more = {"text": DOCUMENTS[200:400], "y": LABELS[200:400]}
    expected = model.posterior({"text": DOCUMENTS}).probabilities

    def update() -> None:
        for _ in range(5):
            likely.learn({"text": DOCUMENTS[:200], "y": LABELS[:200]}, "y", families={"text": "text:multinomial"})
            model.update(more)

    def fresh() -> Any:
        return [copy.copy(model).posterior({"text": DOCUMENTS}).probabilities for _ in range(5)]

    for found in at_once([update, fresh, update, fresh]):
        for each in found or ():
            np.testing.assert_array_equal(each, expected)


def test_a_table_that_is_read_is_not_written_over() -> None:
    model = likely.learn({"text": DOCUMENTS[:200], "y": LABELS[:200]}, "y", families={"text": "text:multinomial"})
    words: Any = model.tally.statistics[0]
    read = words.table
    before = read.copy()
    model.update({"text": DOCUMENTS[:200], "y": LABELS[:200]})
    np.testing.assert_array_equal(read, before)


@pytest.mark.parametrize("kind", ["table", "text"])
def test_eight_threads_on_one_fresh_model_get_equal_answers(kind: str) -> None:
    data = TABLE if kind == "table" else {"text": DOCUMENTS, "y": LABELS}
    families: Any = "auto" if kind == "table" else {"text": "text"}
    expected = likely.learn(data, "y", families=families).posterior(data).probabilities
    for _ in range(3):
        model = likely.learn(data, "y", families=families)
        for found in at_once([lambda m=model: m.posterior(data).probabilities] * 8):  # type: ignore[misc]
            np.testing.assert_array_equal(found, expected)


def test_a_cached_property_is_computed_once_seen_and_holds_no_lock() -> None:
    class Slow:
        @cached_property
        def value(self) -> object:
            """What it is."""
            inside.append(threading.get_ident())
            both.wait(60)  # two instances are computed at the same time
            return object()

    inside: list[int] = []
    both = threading.Barrier(2)
    one, two = Slow(), Slow()
    at_once([lambda: one.value, lambda: two.value])
    assert len(inside) == 2
    assert one.value is one.value is not two.value
    assert Slow.value.__doc__ == "What it is."
    both = threading.Barrier(2)
    three = Slow()
    first, second = at_once([lambda: three.value, lambda: three.value])
    assert first is second  # both computed it, and both got the same


@pytest.mark.parametrize("estimator", [NaiveBayes(), TextNaiveBayes()])
def test_an_estimator_that_was_taught_copies_clones_and_travels(estimator: Any) -> None:
    rows, labels = (X, Y) if isinstance(estimator, NaiveBayes) else (DOCUMENTS, LABELS)
    taught = clone(estimator).partial_fit(rows[:100], labels[:100])
    assert not any(type(value).__name__ == "RLock" for value in vars(taught).values())
    for each in (copy.copy(taught), copy.deepcopy(taught), pickle.loads(pickle.dumps(taught))):
        each.partial_fit(rows[100:200], labels[100:200])
        assert each.model_.tally.rows == 200
    assert taught.model_.tally.rows == 100


def test_a_search_over_processes_still_works() -> None:
    search = GridSearchCV(NaiveBayes(plain=True), {"smoothing": [0.5, 1.0]}, n_jobs=2, cv=2).fit(X, Y)
    assert search.best_score_ > 0.5


FORKING = """
import os, sys, threading, time, warnings
import multiprocessing
import numpy as np
import likely
from likely import NaiveBayes, TextNaiveBayes

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
x = np.column_stack([rng.normal(size=(700, 3)), rng.integers(0, 9, (700, 2))])  # few rows: locks are taken the more often
table = {f"c{j}": x[:, j] for j in range(5)} | {"y": np.where(x[:, 0] + x[:, 3] > 4, "high", "low")}
words = [f"word{i}é" for i in range(2000)]
texts = [" ".join(words[j] for j in rng.integers(0, 2000, 60)) for _ in range(100)]
labels = [("a", "b")[i % 2] for i in range(100)]
shared = TextNaiveBayes().partial_fit(texts, labels)
model = likely.learn(table, "y")
expected = model.posterior(table).probabilities

def tabular():
    assert (likely.learn(table, "y").posterior(table).probabilities == expected).all()

def text():
    shared.partial_fit(texts, labels)
    assert len(shared.predict(texts)) == 100

def both(_=None):
    tabular()
    text()
    return True

def forever(work):
    while not over:
        work()

over = False
tabular(), text()  # everything is compiled before anything is timed
threads = [threading.Thread(target=forever, args=(work,), daemon=True) for work in (tabular, text) * 2]
for thread in threads:
    thread.start()
faults = 0
"""

MANY_FORKS = """
for k in range(12):
    time.sleep(0.01 + 0.03 * (k % 7))
    child = os.fork()
    if not child:
        try:
            both()
            os._exit(0)
        finally:
            os._exit(1)
    until = time.monotonic() + 120
    status = None
    while status is None:
        done, found = os.waitpid(child, os.WNOHANG)
        if done:
            status = found
        elif time.monotonic() > until:
            os.kill(child, 9)
            status = os.waitpid(child, 0)[1]
        time.sleep(0.01)
    faults += status != 0
print("faults of forks:", faults)
"""

POOLS = """
for _ in range(2):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        faults += pool.map_async(both, range(4)).get(240) != [True] * 4
"""

END = """
over = True
for thread in threads:
    thread.join(120)
    faults += thread.is_alive()
print("faults in all:", faults)
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here: not tested")
def test_a_process_may_fork_while_its_threads_work(tmp_path: Path) -> None:
    """One child after the other, then pools of them, from one process: starting it takes as long as some children."""
    script = tmp_path / "forking.py"
    script.write_text(textwrap.dedent(FORKING + MANY_FORKS + POOLS + END))
    env = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.stdout.splitlines() == ["faults of forks: 0", "faults in all: 0"], (done.stdout, done.stderr)
    assert done.returncode == 0
