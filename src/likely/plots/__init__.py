"""SVG charts and HTML tables from plain numbers.

Never: models, files.
"""
