"""Session with one data source: takes a statement from text to stored result."""
