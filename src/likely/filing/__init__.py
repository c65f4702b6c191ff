"""A model as a header and arrays, and back: what the model file holds, and the one validator of it."""

from likely.filing.reading import from_file
from likely.filing.writing import to_file

__all__ = ["from_file", "to_file"]
