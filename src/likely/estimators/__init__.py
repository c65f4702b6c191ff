"""scikit-learn estimators: tables, text, mixtures, sequences and networks.

Never: learning loops of their own.
"""
