"""Statements of BigQuery ML that make models, read as ours."""
