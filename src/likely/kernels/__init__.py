"""Compiled loops, compile cache, thread pool and optimiser, all over plain arrays.

Never: objects, tables, models.
"""
