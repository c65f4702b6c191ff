"""From a source, a model file or counted parts to a model.

Never: formulas, rows in bulk.
"""
