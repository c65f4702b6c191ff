"""Worked examples of the textbook, step by step, and EM as an animated lesson.

Never: formulas that the library does not use.
"""
