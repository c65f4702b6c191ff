"""Bayesian networks: declared or learned arcs, counted tables, exact inference, EM with hidden nodes and missing cells.

Never: files of tables (`sources`), drawing (`plots`), estimators.
"""
