"""A model file is written completely or not at all, the last writer wins, and no temporary files remain."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import likely
from likely.errors import LikelyError, ModelFileError, SaveError, UsageError
from likely.model import model_file
from likely.sources import atomic_write

ROOT = Path(__file__).resolve().parents[2]
TABLE = {"colour": ["red", "red", "blue", "green"], "size": [1.0, 2.5, 3.0, 4.5], "y": ["no", "yes", "no", "yes"]}


@pytest.fixture(scope="module")
def model():
    return likely.learn(TABLE, "y", missing=["?"])


@pytest.fixture(scope="module")
def small():
    return likely.learn({"x": [1.0, 2.0, 4.0, 5.0], "c": ["u", "v", "u", "v"], "y": [True, False, True, False]}, "y")


def run(code):
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_a_folder_a_pipe_and_nothing_at_all_are_no_model_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "nowhere", "/dev/null", "a\0b", ""):
        with pytest.raises(ModelFileError):
            likely.load(path)


def test_a_loaded_model_equals_the_saved_one_down_to_its_digest(model, tmp_path):
    first = model.save(tmp_path / "a.likely")
    loaded = likely.load(tmp_path / "a.likely")
    assert loaded.save(tmp_path / "b.likely") == first
    assert (tmp_path / "a.likely").read_bytes() == (tmp_path / "b.likely").read_bytes()
    rows = [{name: column[0] for name, column in TABLE.items() if name != "y"}]
    assert (loaded.posterior(rows).log_joint == model.posterior(rows).log_joint).all()


@pytest.mark.parametrize(
    "labels",
    [
        (1, 2),
        (0.5, 1.5),
        (True, False),
        ("é", "a\u2028b"),
        ((1, "a"), (2, "b")),
        (b"x", b"\xff"),
        (2**60, 2**60 + 1),
        (-0.5, 1e300),
    ],
    ids=str,
)
def test_labels_come_back_in_their_own_type(labels, tmp_path):
    saved = likely.learn([{"x": i * 1.5, "y": labels[i % 2]} for i in range(6)], "y")
    saved.save(tmp_path / "m.likely")
    loaded = likely.load(tmp_path / "m.likely")
    assert loaded.classes == saved.classes
    assert [type(label) for label in loaded.classes] == [type(label) for label in saved.classes]


def test_a_model_of_values_that_no_file_can_hold_is_refused_by_column_and_nothing_is_written(tmp_path):
    class Thing:
        def __repr__(self):
            return "thing"

    things = [Thing(), Thing()]
    odd = likely.learn([{"x": float(i), "y": things[i % 2]} for i in range(4)], "y")
    with pytest.raises(UsageError, match="'y' has values of type Thing"):
        odd.save(tmp_path / "m.likely")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["no/such/folder/m.likely", "file/m.likely", "folder", "pipe", ""])
def test_where_nothing_can_be_written_the_path_is_named_and_nothing_is_left(small, tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SaveError, match="cannot be written") as caught:
        small.save(where)
    assert repr(where) in str(caught.value)
    assert isinstance(caught.value, OSError)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_named(small, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with pytest.raises(SaveError, match="Permission denied"):
        small.save(folder / "m.likely")


def test_a_full_disk_leaves_the_old_file_and_no_other(small, model, tmp_path, monkeypatch):
    path = tmp_path / "m.likely"
    small.save(path)
    before = path.read_bytes()

    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SaveError, match="No space left"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_may_not_grow_leaves_the_old_one(tmp_path):
    code = (
        "import likely, resource, numpy as np\n"
        "m = likely.learn({'x': list(range(1, 99)), 'y': [i % 2 for i in range(98)]}, 'y', families={'x': 'categorical'})\n"
        f"path = {str(tmp_path / 'm.likely')!r}\n"
        "m.save(path)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))\n"
        "try: m.save(path)\n"
        "except likely.errors.SaveError as error: print(error)\n"
        "likely.load(path)"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert "cannot be written: File too large" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["m.likely"]


def test_ctrl_c_while_saving_leaves_the_old_file_and_no_other(small, model, tmp_path, monkeypatch):
    path = tmp_path / "m.likely"
    small.save(path)
    before = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


TAKING_THE_LOCK = ("_wait_for_lock", "_acquired", "_try_lock", "_is_same")


def interrupt_at(line):
    """Trace function that raises KeyboardInterrupt at one executed line of the module, counted from 0."""
    seen = iter(range(10**6))

    def trace(frame, event, _):
        if frame.f_code.co_filename != atomic_write.__file__ or frame.f_code.co_name in TAKING_THE_LOCK:
            return None  # a lock file that is left while it is being taken does no harm
        if event == "line" and next(seen) == line:
            raise KeyboardInterrupt
        return trace

    return trace


def test_ctrl_c_at_any_line_leaves_the_old_file_or_the_new_one_and_no_other(tmp_path):
    path = tmp_path / "out.csv"
    outcomes = set()
    for line in range(1000):
        path.write_text("old", encoding="utf-8")
        tracing = sys.gettrace()
        sys.settrace(interrupt_at(line))
        try:
            with atomic_write.whole_file(path) as temporary:
                Path(temporary).write_text("new", encoding="utf-8")
        except KeyboardInterrupt:
            sys.settrace(tracing)
            assert [p.name for p in tmp_path.iterdir()] == ["out.csv"], line
            outcomes.add(path.read_text(encoding="utf-8"))
        else:
            break
        finally:
            sys.settrace(tracing)
    assert outcomes == {"old", "new"}
    assert 20 < line < 1000, "every line was reached"


# Importing takes longer than what is tested: each saver is the fork of one process that has imported everything.
SAVERS = """
import os, sys
import numpy as np
from likely.model import model_file as store

