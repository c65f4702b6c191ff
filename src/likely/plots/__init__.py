"""SVG charts from plain numbers.

Never: models, files.
"""
