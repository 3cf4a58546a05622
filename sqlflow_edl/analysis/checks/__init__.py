"""Warnings about the data of a training: ids, leaks, constants, duplicates, doubtful validation rows."""
