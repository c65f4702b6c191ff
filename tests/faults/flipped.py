"""Learn from files with one flipped bit each: python flipped.py FILE TARGET FIRST COUNT STEP; the number under way is printed.

Run as a process of its own, so that a crash is seen as one, with its number.
"""

import sys
import warnings
from pathlib import Path

import likely
from likely.errors import DataError, LikelyWarning


def main(file: str, target: str, first: int, count: int, step: int) -> None:
    data, ending = Path(file).read_bytes(), Path(file).suffix
    path = Path(file).with_name(f"flipped{ending}")
    warnings.simplefilter("ignore", LikelyWarning)
    for number in range(first, first + count):
        place = number * step % (8 * len(data))
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        sys.stdout.write(f"{number} ")
        sys.stdout.flush()
        try:
            likely.learn(str(path), target, plain=True).predict(str(path), absent="missing")
            reported = "read"
        except DataError:
            reported = "refused"
        sys.stdout.write(f"{reported}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
