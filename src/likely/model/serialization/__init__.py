"""A model as a header and arrays, and back: what the model file holds, and the one validator of it."""

from likely.model.serialization.reading import from_file
from likely.model.serialization.writing import model_to_file, to_file

__all__ = ["from_file", "model_to_file", "to_file"]
