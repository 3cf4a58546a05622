"""Trained models: archives, and the registry in the data source that stores them.

None of their content is executed.
"""
