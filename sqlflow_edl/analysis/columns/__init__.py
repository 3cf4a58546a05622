"""The COLUMN language: items, functions, and derived features."""
