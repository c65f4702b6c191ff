"""A model as a header and arrays, and back: the content of the model file, and its validator."""

from likely.model.serialization._reading import from_file
from likely.model.serialization._writing import model_to_file, to_file

__all__ = ["from_file", "model_to_file", "to_file"]
