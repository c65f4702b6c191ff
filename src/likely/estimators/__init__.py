"""scikit-learn estimators: tables, text, mixtures and sequences.

Never: learning loops of their own.
"""
