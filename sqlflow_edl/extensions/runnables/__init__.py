"""TO RUN: Python programs of users over the rows of a query."""
