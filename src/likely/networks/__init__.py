"""Bayesian networks: declared or learned arcs, counted tables, exact inference, EM with hidden nodes and missing cells.

Never: reading of table formats, SVG, scikit-learn.
"""
