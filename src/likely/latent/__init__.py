"""Hidden labels, states and cells, fitted by EM: mixtures, hidden Markov models, semi-supervised learning.

Never: SQL, pages.
"""
