"""Advisers: what the source tells about the error of a statement."""
