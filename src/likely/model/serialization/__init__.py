"""A model as a header and arrays, and back: the content of the model file, and its checks."""

from likely.model.serialization._parts import from_file, model_to_file, to_file

__all__ = ["from_file", "model_to_file", "to_file"]
