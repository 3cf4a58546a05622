"""Statements MAXIMIZE and MINIMIZE: from the statement to an `Optimization`."""
