"""DuckDB as a data source."""
