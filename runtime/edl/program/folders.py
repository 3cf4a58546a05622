"""Folders inside a program folder with other programs, in subfolders `0`, `1`, …."""

MEMBERS = "members"  # of an ensemble
CANDIDATES = "candidates"  # of a search