for line in sys.stdin:
    path, seed = line.rstrip().rsplit(" ", 1)
    saver = os.fork()
    while not saver:
        seed = int(seed) + 1
        store.write(path, {"seed": seed}, {"a": np.full(300_000, float(seed))})
    print(saver, flush=True)
    os.waitpid(saver, 0)
    print("ended", flush=True)
"""


class _Saver:
    """A process that writes one file again and again until it is killed."""

    def __init__(self, savers, path, seed):
        self.savers = savers
        savers.stdin.write(f"{path} {seed}\n")
        savers.stdin.flush()
        self.number = int(savers.stdout.readline())

    def alive(self):
        try:
            os.kill(self.number, 0)
        except ProcessLookupError:
            return False
        return True

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.number, signal.SIGKILL)
        assert self.savers.stdout.readline() == "ended\n"


@contextlib.contextmanager
def _imported():
    """A process from which savers are forked, one at a time."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(
        [sys.executable, "-c", SAVERS], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.communicate(timeout=60)


def _whole(path):
    header, arrays, _ = model_file.read(path)
    assert (arrays["a"] == header["seed"]).all()
    return header["seed"]


def test_kill_9_at_any_moment_leaves_the_old_file_or_the_new_one_whole(tmp_path):
    path = tmp_path / "m.likely"
    model_file.write(path, {"seed": 0}, {"a": np.zeros(300_000)})
    with _imported() as savers:
        for k in range(12):
            saver = _Saver(savers, path, 1000 * k)
            time.sleep(0.005 + 0.013 * k)
            saver.kill()
            _whole(path)
            others = {p.name for p in tmp_path.iterdir() if p != path} - {".m.likely.lock"}
            assert all(name.startswith(".m.likely.") and name.endswith(atomic_write.SAVING) for name in others)
            assert len(others) <= 1
    model_file.write(path, {"seed": 1}, {"a": np.ones(300_000)})
    assert [p.name for p in tmp_path.iterdir()] == ["m.likely"], "what the killed left behind is swept away"


def test_two_processes_that_write_one_file_never_mix_and_readers_see_whole_files(tmp_path):
    path = tmp_path / "m.likely"
    model_file.write(path, {"seed": 0}, {"a": np.zeros(300_000)})
    with _imported() as one, _imported() as two:
        savers = [_Saver(one, path, 0), _Saver(two, path, 10**6)]
        try:
            seen = {_whole(path) > 10**6 for _ in range(60)}
        finally:
            for saver in savers:
                saver.kill()
    assert seen == {True, False} or len(seen) == 1  # whoever was last: each file was whole
    _whole(path)


def test_the_sweep_spares_what_a_living_process_is_writing(tmp_path):
    path = tmp_path / "m.likely"
    with _imported() as savers:
        saver = _Saver(savers, path, 0)
        try:
            for _ in range(30):
                model_file.write(path, {"seed": 5}, {"a": np.full(10, 5.0)})
                assert saver.alive(), "the other process lost its file while it was writing"
        finally:
            saver.kill()


def test_many_threads_may_save_one_file(small, tmp_path):
    path = tmp_path / "m.likely"
    faults = []

    def save():
        try:
            for _ in range(10):
                small.save(path)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=save) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert likely.load(path).tally == small.tally


def test_a_file_that_changed_meanwhile_is_not_replaced(small, model, tmp_path):
    path = tmp_path / "m.likely"
    digest = small.save(path)
    assert small.save(path, replacing=digest) == digest
    changed = model.save(path)
    with pytest.raises(LikelyError, match="changed by another process"):
        small.save(path, replacing=digest)
    assert likely.load(path).tally == model.tally
    assert [p.name for p in tmp_path.iterdir()] == ["m.likely"]
    assert small.save(path, replacing=changed) == digest


def test_a_save_keeps_the_rights_of_the_file_and_writes_through_a_link(small, tmp_path):
    (tmp_path / "real").mkdir()
    path, link = tmp_path / "real" / "m.likely", tmp_path / "link.likely"
    small.save(path)
    path.chmod(0o640)
    link.symlink_to(path)
    small.save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640


def test_memory_for_a_model_stays_near_the_size_of_its_file(tmp_path):
    path = tmp_path / "m.likely"
    model_file.write(path, {}, {"a": np.zeros(5_000_000)})
    code = (
        "import resource\nfrom likely.model import model_file as store\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"store.read({str(path)!r})\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 3 * 40_000
