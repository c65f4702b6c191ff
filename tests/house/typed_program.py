"""A program that mypy reads in `make lint`: it accepts the public names, and a misspelt one is an error.

Strict mode reports an ignored error that does not occur, so lint fails if mypy accepts one of the misspelt names.
"""

import likely

likely.learn("x").predict("y")
likely.lern("x")  # type: ignore[attr-defined]
likely.learn("x").predct("y")  # type: ignore[attr-defined]
