"""The model: schema, tally and prior; parameters, explanations, sampling, selection and the model file.

Never: rows in bulk.
"""
