"""Exit codes 5 and 6: EM that did not converge, and no room; nothing is written by halves and nothing is left."""

import errno
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import likely
import likely.learning.learn
from commands import run
from likely.cli._entry_point import MEANINGS
from likely.errors import ConvergenceWarning, SaveError
from processes import COMMAND, TENNIS, environment

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = "x,z\n" + "".join(f"{i * i % 17},{i * 7 % 11 + i / 10}\n" for i in range(80))
UNLABELLED = "x,y\n" + "".join(f"{i * i % 17 + i % 2 * 5},{'ab'[i % 2] if i < 10 else ''}\n" for i in range(200))


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("n.csv").write_text(NUMBERS, encoding="utf-8")


@pytest.mark.parametrize("command", [["cluster", "n.csv", "-o", "out.likely"], ["sequences", "n.csv", "-o", "out.csv"]])
def test_em_that_did_not_converge_is_a_note_or_exit_five(command):
    args = [*command, "-k", "3", "--max-iter", "2"]
    reported = run(*args, "--require-convergence", expect=5).stderr
    assert reported.startswith("error: EM has not converged after 2 rounds")
    assert os.listdir() == ["n.csv"]
    assert "note: EM has not converged after 2 rounds" in run(*args).stderr
    assert sorted(os.listdir()) == ["n.csv", command[-1]]
    done = run(*command, "-k", "2", "--require-convergence")
    assert "not converged" not in done.stderr


def test_the_error_is_called_by_its_name_in_json():
    reported = run("cluster", "n.csv", "-k", "3", "--max-iter", "2", "--require-convergence", "--json", expect=5).stderr
    assert '"code": "not_converged"' in reported


def test_learn_with_rows_without_labels_has_the_gate_too():
    Path("u.csv").write_text(UNLABELLED, encoding="utf-8")
    args = ["learn", "u.csv", "--target", "y", "--unlabelled", "1", "-o", "m.likely", "--require-convergence"]
    run(*args)
    os.remove("m.likely")
    assert (
        "EM has not converged after 1 rounds: raise max_iter (--max-iter)"
        in run(*args, "--max-iter", "1", expect=5).stderr
    )
    assert not Path("m.likely").exists()


def test_the_library_warns_and_the_warning_can_be_made_an_error():
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        likely.cluster("n.csv", 3, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        likely.sequences("n.csv", 3, max_iter=2)


def limited(*args, **more):
    """A command that may write no file of more than a thousand bytes: a quota, or a full disk."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))

    # Python would leave half of a compiled module beside its source, which it could never import again.
    env = environment(PYTHONDONTWRITEBYTECODE="1", **more)
    return subprocess.run([*COMMAND, *args], capture_output=True, env=env, preexec_fn=limit, timeout=120, check=False)


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet"])
def test_a_quota_is_exit_six_and_leaves_no_partial_output(name):
    likely.learn(TENNIS, "PlayTennis").save("m.likely")
    Path("d.csv").write_text(Path(TENNIS).read_text(encoding="utf-8"), encoding="utf-8")
    with open("d.csv", "a", encoding="utf-8") as file:
        file.writelines(Path(TENNIS).read_text(encoding="utf-8").splitlines(keepends=True)[1:] * 100)
    before = sorted(os.listdir())
    done = limited("predict", "m.likely", "d.csv", "-o", name)
    assert done.returncode == 6, done.stderr
    assert re.search(rf"^error: '{name}' cannot be written: .*File too large", done.stderr.decode(), re.MULTILINE)
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("name", ["out.duckdb", "out.sqlite"])
def test_a_quota_of_the_temporary_folder_is_named_with_the_remedy(name):
    likely.learn(TENNIS, "PlayTennis").save("m.likely")
    before = sorted(os.listdir())
    done = limited("predict", "m.likely", TENNIS, "-o", name, "--output-table", "t")
    assert done.returncode == 6, done.stderr
    reported = r"^error: there is no disk space in '.*' to collect the rows: .*TMPDIR"
    assert re.search(reported, done.stderr.decode(), re.MULTILINE)
    assert sorted(os.listdir()) == before


def test_a_model_that_finds_no_room_is_exit_six_and_the_old_one_stays():
    likely.learn(TENNIS, "PlayTennis").save("m.likely")
    before = Path("m.likely").read_bytes()
    done = limited("update", "m.likely", TENNIS)
    assert done.returncode == 6, done.stderr
    assert Path("m.likely").read_bytes() == before
    assert sorted(os.listdir()) == ["m.likely", "n.csv"]


def test_no_room_for_temporary_files_is_exit_six(tmp_path):
    Path("temporary").mkdir()
    text = Path(TENNIS).read_text(encoding="utf-8") + "".join(
        f"{line}\n" for line in Path(TENNIS).read_text(encoding="utf-8").splitlines()[1:] * 50
    )
    Path("wide.csv").write_text(text, encoding="utf-16")
    done = limited("learn", "wide.csv", "--target", "PlayTennis", "-o", "m.likely", TMPDIR=str(tmp_path / "temporary"))
    assert done.returncode == 6, done.stderr
    assert b"File too large" in done.stderr
    assert os.listdir("temporary") == []
    assert not Path("m.likely").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="NOT TESTED: root may write anywhere")
def test_a_read_only_folder_is_exit_six():
    Path("locked").mkdir(mode=0o500)
    for args in (["learn", TENNIS, "--target", "PlayTennis", "-o", "locked/m.likely"],):
        assert "Permission denied" in run(*args, expect=6).stderr


def test_out_of_memory_is_exit_six_and_nothing_is_written(monkeypatch):
    monkeypatch.setattr(sys.modules["likely.learning.learn"], "learn", lambda *_, **__: np.empty(1 << 56))
    reported = run("learn", TENNIS, "--target", "PlayTennis", "-o", "m.likely", expect=6).stderr
    assert reported.startswith("error: out of memory: ")
    assert not Path("m.likely").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="NOT TESTED: this system has no /dev/full")
@pytest.mark.parametrize("buffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("args", [["predict", "m.likely", TENNIS], ["inspect", TENNIS, "--json"]])
def test_a_full_disk_behind_standard_output_is_one_line_and_exit_six(args, buffered):
    likely.learn(TENNIS, "PlayTennis").save("m.likely")
    env = environment(PYTHONUNBUFFERED=buffered)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*COMMAND, *args], stdout=full, stderr=subprocess.PIPE, env=env, timeout=120, check=False)
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 6, lines
    assert f"error: {os.strerror(errno.ENOSPC)}" in lines
    assert not [line for line in lines if "Exception ignored" in line or "Traceback" in line]


def test_every_exit_code_is_listed_once_for_help_and_docs():
    helped = run("--help").stdout
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for code, meaning in MEANINGS.items():
        assert re.search(rf"^ +{code} +\S", helped, re.MULTILINE)
        assert f"| {code} | {meaning} |" in page
    assert SaveError.exit_code == 6
