"""Boosted trees: one adapter for all libraries, and an engine for each."""
