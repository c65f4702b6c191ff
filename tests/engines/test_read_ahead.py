"""Batches are worked on several at a time, and their results come in order."""

import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

from likely.engines.read_ahead import ahead, in_turn
from likely.kernels.thread_count import limited_to
from likely.sources.batch import Batch, Frame
from likely.sources.interruption import interruptible


def batches(count: int) -> Iterator[Batch]:
    for i in range(count):
        yield Frame({"x": pa.array([float(i)])}, 1, i)


def test_results_come_in_the_order_of_the_batches_whoever_is_done_first() -> None:
    def work(batch: Batch, alone: bool) -> tuple[int, bool]:
        time.sleep(0.002 * (batch.start % 3 == 0))
        return batch.start, alone

    with limited_to(3):
        assert list(in_turn(batches(20), work)) == [(i, False) for i in range(20)]


def test_a_single_batch_is_worked_on_by_the_calling_thread() -> None:
    here = threading.get_ident()
    assert list(in_turn(batches(1), lambda _, alone: (alone, threading.get_ident()))) == [(True, here)]
    assert list(in_turn(batches(0), lambda _, alone: alone)) == []


def test_several_batches_are_under_way_at_a_time_and_no_more_than_threads() -> None:
    both, lock, busy, most = threading.Barrier(2), threading.Lock(), [0], [0]

    def work(batch: Batch, _: bool) -> int:
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        both.wait(30)  # never passed by one batch at a time
        with lock:
            busy[0] -= 1
        return batch.start

    with limited_to(2):
        assert list(in_turn(batches(6), work)) == list(range(6))
    assert most[0] == 2


def test_the_first_error_in_the_order_of_rows_is_raised() -> None:
    def work(batch: Batch, _: bool) -> int:
        if batch.start >= 3:
            time.sleep(0.01 * (batch.start == 3))
            raise ValueError(f"row {batch.start}")
        return batch.start

    with limited_to(4):
        results = in_turn(batches(30), work)
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ValueError, match="row 3"):
            next(results)


def test_results_that_are_no_longer_wanted_are_not_waited_for() -> None:
    go, done = threading.Event(), []

    def work(batch: Batch, _: bool) -> int:
        if batch.start == 1:
            go.wait(10)
        done.append(batch.start)
        return batch.start

    with limited_to(2):
        results = in_turn(batches(10), work)
        assert next(results) == 0
        results.close()  # type: ignore[attr-defined]
    assert 1 not in done
    go.set()


class Endless:
    """Rows whose fifth batch waits in a call that ends only when it is interrupted, as a query does."""

    def __init__(self) -> None:
        self.waiting, self.interrupted, self.closed = threading.Event(), threading.Event(), threading.Event()

    def batches(self) -> Iterator[Batch]:
        try:
            yield from batches(4)
            interruptible(self.wait, self.interrupted.set)
        finally:
            self.closed.set()

    def wait(self) -> None:
        self.waiting.set()
        assert self.interrupted.wait(60)


def test_a_reader_ends_with_an_error_of_those_who_count_however_long_the_error_is_kept() -> None:
    rows = Endless()

    def work(batch: Batch, _: bool) -> int:
        if batch.start == 1:
            assert rows.waiting.wait(30)
            raise ValueError("bad row")
        return batch.start

    with limited_to(1), pytest.raises(ValueError, match="bad row") as kept:
        list(in_turn(rows.batches(), work))
    assert kept.value.__traceback__ is not None
    assert rows.interrupted.is_set()
    assert rows.closed.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name == "likely-read"]


def test_batches_are_closed_when_only_some_of_them_are_wanted() -> None:
    rows = Endless()
    coming = ahead(rows.batches())
    next(coming)
    coming.close()
    assert rows.closed.is_set()
