"""Feed odd inputs to Likely until the time is over: python tests/fuzz/run.py --seconds 60 [--target model] [--start 0].

Every input is made from a number, so a fault is shown again by its target and number alone. Inputs run in child processes with
bounded memory and time: a crash is caught, reported with its number, and the run goes on behind it. What was found once is in
FOUND and is run first. FUZZ_COMPILED=1 NUMBA_BOUNDSCHECK=1 runs compiled loops that check every index.
"""

import argparse
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
MEMORY = 4 << 30  # bytes of address space of a child: what asks for more than that is refused by the system
LONGEST = 60  # seconds for one input
# Inputs that once crashed, hung or ended in a traceback.
FOUND = {
    "model": (12441, 28250, 49899), "network": (2791, 20475, 20947, 42401), "arrow": (), "parquet": (), "csv": (), "json": (),
    "text": (),
}  # fmt: skip


def child(target, numbers, place, seconds):
    """Run some inputs in this process; the number under way stands in the file `place`."""
    sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src")]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    import targets

    if os.environ.get("FUZZ_COMPILED"):  # every loop compiled, however small its input: for NUMBA_BOUNDSCHECK=1
        from likely.kernels import kernel

        kernel.LARGE = kernel.Kernel.tiny = 0
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a compiled loop cannot be interrupted: the process ends
    until, done, taken = time.monotonic() + seconds, 0, 0
    for number in numbers:
        Path(place).write_text(str(number))
        signal.alarm(LONGEST if done else 10 * LONGEST)  # the first may have to compile
        try:
            taken += targets.once(target, number)
        except Exception:  # any exception but a refusal is a fault: its number is the report
            sys.stdout.write(json.dumps({"number": number, "error": traceback.format_exc(limit=-3)}) + "\n")
        signal.alarm(0)
        done += 1
        if time.monotonic() > until:
            break
    sys.stdout.write(json.dumps({"done": done, "taken": taken, "next": number + 1}) + "\n")


def fuzz(target, start, seconds, most):
    """Faults, inputs done and inputs taken of one target."""
    until = time.monotonic() + seconds
    faults, done, taken, at = [], 0, 0, start
    known = list(FOUND[target])  # in one process too: each would learn the same models before its first input
    place = Path(os.environ.get("TMPDIR", "/tmp")) / f"likely-fuzz-{os.getpid()}-{target}"
    while known or (time.monotonic() < until and done < most):
        asked = ",".join(map(str, known)) if known else f"{at}:{at + most - done}"
        left = LONGEST * len(known) if known else max(1.0, until - time.monotonic())
        command = [sys.executable, "-X", "faulthandler", __file__, "--child", target, asked, str(place), str(left)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        found = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
        faults += [each for each in found if "error" in each]
        last = next((each for each in found if "done" in each), None)
        if last is None:
            number = int(place.read_text()) if place.exists() else (known or [at])[0]
            faults.append({"number": number, "error": f"exit {ended.returncode}: {ended.stderr[-2000:]}"})
            before = known.index(number) if known else number - at
            last = {"done": before + 1, "taken": 0, "next": number + 1}
        done, taken = done + last["done"], taken + last["taken"]
        if known:
            known = known[last["done"] :]
        else:
            at = last["next"]
        with contextlib.suppress(FileNotFoundError):
            place.unlink()
    return faults, done, taken


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--most", type=int, default=10**9, help="inputs of each target")
    parser.add_argument("--start", type=int, default=int(time.time()) * 1000, help="number of the first input")
    parser.add_argument("--target", action="append", choices=sorted(FOUND))
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        target, asked, place, seconds = given.child
        numbers = range(*map(int, asked.split(":"))) if ":" in asked else [int(n) for n in asked.split(",")]
        child(target, numbers, place, float(seconds))
        return 0
    bad = 0
    for target in given.target or list(FOUND):
        faults, done, taken = fuzz(target, given.start, given.seconds, given.most)
        sys.stdout.write(f"{target}: {done:,} inputs from number {given.start}, {taken:,} taken, {len(faults)} faults\n")
        sys.stdout.flush()
        for fault in faults[:20]:
            sys.stdout.write(f"  number {fault['number']}: {fault['error'].strip()}\n")
        bad += len(faults)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
