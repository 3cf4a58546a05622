"""Texts of programs, before they are parsed: files, and variables in them."""
