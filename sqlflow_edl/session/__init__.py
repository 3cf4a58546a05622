"""A session with one data source: the way of a statement from text to result."""
