"""Errors with their place in the user's text, and their rendering."""
