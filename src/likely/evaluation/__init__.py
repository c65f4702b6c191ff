"""Cross-validation, metrics, learning curves, comparison with baselines, feature importance.

Never: files, pages.
"""
