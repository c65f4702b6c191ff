"""A fitted model in the language of another system: SQL, ONNX, JSON, from its likelihood forms.

Never: a family by name, rows, learning.
"""

from __future__ import annotations

from typing import Any


def to_sql(model: Any, **options: Any) -> str:
    """The model as one SELECT; options as those of `Model.sql`."""
    from likely.export._sql import write_sql

    return write_sql(model, **options)


def to_onnx(model: Any) -> Any:
    """The model as an ONNX graph; see `Model.onnx`."""
    from likely.export._onnx_graph import write_onnx

    return write_onnx(model)


def to_json(model: Any) -> dict[str, Any]:
    """The model as plain values: inputs, codes, tables and terms of the classes; see docs/sql.md."""
    from likely.export._json_document import describe

    return describe(model)


__all__ = ["to_json", "to_onnx", "to_sql"]
