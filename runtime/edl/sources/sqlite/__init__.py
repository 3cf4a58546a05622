"""SQLite as a data source."""
