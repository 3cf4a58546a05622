"""Jinja templates of generated programs, as package data."""
