"""Spark: rows are counted and scored in the tasks of a cluster, by the memory engine inside each task.

Never: pickled models; what travels are the bytes of the model file.
"""
