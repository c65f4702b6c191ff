"""Pictures and documents of fitted models, from their numbers.

Never: learning.
"""
