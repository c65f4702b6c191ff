"""A short run of the fuzzer over inputs of fixed numbers; `make fuzz` runs it for longer, over new ones."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[1] / "fuzz" / "run.py"


@pytest.mark.parametrize(("target", "inputs"), [("model", 150), ("network", 60), ("csv", 25), ("json", 25), ("text", 15)])
def test_odd_inputs_are_refused_or_answered(target, inputs):
    command = [sys.executable, str(RUN), "--target", target, "--start", "0", "--most", str(inputs), "--seconds", "300"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 faults" in done.stdout
