"""Stands where pandas would be, which PyArrow imports with its first array: a third of a second."""

raise ImportError("this stage has no pandas")
