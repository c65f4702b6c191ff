"""Progress: long work announces its steps; a terminal shows them, anything else stays quiet."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import likely
from commands import run
from likely.kernels.progress import Step, announce, listening


def table(n: int = 400) -> dict[str, list]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return {"x": rng.normal(y, 1.0).tolist(), "v": [f"v{i}" for i in (y + rng.integers(0, 3, n)) % 3], "y": y.tolist()}


def heard(work) -> list[Step]:
    steps: list[Step] = []
    with listening(steps.append):
        work()
    return steps


def test_cross_validation_announces_every_fold_and_what_it_does_in_it() -> None:
    steps = heard(lambda: likely.evaluate(table(), target="y", folds=4))
    assert [(s.done, s.total) for s in steps if s.total] == [(0, 4), (1, 4), (2, 4), (3, 4)]
    assert {"column weights", "scoring"} <= {s.what for s in steps}


def test_learning_em_curve_and_comparison_announce_their_steps() -> None:
    assert any(s.what.startswith("interactions, round") for s in heard(lambda: likely.learn(table(), target="y")))
    em = heard(lambda: likely.cluster({"x": table()["x"]}, 2, n_init=1))
    assert [s.what for s in em if s.what.startswith("EM")][:2] == ["EM iteration 1", "EM iteration 2"]
    curve = heard(lambda: likely.curve(table(), target="y", seeds=2, sizes=[50, 100]))
    assert [(s.done, s.total) for s in curve if s.total] == [(0, 2), (1, 2)]
    pytest.importorskip("sklearn", reason="scikit-learn is not here: nothing to compare with")
    compared = heard(lambda: likely.compare(table(), target="y", baselines=["gaussian-nb"], folds=2))
    assert {s.total for s in compared if s.total} >= {6}


def test_nobody_listens_by_default_and_a_listener_hears_only_its_own_block() -> None:
    announce("nothing hears this")
    assert heard(lambda: announce("a", 1, 2)) == [Step("a", 1, 2)]
    announce("nor this")


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals are of POSIX systems")
@pytest.mark.parametrize("command", ["learn", "report"])
def test_a_terminal_shows_steps_and_a_file_nothing(command: str, tmp_path: Path) -> None:
    rows = table(300)
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    run("learn", str(tmp_path / "t.csv"), "--target", "y", "-o", str(tmp_path / "m.likely"))
    given = {
        "learn": ["learn", str(tmp_path / "t.csv"), "--target", "y", "--folds", "3", "-o", str(tmp_path / "n.likely")],
        "report": ["report", str(tmp_path / "m.likely"), "--data", str(tmp_path / "t.csv"), "-o", str(tmp_path / "r.html")],
    }[command]
    assert run(*given).stderr == ""
    code = "import sys, likely.cli._progress_meter as m; m.PATIENCE = 0.0\nfrom likely.cli import main\nmain(sys.argv[1:])"
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code, *given], stdout=subprocess.DEVNULL, stderr=theirs,
                               env=os.environ | {"TERM": "xterm", "COLUMNS": "120"})  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end was closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait(60) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert re.search({"learn": r"evaluating: .*\d of 3", "report": r"report: .*\d of 7"}[command], text), text[-2000:]


def test_a_calling_program_can_request_progress_as_lines_of_json(tmp_path: Path) -> None:
    rows = table(300)
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    given = ["learn", str(tmp_path / "t.csv"), "--target", "y", "--folds", "3", "-o", str(tmp_path / "m.likely"), "--json"]
    done = subprocess.run([sys.executable, "-m", "likely", *given], capture_output=True, text=True, check=True,
                          env=os.environ | {"LIKELY_PROGRESS": "json"})  # fmt: skip
    told = [json.loads(line)["progress"] for line in done.stderr.splitlines() if line.startswith("{")]
    assert {each["doing"] for each in told} == {"learning", "evaluating"}
    folds = [(each["detail"], each["done"]) for each in told if each["total"] == 3 and each["detail"].startswith("learning")]
    assert folds == [(f"learning fold {i + 1}", i) for i in range(3)]
    assert any(each["seconds_left"] is not None for each in told)
    assert json.loads(done.stdout)["rows"] == 300
